"""Copies of short blocks are merged; blocks that only look like copies are not."""

from __future__ import annotations

from typing import List

import pytest
from small_graphs import MODULE, flow, instrs, shown

from depyf.decompiler.flow.equal_blocks import (
    join_equal_blocks,
    leaves_with_value,
    split_constant_returns,
    split_equal_tails,
    split_loop_tests,
)
from depyf.decompiler.flow.graph import same_operation
from depyf.decompiler.flow.repeated import Repeated


def joined(text: str) -> List[str]:
    graph = flow(text)
    join_equal_blocks(graph, Repeated(graph))
    return shown(graph)


# --- returns of constants


def test_a_returned_constant_is_a_block_of_its_own_outside_of_regions() -> None:
    graph = flow("a 1 in h: f(); POP; CONST None; RETURN\nh: PUSH_EXC; RERAISE")
    split_constant_returns(graph)
    assert shown(graph) == shown(flow("a 1 in h: f(); POP; -> end\nh: PUSH_EXC; RERAISE\nend 1: CONST None; RETURN"))


def test_what_returns_a_variable_stays_whole_and_guarded() -> None:
    text = "a 1 in h: f(); POP; LOAD x; RETURN\nh: PUSH_EXC; RERAISE"
    graph = flow(text)
    split_constant_returns(graph)
    assert shown(graph) == shown(flow(text))


def test_the_entry_keeps_its_region() -> None:
    graph = flow("a in h: CONST 1; RETURN\nh: PUSH_EXC; RERAISE")
    split_constant_returns(graph)
    assert graph.blocks[0].region is not None


@pytest.mark.parametrize(
    ("block", "implicit"),
    [
        ("CONST None; RETURN", True),  # the compiler gave no line
        ("f() @1; POP @1; CONST None @1; RETURN @1", True),  # that of the statement before
        ("f() @1; POP @1; CONST None @2; RETURN @2", False),
        ("f() @1; POP @1; CONST 0 @1; RETURN @1", False),
    ],
)
def test_nobody_wrote_a_return_of_none_where_another_statement_stands(block: str, implicit: bool) -> None:
    graph = flow(f"a: {block}")
    split_constant_returns(graph)
    assert [block.implicit for block in graph.blocks.values()][-1] is implicit


def test_nobody_writes_the_return_of_a_module() -> None:
    graph = flow("a 1: f(); POP; CONST None @2; RETURN @2", MODULE)
    split_constant_returns(graph)
    assert [block.implicit for block in graph.blocks.values()] == [False, True]


# --- tests of loops

WHILE = """
    top 1:  a(); false -> out, body
    body 2: b(); POP; a() @1; true -> body, out
    out:    CONST None; RETURN
"""
ONE_TEST = """
    top 1:  a(); false -> out, body
    body 2: b(); POP; -> top
    out:    CONST None; RETURN
"""


def loop_tests_joined(text: str) -> List[str]:
    graph = flow(text)
    split_loop_tests(graph, Repeated(graph))
    join_equal_blocks(graph, Repeated(graph))
    return shown(graph)


def test_the_test_at_the_end_of_a_loop_is_the_one_at_its_top() -> None:
    assert loop_tests_joined(WHILE) == shown(flow(ONE_TEST))


def test_a_loop_test_that_was_turned_round_is_one_too() -> None:
    assert loop_tests_joined(WHILE.replace("true -> body, out", "false -> out, body")) == shown(flow(ONE_TEST))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(WHILE.replace("a() @1; true", "c() @1; true"), id="another test"),
        pytest.param(WHILE.replace("a() @1; true", "a() @2; true"), id="written on another line"),
        pytest.param(WHILE.replace("true -> body, out", "false -> body, out"), id="the other way round"),
        pytest.param(
            WHILE.replace("body 2:", "body 2 in h:") + "h: PUSH_EXC; RERAISE", id="in a region that the top is not in"
        ),
        pytest.param(WHILE.replace("POP; a() @1", "LOAD x @1; BINARY + @1"), id="needs a value from before"),
    ],
)
def test_what_only_looks_like_the_test_of_the_loop_stays(other: str) -> None:
    assert loop_tests_joined(other) == shown(flow(other))


def test_a_loop_whose_body_begins_with_the_end_of_its_test_is_not_cut_there() -> None:
    """``while f(a or b): a = a or b`` on one line: ``a`` in the test is an operand of the call."""
    text = """
        top 1:   LOAD f; LOAD a; COPY 1; true -> call, b
        b 1:     POP; LOAD b; -> call
        call 1:  CALL 1; false -> out, body
        body 1:  LOAD a; COPY 1; true -> store, c
        c 1:     POP; LOAD b; -> store
        store 1: STORE a; f(); true -> body, out
        out:     CONST None; RETURN
    """
    graph = flow(text)
    assert not split_loop_tests(graph, Repeated(graph))
    assert shown(graph) == shown(flow(text))


