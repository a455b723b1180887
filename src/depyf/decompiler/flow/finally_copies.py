"""Undo the copies of ``finally`` bodies: the compiler emits one for every exit of the ``try``, and one as handler.

    try: a()              a(); b(); JUMP -> 1                     the region, then a copy of the body
    finally: b()          handler: PUSH_EXC; b(); RERAISE         the body in the handler
                          1:

The handler's body is kept. A walk through both in lockstep checks that a block is a copy.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Set, Tuple

from depyf.decompiler.flow.equal_blocks import past_empty
from depyf.decompiler.flow.exit_copies import LONGEST_COPY
from depyf.decompiler.flow.graph import Block, Branch, End, FlowGraph, For, Jump, Region, Term, same_operation
from depyf.decompiler.flow.groups import handles_groups
from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.ops import Op

Position = Tuple[int, int]
"""A block and an index into its operations."""


def join_finally_copies(graph: FlowGraph) -> None:
    """Replace every copy of a ``finally`` body by an empty block that records the region which control leaves there."""
    # A body with a ``try``-``finally`` inside has copies of that, too. It matches its copies if the inner one is joined
    # in all of them or in none: so outer regions come first, of these the first in the bytecode, and regions that do
    # not match yet are tried again after each round.
    overriding = _overriding(graph)
    waiting = [region for region in graph.regions() if region in overriding or _is_finally(graph, region)]
    first = _FinallyCopies(graph).inside if len(waiting) > 1 else {}
    waiting.sort(key=lambda each: (len(graph.chain(each)), first.get(each, [0])[0]))
    joined = True
    while joined and waiting:
        joiner = _FinallyCopies(graph)
        left = [region for region in waiting if not joiner.join(region)]
        joined = len(left) < len(waiting)
        if joined:
            graph.drop_unreachable()
        waiting = [region for region in left if region.entry in graph.blocks]


class _FinallyCopies:
    """Replaces copies. ``inside``: the blocks of each region, nested regions included."""

    def __init__(self, graph: FlowGraph) -> None:
        self.graph = graph
        self.chains: Dict[Optional[Region], Tuple[Region, ...]] = {None: ()}
        self.inside: Dict[Region, List[int]] = {}
        for block in graph.blocks.values():
            self._add(block)

    def join(self, region: Region) -> bool:
        """Replace the copies of the ``finally`` body of ``region``; return False if not all of its exits are copies."""
        # Every edge out of the region must lead to a copy: an ``except`` clause, or code made by hand, has others.
        matches: List[Tuple[int, _CopyMatch]] = []
        exits, known = self._exits(region), len(self.inside.get(region, ()))
        for target in exits:
            match = _find_copy(self.graph, region, target)
            if match is None:
                return False
            matches.append((target, match))
        # Replace them. Exits that run one copy share one empty block, and so do exits that end in copies of one return.
        end: Optional[Block] = None
        left: Dict[int, Block] = {}
        for target, match in matches:
            sources = [*exits[target], *self.inside.get(region, [])[known:]]
            first = past_empty(self.graph, target)
            if first in left and not match.returns:  # one copy, that jumps lead to through empty blocks
                self._redirect(sources, target, left[first].id)
            elif match.returns or match.continuation is not None or not self._is_copied_return(target):
                left[first] = self._leave(region, target, match.continuation, sources)
            elif end is None:
                end = self._leave(region, target, None, sources)
            else:
                self._redirect(sources, target, end.id)
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

    def _is_copied_return(self, id: int) -> bool:
        """Return whether block ``id`` is so short a return that the compiler copies it to every jump to it."""
        ops = self.graph.blocks[id].ops
        return 0 < len(ops) <= LONGEST_COPY and ops[-1].op is Op.RETURN

    def _leave(self, region: Region, copy: int, continuation: Optional[Position], sources: List[int]) -> Block:
        """Redirect edges from ``sources`` to the copy to a new block, which leads to the copy's successor."""
        # Without a reachable end, the handler's version decides where control goes.
        term: Term = End() if continuation is None else Jump(self._split(continuation))
        target = self.graph.new_block([], term, self.graph.outer(region))
        target.leaves = (region,)
        self._add(target)
        self._redirect(sources, copy, target.id)
        return target

    def _redirect(self, sources: List[int], old: int, new: int) -> None:
        for id in sources:
            self.graph.blocks[id].redirect(old, new)

    def _split(self, position: Position) -> int:
        """Return the block that begins at ``position``."""
        id, index = position
        if index == 0:
            return id
        rest = self.graph.cut(self.graph.blocks[id], index)
        self._add(rest)
        return rest.id

    def _add(self, block: Block) -> None:
        if block.region not in self.chains:
            self.chains[block.region] = self.graph.chain(block.region)
        for region in self.chains[block.region]:
            self.inside.setdefault(region, []).append(block.id)


