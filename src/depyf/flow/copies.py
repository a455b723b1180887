"""Undo the copies that the compiler makes of whole blocks.

except E as name       the ``name = None; del name`` behind every way out of the clause
finally                the body, once for every way out of the ``try``
loop tests, returns    ``while`` tests at the top and at the bottom, short exits at every jump to them
"""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, Optional, Set, Tuple

from depyf.flow.builtin_calls import undo_inlined_builtins
from depyf.flow.exit_copies import split_exit_copies
from depyf.flow.graph import Block, Branch, End, FlowGraph, For, Jump, Region
from depyf.flow.groups import handles_groups, simplify_exception_groups
from depyf.flow.patterns import recover_matches
from depyf.flow.threaded_tests import undo_threaded_tests
from depyf.normal.effects import effect
from depyf.normal.ops import Instr, Op, is_silent

Position = Tuple[int, int]


def undo_copies(graph: FlowGraph) -> None:
    """All steps, in the order in which they build on each other."""
    undo_inlined_builtins(graph)
    undo_threaded_tests(graph)
    simplify_exception_groups(graph)
    forget_exception_names(graph)
    split_constant_returns(graph)
    join_finally_copies(graph)
    thread_jumps(graph)
    recover_matches(graph)
    changed = True
    while changed:
        cut = split_loop_tests(graph)
        cut = split_exit_copies(graph) or cut
        cut = split_equal_tails(graph) or cut
        changed = join_equal_blocks(graph) or cut


# --- except E as name ------------------------------------------------------------------------------------------


def forget_exception_names(graph: FlowGraph) -> None:
    """Take away what ``except E as name`` adds: the region whose handler is ``name = None; del name; reraise``."""
    gone: Dict[Region, str] = {}
    for region in graph.regions():
        name = _forgets(graph.blocks[region.entry])
        if name is not None:
            gone[region] = name
    if not gone and not _bound_exceptions(graph):
        return
    outer = {region: graph.outer(region) for region in gone}
    names = set(gone.values()) | _bound_exceptions(graph)
    for block in graph.blocks.values():
        while block.region in gone:
            assert block.region is not None
            block.region = outer[block.region]
        block.ops = _without_forgetting(graph, block, names)
    graph.drop_unreachable()


def _bound_exceptions(graph: FlowGraph) -> Set[Any]:
    """What is stored right behind a test of the exception (a clause that can't raise has no region to forget in)."""
    names: Set[Any] = set()
    for block in graph.blocks.values():
        if block.ops and block.ops[-1].op is Op.CHECK_EXC and isinstance(block.term, Branch):
            match = graph.blocks[block.term.target if block.term.jump_when else block.term.fall]
            if match.ops and match.ops[0].op is Op.STORE:
                names.add(match.ops[0].arg)
    return names


def _forgets(block: Block) -> Optional[str]:
    """The name, if ``block`` is ``CONST None, STORE name, DELETE name, RERAISE``."""
    ops = block.ops
    if [instr.op for instr in ops] != [Op.CONST, Op.STORE, Op.DELETE, Op.RERAISE]:
        return None
    if ops[0].arg is not None or ops[1].arg != ops[2].arg:
        return None
    name: str = ops[1].arg
    return name


def _without_forgetting(graph: FlowGraph, block: Block, names: Set[Any]) -> List[Instr]:
    """3.11: every way out of the clause is ``POP_EXCEPT; None; STORE name; DELETE name``."""
    ops = block.ops
    result: List[Instr] = []
    index = 0
    while index < len(ops):
        result.append(ops[index])
        tail = ops[index + 1 : index + 4]
        if (
            ops[index].op is Op.POP_EXC
            and [instr.op for instr in tail] == [Op.CONST, Op.STORE, Op.DELETE]
            and tail[0].arg is None
            and tail[1].arg == tail[2].arg
            and tail[1].arg in names
        ):
            index += 3
        index += 1
    return result


# --- finally -----------------------------------------------------------------------------------------------------


