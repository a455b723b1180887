"""The names of code objects, and the variables of enclosing functions."""

from __future__ import annotations

from types import CodeType
from typing import Any, Dict, Iterator, Tuple

from depyf.base.asynchronous import synchronous
from depyf.decompiler.syntax import nested_codes


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the global and attribute names in a code object and in those nested in it."""
    for each in nested_codes(code):
        yield from each.co_names


def qualified_name(code: CodeType) -> str:
    """Return ``Class.method``; up to Python 3.10 code has only the last part."""
    return str(getattr(code, "co_qualname", code.co_name))


def is_qualified(code: CodeType) -> bool:
    """Return whether the code has its qualified name."""
    return hasattr(code, "co_qualname")


def name_fields(code: CodeType) -> Dict[str, Any]:
    """Return the fields of the code that hold its names, for ``code.replace``."""
    return {field: getattr(code, field) for field in ("co_name", "co_qualname") if hasattr(code, field)}


def closure_of(function: Any) -> Iterator[Tuple[str, Any]]:
    """Return the variables of the enclosing functions, with their values; empty cells are omitted."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except synchronous(ValueError):
            # PyTorch's frame locals lack it too.
            continue
