"""Safe read access to ``sys.modules``. It may contain anything: ``None`` (a blocked import), instances in place of
modules, lazy modules whose ``__getattr__`` imports half a library or raises. This module reads only the modules'
dictionaries and no attributes, so that no code of the module runs.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from types import CodeType, ModuleType
from typing import Callable, Dict, Iterator, List, Optional, Tuple, Union

from depyf.asynchronous import synchronous


def namespace_of(module: object) -> Dict[str, object]:
    """Return the dictionary of a module, or of the object in its place; empty if there is none."""
    if type(module) is ModuleType:  # nearly all: this runs no other code either, and takes a tenth of the time
        return module.__dict__
    try:
        namespace = object.__getattribute__(module, "__dict__")
    except synchronous():  # no dictionary, or a property that raises
        return {}
    return namespace if isinstance(namespace, dict) else {}


def loaded_namespaces() -> Iterator[Tuple[str, Dict[str, object]]]:
    """Return the name and the dictionary of everything in ``sys.modules``."""
    for name, module in list(sys.modules.items()):
        if isinstance(name, str):
            yield name, namespace_of(module)


def namespaces_with(name: str, value: object, package: str = "") -> List[Dict[str, object]]:
    """Return the dictionaries of loaded modules (of a package) in which ``name`` is ``value``.

    Each hook asks for some thousand modules, so this calls nothing for a module that has another value.
    """
    found: List[Dict[str, object]] = []
    for module, loaded in list(sys.modules.items()):
        namespace = loaded.__dict__ if type(loaded) is ModuleType else namespace_of(loaded)
        if namespace.get(name) is value and isinstance(module, str):
            if not package or f"{module}.".startswith(f"{package}."):
                found.append(namespace)
    return found


def loaded_namespace(name: Optional[str]) -> Dict[str, object]:
    """Return the dictionary of the module of that name; empty if it is not loaded."""
    return namespace_of(sys.modules.get(name)) if isinstance(name, str) else {}


def file_of(namespace: Dict[str, object]) -> Optional[str]:
    """Return the ``__file__`` in a module's dictionary; None if it is not a string."""
    path = namespace.get("__file__")
    return path if isinstance(path, str) else None


def source_text(value: Union[CodeType, Callable[..., object], type]) -> Optional[str]:
    """Return the source of a function, class or code object from its file; None if it can't be found.
    ``inspect.getsource`` reads ``__file__`` of everything in ``sys.modules``, and raises what a lazy module raises.
    """
    try:
        if (
            isinstance(value, CodeType)
            and value.co_filename.startswith("<")
            and not linecache.getlines(value.co_filename)
        ):
            return None  # ``inspect`` would look through all modules each time to find that out
        return inspect.getsource(value)
    except synchronous(OSError, TypeError, SyntaxError, IndexError):
        return None
    except synchronous():
        return _source_of_code(value if isinstance(value, CodeType) else getattr(value, "__code__", None))


def _source_of_code(code: Optional[CodeType]) -> Optional[str]:
    lines = [] if code is None else linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    try:
        return "".join(inspect.getblock(lines)) or None
    except synchronous():  # not Python, or not the source of this code
        return None
