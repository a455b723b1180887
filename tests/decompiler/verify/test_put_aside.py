"""Variables that an inlined comprehension saves (3.12) are restored, and cells are distinguished."""

from __future__ import annotations

from types import CodeType
from typing import Tuple

import pytest
from operations import CALL_G, Step, code, finding, listing, local, proved

from depyf.decompiler.normal.ops import Op
from depyf.decompiler.verify import Finding, compare

A = ("fast", "a")
STORE_ONE: Tuple[Step, ...] = ((Op.CONST, 1), (Op.STORE, A))
CALL_G_WITH_A: Tuple[Step, ...] = (*CALL_G, local("a"), (Op.CALL, (1, (), "below")), (Op.POP,))
RETURN_A: Tuple[Step, ...] = (local("a"), (Op.RETURN,))

PUT_BACK = listing((Op.TAKE, A), *STORE_ONE, *CALL_G_WITH_A, (Op.STORE, A), *RETURN_A)


def test_what_was_put_aside_comes_back() -> None:
    assert finding(PUT_BACK, "def f(a, b):\n c = a; a = 1\n g(a)\n a = c\n return a") == (Finding.EQUIVALENT, "")


@pytest.mark.parametrize(
    "candidate",
    [
        "def f(a, b):\n c = a; a = 1\n g(a)\n return a",
        "def f(a, b):\n c = a; a = 1\n g(a)\n a = b\n return a",
        "def f(a, b):\n c = a; a = 1\n g(c)\n a = c\n return a",
        "def f(a, b):\n g(1)\n return a",  # who looks at the frame while g runs finds another value
    ],
)
def test_other_values_are_no_proof(candidate: str) -> None:
    assert not finding(PUT_BACK, candidate)[0].proved


def test_what_was_put_aside_lives_on() -> None:
    dropped = listing((Op.TAKE, A), *STORE_ONE, (Op.POP,), *CALL_G_WITH_A, *RETURN_A)
    candidate = "def f(a, b):\n a = 1\n g(a)\n return a"
    assert finding(dropped, candidate) == (Finding.EQUIVALENT, "")
    kept = listing((Op.TAKE, A), *STORE_ONE, *CALL_G_WITH_A, (Op.POP,), *RETURN_A)
    assert not finding(kept, candidate)[0].proved


def test_nothing_comes_back_where_nothing_was() -> None:
    missing = ("fast", "c")
    original = listing(
        (Op.TAKE, missing), (Op.CONST, 1), (Op.STORE, missing), (Op.STORE, missing), (Op.LOAD, missing), (Op.RETURN,)
    )
    assert finding(original, "def f(a, b):\n c = 1\n del c\n return c") == (Finding.EQUIVALENT, "")
    assert not finding(original, "def f(a, b):\n c = 1\n return c")[0].proved


def test_taken_twice_comes_back_in_turn() -> None:
    original = listing(
        (Op.TAKE, A), *STORE_ONE, (Op.TAKE, A), (Op.CONST, 2), (Op.STORE, A), (Op.STORE, A), *CALL_G_WITH_A,
        (Op.STORE, A), *RETURN_A,
    )  # fmt: skip
    assert finding(original, "def f(a, b):\n c = a; a = 1\n g(a)\n a = c\n return a") == (Finding.EQUIVALENT, "")
    assert not finding(original, "def f(a, b):\n c = a; a = 2\n g(a)\n a = c\n return a")[0].proved


CAPTURED = """
def f(xs, x):
    ys = [(lambda: x, [lambda: (x, y) for y in xs]) for x in xs if x]
    return ys, x, lambda: x
"""


@pytest.mark.parametrize(
    ("candidate", "proved"),
    [
        (CAPTURED, True),
        (CAPTURED.replace("return ys, x", "zs = ys\n    return zs, x"), True),
        (CAPTURED.replace("if x]", "if not x]"), False),
        (CAPTURED.replace("(lambda: x, [", "(lambda: xs, ["), False),
        (CAPTURED.replace("ys, x, lambda", "ys, xs, lambda"), False),
    ],
)
def test_cells_that_change(candidate: str, proved: bool) -> None:
    comparison = compare(code(CAPTURED), code(candidate), always_prove=True)
    assert comparison.proved == proved, comparison.reason


def test_cells_are_told_apart() -> None:
    """A function that captures the cell of the comprehension is not one that captures the cell around it."""
    around = code("def h(a):\n def g(): return a\n return g")
    inner = next(constant for constant in around.co_consts if isinstance(constant, CodeType))
    capture = ((Op.CLOSURE, "a"), (Op.BUILD, ("tuple", 1)), (Op.CONST, inner), (Op.MAKE_FUNCTION, 8))
    put_aside, put_back = ((Op.TAKE, ("cell", "a")), (Op.MAKE_CELL, "a")), ((Op.SWAP, 2), (Op.STORE, ("cell", "a")))
    inside = listing(*put_aside, *capture, *put_back, (Op.RETURN,))
    behind = listing(*put_aside, (Op.STORE, ("cell", "a")), *capture, (Op.RETURN,))
    assert proved(inside, inside)
    assert proved(behind, behind)
    assert not proved(inside, behind)
    assert not proved(behind, inside)
