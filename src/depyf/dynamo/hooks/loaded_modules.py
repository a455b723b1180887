"""Read ``sys.modules`` without running code of the modules.

``sys.modules`` may contain anything: ``None`` (a blocked import), instances instead of modules, lazy modules whose
``__getattr__`` imports half a library or raises. Only dictionaries are read here, and no attributes.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from types import CodeType, ModuleType
from typing import Callable, Dict, Iterator, List, Optional, Tuple, Union

from depyf.base.asynchronous import suppressed_all, synchronous
from depyf.base.module_namespace import namespace_of
from depyf.base.own_builtins import keep_builtins
from depyf.base.source_lines import source_lines

keep_builtins(globals())


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

    For a code object ``inspect.getsource`` would read ``__file__`` of everything in ``sys.modules``.
    """
    if isinstance(value, CodeType):
        return _source_of_code(value)
    with suppressed_all():
        try:
            return inspect.getsource(value)
        except synchronous(OSError, TypeError, SyntaxError, IndexError):
            return None
    with suppressed_all():
        return _source_of_code(getattr(value, "__code__", None))
    return None


def _source_of_code(code: Optional[CodeType]) -> Optional[str]:
    if code is None:
        return None
    with suppressed_all():
        linecache.checkcache(code.co_filename)
    lines = source_lines(code.co_filename)
    if not lines and not code.co_filename.startswith("<"):  # in an archive: its loader has the source
        namespaces = (each for _, each in loaded_namespaces() if file_of(each) == code.co_filename)
        lines = source_lines(code.co_filename, next(namespaces, None))
    try:
        return "".join(inspect.getblock(lines[code.co_firstlineno - 1 :])) or None
    except synchronous():  # not Python, or not the source of this code
        return None
