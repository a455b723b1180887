"""Undo the copies of short blocks: ``while`` tests at the top and at the bottom, short exits at every jump to them.

    while a(b):         1: a(b); BRANCH false -> 3         one test, with one line, and two blocks
        c()             2: c(); a(b); BRANCH true -> 2
                        3: ...

Blocks are first cut where the common part begins, then equal blocks are merged.
"""

from __future__ import annotations

from typing import Dict, List, Set

from depyf.decompiler.flow.arms import (
    Arms,
    comparable,
    computes_alone,
    leaves_operand,
    line_of_statement,
    may_be_arm,
    pushes,
    stands_alone,
)
from depyf.decompiler.flow.graph import (
    Block,
    Branch,
    End,
    FlowGraph,
    For,
    Jump,
    Test,
    returns_constant,
    same_operation,
    ways_of,
)
from depyf.decompiler.flow.handling import handling
from depyf.decompiler.flow.managers import leaves_with_value, way_out_of_manager
from depyf.decompiler.flow.repeated import Repeated
from depyf.decompiler.flow.written_jumps import Written
from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.modes import has_returns
from depyf.decompiler.normal.ops import Op, is_silent


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


def split_loop_tests(graph: FlowGraph, repeated: Repeated) -> bool:
    """Cut both blocks of a ``while`` test, which is copied from top to bottom, where the test begins.

    Return whether anything was cut. Needs several tests on one line.
    """
    # c(); a(b); BRANCH true -> 2, false -> 3     is cut before a(b), since another block on that line ends in
    # a(b); BRANCH false -> 3, true -> 2          the same test, with the same successors
    count = len(graph.blocks)
    by_ways: Dict[object, List[Block]] = {}
    by_line: Dict[object, List[Block]] = {}
    for block in repeated.tests():
        assert isinstance(block.term, Branch)
        key = (*ways_of(block.term), block.region, block.term.instr.line)
        by_ways.setdefault(key, []).append(block)
        by_line.setdefault((block.term.test, block.region, block.term.instr.line), []).append(block)
    _cut_before_first_tests(graph, by_line)
    for blocks in by_ways.values():
        if len(blocks) < 2:
            continue
        for block in blocks:
            for other in blocks:
                if other is not block:
                    _cut_common_test(graph, block, other)
    return len(graph.blocks) > count


def _cut_before_first_tests(graph: FlowGraph, by_line: Dict[object, List[Block]]) -> None:
    """Cut blocks before the first of several tests in one condition, if they end in all of a shorter block.

    In ``while (a or b) > 3: g(a or b)`` the copies of that test lead to copies of the other tests, which are not joined
    yet: so their successors differ.
    """
    for blocks in by_line.values():
        for block in blocks if len(blocks) <= _MOST_TESTS else ():
            for other in blocks:
                if len(block.ops) > len(other.ops) and set(block.successors()) != set(other.successors()):
                    _cut_common_test(graph, block, other)


_MOST_TESTS = 24
"""The limit on tests on one line, as in generated code: each is compared with each."""


def _cut_common_test(graph: FlowGraph, block: Block, other: Block) -> None:
    """Cut ``block`` before the longest self-contained run of operations that ``other`` ends with, too, if a statement
    ends there: in ``while f(a or b): a = a or b`` on one line the body begins with a part of the test."""
    # The common operations at the end, then as many of them as compute a value by themselves.
    common = 0
    while common < min(len(block.ops), len(other.ops)):
        one, two = block.ops[-1 - common], other.ops[-1 - common]
        if (not same_operation(one, two) and one.arg is not two.arg) or one.op is not two.op or one.line != two.line:
            break
        common += 1
    while common and not stands_alone(block.ops[-common:]):
        common -= 1
    cut = len(block.ops) - common
    if not common or not cut or pushes(block.ops[cut - 1]):
        return
    graph.cut(block, cut)


