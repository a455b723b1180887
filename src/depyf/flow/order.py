"""Reverse postorder: every block comes after its predecessors, back edges of loops aside."""

from __future__ import annotations

from typing import Dict, Iterator, List, Set, Tuple

from depyf.flow.graph import FlowGraph
from depyf.quick_dataclass import dataclass


@dataclass(frozen=True)
class Order:
    """Reverse postorder over normal and exceptional edges; ``headers`` are the targets of back edges."""

    blocks: Tuple[int, ...]
    index: Dict[int, int]
    headers: Set[int]

    def is_back_edge(self, source: int, target: int) -> bool:
        return self.index[target] <= self.index[source]


def order_blocks(graph: FlowGraph) -> Order:
    """Return the blocks in reverse postorder; of a branch's successors the one that falls through comes first."""
    seen: Set[int] = {graph.entry}
    postorder: List[int] = []

    def out(id: int) -> Iterator[int]:
        block = graph.blocks[id]
        if block.region is not None:
            yield block.region.entry
        yield from reversed(block.successors())

    todo = [(graph.entry, out(graph.entry))]
    while todo:
        id, successors = todo[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                todo.append((successor, out(successor)))
                break
        else:
            postorder.append(id)
            todo.pop()
    blocks = tuple(reversed(postorder))
    index = {id: position for position, id in enumerate(blocks)}
    headers = {target for id in blocks for target in graph.blocks[id].successors() if index[target] <= index[id]}
    return Order(blocks, index, headers)
