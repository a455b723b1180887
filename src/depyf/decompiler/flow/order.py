"""Reverse postorder: every block comes after its predecessors, back edges of loops aside."""

from __future__ import annotations

from typing import Dict, Iterator, List, Set, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.flow.graph import FlowGraph


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
    successors: Dict[int, Tuple[int, ...]] = {}
    postorder: List[int] = []

    def enter(id: int) -> Iterator[int]:
        block = graph.blocks[id]
        out = successors[id] = block.successors()
        return iter(out[::-1] if block.region is None else (block.region.entry, *reversed(out)))

    path, todo = [graph.entry], [enter(graph.entry)]
    while path:
        for successor in todo[-1]:
            if successor not in successors:
                path.append(successor)
                todo.append(enter(successor))
                break
        else:
            postorder.append(path.pop())
            todo.pop()
    blocks = tuple(reversed(postorder))
    index = dict(zip(blocks, range(len(blocks))))
    headers = {target for id in blocks for target in successors[id] if index[target] <= index[id]}
    return Order(blocks, index, headers)
