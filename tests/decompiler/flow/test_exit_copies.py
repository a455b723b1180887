"""Copies of short exits are cut off where they start, so that equal blocks can be joined."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from small_graphs import FUNCTION, MODULE, flow, shown

from depyf.decompiler.flow.equal_blocks import join_equal_blocks
from depyf.decompiler.flow.exit_copies import (
    join_class_ends,
    join_failed_chains,
    join_returned_comparisons,
    join_returns_of_expression,
    split_exit_copies,
)
from depyf.decompiler.flow.graph import FlowGraph
from depyf.decompiler.flow.repeated import Repeated

EXPRESSION = compile("0", "<module>", "eval", dont_inherit=True)


def cut_and_joined(graph: FlowGraph) -> None:
    split_exit_copies(graph, Repeated(graph))
    join_equal_blocks(graph, Repeated(graph))


def assert_becomes(step: Callable[[FlowGraph], Any], text: str, expected: str, code: Any = FUNCTION) -> None:
    graph = flow(text, code)
    step(graph)
    assert shown(graph) == shown(flow(expected))


# --- return and raise


def test_one_return_of_a_value_that_two_arms_compute() -> None:
    text = "a 1: LOAD c; false -> n, y\ny: LOAD x @3; UNARY - @2; RETURN @2\nn: LOAD y @4; UNARY - @2; RETURN @2"
    once = "a 1: LOAD c; false -> n, y\ny 3: LOAD x; -> e\nn 4: LOAD y; -> e\ne 2: UNARY -; RETURN"
    assert_becomes(cut_and_joined, text, once)


def test_one_raise_of_an_exception_that_two_arms_compute() -> None:
    text = "a 5: LOAD c; false -> n, y\ny 5: LOAD e; RAISE 1\nn 5: LOAD d; RAISE 1"
    once = "a 5: LOAD c; false -> n, y\ny 5: LOAD e; -> r\nn 5: LOAD d; -> r\nr 5: RAISE 1"
    assert_becomes(cut_and_joined, text, once)


def test_a_raise_behind_statements_is_cut_off() -> None:
    text = "a 1: LOAD c; false -> n, y\ny 2: f(); POP; LOAD e @5; RAISE 1 @5\nn 3: g(); POP; LOAD e @5; RAISE 1 @5"
    once = "a 1: LOAD c; false -> n, y\ny 2: f(); POP; -> e\nn 3: g(); POP; -> e\ne 5: LOAD e; RAISE 1"
    assert_becomes(cut_and_joined, text, once)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("y 2: f(); POP; LOAD e; RAISE 1\nn 3: g(); POP; LOAD e; RAISE 1", id="two statements"),
        pytest.param("y 2: LOAD x; LOAD v; RETURN @5\nn 3: LOAD x; LOAD y; LOAD v; RETURN @5", id="two values pending"),
        pytest.param(
            "y 2 in h: f(); POP; LOAD e @5; RAISE 1 @5\nn 3: g(); POP; LOAD e @5; RAISE 1 @5\nh: RERAISE",
            id="another region",
        ),
        pytest.param(
            "y 2: f(); POP; a(); POP @5; b(); POP; LOAD e @5; RAISE 1 @5\n"
            "n 3: g(); POP; a(); POP @5; c(); POP; LOAD e @6; RAISE 1 @6",
            id="another line",
        ),
    ],
)
def test_exits_that_are_written_twice_stay(other: str) -> None:
    text = "a 1: LOAD c; false -> n, y\n" + other
    assert_becomes(cut_and_joined, text, text)


def test_no_more_is_cut_than_the_compiler_copies() -> None:
    long = "a() @5; POP @5; b() @5; POP @5; LOAD e @5; RAISE 1 @5"
    graph = flow(f"a 1: LOAD c; false -> n, y\ny 2: f(); POP; {long}\nn 3: g(); POP; {long}")
    split_exit_copies(graph, Repeated(graph))
    assert sorted(len(block.ops) for block in graph.blocks.values()) == [1, 4, 4, 7, 7]


# --- the end of a chain of comparisons

CHAIN = """
    a 1:    LOAD x; LOAD y; SWAP 2; COPY 2; COMPARE <; false -> out, last
    last:   LOAD z @1; COMPARE < @2; RETURN @2
    out 1:  SWAP 2; POP; -> ret
    ret 1:  RETURN
