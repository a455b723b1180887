"""Basic blocks from operations, and the queries of a flow graph."""

from __future__ import annotations

from typing import List, Tuple

import pytest
from small_graphs import FUNCTION, flow, instrs, shown

from depyf.decompiler.flow.graph import FlowGraph, Region, build, returns_constant
from depyf.decompiler.normal.ops import NormalCode


def built(text: str) -> FlowGraph:
    return build(NormalCode(FUNCTION, tuple(instrs(text))))


BUILT: List[Tuple[str, str, str]] = [
    ("straight code is one block", "LOAD x; POP; CONST None; RETURN", "a: LOAD x; POP; CONST None; RETURN"),
    (
        "a jump and what it jumps to end blocks",
        "LOAD x; JUMP ->2; RETURN",
        "a: LOAD x; -> b\nb: RETURN",
    ),
    (
        "a branch falls into the next block",
        "LOAD x; BRANCH false ->4; CONST 1; RETURN; CONST 2; RETURN",
        "a: LOAD x; false -> c, b\nb: CONST 1; RETURN\nc: CONST 2; RETURN",
    ),
    (
        "true, none and not none are branches, too",
        "LOAD x; BRANCH true ->6; LOAD x; BRANCH none ->6; LOAD x; BRANCH not none ->0; RAISE 0",
        "a: LOAD x; true -> d, b\nb: LOAD x; none -> d, c\nc: LOAD x; not none -> a, d\nd: RAISE 0",
    ),
    (
        "a loop is a block of its own",
        "LOAD x; ITER; FOR ->5; POP; JUMP ->2; CONST None; RETURN",
        "a: LOAD x; ITER\nloop: for -> body, end\nbody: POP; -> loop\nend: CONST None; RETURN",
    ),
    (
        "a protected region begins and ends with blocks",
        "LOAD x; POP !4/0; LOAD y; RETURN; PUSH_EXC; RERAISE",
        "a: LOAD x\nb in h: POP\nc: LOAD y; RETURN\nh: PUSH_EXC; RERAISE",
    ),
    (
        "regions with one handler that keep different numbers of values are two",
        "LOAD x !4/0; POP !4/1; CONST None; RETURN; PUSH_EXC; RERAISE",
        "a in h/0: LOAD x\nb in h/1: POP\nc: CONST None; RETURN\nh: PUSH_EXC; RERAISE",
    ),
]


@pytest.mark.parametrize(("ops", "blocks"), [case[1:] for case in BUILT], ids=[case[0] for case in BUILT])
def test_operations_become_blocks(ops: str, blocks: str) -> None:
    assert shown(built(ops)) == shown(flow(blocks))


def test_a_jump_knows_whether_it_was_written() -> None:
    graph = built("LOAD x; JUMP ->2; POP; LOAD y !5/0; RETURN; PUSH_EXC; RERAISE")
    assert [getattr(block.term, "offset", None) for block in graph.blocks.values()] == [2, -1, -1, None, None]


NESTED = """
    a in inner:     LOAD x; -> out
    inner in outer: PUSH_EXC; RERAISE
    outer:          PUSH_EXC; RERAISE
    out:            CONST None; RETURN
"""


def test_regions_stand_in_each_other_innermost_first() -> None:
    graph = flow(NESTED)
    inner, outer = Region(1, 0, False), Region(2, 0, False)
    assert graph.chain(inner) == (inner, outer)
    assert graph.chain(outer) == (outer,)
    assert graph.chain(None) == ()
    assert graph.regions() == {inner, outer}


def test_a_handler_that_guards_itself_does_not_go_on_forever() -> None:
    graph = flow("a in h: LOAD x; RETURN\nh in h: PUSH_EXC; RERAISE")
    assert graph.chain(Region(1, 0, False)) == (Region(1, 0, False),)


def test_both_ways_of_a_branch_to_one_place_count() -> None:
    graph = flow("a: LOAD x; false -> b, b\nb: CONST None; RETURN")
    assert graph.predecessors() == {0: [], 1: [0, 0]}


def test_handlers_are_no_normal_predecessors() -> None:
    assert flow(NESTED).predecessors() == {0: [], 1: [], 2: [], 3: [0]}


def test_what_only_exceptions_reach_stays() -> None:
    graph = flow(NESTED)
    graph.drop_unreachable()
    assert set(graph.blocks) == {0, 1, 2, 3}


def test_what_nothing_reaches_goes_with_what_it_alone_leads_to() -> None:
    graph = flow(
        """
        a:          LOAD x; -> end
        lost in h:  LOAD y; -> behind
        behind:     -> end
        h:          PUSH_EXC; RERAISE
        end:        RETURN
        """
    )
    graph.drop_unreachable()
    assert set(graph.blocks) == {0, 4}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("CONST 1; RETURN", True),
        ("LOAD x; RETURN", False),
        ("POP; CONST 1; RETURN", False),
        ("CONST 1; RAISE 1", False),
    ],
)
def test_returns_constant(block: str, expected: bool) -> None:
    assert returns_constant(flow(f"a: {block}").blocks[0]) is expected


def test_the_last_offset_of_a_block_is_that_of_its_jump() -> None:
    graph = flow("a: LOAD x; false -> c, b\nb: -> c\nc: LOAD x; RETURN")
    assert [block.offset() for block in graph.blocks.values()] == [0, 4, 6]
    assert [block.extent() for block in graph.blocks.values()] == [2, 4, 8]
    graph.blocks[0].jumps_from = 4
    assert graph.blocks[0].extent() == 4
