"""Which tests of a generator let a StopIteration out is compared, for each pair of tests that correspond.

CPython 3.14 and 3.15.0 leave some tests of a generator out of the handler that makes a RuntimeError of a StopIteration:
if ``x`` raises one in ``(x or y) or z``, another exception leaves the generator than in ``x or y or z``. 3.15.2 leaves
none out.
"""

from __future__ import annotations

import itertools
import sys
from types import CodeType, FunctionType
from typing import List, Tuple

import pytest

from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.verify import Finding, compare

pytestmark = pytest.mark.skipif(sys.version_info < (3, 14), reason="earlier compilers leave no test out")

OPEN, COVERED = "(x or y) or z", "x or y or z"
RERAISING = "try:\n k({0})\nexcept:\n raise\nyield"

SAME: Tuple[Tuple[str, str], ...] = (
    ("if c:\n k({0})\nelse:\n yield {1}", "if not c:\n yield {1}\nelse:\n k({0})"),
    ("if c:\n yield {0}\n return\nyield c", "if not c:\n yield c\nelse:\n yield {0}"),
    ("for c in k(x):\n if c:\n  k({0})\n  continue\n yield {1}", "for c in k(x):\n if not c: yield {1}\n else: k({0})"),
    ("k({1})\nyield", RERAISING.replace("0", "1")),
)  # fmt: skip
"""Pairs that differ in the order of their code, and have the same tests open."""

SWAPPED: Tuple[Tuple[str, str], ...] = (
    ("yield {0}", "yield {1}"),
    ("yield {0}\nyield {1}", "yield {1}\nyield {0}"),
    ("if c:\n k({0})\nelse:\n k({1})\nyield", "if c:\n k({1})\nelse:\n k({0})\nyield"),
    ("if c:\n k({0})\nelse:\n yield {1}", "if not c:\n yield {0}\nelse:\n k({1})"),
    ("for c in k(x):\n yield {0}\n k({1})", "for c in k(x):\n yield {1}\n k({0})"),
    ("yield ({1}) or c", "yield x or (y or z) or c"),
    ("k([{0} for c in k(x)])\nyield", "k([{1} for c in k(x)])\nyield"),
    ("k({0})\nyield", RERAISING.replace("0", "1")),  # an exception leaves one side at once, and passes a handler of
    (RERAISING, "k({1})\nyield"),  # the other; the load of k has done so in the same state before
    ("k({1})\nyield", RERAISING),
    (RERAISING.replace("0", "1"), "k({0})\nyield"),
    (RERAISING, RERAISING.replace("0", "1")),
)
"""Pairs that differ in which of their tests are open, most of them with equally many."""


def code(body: str, head: str = "def f(c, x, y, z):") -> CodeType:
    lines = body.format(OPEN, COVERED).split("\n")
    module = compile("\n ".join([head, *lines]), "<test>", "exec")
    return next(each for each in module.co_consts if isinstance(each, CodeType))


LEAVES_OUT = bool(lower(code("yield {0}")).open_tests)


class Value:
    """An object that counts the tests of all of its kind; one of them raises StopIteration."""

    tests, raising = 0, -1

    def __init__(self, truth: bool) -> None:
        self.truth = truth

    def __bool__(self) -> bool:
        Value.tests += 1
        if Value.tests == Value.raising:
            raise StopIteration
        return self.truth


def exceptions(body: str) -> List[str]:
    """Return how the generator ends for all truths of its arguments and each test that may raise StopIteration."""
    found = []
    for Value.raising, *truths in itertools.product(range(8), *[(False, True)] * 4):
        Value.tests = 0
        arguments = [Value(truth) for truth in truths]
        function = FunctionType(code(body), {"k": lambda value: [Value(True)]})
        try:
            list(function(*arguments))  # what a StopIteration ends, too
            found.append(f"{Value.tests} tests")
        except RuntimeError as error:
            found.append(repr(error))
    return found


@pytest.mark.parametrize(("original", "candidate"), SAME)
@pytest.mark.parametrize("always_prove", [True, False])
def test_a_pair_with_the_same_tests_open_is_proved(original: str, candidate: str, always_prove: bool) -> None:
    assert compare(code(original), code(candidate), always_prove=always_prove).finding is Finding.EQUIVALENT
    assert exceptions(original) == exceptions(candidate)


@pytest.mark.parametrize(("original", "candidate"), SWAPPED)
@pytest.mark.parametrize("always_prove", [True, False])
def test_a_pair_with_other_tests_open_is_not_proved(original: str, candidate: str, always_prove: bool) -> None:
    for one, two in ((original, candidate), (candidate, original)):
        assert compare(code(one), code(two), always_prove=always_prove).proved != LEAVES_OUT
    assert (exceptions(original) != exceptions(candidate)) == LEAVES_OUT


@pytest.mark.parametrize(("original", "candidate"), SWAPPED)
def test_each_of_a_pair_is_the_same_as_itself(original: str, candidate: str) -> None:
    for body in (original, candidate):
        assert compare(code(body), code(body)).finding is Finding.EXACT
        assert compare(code(body), code(body), always_prove=True).finding is Finding.EQUIVALENT


@pytest.mark.parametrize("head", ["async def f(c, x, y, z):", "def f(c, x, y, z):"])
def test_a_function_has_open_tests_if_it_can_be_suspended(head: str) -> None:
    one, two = (code(f"return {value}", head) for value in (OPEN, COVERED))
    assert compare(one, two).proved != (LEAVES_OUT and "async" in head)