def test_a_joined_test_is_known_as_a_copy() -> None:
    graph = flow(WHILE)
    split_loop_tests(graph, Repeated(graph))
    assert not graph.copied_tests
    join_equal_blocks(graph, Repeated(graph))
    assert graph.copied_tests == {0}


# --- tails


def tails_joined(text: str) -> List[str]:
    graph = flow(text)
    split_equal_tails(graph, Repeated(graph))
    join_equal_blocks(graph, Repeated(graph))
    return shown(graph)


STORED = """
    a 1:    LOAD c; false -> c, b
    b:      LOAD x @1; STORE y @2; -> d
    c:      LOAD z @1; STORE y @2; -> d
    d 3:    f(); RETURN
"""


def test_a_value_computed_in_two_ways_is_stored_once() -> None:
    once = "a 1: LOAD c; false -> c, b\nb 1: LOAD x; -> s\nc 1: LOAD z; -> s\ns 2: STORE y; -> d\nd 3: f(); RETURN"
    assert tails_joined(STORED) == shown(flow(once))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(STORED.replace("LOAD z @1; STORE y @2", "LOAD z @1; STORE y @3"), id="another line"),
        pytest.param(STORED.replace("LOAD z @1; STORE y", "LOAD z @1; STORE w"), id="another variable"),
        pytest.param(STORED.replace("@2", ""), id="no line"),
        pytest.param(STORED.replace("    c: ", "    c in h: ") + "h: PUSH_EXC; RERAISE", id="another region"),
    ],
)
def test_two_statements_that_store_stay_two(other: str) -> None:
    assert tails_joined(other) == shown(flow(other))


def test_the_subject_of_a_match_is_dropped_in_front_of_the_loop_that_drops_a_value_on_its_line() -> None:
    dropped = """
        a 1:    LOAD a; f(); false -> out, b
        b 2:    POP; -> loop
        loop 2: g(); false -> out, c
        c 2:    f(); POP; -> loop
        out 3:  CONST None; RETURN
    """
    assert tails_joined(dropped) == shown(flow(dropped))


# --- equal blocks

EXITS = """
    a 1: LOAD x; true -> c, b
    b 2: LOAD y; true -> d, e
    c 3: f(); POP; -> end
    d 3: f(); POP; -> end
    e 4: g(); POP; -> end
    end: CONST None; RETURN
"""


def test_equal_blocks_on_equal_lines_are_one() -> None:
    expected = """
        a 1: LOAD x; true -> c, b
        b 2: LOAD y; true -> c, e
        c 3: f(); POP; -> end
        e 4: g(); POP; -> end
        end: CONST None; RETURN
    """
    assert joined(EXITS) == shown(flow(expected))


def test_what_becomes_equal_by_that_is_joined_too() -> None:
    chain = """
        a 1:  LOAD x; true -> c, b
        b 2:  LOAD y; true -> d, e
        c 3:  f(); POP; -> c2
        d 3:  f(); POP; -> d2
        e 4:  g(); POP; -> c2
        c2 5: h(); RETURN
        d2 5: h(); RETURN
    """
    expected = """
        a 1:  LOAD x; true -> c, b
        b 2:  LOAD y; true -> c, e
        c 3:  f(); POP; -> c2
        e 4:  g(); POP; -> c2
        c2 5: h(); RETURN
    """
    assert joined(chain) == shown(flow(expected))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(EXITS.replace("d 3: f(); POP", "d 3: g(); POP"), id="other operations"),
        pytest.param(EXITS.replace("d 3: f(); POP", "d 5: f(); POP"), id="another line"),
        pytest.param(EXITS.replace("d 3: f(); POP; -> end", "d 3: f(); POP; -> e"), id="another successor"),
        pytest.param(EXITS.replace("d 3:", "d 3 in h:") + "h: PUSH_EXC; RERAISE", id="another region"),
        pytest.param(
            EXITS.replace("d 3:", "d 3 leaves h:").replace("e 4:", "e 4 in h:") + "h: RERAISE", id="leaves a region"
        ),
        pytest.param(EXITS.replace("f(); POP", "PUSH_EXC; POP; POP_EXC"), id="belongs to one handler"),
        pytest.param(EXITS.replace("f(); POP; ->", "CONST 1; STORE x;  ->").replace(" 3:", ":"), id="silent, no line"),
        pytest.param(EXITS.replace("c 3: f()", "c 3: CONST 1").replace("d 3: f()", "d 3: CONST True"), id="1 and True"),
    ],
)
def test_blocks_that_only_look_alike_stay(other: str) -> None:
    assert joined(other) == shown(flow(other))


def test_both_arms_of_one_expression_stay() -> None:
    """``f(x if a else y if b else x)``: the same block twice, each with the use that was written once."""
    expression = """
        a 1:   LOAD a; false -> b, one
        one 1: LOAD x; -> use
        b 1:   LOAD b; false -> two, three
        two 1: LOAD x; -> use
        three 1: LOAD y; -> use
        use 1: STORE z; -> end
        end 2: LOAD z; RETURN
    """
    assert joined(expression) == shown(flow(expression))


