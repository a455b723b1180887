"""The order of blocks, and which of them are loop headers."""

from __future__ import annotations

from typing import Set, Tuple

import pytest
from small_graphs import flow

from depyf.decompiler.flow.order import order_blocks


@pytest.mark.parametrize(
    ("text", "blocks", "headers"),
    [
        pytest.param(
            "a: LOAD x; false -> c, b\nb: NULL; -> d\nc: NULL; -> d\nd: RETURN", (0, 1, 2, 3), set(), id="diamond"
        ),
        pytest.param(
            "a: LOAD x; false -> b, c\nb: NULL; -> d\nc: NULL; -> d\nd: RETURN", (0, 2, 1, 3), set(), id="fall first"
        ),
        pytest.param("a: -> b\nb: LOAD x; false -> d, c\nc: -> b\nd: RETURN", (0, 1, 2, 3), {1}, id="loop"),
        pytest.param("a: LOAD x; true -> a, b\nb: RETURN", (0, 1), {0}, id="loop of one block"),
        pytest.param("a in h: LOAD x; -> b\nb: RETURN\nh: PUSH_EXC; RERAISE", (0, 1, 2), set(), id="handler last"),
        pytest.param("a: LOAD x; false -> c, b\nb: -> c\nc: -> b", (0, 2, 1), {2}, id="two entries"),
        pytest.param("a: RETURN\nb: -> a", (0,), set(), id="unreachable"),
    ],
)
def test_blocks_come_behind_their_predecessors(text: str, blocks: Tuple[int, ...], headers: Set[int]) -> None:
    order = order_blocks(flow(text))
    assert order.blocks == blocks
    assert order.headers == headers


def test_a_jump_to_a_block_before_is_a_back_edge() -> None:
    order = order_blocks(flow("a: -> b\nb: LOAD x; false -> d, c\nc: -> b\nd: RETURN"))
    assert order.is_back_edge(2, 1)
    assert order.is_back_edge(1, 1)
    assert not order.is_back_edge(1, 2)
