"""Immediate dominators, on the graphs of the literature and against the definition."""

from __future__ import annotations

import random
from typing import Dict, List, Set

import pytest

from depyf.decompiler.structure.dominators import DepthFirstTree

Graph = Dict[int, List[int]]


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        pytest.param({0: []}, {0: 0}, id="one node"),
        pytest.param({0: [1], 1: [2], 2: []}, {0: 0, 1: 0, 2: 1}, id="chain"),
        pytest.param({0: [1, 2], 1: [3], 2: [3], 3: []}, {0: 0, 1: 0, 2: 0, 3: 0}, id="diamond"),
        pytest.param({0: [1], 1: [2, 3], 2: [1], 3: []}, {0: 0, 1: 0, 2: 1, 3: 1}, id="loop"),
        pytest.param({0: [1, 2], 1: [2], 2: [1]}, {0: 0, 1: 0, 2: 0}, id="a loop with two entries"),
        pytest.param({0: [1], 1: [1], 2: [1]}, {0: 0, 1: 0}, id="what can't be reached is left out"),
        pytest.param(
            {0: [1, 2, 3], 1: [4], 2: [1, 4, 5], 3: [6, 7], 4: [12], 5: [8], 6: [9], 7: [9, 10], 8: [5, 11], 9: [11],
             10: [9], 11: [9, 0], 12: [8]},
            {0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 3, 7: 3, 8: 0, 9: 0, 10: 7, 11: 0, 12: 4},
            id="the example of Lengauer and Tarjan",
        ),
    ],
)  # fmt: skip
def test_immediate_dominators(graph: Graph, expected: Dict[int, int]) -> None:
    assert DepthFirstTree(0, lambda node: graph[node]).dominators() == expected


def reached(graph: Graph, without: int = -1) -> Set[int]:
    seen: Set[int] = set()
    todo = [0]
    while todo:
        node = todo.pop()
        if node not in seen and node != without:
            seen.add(node)
            todo.extend(graph[node])
    return seen


@pytest.mark.parametrize("seed", range(6))
def test_a_dominator_is_on_every_way(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        count = chance.randrange(2, 16)
        graph = {node: [chance.randrange(count) for _ in range(chance.randrange(4))] for node in range(count)}
        found = DepthFirstTree(0, lambda node, graph=graph: graph[node]).dominators()  # type: ignore[misc]
        assert set(found) == reached(graph)
        without = {other: reached(graph, other) for other in found}
        strict = {node: {other for other in found if other != node and node not in without[other]} for node in found}
        for node in set(found) - {0}:  # the nearest one is that which all others dominate
            assert strict[node] == strict[found[node]] | {found[node]}
