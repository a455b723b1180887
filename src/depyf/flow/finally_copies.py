"""Undo the copies of ``finally`` bodies: the compiler emits one for every exit of the ``try``, and one as handler.

The handler's is kept. A walk through both in lockstep checks that a block is a copy of it.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Set, Tuple

from depyf.flow.equal_blocks import same_operation
from depyf.flow.graph import Block, Branch, End, FlowGraph, For, Jump, Region, Term
from depyf.flow.groups import handles_groups
from depyf.normal.effects import effect
from depyf.normal.ops import Instr, Op

Position = Tuple[int, int]
"""A block and an index into its operations."""


def join_finally_copies(graph: FlowGraph) -> None:
    """Replace every copy of a ``finally`` body by an empty block that records the region it leaves.

    A body that contains a ``try``-``finally`` is recognised in its copies once that is joined in all of them.
    """
    waiting = [region for region in graph.regions() if _is_finally(graph, region)]
    waiting.sort(key=lambda region: (len(graph.chain(region)), region.entry))
    joined = True
    while joined and waiting:
        joiner = _Joiner(graph)
        left = [region for region in waiting if not joiner.join(region)]
        joined = len(left) < len(waiting)
        if joined:
            graph.drop_unreachable()
        waiting = [region for region in left if region.entry in graph.blocks]


class _Joiner:
    """Replaces copies; knows the blocks ``inside`` of each region, those of the regions in it included."""

    def __init__(self, graph: FlowGraph) -> None:
        self.graph = graph
        self.chains: Dict[Optional[Region], Tuple[Region, ...]] = {None: ()}
        self.inside: Dict[Region, List[int]] = {}
        for block in graph.blocks.values():
            self._add(block)

    def join(self, region: Region) -> bool:
        """Replace the copies of the ``finally`` body of ``region``, if all ways out of it are copies."""
        matches: List[Tuple[int, Optional[Position]]] = []
        exits, known = self._exits(region), len(self.inside.get(region, ()))
        for target in exits:
            match = _find_copy(self.graph, region, target)
            if match is None:
                return False
            matches.append((target, match.continuation))
        for target, continuation in matches:
            added = self.inside.get(region, [])[known:]
            self._leave(region, target, continuation, [*exits[target], *added])
        self.graph.finally_regions.add(region)
        return True

    def _exits(self, region: Region) -> Dict[int, List[int]]:
        """Return the targets of the normal edges that leave ``region``, each with its source blocks."""
        inside = set(self.inside.get(region, ()))
        targets: Dict[int, List[int]] = {}
        for id in sorted(inside):
            for target in self.graph.blocks[id].successors():
                if target not in inside:
                    targets.setdefault(target, []).append(id)
        return targets

    def _leave(self, region: Region, copy: int, continuation: Optional[Position], sources: List[int]) -> None:
        """Redirect edges from ``sources`` to the copy to a new block, which leads to the copy's successor."""
        # Without a reachable end, the handler's version says where control goes.
        term: Term = End() if continuation is None else Jump(self._split(continuation))
        target = self.graph.new_block([], term, self.graph.outer(region))
        target.leaves = (region,)
        self._add(target)
        for id in sources:
            self.graph.blocks[id].redirect(copy, target.id)

    def _split(self, position: Position) -> int:
        """Return the block that begins at ``position``."""
        id, index = position
        if index == 0:
            return id
        block = self.graph.blocks[id]
        rest = self.graph.new_block(block.ops[index:], block.term, block.region)
        block.ops, block.term = block.ops[:index], Jump(rest.id)
        self._add(rest)
        return rest.id

    def _add(self, block: Block) -> None:
        if block.region not in self.chains:
            self.chains[block.region] = self.graph.chain(block.region)
        for region in self.chains[block.region]:
            self.inside.setdefault(region, []).append(block.id)


