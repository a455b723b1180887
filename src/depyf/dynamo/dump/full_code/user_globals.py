"""The globals that a ``full_code_*.py`` needs but does not define: imports, constants, placeholders."""

from __future__ import annotations

import builtins
import math
import os
import symtable
import sys
import sysconfig
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import AbstractSet, Any, FrozenSet, List, Mapping, Optional, Set, Tuple

from depyf.base.module_namespace import namespace_of
from depyf.base.without_warnings import without_warnings
from depyf.dynamo.dump.full_code.text import is_name
from depyf.report.render.hidden_values import HiddenValues

_LONGEST_CONSTANT = 200
_LONGEST_INTEGER, _LONGEST_DECIMAL = 1 << 16, 1024  # in bits; Python may refuse to write more than 640 digits


def _standard_library() -> FrozenSet[str]:
    """Return the names of the modules that come with Python. Before 3.10 Python has no list: its folders are read."""
    known: Optional[FrozenSet[str]] = getattr(sys, "stdlib_module_names", None)
    if known is not None:
        return known
    library = sysconfig.get_paths()["stdlib"]
    folders = [each for each in (library, os.path.join(library, "lib-dynload")) if os.path.isdir(each)]
    names = {entry.partition(".")[0] for folder in folders for entry in os.listdir(folder)}
    return frozenset(sys.builtin_module_names) | {name for name in names if name.isidentifier()}


_SAFE_TO_IMPORT = frozenset({"torch", "numpy", *_standard_library()})


def missing_names(source: str, known: AbstractSet[str] = frozenset()) -> List[str]:
    """Return the global names that the module ``source`` reads and does not define, sorted, without builtins and
    ``known``. Raises ``SyntaxError`` if ``source`` is not Python.
    """
    with without_warnings():
        table = symtable.symtable(source, "<full_code>", "exec")
    read: Set[str] = set()
    assigned = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    todo = [table]
    while todo:
        scope = todo.pop()
        todo.extend(scope.get_children())
        for symbol in scope.get_symbols():
            is_global = symbol.is_global() or scope.get_type() == "module"
            if is_global and symbol.is_referenced():
                read.add(symbol.get_name())
    module_names = set(dir(builtins)) | {"__file__", "__name__", "__doc__"}
    return sorted(name for name in read - assigned - module_names - known if is_name(name))


def definition_of(
    name: str, scope: Mapping[str, object], real_name: str, hidden: Optional[HiddenValues] = None
) -> Tuple[str, bool]:
    """Return a statement that gives ``name`` a value, and whether that is only a placeholder. ``real_name`` is its name
    in ``scope``, the user's globals."""
    if real_name not in scope:
        return f"{name} = ___placeholder({f'global {name}'!r})", True
    value = scope[real_name]
    imported = _import_of(name, value)
    if imported is not None:
        return imported, False
    if _is_constant(value) and hidden is not None and hidden.shown(value) is not value:
        return f"{name} = ___placeholder({hidden_description(value)!r})", True
    if _is_constant(value):
        return f"{name} = {_literal(value)}", False
    return f"{name} = ___placeholder({description(value)!r})", True


def _import_of(name: str, value: object) -> Optional[str]:
    """Return an import statement that gives the same object without running the user's code."""
    if type(value) is ModuleType:
        if not _importable(value.__name__, value):
            return None
        return f"import {value.__name__}" if value.__name__ == name else f"import {value.__name__} as {name}"
    module, attribute = _module_and_name(value)
    home = sys.modules.get(module)
    if type(home) is not ModuleType or not is_name(attribute):
        return None
    if not _importable(module, home) or vars(home).get(attribute) is not value:
        return None
    return f"from {module} import {attribute}" + ("" if attribute == name else f" as {name}")


def _module_and_name(value: Any) -> Tuple[str, str]:
    """Return the module and the name in which a class or function claims to be defined, empty for any other object.

    Asking an object of the user's class for an attribute could run code of that class; a lazy module would be loaded.
    """
    if issubclass(type(value), type):
        names = type.__getattribute__(value, "__module__"), type.__getattribute__(value, "__qualname__")
    elif type(value) in (FunctionType, BuiltinFunctionType):
        names = value.__module__, value.__qualname__
    else:
        return "", ""
    module, qualified_name = (name if isinstance(name, str) else "" for name in names)
    return module, qualified_name


def _importable(module: str, value: ModuleType) -> bool:
    if module.partition(".")[0] not in _SAFE_TO_IMPORT or sys.modules.get(module) is not value:
        return False
    # ``__main__`` and modules made at run time can't be imported.
    spec = namespace_of(value).get("__spec__")
    has_a_place = getattr(spec, "origin", None) is not None
    return module != "__main__" and has_a_place and all(map(is_name, module.split(".")))


def _is_constant(value: Any) -> bool:
    if value is None or value is Ellipsis or type(value) in (bool, complex):
        return True
    if type(value) is int:
        return bool(value.bit_length() <= _LONGEST_INTEGER)
    if type(value) is float:
        return math.isfinite(value)
    return type(value) in (str, bytes) and len(value) <= _LONGEST_CONSTANT


def _literal(value: object) -> str:
    """Return the literal of a constant. A long integer is hexadecimal, since Python limits decimal digits only."""
    return hex(value) if type(value) is int and value.bit_length() > _LONGEST_DECIMAL else repr(value)


def hidden_description(value: object) -> str:
    """Return words for a value that is not to be shown (``values="types"``)."""
    return f"a value of type {type(value).__name__} that is not shown"


def description(value: object) -> str:
    """Return words for an object, the same in every run."""
    if issubclass(type(value), ModuleType):
        return f"module {ModuleType.__getattribute__(value, '__name__')}"
    kind = "class" if issubclass(type(value), type) else "function"
    if type(value) not in (FunctionType, BuiltinFunctionType) and kind == "function":
        kind, value = "an instance of", type(value)
    return f"{kind} {'.'.join(_module_and_name(value))}"
