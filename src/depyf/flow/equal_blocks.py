"""Undo the copies of short blocks: ``while`` tests at the top and at the bottom, short exits at every jump to them.

Blocks are first cut where the common part begins, then equal blocks are merged.
"""

from __future__ import annotations

from typing import Dict, List, Set, Tuple

from depyf.flow.arms import Arms, comparable, computes_alone, leaves_operand, stands_alone
from depyf.flow.graph import Block, Branch, End, FlowGraph, For, Jump, Test, returns_constant
from depyf.flow.handling import handling
from depyf.flow.written_jumps import Written
from depyf.normal.effects import effect
from depyf.normal.modes import has_returns
from depyf.normal.ops import Instr, Op, is_silent


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
    """A function that runs off its end returns None in the place of whatever came before."""
    is_function = has_returns(graph.code)
    for block in graph.blocks.values():
        if not returns_constant(block) or block.ops[0].arg is not None:
            block.implicit = False
            continue
        if not is_function:  # modules and classes have no ``return``
            block.implicit = True
        elif graph.written_jumps.of_return(block.ops[0].span) in (None, Written.PASS):
            block.implicit = True


def split_loop_tests(graph: FlowGraph) -> bool:
    """Cut both blocks of a ``while`` test, which is copied from top to bottom, where the test begins.

    Returns whether anything was cut.
    """
    count = len(graph.blocks)
    by_ways: Dict[object, List[Block]] = {}
    for block in graph.blocks.values():
        if isinstance(block.term, Branch) and block.ops:
            key = (*_ways(block.term), block.region, block.term.instr.line)
            by_ways.setdefault(key, []).append(block)
    for blocks in by_ways.values():
        if len(blocks) < 2:
            continue
        for block in blocks:
            for other in blocks:
                if other is not block:
                    _cut_common_test(graph, block, other)
    return len(graph.blocks) > count


def split_equal_tails(graph: FlowGraph) -> bool:
    """Cut blocks that end in the same operations on the same lines where these begin: short exits are copied to every
    jump to them. Returns whether anything was cut."""
    count = len(graph.blocks)
    groups: Dict[object, List[Block]] = {}
    for block in graph.blocks.values():
        term = block.term
        if (
            block.ops
            and isinstance(term, (Jump, End))
            and not returns_constant(block)
            and not leaves_with_value(block.ops)
        ):
            last = block.ops[-1]
            where = _behind_empty(graph, term.target) if isinstance(term, Jump) else None
            if last.op in _TAILS and last.line is not None:
                groups.setdefault((where, block.region, last.op, last.line), []).append(block)
    for blocks in groups.values():
        first = blocks[0]
        common = min((_common_tail(first, other) for other in blocks[1:]), default=0)
        way = _way_out(graph, blocks)
        for block in blocks:
            if 0 < common < len(block.ops):
                end = Jump(way, block.term.offset) if isinstance(block.term, Jump) else block.term
                rest = graph.new_block(block.ops[-common:], end, block.region)
                block.ops, block.term = block.ops[:-common], Jump(rest.id)
    return len(graph.blocks) > count


def _behind_empty(graph: FlowGraph, target: int) -> int:
    """Return the destination of a jump to ``target``: an empty block in between shows that a region is left."""
    block, seen = graph.blocks[target], {target}
    while not (block.ops or block.leaves) and isinstance(block.term, Jump) and block.term.target not in seen:
        block = graph.blocks[block.term.target]
        seen.add(block.id)
    return block.id


def _way_out(graph: FlowGraph, blocks: List[Block]) -> int:
    """Of the jumps of ``blocks``, which lead to the same place, where one goes; over an empty block, if one does."""
    targets = [block.term.target for block in blocks if isinstance(block.term, Jump)]
    return next((each for each in targets if _behind_empty(graph, each) != each), targets[0]) if targets else -1


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


def _cut_common_test(graph: FlowGraph, block: Block, other: Block) -> None:
    """Cut ``block`` before the longest self-contained run of operations that ``other`` ends with, too."""
    common = 0
    while common < min(len(block.ops), len(other.ops)):
        one, two = block.ops[-1 - common], other.ops[-1 - common]
        if (not same_operation(one, two) and one.arg is not two.arg) or one.op is not two.op or one.line != two.line:
            break
        common += 1
    while common and not stands_alone(block.ops[-common:]):
        common -= 1
    if not common or common == len(block.ops):
        return
    cut = len(block.ops) - common
    rest = graph.new_block(block.ops[cut:], block.term, block.region)
    block.ops, block.term = block.ops[:cut], Jump(rest.id)


def _ways(term: Branch) -> Tuple[Test, int, int]:
    """Return the test and its successors if it holds and if it does not, whichever is the jump."""
    true, false = (term.target, term.fall) if term.jump_when else (term.fall, term.target)
    return term.test, true, false


def join_equal_blocks(graph: FlowGraph) -> bool:
    """Merge blocks with the same operations from the same lines, the same successors and the same region.

    That closes ``while`` loops with a test at the top and at the bottom, and undoes copied exits.
    Returns whether any were joined.

    In ``x if a else y if b else x`` both ``x`` are in the source: an operand is copied together with its use, so that
    its copies have different successors at first, and with the test that leads to it.
    """
    count = len(graph.blocks)
    _Joiner(graph).run()
    graph.drop_unreachable()
    return len(graph.blocks) < count


