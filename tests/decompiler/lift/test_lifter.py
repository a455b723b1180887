"""Which blocks form one node, and the join of values where edges meet."""

from __future__ import annotations

import pytest
from small_graphs import flow
from small_nodes import lifts, nodes

from depyf.decompiler.lift.lifter import lift


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: f(); POP\nb: g(); RETURN", "a: f(); return g()", id="one way from one to the other"),
        pytest.param(
            "a: f(); POP; -> b\nb: g(); RETURN", "a: f(); -> b\nb: return g()", id="a jump is the end of a statement"
        ),
        pytest.param(
            "a: f()\nb in h: STORE x; CONST None; RETURN\nh: PUSH_EXC; RERAISE",
            "a: x = f(); return None",
            id="what can't raise, into the region before",
        ),
        pytest.param(
            "a: f(); POP\nb in h: g(); RETURN\nh: PUSH_EXC; RERAISE",
            "a: f(); -> b\nb in h: return g()\nh under h: reraise h",
            id="what can raise stays in its region",
        ),
        pytest.param(
            "a in h: f(); POP\nb leaves h: g(); RETURN\nh: PUSH_EXC; RERAISE",
            "a in h: f(); -> b\nb leaves h: return g()\nh under h: reraise h",
            id="where a region is left",
        ),
    ],
)
def test_blocks_become_nodes(text: str, expected: str) -> None:
    assert lifts(text) == nodes(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "a: f(); -> l\nl: for -> b, o\nb: STORE i; g(); POP; -> l\no: CONST None; RETURN".replace(
                "f();", "f(); ITER;"
            ),
            "a: -> l\nl: for i in f() -> b, o\nb: g(); -> l\no: return None",
            id="a variable",
        ),
        pytest.param(
            "a: LOAD x; ITER\nl: for -> b, o\nb: UNPACK 2; STORE i; STORE j; -> l\no: CONST None; RETURN",
            "a: -> l\nl: for i,j in x -> b, o\nb: -> l\no: return None",
            id="several",
        ),
        pytest.param(
            "a: LOAD x; ITER\nl: for -> b, o\nb: POP; g(); POP; -> l\no: CONST None; RETURN",
            "a: -> l\nl: for __temp_0 in x -> b, o\nb: g(); -> l\no: return None",
            id="none",
        ),
    ],
)
def test_a_loop_stores_what_it_runs_over(text: str, expected: str) -> None:
    lifted = lifts(text)
    assert lifted == [line.replace("target=i,j", "target=(i, j)") for line in nodes(expected)]


def test_a_value_that_a_loop_changes_on_the_stack_has_a_variable() -> None:
    text = "a: CONST 0\nl: f(); false -> o, b\nb: CONST 1; BINARY +; -> l\no: RETURN"
    expected = """
        a: __temp_0 = 0; -> l
        l: if f() -> b, o
        b: __temp_0 = __temp_0 + 1; -> l
        o: return __temp_0
    """
    assert lifts(text) == nodes(expected)


def test_a_constant_that_no_turn_changes_needs_none() -> None:
    text = "a: CONST 0\nl: f(); false -> o, b\nb: g(); POP; -> l\no: RETURN"
    assert lifts(text) == nodes("a: -> l\nl: if f() -> b, o\nb: g(); -> l\no: return 0")


def test_what_is_returned_in_several_ways_is_returned_from_each() -> None:
    text = "a: LOAD a; false -> n, y\ny: g(); POP; LOAD x; -> e\nn: f(); POP; LOAD z; -> e\ne: RETURN"
    lifted = lift(flow(text))
    assert sum(type(node.terminator).__name__ == "Return" for node in lifted.nodes.values()) == 2
    assert lifted.temporaries == 0


def test_equal_constants_that_meet_need_no_variable() -> None:
    text = "a: LOAD a; false -> n, y\ny: g(); POP; CONST 1; -> e\nn: f(); POP; CONST 1; -> e\ne: h(); POP; RETURN"
    assert lifts(text) == nodes("a: if a -> y, n\ny: g(); -> e\nn: f(); -> e\ne: h(); return 1")


def test_different_values_that_meet_have_one_variable() -> None:
    text = "a: LOAD a; false -> n, y\ny: g(); POP; CONST 1; -> e\nn: f(); POP; CONST 2; -> e\ne: h(); POP; RETURN"
    expected = """
        a: if a -> y, n
        y: g(); __temp_0 = 1; -> e
        n: f(); __temp_0 = 2; -> e
        e: h(); return __temp_0
    """
    assert lifts(text) == nodes(expected)


def test_a_value_that_waits_before_a_handler_begins_is_stored() -> None:
    text = "a: f()\nb in h/1: g(); BINARY +; RETURN\nh: PUSH_EXC; POP; POP_EXC; RETURN"
    expected = """
        a:              __temp_0 = f(); -> b
        b in h/1:       return __temp_0 + g()
        h under h:      BIND h; POP h; -> rest
        rest:           return __temp_0
    """
    assert lifts(text) == nodes(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "a: LOAD a; false -> n, y\ny: LOAD x; LOAD y; -> e\nn: LOAD z; -> e\ne: f(); RETURN",
            "differs between the edges into block 3",
            id="two depths meet",
        ),
        pytest.param(
            "a: CONST 0\nl: f(); false -> o, b\nb: CONST 1; -> l\no: RETURN",
            "differs from that at its start",
            id="a loop piles up",
        ),
        pytest.param(
            "a in h/2: LOAD x; RETURN\nh: PUSH_EXC; RERAISE", "more values than", id="a handler keeps too much"
        ),
    ],
)
def test_stacks_that_do_not_fit_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lifts(text)
