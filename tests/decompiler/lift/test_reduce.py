"""Branches that only compute a value or a condition become expressions; others stay branches."""

from __future__ import annotations

import pytest
from small_graphs import flow
from small_nodes import lifts, nodes, shown

from depyf.decompiler.lift.lifter import lift

AND = "a: LOAD a; COPY 1; false -> e, b\nb: POP; LOAD b; -> e\ne: RETURN"
CHOICE = "a: LOAD a; false -> n, y\ny: LOAD x; -> e\nn: LOAD z; -> e\ne: RETURN"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(AND, "a and b", id="and"),
        pytest.param(AND.replace("false", "true"), "a or b", id="or"),
        pytest.param(
            "a: LOAD a; COPY 1; false -> e, b\nb: POP; LOAD b; COPY 1; false -> e, c\nc: POP; LOAD c; -> e\ne: RETURN",
            "a and b and c",
            id="three operands",
        ),
        pytest.param(
            "a: LOAD a; COPY 1; false -> c, b\nb: POP; LOAD b; -> c\nc: COPY 1; true -> e, d\nd: POP; LOAD d; -> e\n"
            "e: RETURN",
            "a and b or d",
            id="and in or",
        ),
        pytest.param(
            "a: LOAD a; false -> d, b\nb: LOAD b; false -> d, c\nc: LOAD c; -> e\nd: LOAD d; -> e\ne: RETURN",
            "c if a and b else d",
            id="and in a condition",
        ),
        pytest.param(CHOICE, "x if a else z", id="conditional"),
        pytest.param(CHOICE.replace("false", "true"), "x if not a else z", id="conditional, turned round"),
        pytest.param(CHOICE.replace("false", "not none"), "x if a is None else z", id="conditional on None"),
        pytest.param(
            "a: f(); LOAD a; false -> n, y\ny: LOAD x; -> e\nn: LOAD z; -> e\ne: CALL 1; RETURN",
            "f()(x if a else z)",
            id="with an operand below",
        ),
        pytest.param(
            "a: LOAD a; false -> n, y\ny: LOAD x; -> e\nn: LOAD b; false -> m, o\no: LOAD z; -> e\nm: LOAD w; -> e\n"
            "e: RETURN",
            "x if a else z if b else w",
            id="conditional in a conditional",
        ),
    ],
)
def test_a_value_that_branches_compute_is_an_expression(text: str, expected: str) -> None:
    assert lifts(text) == nodes(f"a: return {expected}")


BOTH = "a: LOAD a; false -> n, b\nb: LOAD b; false -> n, y\ny: f(); RETURN\nn: g(); RETURN"
ARMS = (
    "a: LOAD a; false -> n, y\ny: LOAD x; false -> no, yes\nn: LOAD z; false -> no, yes\n"
    "yes: f(); RETURN\nno: g(); RETURN"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(BOTH, "a and b", id="and"),
        pytest.param(BOTH.replace("a; false -> n, b", "a; true -> y, b"), "a or b", id="or"),
        pytest.param(BOTH.replace("a; false", "a; true"), "not a and b", id="not"),
        pytest.param(ARMS, "x if a else z", id="conditional"),
        pytest.param(
            ARMS.replace("z; false -> no, yes", "z; true -> no, yes"), "x if a else not z", id="opposite arms"
        ),
    ],
)
def test_tests_that_lead_to_the_same_places_are_one(text: str, expected: str) -> None:
    assert lifts(text) == nodes(f"a: if {expected} -> y, n\ny: return f()\nn: return g()")


def test_a_test_that_jumps_to_the_next_one_is_joined_if_both_have_copies() -> None:
    """In a loop, ``while a and b`` goes back to the start where a test fails; so does ``if not a: continue``."""
    text = "a: LOAD a; true -> b, n\nb: LOAD b; false -> n, y\ny: f(); RETURN\nn: g(); POP; -> a"
    graph = flow(text)
    assert shown(lift(graph)) == nodes("a: if not a -> n, b\nb: if b -> y, n\ny: return f()\nn: g(); -> a")
    graph.copied_tests.update([0, 1])
    assert shown(lift(graph)) == nodes("a: if a and b -> y, n\ny: return f()\nn: g(); -> a")


def test_what_does_something_in_an_arm_stays_a_branch() -> None:
    text = CHOICE.replace("n: LOAD z", "n: f(); POP; LOAD z").replace("e: RETURN", "e: STORE r; CONST None; RETURN")
    expected = """
        a: if a -> y, n
        y: __temp_0 = x; -> e
        n: f(); __temp_0 = z; -> e
        e: r = __temp_0; return None
    """
    assert lifts(text) == nodes(expected)


def test_a_statement_between_two_tests_keeps_them_apart() -> None:
    text = BOTH.replace("b: LOAD b", "b: h(); POP; LOAD b")
    assert lifts(text) == nodes("a: if a -> b, n\nb: h(); if b -> y, n\ny: return f()\nn: return g()")


def test_tests_that_lead_to_other_places_stay_two() -> None:
    text = BOTH.replace("b; false -> n, y", "b; false -> m, y") + "\nm: h(); RETURN"
    expected = "a: if a -> b, n\nb: if b -> y, m\ny: return f()\nn: return g()\nm: return h()"
    assert lifts(text) == nodes(expected)


def test_a_test_that_others_jump_to_stays() -> None:
    text = BOTH.replace("n: g(); RETURN", "n: g(); false -> b, y")
    assert lifts(text) == nodes("a: if a -> b, n\nb: if b -> y, n\ny: return f()\nn: if g() -> y, b")


def test_a_test_in_another_region_stays() -> None:
    text = BOTH.replace("b: LOAD b", "b in h: LOAD b") + "\nh: PUSH_EXC; RERAISE"
    expected = "a: if a -> b, n\nb in h: if b -> y, n\ny: return f()\nn: return g()\nh under h: reraise h"
    assert lifts(text) == nodes(expected)


def test_the_test_of_a_loop_is_not_joined_with_one_before_it() -> None:
    text = "a: LOAD a; false -> n, b\nb: f(); false -> n, y\ny: g(); POP; -> b\nn: CONST None; RETURN"
    assert lifts(text) == nodes("a: if a -> b, n\nb: if f() -> y, n\ny: g(); -> b\nn: return None")
