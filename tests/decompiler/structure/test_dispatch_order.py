"""Elements of a level in order, loops collapsed."""

from __future__ import annotations

from typing import AbstractSet, Dict, List, Optional, Sequence

import pytest

from depyf.decompiler.structure.dispatch.contexts import Context, Kind
from depyf.decompiler.structure.dispatch.edges import Edge, Element
from depyf.decompiler.structure.dispatch.order import ComponentOrder


def order(
    edges: Dict[Element, Sequence[Element]],
    starts: Sequence[Element] = (0,),
    cut: AbstractSet[int] = frozenset(),
    allowed: Optional[AbstractSet[Element]] = None,
) -> ComponentOrder:
    """Every edge leads to the node of its target's number."""
    made = {
        source: [Edge(source, target, target if isinstance(target, int) else target.anchor) for target in targets]
        for source, targets in edges.items()
    }
    return ComponentOrder(made, starts, cut, allowed)


@pytest.mark.parametrize(
    ("edges", "components", "loops", "ways_in"),
    [
        pytest.param({0: [1], 1: [2]}, [[0], [1], [2]], [False] * 3, [1, 1, 1], id="chain"),
        pytest.param({0: [1, 2], 1: [3], 2: [3]}, [[0], [2], [1], [3]], [False] * 4, [1, 1, 1, 2], id="diamond"),
        pytest.param({0: [1], 1: [1, 2]}, [[0], [1], [2]], [False, True, False], [1, 1, 1], id="a loop of one"),
        pytest.param(
            {0: [1, 2], 1: [2], 2: [1, 3]}, [[0], [1, 2], [3]], [False, True, False], [1, 2, 1], id="two entries"
        ),
        pytest.param({0: [1], 1: [0]}, [[0, 1]], [True], [1], id="back to the start"),
        pytest.param({0: [1, 1], 1: []}, [[0], [1]], [False] * 2, [1, 2], id="two jumps to one place"),
    ],
)
def test_every_element_comes_behind_its_predecessors(
    edges: Dict[Element, Sequence[Element]], components: List[List[int]], loops: List[bool], ways_in: List[int]
) -> None:
    found = order(edges)
    assert [sorted(members) for members in found.components] == components  # type: ignore[type-var]
    assert found.is_loop == loops
    assert found.ways_in == ways_in
    for source, targets in edges.items():
        assert all(found.component[source] <= found.component[target] for target in targets)


def test_cut_jumps_make_no_loop() -> None:
    found = order({0: [1], 1: [2], 2: [1, 3]}, cut={1}, starts=(1,))
    assert found.components == [[1], [2], [3]]
    assert found.is_loop == [False] * 3


def test_only_what_is_allowed_is_there() -> None:
    assert order({0: [1, 2], 2: [3]}, allowed={0, 1, 3}).components == [[0], [1]]


def test_each_start_is_a_way_in() -> None:
    assert order({0: [1], 1: []}, starts=(0, 1)).ways_in == [1, 2]


def test_statements_are_elements_like_nodes() -> None:
    statement = Context(Kind.TRY, 7)
    assert order({0: [statement], statement: [0, 1]}).components[-1] == [1]
    assert order({0: [statement], statement: [0, 1]}, cut={7}).components == [[0]]


def test_a_long_chain_needs_no_recursion() -> None:
    count = 5000
    assert len(order({node: [node + 1] for node in range(count)}).components) == count + 1
