"""Undo the copies of short blocks: ``while`` tests at the top and at the bottom, short exits at every jump to them.

Blocks are first cut where the common part begins (tests in ``loop_tests``), then equal blocks are merged.
"""

from __future__ import annotations

from typing import Dict, List, Set

from depyf.flow.arms import Arms, comparable, computes_alone, leaves_operand, line_of_statement, may_be_arm
from depyf.flow.graph import Block, Branch, End, FlowGraph, For, Jump, Test, returns_constant, same_operation, ways_of
from depyf.flow.handling import handling
from depyf.flow.managers import leaves_with_value, way_out_of_manager
from depyf.flow.repeated import Repeated
from depyf.flow.written_jumps import Written
from depyf.normal.effects import effect
from depyf.normal.modes import has_returns
from depyf.normal.ops import Op, is_silent


def split_constant_returns(graph: FlowGraph) -> None:
    """Make ``return <constant>`` a block of its own, in no region: it can't raise, and it is copied freely."""
    for block in list(graph.blocks.values()):
        ops = block.ops
        if len(ops) >= 2 and ops[-1].op is Op.RETURN and ops[-2].op is Op.CONST:
            if len(ops) == 2:
                if block.id != graph.entry:
                    block.region = None
                continue
            stub = graph.new_block(ops[-2:], End(), None)
            block.ops, block.term = ops[:-2], Jump(stub.id)
    _find_implicit_returns(graph)


def _find_implicit_returns(graph: FlowGraph) -> None:
    """Mark the implicit returns: at its end, a function returns None with the span of the code before."""
    is_function = has_returns(graph.code)
    for block in graph.blocks.values():
        if not returns_constant(block) or block.ops[0].arg is not None:
            block.implicit = False
            continue
        if not is_function:  # modules and classes have no ``return``
            block.implicit = True
        elif graph.written_jumps.of_return(block.ops[0].span) in (None, Written.PASS):
            block.implicit = True


def split_equal_tails(graph: FlowGraph, repeated: Repeated) -> bool:
    """Cut blocks that end in the same operations on the same lines where these start. Returns whether anything was cut.
    Short exits are copied to every jump to them. Needs several ends of statements on one line."""
    count = len(graph.blocks)
    groups: Dict[object, List[Block]] = {}
    ends = [block for block in repeated.ends() if block.ops and block.ops[-1].op in _TAILS]
    lower = _drops_of_lower_values(graph, ends)
    for block in ends:
        term, last = block.term, block.ops[-1]
        if block.id in lower or last.line is None or not isinstance(term, (Jump, End)):
            continue
        if not returns_constant(block) and not leaves_with_value(block.ops):
            where = behind_empty(graph, term.target) if isinstance(term, Jump) else None
            groups.setdefault((where, block.region, last.op, last.line), []).append(block)
    for blocks in groups.values():
        first = blocks[0]
        common = min((_common_tail(first, other) for other in blocks[1:]), default=0)
        while common and any(_copies_before(block, common) for block in blocks):
            common -= 1
        way = _way_out(graph, blocks)
        for block in blocks:
            if 0 < common < len(block.ops):
                end = Jump(way, block.term.offset) if isinstance(block.term, Jump) else block.term
                rest = graph.new_block(block.ops[-common:], end, block.region)
                block.ops, block.term = block.ops[:-common], Jump(rest.id)
    return len(graph.blocks) > count


def _drops_of_lower_values(graph: FlowGraph, blocks: List[Block]) -> Set[int]:
    """Return those of ``blocks`` that only drop a value which the test before them did not keep: the subject of a
    ``match``, in front of a loop on the line of which another value is dropped."""
    drops = {block.id for block in blocks if len(block.ops) == 1 and block.ops[0].op is Op.POP}
    return drops and drops.intersection(
        target
        for block in graph.blocks.values()
        if isinstance(block.term, Branch) and not (block.ops and block.ops[-1].op is Op.COPY)
        for target in block.successors()
    )