def join_finally_copies(graph: FlowGraph) -> None:
    """Replace every copy of a ``finally`` body by an empty block that says which region is left there."""
    regions = [region for region in graph.regions() if _is_finally(graph, region)]
    regions.sort(key=lambda region: (len(graph.chain(region)), region.entry))
    for region in regions:
        if region.entry not in graph.blocks:
            continue
        exits = _exits(graph, region)
        matches = []
        for target in exits:
            match = _CopyMatch(graph, region)
            continuation = match.run(target)
            if not match.matched:
                break
            matches.append((target, continuation))
        else:
            for target, continuation in matches:
                _leave(graph, region, target, continuation)
            graph.finally_regions.add(region)
            graph.drop_unreachable()


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


def _exits(graph: FlowGraph, region: Region) -> List[int]:
    """Targets of the normal edges that leave ``region``."""
    inside = {block.id for block in graph.blocks.values() if region in graph.chain(block.region)}
    targets: List[int] = []
    for id in sorted(inside):
        for target in graph.blocks[id].successors():
            if target not in inside and target not in targets:
                targets.append(target)
    return targets


def _leave(graph: FlowGraph, region: Region, copy: int, continuation: Optional[Position]) -> None:
    """Edges from ``region`` to the copy go to a new block instead, and from there to what follows the copy."""
    if continuation is None:  # the body never ends normally: the handler's version says where control goes
        target = graph.new_block([], End(), graph.outer(region))
    else:
        target = graph.new_block([], Jump(_split(graph, continuation)), graph.outer(region))
    target.leaves = (region,)
    for block in list(graph.blocks.values()):
        if region in graph.chain(block.region):
            block.redirect(copy, target.id)


def _split(graph: FlowGraph, position: Position) -> int:
    """The block that begins at ``position``."""
    id, index = position
    if index == 0:
        return id
    block = graph.blocks[id]
    rest = graph.new_block(block.ops[index:], block.term, block.region)
    block.ops, block.term = block.ops[:index], Jump(rest.id)
    return rest.id


class _CopyMatch:
    """Walks the handler of a ``finally`` and one copy of its body in lockstep."""

    def __init__(self, graph: FlowGraph, region: Region) -> None:
        self.graph, self.region = graph, region
        self.outer = graph.outer(region)
        self.matched = False
        self.pairs: Set[Tuple[Position, Position]] = set()
        self.continuation: Optional[Position] = None
        self.todo: List[Tuple[Position, Position, int]] = []

    def run(self, copy: int) -> Optional[Position]:
        """Where control goes behind the copy that starts at block ``copy`` (None: nowhere); sets ``matched``."""
        self.todo.append(((self.region.entry, 1), (copy, 0), 0))
        while self.todo:
            if not self._walk(*self.todo.pop()):
                return None
        self.matched = True
        return self.continuation

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
            if theirs[1] == len(other.ops):
                return False
            if not _same(instr, other.ops[theirs[1]]):
                skipped = _pops_exception(block.ops, ours[1])
                if not skipped:
                    return False
                ours = (ours[0], ours[1] + skipped)
                continue
            if not self._same_region(block, other):
                return False
            nested += (instr.op is Op.PUSH_EXC) - (instr.op is Op.POP_EXC)
            ours, theirs = (ours[0], ours[1] + 1), (theirs[0], theirs[1] + 1)
            if isinstance(block.term, End) and ours[1] == len(block.ops):
                return True

    def _same_region(self, block: Block, other: Block) -> bool:
        if block.region == self.outer or block.region is None:
            return other.region == block.region
        if other.region is None or other.region == self.outer:
            return False
        self.todo.append(((block.region.entry, 0), (other.region.entry, 0), 0))
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
        return False

    def _continue_at(self, position: Position) -> bool:
        if self.continuation is None:
            self.continuation = position
            return True
        return self._same_tail(self.continuation, position)

    def _same_tail(self, first: Position, second: Position) -> bool:
        """Whether two positions are the same place, or copies of the same short way out."""
        while True:
            first, second = self._normal(first), self._normal(second)
            if first == second:
                return True
            one, two = self.graph.blocks[first[0]], self.graph.blocks[second[0]]
            if first[1] >= len(one.ops) or second[1] >= len(two.ops) or one.region != two.region:
                return False
            if not _same(one.ops[first[1]], two.ops[second[1]]):
                return False
            if one.ops[first[1]].op in (Op.RETURN, Op.RAISE, Op.RERAISE):
                return True
            first, second = (first[0], first[1] + 1), (second[0], second[1] + 1)