BEHIND_CLAUSE = """
    a 1 in h:  f(); POP; -> one
    h 2:       PUSH_EXC; POP; POP_EXC; -> two
    one 3:     LOAD x; -> ret
    two 3:     LOAD x; -> ret
    ret 3:     RETURN
"""


def test_a_value_behind_an_except_clause_is_no_arm_of_an_expression() -> None:
    expected = """
        a 1 in h:  f(); POP; -> one
        h 2:       PUSH_EXC; POP; POP_EXC; -> one
        one 3:     LOAD x; -> ret
        ret 3:     RETURN
    """
    assert joined(BEHIND_CLAUSE) == shown(flow(expected))
    other = BEHIND_CLAUSE.replace("POP_EXC; -> two", "f(); true -> two, one")
    assert joined(other) == shown(flow(other))


def test_a_return_out_of_a_handler_has_copies_and_arms() -> None:
    copies = """
        a 1 in h:  f(); POP; -> one
        h 2:       PUSH_EXC; POP; g(); true -> b, c
        b 3:       f(); POP; -> one
        c 4:       g(); POP; -> two
        one 5:     LOAD x; SWAP 2; POP_EXC; RETURN
        two 5:     LOAD x; SWAP 2; POP_EXC; RETURN
    """
    graph = flow(copies.replace("a 1 in h:  f(); POP; -> one", "a 1 in h:  f(); RETURN"))
    join_equal_blocks(graph, Repeated(graph))
    assert len(graph.blocks) == 5
    arms = """
        a 1 in h:  f(); RETURN
        h 5:       PUSH_EXC; POP; g(); true -> one, two
        one 5:     LOAD x; SWAP 2; POP_EXC; RETURN
        two 5:     LOAD x; SWAP 2; POP_EXC; RETURN
    """
    assert joined(arms) == shown(flow(arms))


@pytest.mark.parametrize("out", ["RETURN", "SWAP 2; POP; RETURN", "SWAP 2; POP\n    m: SWAP 2; POP; RETURN"])
def test_each_return_out_of_a_manager_leaves_it_by_itself(out: str) -> None:
    """Each calls the exit method on the line of the ``with``, and drops the iterators of loops around it."""
    text = f"""
        a 1:       LOAD e; LOAD a; f(); true -> one, two
        one 2:     LOAD x; -> out
        two 3:     LOAD x; -> other
        out 1 in h:   SWAP 2; CONST None; CONST None; CONST None; CALL 3; POP; -> ret
        other 1 in h: SWAP 2; CONST None; CONST None; CONST None; CALL 3; POP; -> ret
        ret 1:     {out}
        h 4:       PUSH_EXC; RERAISE
    """
    assert joined(text) == shown(flow(text))


def test_constants_are_returned_once_where_nobody_wrote_them() -> None:
    graph = flow("a 1: LOAD x; true -> c, b\nb 2: CONST None; RETURN\nc 3: CONST None; RETURN")
    join_equal_blocks(graph, Repeated(graph))
    assert len(graph.blocks) == 3  # two lines: two statements
    for block in graph.blocks.values():
        block.implicit = True
    join_equal_blocks(graph, Repeated(graph))
    assert len(graph.blocks) == 2


def test_a_handler_that_is_a_copy_stays_where_its_region_says() -> None:
    text = "a in h: f(); POP\nb in g: f(); RETURN\nh: LOAD x; RETURN\ng: LOAD x; RETURN"
    assert joined(text) == shown(flow(text))


# --- operations


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("LOAD v; LOAD e; CONST None; CONST None; CONST None; CALL 3; POP; RETURN", True),
        ("LOAD e; CONST None; CONST None; CONST None; CALL 3; POP; LOAD v; RETURN", False),  # evaluated behind it
        ("LOAD e; CONST None; CONST None; CONST None; CALL 3; POP; LOAD v; SWAP 2; POP_EXC; RETURN", False),
        ("LOAD e; CONST None; CONST None; CONST None; CALL 3; POP; SWAP 2; POP_EXC; RETURN", True),
        ("LOAD e; CONST None; CONST None; CONST 0; CALL 3; POP; RETURN", False),
        ("LOAD e; CONST None; CONST None; CONST None; CALL 3; POP; RAISE 0", False),
    ],
)
def test_a_value_from_before_the_end_of_a_with_is_returned(ops: str, expected: bool) -> None:
    assert leaves_with_value(instrs(ops)) is expected


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ("LOAD x @1", "LOAD x @2", True),
        ("LOAD x", "LOAD global.x", False),
        ("LOAD x", "STORE x", False),
        ("CONST 1", "CONST 1", True),
        ("CONST 1", "CONST 1.0", False),
        ("CONST 1", "CONST True", False),
        ("COPY 1", "COPY 2", False),
    ],
)
def test_same_operation(one: str, two: str, expected: bool) -> None:
    assert same_operation(instrs(one)[0], instrs(two)[0]) is expected