def split_equal_tails(graph: FlowGraph, repeated: Repeated) -> bool:
    """Cut blocks that end in the same operations on the same lines where these start. Return whether anything was cut.
    Short exits are copied to every jump to them. Needs several ends of statements on one line."""
    # x = a if b else c      a; STORE x; JUMP -> 1        is cut to  a; JUMP -> 2
    #                        c; STORE x; JUMP -> 1                   c; JUMP -> 2        2: STORE x; JUMP -> 1
    count = len(graph.blocks)
    groups: Dict[object, List[Block]] = {}
    ends = [block for block in repeated.ends() if block.ops and block.ops[-1].op in _TAILS]
    lower = _drops_of_lower_values(graph, ends)
    for block in ends:
        term, last = block.term, block.ops[-1]
        if block.id in lower or last.line is None or not isinstance(term, (Jump, End)):
            continue
        if not returns_constant(block) and not leaves_with_value(block.ops):
            where = past_empty(graph, term.target) if isinstance(term, Jump) else None
            groups.setdefault((where, block.region, last.op, last.line), []).append(block)
    # The shortest tail that all blocks of a group share with the first one.
    for blocks in groups.values():
        first = blocks[0]
        common = min((_common_tail(first, other) for other in blocks[1:]), default=0)
        # COPY 1; STORE x, of ``(x := a)``: the copy and the store are one expression, whose value is used next.
        while common and any(common < len(each.ops) and each.ops[-common - 1].op is Op.COPY for each in blocks):
            common -= 1
        # All jump to one block, some through an empty block, which shows that a region is left: keep that one.
        ways = [block.term.target for block in blocks if isinstance(block.term, Jump)]
        way = next((each for each in ways if past_empty(graph, each) != each), ways[0]) if ways else -1
        for block in blocks:
            if 0 < common < len(block.ops):
                end = Jump(way, block.term.offset) if isinstance(block.term, Jump) else block.term
                rest = graph.new_block(block.ops[-common:], end, block.region)
                block.ops, block.term = block.ops[:-common], Jump(rest.id)
    return len(graph.blocks) > count


def _drops_of_lower_values(graph: FlowGraph, blocks: List[Block]) -> Set[int]:
    """Return the ``blocks`` that only drop a value which the test before them did not keep: the subject of a ``match``.
    Another value may be dropped on the same line, by a loop that follows."""
    drops = {block.id for block in blocks if len(block.ops) == 1 and block.ops[0].op is Op.POP}
    return drops and drops.intersection(
        target
        for block in graph.blocks.values()
        if isinstance(block.term, Branch) and not (block.ops and block.ops[-1].op is Op.COPY)
        for target in block.successors()
    )


