"""Blocks that have something in common with another one are found, also after blocks were cut or joined."""

from __future__ import annotations

import ast
from pathlib import Path
from types import CodeType
from typing import Any, Iterator, List

import pytest
from small_graphs import flow

import depyf.decompiler.flow.copies as copies
from depyf.decompiler.flow.graph import FlowGraph, build
from depyf.decompiler.flow.repeated import Repeated
from depyf.decompiler.normal.lowering import lower

TWICE = """
    a 1:    LOAD a; false -> c, b
    b 1:    LOAD b; false -> d, c
    c 2:    f(); POP; -> d
    d 2:    f(); POP; -> e
    e 3:    CONST 1; RETURN
    f 4:    CONST 1; RETURN
"""


def test_one_line_has_several_tests_or_ends() -> None:
    repeated = Repeated(flow(TWICE))
    assert [block.id for block in repeated.tests()] == [0, 1]
    assert [block.id for block in repeated.ends()] == [0, 1, 2, 3]


def test_what_a_block_is_cut_into_is_found() -> None:
    graph = flow("a 1: LOAD a; POP; LOAD b; POP; -> b\nb 2: CONST None; RETURN")
    repeated = Repeated(graph)
    assert not repeated.ends()
    graph.cut(graph.blocks[0], 2)
    assert [block.id for block in repeated.ends()] == [0, 2]


def test_blocks_that_are_gone_are_not_returned() -> None:
    graph = flow(TWICE)
    repeated = Repeated(graph)
    repeated.ends()
    del graph.blocks[3]
    assert [block.id for block in repeated.ends()] == [0, 1, 2]


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


@pytest.mark.parametrize("step", ["split_loop_tests", "split_exit_copies", "split_equal_tails", "join_equal_blocks"])
def test_nothing_is_missing_while_copies_are_undone(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    original: Any = getattr(copies, step)
    missing: List[int] = []

    def checked(graph: FlowGraph, repeated: Repeated) -> bool:
        found = {block.id for block in [*repeated.tests(), *repeated.ends()]}
        fresh = Repeated(graph)
        missing.extend({block.id for block in [*fresh.tests(), *fresh.ends()]} - found)
        changed: bool = original(graph, repeated)
        return changed

    monkeypatch.setattr(copies, step, checked)
    for code in codes(compile(Path(ast.__file__).read_text(), ast.__file__, "exec", dont_inherit=True)):
        copies.undo_copies(build(lower(code)))
    assert not missing


def test_what_raises_the_exception_of_another_handler_is_no_copy() -> None:
    graph = flow(
        """
        a 1 in h:   f(); POP; -> b
        b 2 in i:   f(); POP; -> c
        c 3:        CONST None; RETURN
        h:          PUSH_EXC; f(); false -> x, y
        x:          RERAISE
        y:          RERAISE
        i:          PUSH_EXC; f(); POP; -> z
        z:          RERAISE
        """
    )
    assert [block.id for block in Repeated(graph).ends()] == [4, 5]