def _is_finally(graph: FlowGraph, region: Region) -> bool:
    """``finally`` handlers keep the exception on the stack; ``except`` tests or pops it, ``with`` calls exit."""
    ops = graph.blocks[region.entry].ops
    if not ops or ops[0].op is not Op.PUSH_EXC:
        return False
    return len(ops) == 1 or (ops[1].op not in (Op.POP, Op.WITH_EXCEPT) and not _starts_except(graph, region.entry))


def _starts_except(graph: FlowGraph, entry: int) -> bool:
    """Whether the exception is tested or popped before anything else is done with it (the type may be any
    expression, so look for the first operation that touches the slot of the exception)."""
    if handles_groups(graph.blocks[entry]):
        return True
    depth, id, start = 0, entry, 1
    seen: Set[int] = set()
    while id not in seen:
        seen.add(id)
        block = graph.blocks[id]
        for instr in block.ops[start:]:
            if instr.op in (Op.CHECK_EXC, Op.CHECK_EXC_GROUP):
                return depth == 1
            takes, leaves = effect(instr.op, instr.arg)
            if takes > depth:
                return False
            depth += leaves - takes
        if not isinstance(block.term, Jump) and depth == 0:
            return False
        successors = block.successors()
        if not successors:
            return False
        depth -= isinstance(block.term, Branch)
        id, start = successors[0], 0
    return False


def _find_copy(graph: FlowGraph, region: Region, copy: int) -> Optional[_CopyMatch]:
    """The match of the ``finally`` body of ``region`` with the copy that starts at block ``copy``, if it is one."""
    for returns in (False, True):
        match = _CopyMatch(graph, region, returns=returns)
        if match.run(copy):
            return match
    return None


_Kinds = Tuple[Tuple[Op, object], ...]
"""Operations with their arguments."""


