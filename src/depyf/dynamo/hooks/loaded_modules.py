"""Read access to ``sys.modules`` that takes nothing for granted.

``sys.modules`` may hold anything: ``None`` (an import that is blocked), instances that stand for modules, lazy modules
whose ``__getattr__`` imports half a library or raises. What is read here is read from dictionaries only, without asking
the module for an attribute, so that no code of the module runs.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from types import CodeType, ModuleType
from typing import Callable, Dict, Iterator, Optional, Tuple, Union

from depyf.asynchronous import synchronous


def namespace_of(module: object) -> Dict[str, object]:
    """The dictionary of a module, or of whatever stands in ``sys.modules`` instead; empty where there is none."""
    if type(module) is ModuleType:  # nearly all: this asks nobody either, and takes a tenth of the time
        return module.__dict__
    try:
        namespace = object.__getattribute__(module, "__dict__")
    except synchronous():  # no dictionary, or a property that raises
        return {}
    return namespace if isinstance(namespace, dict) else {}


def loaded_namespaces() -> Iterator[Tuple[str, Dict[str, object]]]:
    """The name and the dictionary of everything in ``sys.modules``."""
    for name, module in list(sys.modules.items()):
        if isinstance(name, str):
            yield name, namespace_of(module)


def loaded_namespace(name: Optional[str]) -> Dict[str, object]:
    """The dictionary of the module of that name; empty where it is not loaded."""
    return namespace_of(sys.modules.get(name)) if isinstance(name, str) else {}


def file_of(namespace: Dict[str, object]) -> Optional[str]:
    """The ``__file__`` of a module, by its dictionary; None where it is no text."""
    path = namespace.get("__file__")
    return path if isinstance(path, str) else None


def source_text(value: Union[CodeType, Callable[..., object], type]) -> Optional[str]:
    """The source of a function, class or code object as it stands in its file; None where it can't be found.

    ``inspect.getsource`` asks everything in ``sys.modules`` for its file, and raises what a lazy module raises.
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
    except synchronous():  # no Python, or not that of this code
        return None
