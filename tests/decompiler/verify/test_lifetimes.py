"""A value that only one of two functions keeps alive while other code runs is detected: it may be GPU memory."""

from __future__ import annotations

import dis
from types import CodeType

import pytest

from depyf.decompiler.verify import Finding, compare


def code(source: str) -> CodeType:
    module = compile(source, "<test>", "exec")
    return next(const for const in module.co_consts if isinstance(const, CodeType))


def offsets(code: CodeType) -> set[int]:
    return {instruction.offset for instruction in dis.get_instructions(code)}


NESTED = "def f(x):\n return g(h(x), k())"


@pytest.mark.parametrize(
    "candidate",
    [
        "def f(x):\n a = g\n t = h(x)\n return a(t, k())",
        "def f(x):\n a = g\n t = h(x)\n u = [t]\n del t\n return a(u.pop(), k())",
    ],
)
def test_a_value_held_as_long_is_fine(candidate: str) -> None:
    assert compare(code(NESTED), code(candidate)).proved


def test_a_temporary_that_lives_too_long_is_no_proof() -> None:
    original = code("def f(x):\n y = g(h(x))\n k()\n return y")
    candidate = code("def f(x):\n a = g\n t = h(x)\n y = a(t)\n k()\n return y")
    comparison = compare(original, candidate)
    assert comparison.finding is Finding.UNVERIFIED
    assert comparison.reason.startswith("lifetime: ")
    assert "only the candidate keeps" in comparison.reason
    assert "(in t)" in comparison.reason
    assert {name for name, _ in comparison.overdue} == {"t"}
    assert all(offset in offsets(candidate) for _, offset in comparison.overdue)


def test_a_value_dropped_too_early_is_no_proof() -> None:
    original = code("def f(x):\n y = h(x)\n k()\n del y\n k()")
    candidate = code("def f(x):\n h(x)\n k()\n y = 1\n del y\n k()")
    assert not compare(original, candidate).proved


def test_an_iterator_that_is_dropped_early_is_no_proof() -> None:
    original = code("def f(x):\n for i in x:\n  if g(i): return h(x)\n return h(x)")
    candidate = code("def f(x):\n for i in x:\n  if g(i): break\n return h(x)")
    assert compare(original, candidate).reason.startswith("lifetime: ")


def test_a_value_inside_a_new_list_is_alive() -> None:
    original = code("def f(x):\n l = [h(x)]\n k()\n return l")
    candidate = code("def f(x):\n t = h(x)\n l = [t]\n del t\n k()\n return l")
    kept = code("def f(x):\n t = h(x)\n l = [t]\n k()\n return l")
    assert compare(original, candidate).proved
    assert compare(original, kept).proved is False


def test_constants_and_truths_may_live_on() -> None:
    original = code("def f(x):\n if x is None:\n  g(1)\n k()")
    candidate = code("def f(x):\n t = x is None\n u = 1\n if t:\n  g(u)\n k()")
    assert compare(original, candidate).proved


def test_the_exception_being_handled_is_alive_on_both_sides() -> None:
    original = code("def f(x):\n try: x()\n except E: g()\n k()")
    candidate = code("def f(x):\n try: x()\n except E:\n  g()\n  k()\n else: k()")
    assert not compare(original, candidate).proved
    candidate = code("def f(x):\n try:\n  x()\n  t = 0\n except E:\n  t = 1\n  g()\n k()")
    assert compare(original, candidate).proved