"""


def test_the_last_comparison_returns_with_the_others() -> None:
    expected = CHAIN.replace("COMPARE < @2; RETURN @2", "COMPARE < @2; -> ret")
    assert_becomes(join_returned_comparisons, CHAIN, expected)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(CHAIN.replace("out 1:  SWAP 2; POP", "out 1:  SWAP 2; POP; POP"), id="drops more"),
        pytest.param(CHAIN.replace("COMPARE < @2; RETURN", "BINARY + @2; RETURN"), id="no comparison"),
        pytest.param(CHAIN.replace("ret 1:  RETURN", "ret 1:  UNARY -; RETURN"), id="something else is returned"),
        pytest.param(CHAIN.replace("ret 1:", "ret 1 in h:") + "h: RERAISE", id="another region"),
    ],
)
def test_other_returned_comparisons_stay(other: str) -> None:
    assert_becomes(join_returned_comparisons, other, other)


FAILED = """
    a 1:      LOAD x; LOAD y; SWAP 2; COPY 2; COMPARE <; false -> first, last
    last 1:   LOAD z; COMPARE <; false -> second, on
    first 1:  POP; LOAD d; RETURN
    second 1: LOAD d; RETURN
    on 2:     f(); RETURN
"""


def test_where_the_first_test_fails_the_same_is_done() -> None:
    expected = FAILED.replace("POP; LOAD d; RETURN", "POP; -> second")
    assert_becomes(join_failed_chains, FAILED, expected)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(FAILED.replace("POP; LOAD d; RETURN", "POP; LOAD e; RETURN"), id="another value"),
        pytest.param(FAILED.replace("first 1:", "first 3:"), id="another line"),
        pytest.param(FAILED.replace("SWAP 2; COPY 2; COMPARE <; false", "COMPARE <; COPY 1; false"), id="no chain"),
        pytest.param(FAILED.replace("first 1:", "first 1 in h:") + "h: RERAISE", id="another region"),
    ],
)
def test_other_failed_tests_stay(other: str) -> None:
    assert_becomes(join_failed_chains, other, other)


# --- modules, classes, expressions

CLASS = """
    a 1:    LOAD name.c; false -> n, y
    y 2:    f(); POP; CONST 1 @2; STORE name.__static_attributes__ @2; CONST None @2; RETURN @2
    n 3:    g(); POP; CONST 1 @3; STORE name.__static_attributes__ @3; CONST None @3; RETURN @3
"""
CLASS_ENDS_ONCE = """
    a 1:    LOAD name.c; false -> n, y
    y 2:    f(); POP; -> end
    n 3:    g(); POP; -> end
    end 2:  CONST 1; STORE name.__static_attributes__; CONST None; RETURN
"""


def test_a_class_ends_once() -> None:
    assert_becomes(join_class_ends, CLASS, CLASS_ENDS_ONCE, MODULE)


def test_a_function_may_store_such_names_and_a_class_others() -> None:
    assert_becomes(join_class_ends, CLASS, CLASS)
    other = CLASS.replace("__static_attributes__", "version")
    assert_becomes(join_class_ends, other, other, MODULE)


def test_an_expression_returns_once() -> None:
    text = "a 1: LOAD name.c; false -> n, y\ny 1: LOAD name.x; RETURN\nn 1: LOAD name.y; RETURN"
    once = "a 1: LOAD name.c; false -> n, y\ny 1: LOAD name.x; -> e\nn 1: LOAD name.y; -> e\ne 1: RETURN"
    assert_becomes(join_returns_of_expression, text, once, EXPRESSION)
    assert_becomes(join_returns_of_expression, text, text)