class _CopyMatch:
    """Walks the handler of a ``finally`` and one copy of its body in lockstep.

    ``returns``: the copy runs with a value to return on the stack, which jumps out of the body drop.
    ``continuation``: where control goes behind the copy (None: nowhere).
    """

    def __init__(self, graph: FlowGraph, region: Region, *, returns: bool) -> None:
        self.graph, self.region, self.returns = graph, region, returns
        self.outer = graph.outer(region)
        self.pairs: Set[Tuple[Position, Position]] = set()
        self.continuation: Optional[Position] = None
        self.todo: List[Tuple[Position, Position, int]] = []
        self.regions: Set[Tuple[Region, Region]] = set()

    def run(self, copy: int) -> bool:
        """Return whether a copy starts at block ``copy``."""
        self.todo.append(((self.region.entry, 1), (copy, 0), 0))
        while self.todo:
            if not self._walk(*self.todo.pop()):
                return False
        return True

    def _normal(self, position: Position) -> Position:
        id, index = position
        seen = 0
        while seen < len(self.graph.blocks):
            block = self.graph.blocks[id]
            if index < len(block.ops) or not isinstance(block.term, Jump):
                break
            id, index = block.term.target, 0
            seen += 1
        return id, index

    def _walk(self, ours: Position, theirs: Position, nested: int) -> bool:
        while True:
            ours, theirs = self._normal(ours), self._normal(theirs)
            if ours == theirs or (ours, theirs) in self.pairs:
                return True
            self.pairs.add((ours, theirs))
            block, other = self.graph.blocks[ours[0]], self.graph.blocks[theirs[0]]
            if ours[1] == len(block.ops):
                return theirs[1] == len(other.ops) and self._ends(block, other, nested)
            instr = block.ops[ours[1]]
            if instr.op is Op.RERAISE and not nested:
                return self._continue_at(theirs)
            drops = None if nested else _drops_exception(block.ops, ours[1])
            if drops is not None:
                ours = (ours[0], ours[1] + len(drops))
                behind = self._behind(theirs, drops[: len(drops) // 2] if self.returns else ())
                if behind is None:
                    return False
                theirs, nested = behind, _LEFT
                continue
            if theirs[1] == len(other.ops) or not same_operation(instr, other.ops[theirs[1]]):
                return False
            if not self._same_region(block, other, nested):
                return False
            nested += (instr.op is Op.PUSH_EXC) - (instr.op is Op.POP_EXC)
            ours, theirs = (ours[0], ours[1] + 1), (theirs[0], theirs[1] + 1)
            if isinstance(block.term, End) and ours[1] == len(block.ops):
                return True

    def _behind(self, position: Position, kinds: _Kinds) -> Optional[Position]:
        """The position behind the operations ``kinds``, if these stand at ``position``. In 3.8 copies share some."""
        for kind in kinds:
            position = self._normal(position)
            ops = self.graph.blocks[position[0]].ops
            if position[1] == len(ops) or (ops[position[1]].op, ops[position[1]].arg) != kind:
                return None
            position = (position[0], position[1] + 1)
        return position

    def _same_region(self, block: Block, other: Block, nested: int) -> bool:
        """Whether both blocks lie in regions or both in none; the handlers are walked through with as many exceptions
        being handled as where control came into the regions first."""
        if block.region == self.outer or block.region is None:
            return other.region == block.region
        if other.region is None or other.region == self.outer:
            return False
        if (block.region, other.region) not in self.regions:
            self.regions.add((block.region, other.region))
            self.todo.append(((block.region.entry, 0), (other.region.entry, 0), nested))
        return True

    def _ends(self, block: Block, other: Block, nested: int) -> bool:
        term, copy = block.term, other.term
        if isinstance(term, Branch) and isinstance(copy, Branch):
            if term.test != copy.test:
                return False
            taken, not_taken = (
                (copy.target, copy.fall) if copy.jump_when == term.jump_when else (copy.fall, copy.target)
            )
            self.todo.append(((term.target, 0), (taken, 0), nested))
            self.todo.append(((term.fall, 0), (not_taken, 0), nested))
            return True
        if isinstance(term, For) and isinstance(copy, For):
            self.todo.append(((term.body, 0), (copy.body, 0), nested))
            self.todo.append(((term.exhausted, 0), (copy.exhausted, 0), nested))
            return term.async_ == copy.async_
        # Both enter an enclosing finally body that never ends normally.
        ends = isinstance(term, End) and isinstance(copy, End) and not block.ops and not other.ops
        left = [one for one, two in zip(block.leaves, other.leaves) if one == two or (one, two) in self.regions]
        return ends and len(left) == len(block.leaves) == len(other.leaves)

    def _continue_at(self, position: Position) -> bool:
        if self.continuation is None:
            self.continuation = position
            return True
        return self._same_tail(self.continuation, position)

    def _same_tail(self, first: Position, second: Position) -> bool:
        """Return whether two positions are the same, or copies of the same short exit."""
        while True:
            first, second = self._normal(first), self._normal(second)
            if first == second:
                return True
            one, two = self.graph.blocks[first[0]], self.graph.blocks[second[0]]
            if first[1] >= len(one.ops) or second[1] >= len(two.ops) or one.region != two.region:
                return False
            if not same_operation(one.ops[first[1]], two.ops[second[1]]):
                return False
            if one.ops[first[1]].op in (Op.RETURN, Op.RAISE, Op.RERAISE):
                return True
            first, second = (first[0], first[1] + 1), (second[0], second[1] + 1)


def _drops_exception(ops: List[Instr], index: int) -> Optional[_Kinds]:
    """The operations at ``index`` that take the exception off the stack before a jump out of the ``finally`` body, if
    they do. Copies that have a value to return there drop it in the same place, by the first half of them."""
    kinds = tuple((instr.op, instr.arg) for instr in ops[index : index + 4])
    if kinds[:2] == _DROPS:
        return _DROPS
    return _DROPS_BELOW if kinds == _DROPS_BELOW else None


_LEFT = 1 << 20
"""In the place of a number of exceptions: that of the handler is dropped. What is dropped from then on belongs to
handlers around this one, and the copy drops it, too."""

_DROPS: _Kinds = ((Op.POP, None), (Op.POP_EXC, None))
_DROPS_BELOW: _Kinds = ((Op.SWAP, 2), (Op.POP, None), (Op.SWAP, 2), (Op.POP_EXC, None))
"""Below a value that the ``finally`` body itself returns."""
