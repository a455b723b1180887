"""``if`` statements: the join node after them, and what the compiler made of an empty branch."""

from __future__ import annotations

import ast
from bisect import bisect_right
from functools import cached_property
from typing import List, Optional, Set

from depyf.decompiler.flow.graph import Branch
from depyf.decompiler.lift import build
from depyf.decompiler.lift.nodes import Condition, Node, Raise, Return
from depyf.decompiler.lift.spans import put, span_of
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.structure.leaving import fails
from depyf.decompiler.structure.regions import Regions
from depyf.decompiler.structure.targets import Targets


class BranchShapes:
    """The branches of one graph."""

    def __init__(self, regions: Regions) -> None:
        self.regions, self.shape, self.nodes = regions, regions.shape, regions.nodes
        self.flow = regions.shape.flow

    @cached_property
    def _offsets(self) -> List[int]:
        return [instr.offset for instr in self.flow.code.ops]

    # --- where the statement ends ------------------------------------------------------------------------------------

    def join(self, node: Node, term: Condition, targets: Targets) -> Optional[int]:
        """Return the node where control continues after the ``if`` at the end of ``node``; ``None`` if its branches
        don't meet in a node of their own."""
        merge = self._merge(node, targets)
        if merge is None and isinstance(self.nodes[term.target].terminator, (Raise, Return)):
            return self._after_else(term, targets)
        return merge

    def _merge(self, node: Node, targets: Targets) -> Optional[int]:
        """Return the first child of ``node`` in the dominator tree with several predecessors; ``None`` without one."""
        best: Optional[int] = None
        for child in self.shape.children[node.id]:
            if len(self.shape.forward_predecessors(child)) < 2 or targets.known(child):
                continue
            # ``return None`` may be one node that both branches jump to, or a copy in each. It is a join only if it was
            # written once, after the statement.
            if self.shape.is_copyable(child) and not self.shape.is_one_statement(child):
                continue
            if self.regions.is_outside(child, targets):
                continue
            if best is None or self.shape.index[child] < self.shape.index[best]:
                best = child
        return best

    def _after_else(self, term: Condition, targets: Targets) -> Optional[int]:
        """Return where the first branch jumps if the second one is an ``else`` that exits; ``None`` if that is not a
        single node."""
        # if a:                 POP_JUMP_IF_FALSE 1
        #     b()               b; JUMP 2
        # else:
        #     raise c           1: c; RAISE
        # d()                   2: d
        #
        # Only the first branch leads to d, so the graph has no join. The jump over c shows that d was not written in
        # the first branch.
        limit = self.nodes[term.target].offset
        if targets.known(term.fall) or targets.known(term.target) or self.shape.is_copyable(term.target):
            return None
        if limit <= self.nodes[term.fall].offset:
            return None
        found: Set[int] = set()
        todo, seen = [term.fall], {term.fall}
        while todo:
            for target in self.shape.successors[todo.pop()]:
                if target in seen or targets.known(target) or self.shape.is_copyable(target):
                    continue
                seen.add(target)
                if self.nodes[target].offset > limit:
                    found.add(target)
                else:
                    todo.append(target)
        if len(found) != 1:
            return None
        after = found.pop()
        if not self.shape.dominates(term.fall, after) or self.regions.is_outside(after, targets):
            return None
        return after

    # --- empty branches ----------------------------------------------------------------------------------------------

    def jump_was_added(self, node: Node) -> bool:
        """Return whether the jump after the test that ends ``node`` has the span of the test: no ``continue`` was
        written, the compiler added the jump."""
        # Conditional jumps only go forward (3.12), so a test that would jump back to the loop is inverted:
        #
        #     for x in y:       if b:                              if not b:
        #                           c()                                continue
        #                                                          c()
        #
        #                       POP_JUMP_IF_TRUE 1                 POP_JUMP_IF_TRUE 1
        #                       JUMP_BACKWARD  (line of the if)    JUMP_BACKWARD  (line of the continue)
        #                    1: c                               1: c
        block, ops = self.flow.blocks.get(node.last_block), self.flow.code.ops
        if block is None or not isinstance(block.term, Branch):
            return False
        first = bisect_right(self._offsets, block.term.instr.offset)
        last = max(first, bisect_right(self._offsets, node.extent))  # further tests of the same condition
        for index in range(first, min(last + 1, len(ops))):
            test, jump = ops[index - 1], ops[index]
            if test.op is Op.BRANCH and jump.op is Op.JUMP and jump.span in (test.span, None):
                return True
        return False

    def was_inverted(self, node: Node) -> bool:
        """Return whether the compiler inverted the test that ends ``node``, whose branches are both empty: the test
        then jumps over the jump that was added."""
        block = self.flow.blocks.get(node.last_block)
        if block is None or not isinstance(block.term, Branch) or block.term.instr.target is None:
            return False
        added = bisect_right(self._offsets, block.term.instr.offset)
        return block.term.instr.target > added and self.jump_was_added(node)


def if_statement(test: ast.expr, body: List[ast.stmt], orelse: List[ast.stmt]) -> ast.stmt:
    """Return ``if test``, or ``assert not test`` if its body is a failed assertion."""
    if not orelse and len(body) == 1 and isinstance(body[0], ast.Assert) and fails(body[0]):
        failed = ast.Assert(build.negate(test), body[0].msg)
        put(failed, span_of(body[0]))
        return failed
    # An ``if`` with only an ``else`` would have been compiled as the opposite test.
    return ast.If(test, body or [ast.Pass()], orelse)
