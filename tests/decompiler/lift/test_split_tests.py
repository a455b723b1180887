"""Whether operands of ``and`` are in one statement or in several, by the spans of their jumps."""

from __future__ import annotations

import ast
from typing import Any, Optional

import pytest

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.lift.spans import put, put_jump
from depyf.decompiler.lift.split_tests import are_apart, operands, parts


def expr(text: str) -> Any:
    return ast.parse(text, mode="eval").body


def placed(place: Optional[Span], jump: Optional[Span]) -> ast.expr:
    """A test that was written at ``place``, and the jump that depends on it."""
    test = ast.Name("x", ast.Load())
    put(test, place)
    put_jump(test, jump)
    return test


def test_operands_are_those_of_and() -> None:
    assert [node.id for node in operands(expr("a and b and c"))] == ["a", "b", "c"]  # type: ignore[attr-defined]
    assert operands(expr("a or b")) == []
    assert operands(expr("a")) == []


@pytest.mark.parametrize(("split", "first", "rest"), [(1, "a", "b and c"), (2, "a and b", "c")])
def test_parts_of_a_test(split: int, first: str, rest: str) -> None:
    assert list(map(ast.dump, parts(operands(expr("a and b and c")), split))) == [
        ast.dump(expr(first)),
        ast.dump(expr(rest)),
    ]


def at(line: int, column: Optional[int] = None, end: Optional[int] = None, end_line: Optional[int] = None) -> Span:
    return Span(line, column, end_line or line, end)


@pytest.mark.parametrize(
    ("one", "two", "apart"),
    [
        pytest.param((at(1, 3, 4), at(1, 0, 20, 4)), (at(1, 9, 10), at(1, 0, 20, 4)), False, id="one statement"),
        pytest.param((at(1, 3, 4), at(1, 0, 20, 4)), (at(2, 7, 8), at(2, 4, 20, 3)), True, id="two statements"),
        pytest.param((at(1), at(1)), (at(2), at(2)), True, id="lines only: a jump on the line of its own test"),
        pytest.param((at(1), at(1)), (at(2), at(1)), False, id="lines only: one jump line"),
        pytest.param((at(1, 3, 4), at(1, 3, 4)), (at(2, 3, 4), at(2, 3, 4)), None, id="columns that do not tell"),
        pytest.param(
            (at(1, 3, 4, 2), at(1, 3, 4)), (at(2, 5, 6), at(2, 5, 6)), False, id="one reaches the other's line"
        ),
        pytest.param((at(1, 3, 4), at(2, 3, 4)), (at(3, 5, 6), at(2, 8, 9)), False, id="jumps on one line"),
        pytest.param((None, None), (at(2), at(2)), False, id="nothing known"),
    ],
)
def test_two_tests_are_apart_where_their_jumps_belong_to_two_statements(one: Any, two: Any, apart: Any) -> None:
    assert are_apart(placed(*one), placed(*two)) is apart
