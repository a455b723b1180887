"""A lambda that is a generator lets a StopIteration out, where a function makes a RuntimeError of it (3.12 on)."""

from __future__ import annotations

from types import FunctionType
from typing import Any, Callable

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.verify import Finding, compare

BODIES = [
    "(yield next(it))",
    "[(yield each) for each in ()] if it is None else (yield next(it))",
    "(yield [next(each) for each in [it]])",
    "next(it) or (yield)",
]


def in_lambda(body: str) -> Any:
    return eval(compile(f"lambda it: {body}", "<test>", "eval"))


def in_function(body: str) -> Any:
    made: Any = {}
    exec(compile(f"def f(it): return {body}", "<test>", "exec"), made)
    return made["f"]


def ending(function: Callable[[Any], Any]) -> str:
    try:
        list(function(iter(())))
    except RuntimeError as error:
        return repr(error)
    return "StopIteration"


def bodies() -> Any:
    for body in BODIES:
        try:
            in_lambda(body)
        except SyntaxError:  # no yield in comprehensions
            continue
        yield body


@pytest.mark.parametrize("body", bodies())
@pytest.mark.parametrize("always_prove", [True, False])
def test_a_lambda_and_a_function_are_equal_if_both_end_the_same(body: str, always_prove: bool) -> None:
    one, two = in_lambda(body), in_function(body)
    same = ending(one) == ending(two)
    for left, right in ((one, two), (two, one)):
        assert compare(left.__code__, right.__code__, always_prove=always_prove).proved == same
    for each in (one, two):
        again = compare(each.__code__, each.__code__, always_prove=always_prove)
        assert again.finding is (Finding.EQUIVALENT if always_prove else Finding.EXACT)


@pytest.mark.parametrize("body", bodies())
def test_what_comes_back_ends_the_same(body: str) -> None:
    for function in (in_lambda(body), in_function(body)):
        answer = decompile_code(function.__code__)
        assert answer.verdict.proved, answer.reason
        again = FunctionType(answer.compile_like(), function.__globals__)
        assert ending(again) == ending(function)