def _pops_exception(ops: List[Instr], index: int) -> int:
    """How many operations at ``index`` take the exception off the stack before a jump out of the ``finally`` body:
    ``POP, POP_EXC`` or, below a value to return, ``SWAP 2, POP, SWAP 2, POP_EXC``."""
    kinds = [(instr.op, instr.arg) for instr in ops[index : index + 4]]
    if kinds[:2] == [(Op.POP, None), (Op.POP_EXC, None)]:
        return 2
    if kinds == [(Op.SWAP, 2), (Op.POP, None), (Op.SWAP, 2), (Op.POP_EXC, None)]:
        return 4
    return 0


def _same(one: Instr, two: Instr) -> bool:
    return one.op is two.op and (
        one.arg is two.arg or (type(one.arg) is type(two.arg) and one.op is not Op.CONST and one.arg == two.arg)
    )


# --- jumps to jumps -----------------------------------------------------------------------------------------------


def thread_jumps(graph: FlowGraph) -> None:
    """Jumps to an empty block go where that block goes. An empty block stays where it alone shows that control
    leaves a region on its way (``while True: try: ...``: the jump back lies outside of the ``try``)."""
    for block in list(graph.blocks.values()):
        for target in block.successors():
            final = target
            seen = {target}
            while True:
                middle = graph.blocks[final]
                if middle.ops or middle.leaves or not isinstance(middle.term, Jump) or middle.term.target in seen:
                    break
                beyond = graph.blocks[middle.term.target]
                if middle.region not in (beyond.region, block.region):
                    break
                if isinstance(block.term, Jump) or middle.offset() > block.offset():
                    block.jumps_from = max(block.jumps_from, middle.offset())
                final = beyond.id
                seen.add(final)
            if final != target:
                block.redirect(target, final)
    graph.drop_unreachable()


# --- equal blocks ------------------------------------------------------------------------------------------------


def split_constant_returns(graph: FlowGraph) -> None:
    """``return <constant>`` becomes a block of its own, in no region: it can't raise, and it is copied freely."""
    for block in list(graph.blocks.values()):
        ops = block.ops
        if len(ops) >= 2 and ops[-1].op is Op.RETURN and ops[-2].op is Op.CONST:
            if len(ops) == 2:
                if block.id != graph.entry:
                    block.region = None
                continue
            stub = graph.new_block(ops[-2:], End(), None)
            stub.implicit = ops[-2].line is None or ops[-2].line == ops[-3].line
            block.ops, block.term = ops[:-2], Jump(stub.id)
    _find_implicit_returns(graph)


def _find_implicit_returns(graph: FlowGraph) -> None:
    """A function that runs off its end returns None on the line of whatever came before."""
    predecessors = graph.predecessors()
    is_function = graph.code.code.co_flags & inspect.CO_OPTIMIZED
    for block in graph.blocks.values():
        if not _returns_constant(block) or block.ops[0].arg is not None:
            block.implicit = False
            continue
        if not is_function:  # modules and classes have no ``return``
            block.implicit = True
        for id in predecessors[block.id]:
            before = graph.blocks[id]
            last = before.ops[-1].line if before.ops else getattr(getattr(before.term, "instr", None), "line", None)
            block.implicit = block.implicit or last == block.ops[0].line or block.ops[0].line is None


def _returns_constant(block: Block) -> bool:
    return len(block.ops) == 2 and block.ops[0].op is Op.CONST and block.ops[1].op is Op.RETURN


