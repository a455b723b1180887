"""Code objects and those nested in them."""

from __future__ import annotations

from types import CodeType
from typing import Iterator


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield ``code`` and every code object inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested_codes(constant)


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the global and attribute names in a code object and in those nested in it."""
    for each in nested_codes(code):
        yield from each.co_names