def past_empty(graph: FlowGraph, target: int) -> int:
    """Return the destination of a jump to ``target``: an empty block in between shows that a region is left."""
    block, seen = graph.blocks[target], {target}
    while not (block.ops or block.leaves) and isinstance(block.term, Jump) and block.term.target not in seen:
        block = graph.blocks[block.term.target]
        seen.add(block.id)
    return block.id


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

    That closes ``while`` loops with a test at the top and at the bottom, and undoes copied exits. Return whether any
    were joined.
    """
    # In ``x if a else y if b else x`` both ``x`` are in the source, and equal. A real copy of an operand is copied
    # together with its use and the test that leads to it: so its successors differ at first, and its tests are equal.
    count = len(graph.blocks)
    candidates = _alike(graph, repeated)
    if candidates and _EqualBlocks(graph, candidates).run():
        graph.drop_unreachable()
    return len(graph.blocks) < count


_RAISING = frozenset([Op.RAISE, Op.RERAISE])


def _in_handler(block: Block) -> bool:
    """Return whether it matters to ``block`` which exceptions are being handled."""
    ops = [instr.op for instr in block.ops]
    return not _RAISING.isdisjoint(ops[-1:]) or Op.POP_EXC in ops


class _EqualBlocks:
    """Joins equal blocks, then the predecessors that have become equal by that."""

    def __init__(self, graph: FlowGraph, candidates: Set[int]) -> None:
        self.graph, self.candidates = graph, candidates
        # The costly analyses are made only where a candidate needs them.
        blocks = [graph.blocks[id] for id in candidates]
        self.handled = handling(graph) if any(map(_in_handler, blocks)) else {}
        self.arms = Arms(graph) if any(map(may_be_arm, blocks)) else None
        self.predecessors = graph.predecessors() if self.arms is None else self.arms.predecessors
        self.sources: Dict[int, Set[int]] = {}
        self.order = dict(zip(graph.blocks, range(len(graph.blocks))))
        # The successors that take the operand which a block computes: equal blocks with one user are two operands.
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
        # Joining two blocks changes the successors of their predecessors: only these can have become equal then.
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
        # Groups by key; the key of a changed block is computed again.
        order = sorted(changed, key=self.order.__getitem__)
        for id in order:
            old = self.keys.pop(id, None)
            if old is not None:
                self.groups[old].discard(id)
            block = self.graph.blocks[id]
            # The end of a handler is copied together with an operand that it uses. One that computes its own value is
            # in the source as often as it is here.
            ends_handler = any(instr.op is Op.POP_EXC for instr in block.ops) and not _uses_earlier(block)
            key = None if ends_handler and not self._begins_statement(block) else _key(block)
            if key is not None:
                self.keys[id] = key
                self.groups.setdefault(key, set()).add(id)
        # Within a group, what leads to the blocks must be equal, too; only groups with a changed block are new.
        found: List[List[int]] = []
        for key in {self.keys[id]: None for id in order if id in self.keys}:
            same: Dict[object, List[int]] = {}
            for id in sorted(self.groups[key], key=self.order.__getitem__) if len(self.groups[key]) > 1 else ():
                same.setdefault(self._leading_to(id), []).append(id)
            found.extend(group for group in same.values() if len(group) > 1 and not changed.isdisjoint(group))
        return found

    def _leading_to(self, id: int) -> object:
        """Return a key for the tests that lead to a block, and for the exceptions that are being handled if it raises
        or leaves a handler. Computed only where several blocks have equal keys."""
        handled = self.handled[id] if _in_handler(self.graph.blocks[id]) else ()
        return None if self.arms is None else self.arms.tests_of(id), handled

    def _merged(self, group: List[int]) -> Dict[int, int]:
        """Return the copies among equal blocks, each with its original; operands of the same use are no copies."""
        kept: List[int] = []
        merged: Dict[int, int] = {}
        for id in group:
            # Join with the first original that is no other operand of the same use, unless columns show it is this one.
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
    """Return the blocks that may have an equal, by a cheap look at length, lines and operations. Most have none."""
    # Blocks become equal where their successors are joined: if no two have the same successors, none ever do.
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
    # Every ``return`` in a ``with`` has an exit call of its own.
    return alike.difference(*[way_out_of_manager(graph, block) for block in graph.blocks.values()])


def _uses_earlier(block: Block) -> bool:
    """Return whether ``block`` begins with an operation on an earlier value."""
    first = block.ops[0]
    return first.op is not Op.SWAP and effect(first.op, first.arg)[0] > 0


def _key(block: Block) -> object:
    """Return a key that is equal for copies of a block; ``None`` for a block that is never a copy."""
    ops, term = block.ops, block.term
    # The end of ``a is b is None``: a jump by itself since 3.11, without operations.
    if not ops and isinstance(term, Branch) and term.test is Test.NONE:
        return ("none", *ways_of(term), term.instr.line, block.region, block.leaves)
    if returns_constant(block):
        return ("return", id(ops[0].arg), block.region, block.implicit or ops[0].line)
    # The compiler copies handlers only inside of ``finally`` bodies, see ``finally_copies``. Every ``return`` in a
    # ``with`` has an exit call of its own.
    if not ops or any(instr.op is Op.PUSH_EXC for instr in ops) or leaves_with_value(ops):
        return None
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
        return None  # added by the compiler, without a line to tell copies apart
    body = tuple((instr.op, comparable(instr), line_of_statement(instr)) for instr in ops)
    is_operation = len(ops) == 1 and isinstance(term, Jump) and effect(ops[0].op, ops[0].arg)[1] == 1
    # Two calls in one expression may be alike but for their columns.
    span = ops[0].span if is_operation and _uses_earlier(block) else None
    return (body, end, block.region, block.leaves, span)