class _Joiner:
    """Joins equal blocks, then the predecessors that have become equal by that."""

    def __init__(self, graph: FlowGraph) -> None:
        self.graph, self.arms, self.handled = graph, Arms(graph), handling(graph)
        self.place = {id: place for place, id in enumerate(graph.blocks)}
        self.sources: Dict[int, Set[int]] = {id: set() for id in graph.blocks}
        for block in graph.blocks.values():
            for target in block.successors():
                self.sources[target].add(block.id)
        self.users = {
            block.id: {block.term.target}
            for block in graph.blocks.values()
            if isinstance(block.term, Jump) and leaves_operand(block) and self._is_operand(block)
        }
        self.entries = {region.entry for region in graph.regions()}
        self.candidates = _alike(graph)
        self.groups: Dict[object, Set[int]] = {}
        self.keys: Dict[int, object] = {}

    def _is_operand(self, block: Block) -> bool:
        """Whether ``block`` computes one value. What it drops before was tested, and is no result of an
        exit method, where the statement behind ``with`` is copied to both ways out of it."""
        if block.ops[0].op is Op.POP and not any(
            isinstance(self.graph.blocks[id].term, Branch) for id in self.sources[block.id]
        ):
            return False
        return computes_alone(block.ops)

    def run(self) -> None:
        changed = set(self.candidates)
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

    def _regrouped(self, changed: Set[int]) -> List[List[int]]:
        """Return the groups of equal blocks, in order, that these blocks are in now."""
        touched: Dict[object, None] = {}
        for id in sorted(changed, key=self.place.__getitem__):
            old = self.keys.pop(id, None)
            if old is not None:
                self.groups[old].discard(id)
            block = self.graph.blocks[id]
            key = _key(block)
            if key is not None:
                handled = self.handled[id] if block.ops[-1].op in (Op.RAISE, Op.RERAISE) else ()
                key = self.keys[id] = (key, self.arms.tests_of(id), handled)
                self.groups.setdefault(key, set()).add(id)
                touched[key] = None
        return [sorted(self.groups[key], key=self.place.__getitem__) for key in touched if len(self.groups[key]) > 1]

    def _merged(self, group: List[int]) -> Dict[int, int]:
        """Return the copies among equal blocks, each with its original; operands of the same use are no copies."""
        kept: List[int] = []
        merged: Dict[int, int] = {}
        for id in group:
            mine = self.users.get(id, set())
            keep = next((other for other in kept if not mine & self.users.get(other, set())), None)
            if keep is None or id == self.graph.entry:
                kept.append(id)
                continue
            merged[id] = keep
            self.users.setdefault(keep, set()).update(mine)
            if isinstance(self.graph.blocks[id].term, Branch):
                self.graph.copied_tests.add(keep)
        return merged

    def _redirect(self, old: int, new: int) -> Set[int]:
        """Redirect the edges to ``old`` to ``new``; return their source blocks."""
        sources = {id for id in self.sources.pop(old) if id in self.graph.blocks}
        for id in sources:
            self.graph.blocks[id].redirect(old, new)
        self.sources[new] |= sources
        return sources


def _alike(graph: FlowGraph) -> Set[int]:
    """The blocks that may have an equal: another one is as long, and on the same lines. Most have none."""
    groups: Dict[object, List[int]] = {}
    for block in graph.blocks.values():
        ops = block.ops
        if ops:
            middle = ops[len(ops) // 2]
            looks = (len(ops), ops[0].line, ops[-1].line, comparable(ops[0]), middle.op, comparable(middle))
            groups.setdefault(None if returns_constant(block) else looks, []).append(block.id)
    return {id for group in groups.values() if len(group) > 1 for id in group}


def _key(block: Block) -> object:
    """Return a key that is equal for copies of a block; ``None`` for a block that is never a copy."""
    ops = block.ops
    if returns_constant(block):
        return ("return", id(ops[0].arg), block.region, block.implicit or ops[0].line)
    if not ops or any(instr.op in (Op.PUSH_EXC, Op.POP_EXC) for instr in ops):
        return None  # they belong to one handler, even if another one looks the same
    if leaves_with_value(ops):
        return None
    term = block.term
    end: object
    if isinstance(term, Branch):
        end = ("branch", *_ways(term))
    elif isinstance(term, Jump):
        end = ("jump", term.target)
    elif isinstance(term, For):
        return None
    else:
        end = ("end",)
    if isinstance(term, Jump) and all(is_silent(instr) for instr in ops) and ops[0].line is None:
        return None
    body = tuple((instr.op, comparable(instr), instr.line) for instr in ops)
    return (body, end, block.region, block.leaves)


def leaves_with_value(ops: List[Instr]) -> bool:
    """Return whether ``ops`` call the exit function of a ``with`` and then return an earlier value: each ``return`` has
    its own such block, equal to the others (it has the line of the ``with``); only shorter ones are copies."""
    if ops[-1].op is not Op.RETURN:
        return False
    call = max((index for index in range(3, len(ops)) if _ends_with(ops, index)), default=None)
    if call is None:
        return False
    depth = 1  # of the values from the call on
    for instr in ops[call + 1 : -1]:
        if instr.op is not Op.SWAP:
            takes, leaves = effect(instr.op, instr.arg)
            depth = max(depth - takes, 0) + leaves
    return depth < 1


def _ends_with(ops: List[Instr], index: int) -> bool:
    """Return whether the operation at ``index`` calls an exit method with three None."""
    arguments = [(instr.op, instr.arg) for instr in ops[index - 3 : index]]
    return ops[index].op is Op.CALL and arguments == [(Op.CONST, None)] * 3


def same_operation(one: Instr, two: Instr) -> bool:
    """Return whether two instructions do the same, at any offset."""
    return one.op is two.op and (
        one.arg is two.arg or (type(one.arg) is type(two.arg) and one.op is not Op.CONST and one.arg == two.arg)
    )
