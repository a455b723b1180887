"""Statements of a comprehension or lambda become its expression."""

from __future__ import annotations

import ast
from typing import Any, List

import pytest

from depyf.decompiler.source.definitions.comprehension import as_expression
from depyf.decompiler.source.printing.statements import unparse
from depyf.decompiler.structure.unstructured import Unstructured


def statements(source: str) -> List[ast.stmt]:
    function: Any = ast.parse(f"def f():\n{source}").body[0]
    return list(function.body)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (" return a", "a"),
        (" if a:\n  return b", "b if a else None"),
        (" if a:\n  return b\n return c", "b if a else c"),
        (" if a:\n  if b:\n   return c\n else:\n  return d", "(c if b else None) if a else d"),
        (" if not a:\n  pass\n return b", "b if a or True else None"),
    ],
)
def test_returns_in_branches_are_a_conditional_expression(source: str, expected: str) -> None:
    assert unparse(as_expression(statements(source))) == expected


@pytest.mark.parametrize("source", [" if a:\n  if b:\n   return c\n return d", " x = 1\n return x", " f()"])
def test_what_is_no_expression_is_said_to_be_none(source: str) -> None:
    with pytest.raises(Unstructured):
        as_expression(statements(source))