def _copies_before(block: Block, tail: int) -> bool:
    """Return whether the tail of ``block`` begins with the store of ``:=``, whose value another operation uses."""
    return tail < len(block.ops) and block.ops[-tail - 1].op is Op.COPY


def behind_empty(graph: FlowGraph, target: int) -> int:
    """Return the destination of a jump to ``target``: an empty block in between shows that a region is left."""
    block, seen = graph.blocks[target], {target}
    while not (block.ops or block.leaves) and isinstance(block.term, Jump) and block.term.target not in seen:
        block = graph.blocks[block.term.target]
        seen.add(block.id)
    return block.id


def _way_out(graph: FlowGraph, blocks: List[Block]) -> int:
    """Return the target of one of the jumps of ``blocks``, which lead to the same block; an empty block, if one leads
    there."""
    targets = [block.term.target for block in blocks if isinstance(block.term, Jump)]
    return next((each for each in targets if behind_empty(graph, each) != each), targets[0]) if targets else -1


_TAILS = frozenset({Op.RETURN, Op.POP, Op.STORE, Op.STORE_ATTR, Op.STORE_SUBSCR})
"""The ends of statements whose value is computed on several paths."""


def _common_tail(one: Block, two: Block) -> int:
    """Return the length of the common tail, on the same lines, that only returns or stores a value."""
    common = 0
    while common < min(len(one.ops), len(two.ops)):
        mine, theirs = one.ops[-1 - common], two.ops[-1 - common]
        if (not same_operation(mine, theirs) and mine.arg is not theirs.arg) or mine.op is not theirs.op:
            break
        if mine.line != theirs.line or mine.op not in _KEEPING:
            break
        common += 1
    return common


_KEEPING = _TAILS | {Op.SWAP, Op.POP_EXC, Op.LOAD, Op.CONST}


def join_equal_blocks(graph: FlowGraph, repeated: Repeated) -> bool:
    """Merge blocks with the same operations from the same lines, the same successors and the same region.

    That closes ``while`` loops with a test at the top and at the bottom, and undoes copied exits.
    Returns whether any were joined.

    In ``x if a else y if b else x`` both ``x`` are in the source: an operand is copied together with its use, so that
    its copies have different successors at first, and with the test that leads to it.
    """
    count = len(graph.blocks)
    candidates = _alike(graph, repeated)
    if candidates and _Joiner(graph, candidates).run():
        graph.drop_unreachable()
    return len(graph.blocks) < count


_RAISING = frozenset([Op.RAISE, Op.RERAISE])


def _in_handler(block: Block) -> bool:
    """Return whether it matters to ``block`` which exceptions are being handled."""
    ops = [instr.op for instr in block.ops]
    return not _RAISING.isdisjoint(ops[-1:]) or Op.POP_EXC in ops


