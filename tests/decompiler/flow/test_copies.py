"""Jump threading, and all steps that undo copies, in sequence."""

from __future__ import annotations

from typing import List

import pytest
from small_graphs import flow, shown

from depyf.decompiler.flow.copies import begin_loops_before_regions, thread_jumps, undo_copies


def threaded(text: str) -> List[str]:
    graph = flow(text)
    thread_jumps(graph)
    return shown(graph)


# --- jumps to jumps


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: f(); POP; -> b\nb: -> c\nc: RETURN", "a: f(); POP; -> c\nc: RETURN", id="one"),
        pytest.param("a: f(); POP; -> b\nb: -> c\nc: -> d\nd: RETURN", "a: f(); POP; -> d\nd: RETURN", id="a chain"),
        pytest.param(
            "a: f(); true -> b, c\nb: -> d\nc: g(); -> d\nd: RETURN",
            "a: f(); true -> d, c\nc: g(); -> d\nd: RETURN",
            id="behind a branch",
        ),
        pytest.param(
            "a in h: f(); POP; -> b\nb in h: -> c\nc: RETURN\nh: RERAISE",
            "a in h: f(); POP; -> c\nc: RETURN\nh: RERAISE",
            id="in the region that control comes from",
        ),
        pytest.param(
            "a: f(); POP; -> b\nb in h: -> c\nc in h: g(); RETURN\nh: RERAISE",
            "a: f(); POP; -> c\nc in h: g(); RETURN\nh: RERAISE",
            id="in the region that control goes to",
        ),
    ],
)
def test_a_jump_to_a_jump_goes_where_that_goes(text: str, expected: str) -> None:
    assert threaded(text) == shown(flow(expected))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("a: f(); POP; -> b\nb: NULL; -> c\nc: RETURN", id="does something"),
        pytest.param("a in h: f(); POP; -> b\nb leaves h: -> c\nc: RETURN\nh: RERAISE", id="leaves a region"),
        pytest.param("a in h: f(); POP; -> b\nb: -> a\nh: RERAISE", id="outside of the region it goes back into"),
        pytest.param("a: f(); true -> b, c\nb: -> b\nc: RETURN", id="an endless loop"),
    ],
)
def test_other_blocks_stay(other: str) -> None:
    assert threaded(other) == shown(flow(other))


def test_an_endless_loop_of_empty_blocks_is_not_followed_forever() -> None:
    assert threaded("a: f(); POP; -> b\nb: -> c\nc: -> b") == shown(flow("a: f(); POP; -> b\nb: -> c\nc: -> c"))


def test_a_block_knows_how_far_its_threaded_jumps_reached() -> None:
    graph = flow("a: f(); POP; -> b\nb: -> c\nc: RETURN")
    offset = graph.blocks[1].offset()
    thread_jumps(graph)
    assert graph.blocks[0].jumps_from == graph.blocks[0].extent() == offset


# --- all steps


def undone(text: str) -> List[str]:
    graph = flow(text)
    undo_copies(graph)
    return shown(graph)


def test_a_loop_that_is_left_through_a_finally_body() -> None:
    """``while a(): try: b() finally: c()`` and a ``return``, as the compiler writes them."""
    text = """
        top 1:              a(); false -> end, body
        body 2 in h:        b(); false -> out, on
        out 4:              c(); POP; CONST 1 @3; RETURN @3
        on 4:               c(); POP; a() @1; true -> body, end
        h 4:                PUSH_EXC; c(); POP; RERAISE
        end:                CONST None; RETURN
    """
    expected = """
        top 1:              a(); false -> end, body
        body 2 in h:        b(); false -> out, on
        out leaves h:       -> one
        one 3:              CONST 1; RETURN
        on leaves h:        -> top
        h 4:                PUSH_EXC; c(); POP; RERAISE
        end:                CONST None; RETURN
    """
    assert undone(text) == shown(flow(expected))


def test_an_except_clause_in_a_try_with_finally() -> None:
    text = """
        body in inner:      a(); POP; -> fin
        fin:                c(); POP; CONST None; RETURN
        inner in outer:     PUSH_EXC; LOAD global.E; CHECK_EXC; false -> no, match
        match in clean/1:   STORE e; b(); POP
        done in outer:      POP_EXC; CONST None; STORE e; DELETE e; -> fin2
        fin2:               c(); POP; CONST None; RETURN
        clean in outer:     CONST None; STORE e; DELETE e; RERAISE
        no in outer:        RERAISE
        outer:              PUSH_EXC; c(); POP; RERAISE
    """
    expected = """
        body in inner:      a(); POP; -> fin
        fin leaves outer:   -> end
        inner in outer:     PUSH_EXC; LOAD global.E; CHECK_EXC; false -> no, match
        match in outer:     STORE e; b(); POP
        done in outer:      POP_EXC; -> fin2
        fin2 leaves outer:  -> end
        no in outer:        RERAISE
        outer:              PUSH_EXC; c(); POP; RERAISE
        end:                CONST None; RETURN
    """
    assert undone(text) == shown(flow(expected))


def test_code_without_copies_stays() -> None:
    text = """
        a 1:            LOAD x; true -> c, b
        b 2:            f(); POP; -> d
        c 3 in h:       f(); POP; -> d
        h 4:            PUSH_EXC; POP; POP_EXC; -> d
        d 5:            g(); RETURN
    """
    assert undone(text) == shown(flow(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "a: -> b\nb in h: f(); true -> c, d\nc in h: g(); POP; -> b\nd: -> b\nh: RERAISE",
            "a: -> e\ne: -> b\nb in h: f(); true -> c, d\nc in h: g(); POP; -> b\nd: -> e\nh: RERAISE",
            id="another loop begins there",
        ),
        pytest.param(
            "b in h: f(); POP; -> d\nd: -> b\nh in i: RERAISE\ni: RERAISE",
            "e: -> b\nb in h: f(); POP; -> d\nd: -> e\nh in i: RERAISE\ni: RERAISE",
            id="of two regions",
        ),
        pytest.param(
            "a: f(); POP; -> b\nb in h: f(); true -> b, d\nd in i: g(); POP; -> b\nh in i: RERAISE\ni: RERAISE",
            "a: f(); POP; -> e\ne in i: -> b\nb in h: f(); true -> b, d\nd in i: g(); POP; -> e\n"
            "h in i: RERAISE\ni: RERAISE",
            id="in the outer region",
        ),
    ],
)
def test_a_loop_that_starts_with_a_region_begins_before_it(text: str, expected: str) -> None:
    graph = flow(text)
    begin_loops_before_regions(graph)
    assert shown(graph) == shown(flow(expected))


def test_a_region_that_is_entered_twice_is_no_loop() -> None:
    text = "a: f(); true -> b, c\nb: f(); POP; -> d\nc: g(); POP; -> d\nd in h: f(); RETURN\nh: RERAISE"
    graph = flow(text)
    begin_loops_before_regions(graph)
    assert shown(graph) == shown(flow(text))
