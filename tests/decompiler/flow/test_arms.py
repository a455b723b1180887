"""Which blocks are arms of an expression, and which tests lead to them."""

from __future__ import annotations

import pytest
from small_graphs import flow, instrs

from depyf.decompiler.flow.arms import Arms, computes_alone, leaves_operand, stands_alone

CHOICES = """
    a 1:    LOAD a; false -> b, x
    x 1:    LOAD x; -> use
    b 1:    LOAD b; false -> y, x2
    x2 1:   LOAD x; -> use
    y 1:    LOAD y; -> use
    use 1:  STORE z; CONST None; RETURN
"""


def test_arms_with_other_tests_before_them_have_other_numbers() -> None:
    arms = Arms(flow(CHOICES))
    assert arms.tests_of(0) is None  # nothing leads to it
    numbers = [arms.tests_of(id) for id in (1, 3, 4)]
    assert None not in numbers
    assert len(set(numbers)) == 3


def test_the_same_tests_have_the_same_number() -> None:
    graph = flow(
        """
        a 1:    LOAD a; false -> x, f
        x 1:    LOAD x; STORE z
        f 2:    f(); POP; -> c
        c 1:    LOAD a; false -> y, f
        y 1:    LOAD x; STORE z; CONST None; RETURN
        """
    )
    arms = Arms(graph)
    assert arms.tests_of(1) == arms.tests_of(4) is not None


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(CHOICES.replace("x 1:", "x 2:"), id="on another line"),
        pytest.param(CHOICES.replace("x 1:    LOAD x; -> use", "x 1: CONST 1; RETURN"), id="returns a constant"),
        pytest.param(CHOICES.replace("x 1:    LOAD x; -> use", "x 1: RETURN"), id="only returns"),
        pytest.param(CHOICES.replace("x 1:    LOAD x; -> use", "x 1: LOAD x; RAISE 1"), id="raises"),
        pytest.param(CHOICES.replace("x 1:    LOAD x; -> use", "x 1: POP; -> use"), id="only drops"),
    ],
)
def test_other_blocks_are_no_arms(other: str) -> None:
    assert Arms(flow(other)).tests_of(1) is None


@pytest.mark.parametrize(
    ("ops", "alone"),
    [
        ("LOAD x", True),
        ("LOAD x; LOAD y; BINARY +", True),
        ("LOAD y; BINARY +", False),
        ("LOAD x; POP", False),
        ("f()", True),
    ],
)
def test_operations_that_stand_alone(ops: str, alone: bool) -> None:
    assert stands_alone(instrs(ops)) is alone
    assert computes_alone(instrs("POP; " + ops)) is alone


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("a: LOAD x; -> b", True),
        ("a: STORE x; -> b", False),
        ("a: LOAD x; true -> b, b", False),
        ("a: PUSH_EXC; -> b", False),
        ("a: -> b", False),
    ],
)
def test_a_block_that_leaves_an_operand(block: str, expected: bool) -> None:
    assert leaves_operand(flow(block + "\nb: RETURN").blocks[0]) is expected


def test_the_copy_of_a_while_test_has_the_tests_of_the_original() -> None:
    """``while (d or f()) is not None: pass``; nothing leads to its start, whichever block is asked for first."""
    graph = flow(
        """
        a 1:    LOAD d; COPY 1; true -> n, b
        b 1:    POP; f(); -> n
        n 1:    none -> out, c
        c 1:    LOAD d; COPY 1; true -> m, e
        e 1:    POP; f(); -> m
        m 1:    none -> out, c
        out 2:  CONST None; RETURN
        """
    )
    assert Arms(graph).tests_of(4) == Arms(graph).tests_of(1)
    arms = Arms(graph)
    assert arms.tests_of(4) == arms.tests_of(1) is not None
    assert arms.tests_of(3) is arms.tests_of(0) is None