class _Joiner:
    """Joins equal blocks, then the predecessors that have become equal by that."""

    def __init__(self, graph: FlowGraph, candidates: Set[int]) -> None:
        self.graph, self.candidates = graph, candidates
        blocks = [graph.blocks[id] for id in candidates]
        self.handled = handling(graph) if any(map(_in_handler, blocks)) else {}
        self.arms = Arms(graph) if any(map(may_be_arm, blocks)) else None
        self.predecessors = graph.predecessors() if self.arms is None else self.arms.predecessors
        self.sources: Dict[int, Set[int]] = {}
        self.place = dict(zip(graph.blocks, range(len(graph.blocks))))
        self.users = {
            block.id: {block.term.target}
            for block in blocks
            if isinstance(block.term, Jump) and leaves_operand(block) and self._is_operand(block)
        }
        self.entries = {region.entry for region in graph.regions()}
        self.groups: Dict[object, Set[int]] = {}
        self.keys: Dict[int, object] = {}

    def _is_operand(self, block: Block) -> bool:
        """Return whether ``block`` computes one value. A value that it drops first must have been tested: it is not the
        result of an exit method, where the statement after ``with`` is copied to both exits. Behind an except clause a
        statement begins."""
        before = [self.graph.blocks[id] for id in self.predecessors[block.id]]
        if block.ops[0].op is Op.POP and not any(isinstance(each.term, Branch) for each in before):
            return False
        if any(each.ops and each.ops[-1].op is Op.POP_EXC for each in before):
            return False
        return computes_alone(block.ops)

    def _begins_statement(self, block: Block) -> bool:
        """Return whether no test on its line leads to ``block``, as one leads to an arm."""
        before = [self.graph.blocks[id].term for id in self.predecessors[block.id] if id in self.graph.blocks]
        return not any(isinstance(term, Branch) and term.instr.line == block.ops[0].line for term in before)

    def run(self) -> bool:
        """Join the blocks; return whether there were any."""
        changed, joined = set(self.candidates), False
        while changed:
            merged: Dict[int, int] = {}
            for group in self._regrouped(changed):
                merged.update(self._merged(group))
            changed = set()
            for old, new in merged.items():
                changed |= self._redirect(old, new)
            for old in merged:
                self.groups[self.keys.pop(old)].discard(old)
                if old not in self.entries:
                    del self.graph.blocks[old]
            changed = {id for id in changed & self.candidates if id in self.graph.blocks}
            joined = joined or bool(merged)
        return joined

    def _regrouped(self, changed: Set[int]) -> List[List[int]]:
        """Return the groups of equal blocks, in order, that these blocks are in now."""
        order = sorted(changed, key=self.place.__getitem__)
        for id in order:
            old = self.keys.pop(id, None)
            if old is not None:
                self.groups[old].discard(id)
            block = self.graph.blocks[id]
            key = None if _returns_out_of_handler(block) and not self._begins_statement(block) else _key(block)
            if key is not None:
                self.keys[id] = key
                self.groups.setdefault(key, set()).add(id)
        found: List[List[int]] = []
        for key in {self.keys[id]: None for id in order if id in self.keys}:
            same: Dict[object, List[int]] = {}
            for id in sorted(self.groups[key], key=self.place.__getitem__) if len(self.groups[key]) > 1 else ():
                same.setdefault(self._leading_to(id), []).append(id)
            found.extend(group for group in same.values() if len(group) > 1 and not changed.isdisjoint(group))
        return found

    def _leading_to(self, id: int) -> object:
        """Return a key for the tests that lead to a block, and the exceptions that are handled where it raises or
        leaves one. Only where the keys of several blocks are equal is this needed."""
        handled = self.handled[id] if _in_handler(self.graph.blocks[id]) else ()
        return None if self.arms is None else self.arms.tests_of(id), handled

    def _merged(self, group: List[int]) -> Dict[int, int]:
        """Return the copies among equal blocks, each with its original; operands of the same use are no copies."""
        kept: List[int] = []
        merged: Dict[int, int] = {}
        for id in group:
            mine = self.users.get(id, set())
            keep = next((each for each in kept if not mine & self.users.get(each, set()) or self._same(id, each)), None)
            if keep is None or id == self.graph.entry:
                kept.append(id)
                continue
            merged[id] = keep
            self.users.setdefault(keep, set()).update(mine)
            if isinstance(self.graph.blocks[id].term, Branch):
                self.graph.copied_tests.add(keep)
                _test_as_first(self.graph.blocks[keep], self.graph.blocks[id])
        return merged

    def _same(self, id: int, other: int) -> bool:
        """Return whether columns show that equal blocks are one operand of the source."""
        spans = [(one.span, two.span) for one, two in zip(self.graph.blocks[id].ops, self.graph.blocks[other].ops)]
        return all(one == two and one is not None and one.column is not None for one, two in spans)

    def _redirect(self, old: int, new: int) -> Set[int]:
        """Redirect the edges to ``old`` to ``new``; return their source blocks."""
        sources = {id for id in self._sources_of(old) if id in self.graph.blocks}
        for id in sources:
            self.graph.blocks[id].redirect(old, new)
        self._sources_of(new).update(sources)
        return sources

    def _sources_of(self, id: int) -> Set[int]:
        """Return the blocks that lead to block ``id``; some may have been joined to others meanwhile."""
        if id not in self.sources:
            self.sources[id] = set(self.predecessors[id])
        return self.sources[id]