def split_loop_tests(graph: FlowGraph) -> bool:
    """``while`` loops test at the top and, copied, at the bottom: cut both blocks where the copied test begins.

    Returns whether anything was cut.
    """
    count = len(graph.blocks)
    by_ways: Dict[Any, List[Block]] = {}
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
    """Short ways out are copied to every jump to them: cut blocks that end in the same operations, on the same lines,
    where these begin. Returns whether anything was cut."""
    count = len(graph.blocks)
    groups: Dict[Any, List[Block]] = {}
    for block in graph.blocks.values():
        term = block.term
        if block.ops and isinstance(term, (Jump, End)) and not _returns_constant(block):
            last = block.ops[-1]
            where = term.target if isinstance(term, Jump) else None
            if last.op in _TAILS and last.line is not None:
                groups.setdefault((where, block.region, last.op, last.line), []).append(block)
    for blocks in groups.values():
        first = blocks[0]
        common = min((_common_tail(first, other) for other in blocks[1:]), default=0)
        for block in blocks:
            if 0 < common < len(block.ops):
                rest = graph.new_block(block.ops[-common:], block.term, block.region)
                block.ops, block.term = block.ops[:-common], Jump(rest.id)
    return len(graph.blocks) > count


_TAILS = frozenset({Op.RETURN, Op.POP, Op.STORE, Op.STORE_ATTR, Op.STORE_SUBSCR})
"""How a statement ends whose value is computed in several ways."""


def _common_tail(one: Block, two: Block) -> int:
    """How many operations that only return or store a value both blocks end in, the same on the same lines."""
    common = 0
    while common < min(len(one.ops), len(two.ops)):
        mine, theirs = one.ops[-1 - common], two.ops[-1 - common]
        if (not _same(mine, theirs) and mine.arg is not theirs.arg) or mine.op is not theirs.op:
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
        if (not _same(one, two) and one.arg is not two.arg) or one.op is not two.op or one.line != two.line:
            break
        common += 1
    while common and not _stands_alone(block.ops[-common:]):
        common -= 1
    if not common or common == len(block.ops):
        return
    cut = len(block.ops) - common
    rest = graph.new_block(block.ops[cut:], block.term, block.region)
    block.ops, block.term = block.ops[:cut], Jump(rest.id)


def _stands_alone(ops: List[Instr]) -> bool:
    """Whether ``ops`` make one value and need none from before."""
    depth = 0
    for instr in ops:
        takes, leaves = effect(instr.op, instr.arg)
        if takes > depth:
            return False
        depth += leaves - takes
    return depth >= 1


def _ways(term: Branch) -> Tuple[str, int, int]:
    """The test and where it leads if it holds and if it does not, whichever of the two is the jump."""
    true, false = (term.target, term.fall) if term.jump_when else (term.fall, term.target)
    return term.test, true, false


def join_equal_blocks(graph: FlowGraph) -> bool:
    """Blocks with the same operations from the same lines, the same successors and the same region are one.

    That closes ``while`` loops whose test stands at the top and again at the bottom, and takes back copied exits.
    Returns whether any were joined.
    """
    count = len(graph.blocks)
    changed = True
    while changed:
        changed = False
        known: Dict[Any, int] = {}
        merged: Dict[int, int] = {}
        for block in graph.blocks.values():
            key = _key(graph, block)
            if key is None:
                continue
            keep = known.setdefault(key, block.id)
            if keep != block.id and block.id != graph.entry:
                merged[block.id] = keep
                if isinstance(block.term, Branch):
                    graph.copied_tests.add(keep)
        if merged:
            changed = True
            for block in graph.blocks.values():
                for old in block.successors():
                    if old in merged:
                        block.redirect(old, merged[old])
            entries = {region.entry for region in graph.regions()}
            for id in merged:
                if id not in entries:
                    del graph.blocks[id]
    graph.drop_unreachable()
    return len(graph.blocks) < count


def _key(graph: FlowGraph, block: Block) -> Any:
    ops = block.ops
    if _returns_constant(block):
        return ("return", id(ops[0].arg), block.region, block.implicit or ops[0].line)
    if not ops or any(instr.op in (Op.PUSH_EXC, Op.POP_EXC, Op.RERAISE) for instr in ops):
        return None  # they belong to one handler, even if another one looks the same
    term = block.term
    end: Any
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
    body = tuple((instr.op, id(instr.arg) if instr.op is Op.CONST else instr.arg, instr.line) for instr in ops)
    return (body, end, block.region, block.leaves)