def _overriding(graph: FlowGraph) -> Set[Region]:
    """Return the regions of ``try: return a; finally: continue`` (or ``break``)."""
    # handler: PUSH_EXC; POP; POP_EXC; JUMP -> loop         the same as for ``except: continue``
    # copy:    a; (leaves the region) POP; JUMP -> loop     but here a value is on the stack, and dropped
    found: Set[Region] = set()
    for block in graph.blocks.values():
        for target in block.successors() if block.region is not None else ():
            first = graph.blocks[past_empty(graph, target)].ops[:1]
            if graph.blocks[target].region == block.region or [instr.op for instr in first] != [Op.POP]:
                continue
            left = [each for each in graph.chain(block.region) if each not in graph.chain(graph.blocks[target].region)]
            for region in left:
                if [instr.op for instr in graph.blocks[region.entry].ops[:3]] == [Op.PUSH_EXC, Op.POP, Op.POP_EXC]:
                    if region not in found and _CopyMatch(graph, region, returns=True).run(target):
                        found.add(region)
    return found


def _is_finally(graph: FlowGraph, region: Region) -> bool:
    """Return whether the handler of ``region`` is a ``finally`` body, which keeps the exception on the stack.
    ``except`` tests or pops it, ``with`` calls exit."""
    ops = graph.blocks[region.entry].ops
    if not ops or ops[0].op is not Op.PUSH_EXC:
        return False
    return len(ops) == 1 or (ops[1].op not in (Op.POP, Op.WITH_EXCEPT) and not _starts_except(graph, region.entry))


def _starts_except(graph: FlowGraph, entry: int) -> bool:
    """Return whether the exception is tested or popped first. The type may be any expression, so the first operation on
    the slot of the exception decides."""
    if handles_groups(graph.blocks[entry]):
        return True
    # Follow one path, counting the values above the exception: what first reads a value below them decides.
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
    """Return the match of the ``finally`` body of ``region`` with block ``copy``; ``None`` if that starts no copy."""
    for returns in (False, True):
        match = _CopyMatch(graph, region, returns=returns)
        if match.run(copy):
            return match
    return None


_Kinds = Tuple[Tuple[Op, object], ...]
"""Operations with their arguments."""


