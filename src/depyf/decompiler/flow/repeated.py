"""The blocks that may be copies, or contain some: copies have the lines of their originals.

Most blocks end in an operation that no other block has on that line. The steps that cut and join copies look at the
others only.
"""

from __future__ import annotations

from collections import Counter
from typing import Dict, Hashable, List, Optional

from depyf.decompiler.flow.arms import line_of_statement
from depyf.decompiler.flow.graph import Block, Branch, FlowGraph, Test, returns_constant
from depyf.decompiler.flow.handling import Handling, handled_after, handling
from depyf.decompiler.normal.ops import Op


class Repeated:
    """The blocks of ``graph`` that have something in common with another one, in their order.

    Joining blocks only removes some. A cut makes new blocks: then they are found again.
    """

    def __init__(self, graph: FlowGraph) -> None:
        self._graph = graph
        self._tests: List[Block] = []
        self._ends: List[Block] = []
        self._tests_at = self._ends_at = -1  # the number of blocks that were made before

    def tests(self) -> List[Block]:
        """Return the blocks that end in tests of one kind, in one region and on one line."""
        if self._tests_at != self._graph.next_id:
            self._tests_at = self._graph.next_id
            self._tests = _several(
                {
                    block.id: (block.term.test, block.region, block.term.instr.line)
                    for block in self._graph.blocks.values()
                    if isinstance(block.term, Branch) and block.ops
                },
                self._graph,
            )
        return self._left(self._tests)

    def ends(self) -> List[Block]:
        """Return the blocks that end in one operation on one line, or return one constant, or only test for None, or
        raise one handled exception again."""
        if self._ends_at != self._graph.next_id:
            self._ends_at = self._graph.next_id
            # RERAISE has no line of its own: the handled exception distinguishes these blocks.
            blocks = self._graph.blocks.values()
            raising = [block for block in blocks if block.ops and block.ops[-1].op is Op.RERAISE]
            handled = handling(self._graph) if len(raising) > 1 else {}
            raised = {block.id: handled_after(block, handled.get(block.id, ())) for block in raising}
            self._ends = _several({block.id: _end(block, raised.get(block.id)) for block in blocks}, self._graph)
        return self._left(self._ends)

    def _left(self, found: List[Block]) -> List[Block]:
        return [block for block in found if block.id in self._graph.blocks]


def _several(keys: Dict[int, Hashable], graph: FlowGraph) -> List[Block]:
    """Return the blocks whose key another one has; ``None`` is not a key."""
    numbers = Counter(keys.values())
    return [graph.blocks[id] for id, key in keys.items() if key is not None and numbers[key] > 1]


def _end(block: Block, raised: Optional[Handling]) -> Hashable:
    """Return a key that is equal for blocks with equal ends; ``raised``: what a block raises again."""
    term = block.term
    if not block.ops:
        return (Test.NONE, term.instr.line) if isinstance(term, Branch) and term.test is Test.NONE else None
    if returns_constant(block):
        return ("constant", id(block.ops[0].arg), block.implicit or block.ops[0].line)
    last = block.ops[-1]
    return last.op, line_of_statement(last), raised
