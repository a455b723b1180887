"""The exceptions that are being handled at the start of each block: a forward data-flow analysis."""

from __future__ import annotations

from typing import Dict, List, Tuple

from depyf.decompiler.flow.graph import Block, FlowGraph
from depyf.decompiler.normal.ops import Op

Handling = Tuple[int, ...]
"""The blocks that started to handle an exception, outermost first."""

_HANDLING = frozenset({Op.PUSH_EXC, Op.POP_EXC})


def handling(graph: FlowGraph) -> Dict[int, Handling]:
    """Return the exceptions being handled at the start of each reachable block."""
    known: Dict[int, Handling] = {graph.entry: ()}
    todo: List[int] = [graph.entry]
    while todo:
        block = graph.blocks[todo.pop()]
        before = known[block.id]
        after = handled_after(block, before)
        for successor in block.term.successors():
            if successor not in known:
                known[successor] = after
                todo.append(successor)
        if block.region is not None and block.region.entry not in known:
            known[block.region.entry] = before
            todo.append(block.region.entry)
    return known


def handled_after(block: Block, before: Handling) -> Handling:
    """Return the exceptions being handled at the end of ``block``; ``before``: at its start."""
    for op in [instr.op for instr in block.ops if instr.op in _HANDLING]:
        before = (*before, block.id) if op is Op.PUSH_EXC else before[:-1]
    return before
