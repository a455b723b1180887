"""Jumps that skip a test with a known outcome are redirected to it, if it is the test of the enclosing operator."""

from __future__ import annotations

from typing import List

import pytest
from small_graphs import flow, shown

from depyf.decompiler.flow.threaded_tests import undo_threaded_tests
from depyf.decompiler.normal.ops import Op

THREADED = """
    a:      LOAD a; COPY 1; false -> c, b
    b:      POP; LOAD b; -> t
    t:      COPY 1; true -> end, c
    c:      POP; LOAD c; -> end
    end:    RETURN
"""


def undone(text: str) -> List[str]:
    graph = flow(text, threads_tests=True)
    undo_threaded_tests(graph)
    return shown(graph)


def test_and_in_or() -> None:
    assert undone(THREADED) == shown(flow(THREADED.replace("false -> c", "false -> t")))


def test_or_in_and() -> None:
    turned = THREADED.replace("false", "FALSE").replace("true", "false").replace("FALSE", "true")
    assert undone(turned) == shown(flow(turned.replace("true -> c", "true -> t")))


def test_a_test_at_the_end_of_an_operand_becomes_a_block_of_its_own() -> None:
    """Since then others may go to it."""
    one_block = THREADED.replace("b:      POP; LOAD b; -> t\n    t:  ", "b:      POP; LOAD b;")
    assert undone(one_block) == shown(flow(THREADED.replace("false -> c", "false -> t")))


def test_other_tests_in_the_operand_go_where_it_would() -> None:
    """``(a and x or b) or c`` with jumps over the test of the outer ``or``."""
    text = """
        a:      LOAD a; COPY 1; false -> c, x
        x:      POP; LOAD x; COPY 1; true -> end, b
        b:      POP; LOAD b; -> t
        t:      COPY 1; true -> end, c
        c:      POP; LOAD c; -> end
        end:    RETURN
    """
    expected = text.replace("false -> c, x", "false -> t, x").replace("true -> end, b", "true -> t, b")
    assert undone(text) == shown(flow(expected))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(THREADED.replace("false -> c", "true -> c"), id="the same test: a or b or c"),
        pytest.param(THREADED.replace("LOAD a; COPY 1; false", "LOAD a; false"), id="the value does not stay"),
        pytest.param(THREADED.replace("c:      POP; LOAD c", "c:      LOAD c"), id="nothing is dropped there"),
        pytest.param(THREADED.replace("a:      LOAD", "a in h: LOAD") + "h: RERAISE", id="another region"),
        pytest.param(THREADED.replace("false -> c", "none -> c"), id="is None"),
    ],
)
def test_other_tests_stay(other: str) -> None:
    assert undone(other) == shown(flow(other))


def test_a_test_that_skips_none_is_in_an_arm_that_a_constant_chooses() -> None:
    """``(a and b if True else x) or c``, where a false ``a`` is tested once more."""
    text = THREADED.replace("false -> c", "false -> t")
    graph = flow(text, threads_tests=True)
    ends = {block.id for block in graph.blocks.values() if len(block.ops) == 1 and block.ops[0].op is Op.COPY}
    undo_threaded_tests(graph)
    assert (shown(graph), graph.arm_ends) == (shown(flow(text)), ends)
    threaded = flow(THREADED, threads_tests=True)
    undo_threaded_tests(threaded)
    assert not threaded.arm_ends


def test_a_test_outside_of_the_handler_around_it_goes_to_that_of_its_operand() -> None:
    """``a or (b or c) or d`` (3.14)."""
    text = """
        a in h: LOAD a; COPY 1; true -> end, b
        b in h: POP; LOAD b; -> t
        t:      COPY 1; true -> end, c
        c in h: POP; LOAD c; COPY 1; true -> end, d
        d in h: POP; LOAD d; -> end
        end:    RETURN
        h:      RERAISE
    """
    expected = text.replace("t:      COPY 1; true -> end", "t in h: COPY 1; true -> u")
    expected = expected.replace("LOAD c; COPY 1;", "LOAD c; -> u\n        u in h: COPY 1;")
    assert undone(text) == shown(flow(expected))
