"""The exceptions that are being handled at the start of each block: a forward data-flow analysis."""

from __future__ import annotations

from typing import Dict, List, Tuple

from depyf.flow.graph import FlowGraph
from depyf.normal.ops import Op

Handling = Tuple[int, ...]
"""The blocks that started to handle an exception, outermost first."""


def handling(graph: FlowGraph) -> Dict[int, Handling]:
    """Return the exceptions being handled at the start of each reachable block."""
    known: Dict[int, Handling] = {graph.entry: ()}
    todo: List[int] = [graph.entry]
    has_handlers = any(block.region is not None for block in graph.blocks.values())
    while todo:
        block = graph.blocks[todo.pop()]
        before = after = known[block.id]
        for instr in block.ops if has_handlers else ():
            if instr.op is Op.PUSH_EXC:
                after = (*after, block.id)
            elif instr.op is Op.POP_EXC:
                after = after[:-1]
        for successor in block.successors():
            if successor not in known:
                known[successor] = after
                todo.append(successor)
        if block.region is not None and block.region.entry not in known:
            known[block.region.entry] = before
            todo.append(block.region.entry)
    return known
