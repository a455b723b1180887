"""Code objects with the same bytecode on the same names and constants are compared without a second normal form."""

from __future__ import annotations

import sys
from types import CodeType
from typing import List

import pytest

from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import NormalCode
from depyf.decompiler.verify import Comparison, Finding, compare


def function_in(text: str) -> CodeType:
    """The first function of ``text``."""
    return next(
        each for each in compile(text, "<test>", "exec", dont_inherit=True).co_consts if isinstance(each, CodeType)
    )


def lowered_by(original: CodeType, candidate: CodeType, made: List[Code]) -> Comparison:
    def lowered(code: Code) -> NormalCode:
        made.append(code)
        return lower(code)

    return compare(original, candidate, lowered=lowered)


TEXT = """
def f(a, *, b=1):
    'text'
    try:
        return [g(x, {b}, -0.0, (1, 'k')) for x in a if (lambda: x)()]
    except ValueError as error:
        def inner():
            return 1, None
        return inner
"""


def test_only_the_original_is_lowered() -> None:
    original, candidate = function_in(TEXT), function_in("\n\n\n" + TEXT)
    made: List[Code] = []
    comparison = lowered_by(original, candidate, made)
    assert comparison.finding is Finding.EXACT
    assert not [each for each in made if each is candidate]
    assert len(made) == 1 + len(list(comparison.walk())[1:])
    assert all(mine == theirs for mine, theirs in comparison.pairs)


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("-0.0", "0.0"),
        ("{b}", "{a}"),
        ("(1, 'k')", "(True, 'k')"),
        ("return 1, None", "return 1, 1"),
        ("return 1, None", "return True, None"),
        ("g(x,", "h(x,"),
        ("ValueError", "TypeError"),
        ("*, b", "b"),
        ("lambda: x", "lambda: a"),
        ("as error", "as errors"),
        ("'text'", "'other'"),
    ],
)
def test_another_program_is_not_the_same(change: str, to: str) -> None:
    assert change in TEXT
    comparison = compare(function_in(TEXT), function_in(TEXT.replace(change, to, 1)))
    assert comparison.finding is not Finding.EXACT
    if change != "as error":  # another name of a variable is no difference
        assert not comparison.proved


def test_one_nan_is_not_two() -> None:
    code = function_in("def f():\n    return [1.5, 2.5]\n")
    nan, other = float("nan"), float("nan")
    indices = [code.co_consts.index(each) for each in (1.5, 2.5)]

    def holding(first: float, second: float) -> CodeType:
        constants = list(code.co_consts)
        constants[indices[0]], constants[indices[1]] = first, second
        return code.replace(co_consts=tuple(constants))

    assert not compare(holding(nan, nan), holding(nan, other)).proved
    assert not compare(holding(nan, other), holding(nan, nan)).proved
    assert compare(holding(nan, nan), holding(other, other)).finding is Finding.EXACT


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the table is new in 3.11")
def test_the_exception_table_counts() -> None:
    code = function_in("def f(a):\n    try:\n        a()\n    except a:\n        b()\n")
    comparison = compare(code, code.replace(co_exceptiontable=b""))
    assert comparison.finding is not Finding.EXACT
    assert not comparison.proved


def test_what_hands_on_futures_is_looked_at() -> None:
    text = "def f(a):\n    return eval(a)\n"
    postponed = next(
        each
        for each in compile(
            "from __future__ import annotations\n" + text, "<test>", "exec", dont_inherit=True
        ).co_consts
        if isinstance(each, CodeType)
    )
    assert not compare(function_in(text), postponed).proved