def _test_as_first(kept: Block, copy: Block) -> None:
    """Make the branch of ``kept`` jump where ``copy`` does, if that comes first: the test of ``while a or b`` at the
    bottom of the loop jumps the other way round (3.12)."""
    mine, other = kept.term, copy.term
    if isinstance(mine, Branch) and isinstance(other, Branch) and copy.offset() < kept.offset():
        mine.jump_when, mine.target, mine.fall = other.jump_when, other.target, other.fall


def _alike(graph: FlowGraph, repeated: Repeated) -> Set[int]:
    """Return the blocks that may have an equal: another one has the same length and lines. Most have none. None are
    returned if no two of them have the same successors: blocks only become equal where their successors are joined."""
    ends = repeated.ends()
    if len({(len(block.ops), *sorted(block.term.successors())) for block in ends}) == len(ends):
        return set()
    groups: Dict[object, List[int]] = {}
    for block in ends:
        ops, looks = block.ops, None
        if ops and not returns_constant(block):
            middle = ops[len(ops) // 2]
            lines = [line_of_statement(instr) for instr in (ops[0], ops[-1])]
            looks = (len(ops), *lines, comparable(ops[0]), middle.op, comparable(middle))
        groups.setdefault(looks, []).append(block.id)
    alike = {id for group in groups.values() if len(group) > 1 for id in group}
    if not graph.code.returns_value:
        return alike
    return alike.difference(*[way_out_of_manager(graph, block) for block in graph.blocks.values()])


def _returns_out_of_handler(block: Block) -> bool:
    """Return whether ``block`` ends a handler with a value, or computes one: the copy of a handler's end uses up an
    earlier one."""
    return any(instr.op is Op.POP_EXC for instr in block.ops) and not _uses_earlier(block)


def _uses_earlier(block: Block) -> bool:
    """Return whether ``block`` begins with an operation on an earlier value."""
    first = block.ops[0]
    return first.op is not Op.SWAP and effect(first.op, first.arg)[0] > 0


def _key(block: Block) -> object:
    """Return a key that is equal for copies of a block; ``None`` for a block that is never a copy."""
    ops = block.ops
    if _only_tests_for_none(block):
        assert isinstance(block.term, Branch)
        return ("none", *ways_of(block.term), block.term.instr.line, block.region, block.leaves)
    if returns_constant(block):
        return ("return", id(ops[0].arg), block.region, block.implicit or ops[0].line)
    if not ops or any(instr.op is Op.PUSH_EXC for instr in ops):
        return None
    if leaves_with_value(ops):
        return None
    term = block.term
    end: object
    if isinstance(term, Branch):
        end = ("branch", *ways_of(term))
    elif isinstance(term, Jump):
        end = ("jump", term.target)
    elif isinstance(term, For):
        return None
    else:
        end = ("end",)
    if isinstance(term, Jump) and all(is_silent(instr) for instr in ops) and ops[0].line is None:
        return None
    body = tuple((instr.op, comparable(instr), line_of_statement(instr)) for instr in ops)
    is_operation = len(ops) == 1 and isinstance(term, Jump) and effect(ops[0].op, ops[0].arg)[1] == 1
    span = ops[0].span if is_operation and _uses_earlier(block) else None  # two calls in one expression may be alike
    return (body, end, block.region, block.leaves, span)


def _only_tests_for_none(block: Block) -> bool:
    """Return whether ``block`` is the end of ``a is b is None``: a jump by itself since 3.11, without operations."""
    return not block.ops and isinstance(block.term, Branch) and block.term.test is Test.NONE