class _CopyMatch:
    """A walk through the handler of a ``finally`` and one copy of its body in lockstep.

    ``returns``: the copy runs with a return value on the stack, which jumps out of the body drop. ``continuation``:
    where control continues after the copy; None: nowhere.
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
        self.todo.append(((self.region.entry, 1), (copy, 0), 0))  # from after the PUSH_EXC of the handler
        while self.todo:
            if not self._walk(*self.todo.pop()):
                return False
        return True

    def _normal(self, position: Position, *, stays_out: bool = False) -> Position:
        """Return the position of the next operation. ``stays_out``: or the exit of an outer region that is entered
        again before it, as at the end of a loop in which all is in a ``try``."""
        # Follow jumps to a block with operations. ``left``: the first block outside of each region on the way.
        id, index = position
        if index < len(self.graph.blocks[id].ops):
            return position
        left: Dict[Region, int] = {}
        for _ in range(len(self.graph.blocks)):
            block = self.graph.blocks[id]
            if index < len(block.ops) or not isinstance(block.term, Jump):
                break
            if stays_out:
                out = set(self.graph.chain(self.outer)).difference(self.graph.chain(block.region))
                left.update((region, id) for region in (*block.leaves, *out) if region not in left)
            id, index = block.term.target, 0
        inside = self.graph.chain(self.graph.blocks[id].region) if left else ()
        return next(((mark, 0) for region, mark in left.items() if region in inside), (id, index))

    def _walk(self, ours: Position, theirs: Position, nested: int) -> bool:
        while True:
            ours, here = self._normal(ours), theirs
            theirs = self._normal(theirs)
            if ours == theirs or (ours, theirs) in self.pairs:
                return True
            self.pairs.add((ours, theirs))
            # 1. The end of a block: both have to end in the same way.
            block, other = self.graph.blocks[ours[0]], self.graph.blocks[theirs[0]]
            if ours[1] == len(block.ops):
                return theirs[1] == len(other.ops) and self._ends(block, other, nested)
            # 2. The end of the body: the handler raises the exception again, the copy just continues.
            instr = block.ops[ours[1]]
            if instr.op is Op.RERAISE and not nested:
                return self._continue_at(self._normal(here, stays_out=True))
            # 3. A jump out of the body, such as ``break``: the handler drops the exception first; the copy has none,
            #    but perhaps a return value to drop. From there on, both have the same values on the stack.
            dropped = None if nested or instr.op not in (Op.POP, Op.SWAP) else self._after_dropped(ours)
            if dropped is not None:
                ours, drops = dropped
                after = self._after(theirs, drops[: len(drops) // 2] if self.returns else ())
                if after is None:
                    return False
                theirs, nested = after, _LEFT
                continue
            # 4. Any other operation: the same in both, in regions that correspond.
            if theirs[1] == len(other.ops) or not same_operation(instr, other.ops[theirs[1]]):
                return False
            if not self._same_region(block, other, nested):
                return False
            nested += (instr.op is Op.PUSH_EXC) - (instr.op is Op.POP_EXC)
            ours, theirs = (ours[0], ours[1] + 1), (theirs[0], theirs[1] + 1)
            if isinstance(block.term, End) and ours[1] == len(block.ops):
                return True

    def _after_dropped(self, position: Position) -> Optional[Tuple[Position, _Kinds]]:
        """Return the position after the operations that pop the exception before a jump out of the ``finally`` body,
        and these operations; ``None`` if the body goes on. A copy that drops a return value has their first half."""
        for kinds in (_DROPS, _DROPS_BELOW):
            after = self._after(position, kinds)
            if after is not None:
                return after, kinds
        return None

    def _after(self, position: Position, kinds: _Kinds) -> Optional[Position]:
        """Return the position after the operations ``kinds``, in several blocks perhaps: in 3.8 copies share some.
        ``None`` if there are others."""
        for kind in kinds:
            position = self._normal(position)
            ops = self.graph.blocks[position[0]].ops
            if position[1] == len(ops) or (ops[position[1]].op, ops[position[1]].arg) != kind:
                return None
            position = (position[0], position[1] + 1)
        return position

    def _same_region(self, block: Block, other: Block, nested: int) -> bool:
        """Return whether both blocks are in a region inside of the body, or neither is. Compare the handlers later,
        with the number of exceptions being handled where the walk first enters the regions."""
        if block.region == self.outer or block.region is None:
            return other.region == block.region
        if other.region is None or other.region == self.outer:
            return False
        self._compare_handlers(block.region, other.region, nested)
        return True

    def _compare_handlers(self, region: Region, other: Region, nested: int) -> None:
        if (region, other) not in self.regions:
            self.regions.add((region, other))
            self.todo.append(((region.entry, 0), (other.entry, 0), nested))

    def _ends(self, block: Block, other: Block, nested: int) -> bool:
        term, copy = block.term, other.term
        # Branches may be inverted in one of both.
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
        # Both enter an enclosing finally body that never terminates normally.
        ends = isinstance(term, End) and isinstance(copy, End) and not block.ops and not other.ops
        if not ends or len(block.leaves) != len(other.leaves):
            return False
        for left, also_left in zip(block.leaves, other.leaves):
            if left != also_left:  # nothing in them may have been walked through
                self._compare_handlers(left, also_left, nested)
        return True

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


_LEFT = 1 << 20
"""A number of nested exceptions which says that the handler's own one is dropped. Later drops belong to enclosing
handlers: the copy has them, too."""

_DROPS: _Kinds = ((Op.POP, None), (Op.POP_EXC, None))
_DROPS_BELOW: _Kinds = ((Op.SWAP, 2), (Op.POP, None), (Op.SWAP, 2), (Op.POP_EXC, None))
"""The same below a value that the ``finally`` body itself returns."""
