"""Short blocks that end in ``return`` or ``raise``, or end a ``finally`` body, are copied to every jump to them.

    if a: LOAD x                        send(x if a else y)
          CALL 1; POP; RETURN None
    else: LOAD y
          CALL 1; POP; RETURN None

Copies have the lines of their originals. The blocks that end in one are cut where it begins; equal blocks are joined
in another step.

3.10 copies exits of any length that begin with an instruction without a line: code that adds to the keywords of a call
with more than 15, and code that drops the result of a chained comparison.
"""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Dict, Iterator, List, Optional, Set, Tuple

from depyf.decompiler.flow.arms import Arms, comparable, line_of_statement, returns_at_once
from depyf.decompiler.flow.graph import Block, Branch, End, FlowGraph, Jump, returns_constant
from depyf.decompiler.flow.managers import leaves_with_value, spans_of_managers, way_out_of_manager
from depyf.decompiler.flow.repeated import Repeated
from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.modes import Mode, mode_of
from depyf.decompiler.normal.ops import Instr, Op

LONGEST_COPY = 4
"""The number of instructions of the longest block that the compiler copies."""

_WITHOUT_LINE = frozenset({Op.ADD, Op.POP})

_CLASS_ENDS = [("name", name) for name in ("__static_attributes__", "__classdictcell__", "__classcell__")]


def split_exit_copies(graph: FlowGraph, repeated: Repeated) -> bool:
    """Cut the blocks that end in copies of the same exit. Return whether anything was cut. Needs several exits on one
    line; at least one must be only a part of its block."""
    # The candidates: by the region that they leave, where they go on, and the last operation with its line.
    groups: Dict[object, List[Block]] = {}
    ends = repeated.ends()
    for block in ends:
        if block.ops and (block.ops[-1].line is not None or _ends_expression(block)) and _leaves(graph, block):
            last = block.ops[-1]
            where = block.term.target if isinstance(block.term, Jump) else None
            key = (where, block.region, block.leaves, last.op, line_of_statement(last))
            groups.setdefault(key, []).append(block)
    cuts: Dict[int, int] = {}
    several = [blocks for blocks in groups.values() if len(blocks) > 1 and any(len(block.ops) > 1 for block in blocks)]
    if not several:
        return False
    arms = Arms(graph)
    for blocks in several:
        cuts.update(_common_exits([_Ending(graph, block, arms.tests_of(block.id)) for block in blocks]))
    longer = [block for block in ends if cuts.get(block.id, len(block.ops)) < len(block.ops)]
    longer = [block for block in longer if not returns_at_once(block)]  # the end of one statement each
    for block in longer:
        graph.cut(block, -cuts[block.id])
    return bool(longer)


def _ends_expression(block: Block) -> bool:
    """Return whether ``block`` ends an expression that begins before it: without lines, too, copies of its end are of
    one statement."""
    # n; FORMAT r; m; BRANCH false -> 1         f"{n!r}{'a' if m else 'b'}", whose parts are no values of their own
    #    CONST 'a'; FORMAT; BUILD string 2; RETURN
    # 1: CONST 'b'; FORMAT; BUILD string 2; RETURN
    depth = 0
    for instr in block.ops:
        takes, leaves = effect(instr.op, instr.arg)
        if takes > depth and instr.op not in _PLUMBING:
            return True
        depth += leaves - takes
    return False


_PLUMBING = frozenset({Op.SWAP, Op.COPY, Op.POP, Op.POP_EXC, Op.RETURN, Op.RAISE, Op.RERAISE})
"""The operations of an exit that drop or return what statements around it keep on the stack."""


def join_returned_constants(graph: FlowGraph) -> None:
    """Join ``return a and b and (None if c else d)``, whose constant returns by a copy of the return (3.10 on)."""
    # a; COPY 1; BRANCH false -> 3; POP; b; COPY 1; BRANCH false -> 3; POP; c; BRANCH false -> 2
    # 1: CONST None; RETURN           becomes ``CONST None; JUMP -> 3``
    # 2: d
    # 3: RETURN                       of the same statement: it returns the values of a and b that were tested
    if Op.COPY not in graph.code.kinds or not any(map(_returns_new_constant, graph.blocks.values())):
        return
    seen: Dict[int, Set[int]] = {}
    for block in graph.blocks.values():
        if not isinstance(block.term, Branch) or [(instr.op, instr.arg) for instr in block.ops[-1:]] != [(Op.COPY, 1)]:
            continue
        for out, after in ((block.term.target, block.term.fall), (block.term.fall, block.term.target)):
            # The tested value is returned here, perhaps from an ``except`` clause; the constant is on the other way.
            returning = graph.blocks[out]
            if [instr.op for instr in returning.ops] not in _RETURNS:
                continue
            for id in _operand(graph, after, seen.setdefault(out, {out})):
                last = graph.blocks[id]
                constant, exit = last.ops[: -len(returning.ops)], last.ops[-len(returning.ops) :]
                copied = [(one.op, one.arg) for one in exit] == [(two.op, two.arg) for two in returning.ops]
                if not constant or constant[-1].op is not Op.CONST or not copied:
                    continue
                if returning.region == last.region and returning.leaves == last.leaves:
                    last.ops, last.term = constant, Jump(returning.id)


def _returns_new_constant(block: Block) -> bool:
    """Return whether ``block`` ends by returning a constant that it computes, perhaps from an ``except`` clause."""
    if not isinstance(block.term, End) or not block.ops or block.ops[-1].op is not Op.RETURN:
        return False
    return [instr.op for instr in block.ops[:-1] if instr.op not in (Op.SWAP, Op.POP_EXC)][-1:] == [Op.CONST]


def _operand(graph: FlowGraph, first: int, seen: Set[int]) -> Iterator[int]:
    """Yield the blocks reached from ``first`` that end the code, without passing through ``seen``; extend ``seen``."""
    todo = [first]
    while todo:
        id = todo.pop()
        if id not in seen:
            seen.add(id)
            block = graph.blocks[id]
            todo.extend(block.successors())
            if isinstance(block.term, End):
                yield id


_RETURNS = ([Op.RETURN], [Op.POP_EXC, Op.RETURN], [Op.SWAP, Op.POP_EXC, Op.RETURN])
"""The operations that return a value from the stack, from an ``except`` clause or elsewhere."""


def join_returned_comparisons(graph: FlowGraph) -> None:
    """Join ``return a or b < c < d``: the last comparison returns by a copy with its own line (3.8, 3.9); the exit in
    the middle of the chain has the line of the return."""
    # b; c; SWAP 2; COPY 2; COMPARE <; COPY 1; BRANCH false -> 2
    # 1: POP; d; COMPARE; RETURN           the copy; becomes ``POP; d; COMPARE; JUMP -> 3``
    # 2: SWAP; POP; JUMP -> 3              drops c below the result
    # 3: RETURN
    if Op.SWAP not in graph.code.kinds:
        return
    for block in graph.blocks.values():
        if not isinstance(block.term, Branch):
            continue
        for last, out in ((block.term.target, block.term.fall), (block.term.fall, block.term.target)):
            end, dropping = graph.blocks[last], graph.blocks[out]
            if [instr.op for instr in dropping.ops] != [Op.SWAP, Op.POP] or not isinstance(dropping.term, Jump):
                continue
            returning = graph.blocks[dropping.term.target]
            copied = [instr.op for instr in end.ops[-2:]] == [Op.COMPARE, Op.RETURN] and end.region == returning.region
            if copied and [instr.op for instr in returning.ops] == [Op.RETURN]:
                end.ops, end.term = end.ops[:-1], Jump(returning.id)


def join_returned_arms(graph: FlowGraph) -> None:
    """Join ``return a if b else 1``, whose return is copied to both arms (3.12 on): one statement with two values, as
    columns show."""
    # b; BRANCH false -> 2
    # 1: a; RETURN         the span of both is the whole ``return`` statement; the values have spans of their own
    # 2: CONST 1; RETURN
    groups: Dict[object, List[Tuple[Block, int]]] = {}
    returning = [block for block in graph.blocks.values() if block.ops and block.ops[-1].op is Op.RETURN]
    numbers = Counter([block.ops[-1].span for block in returning])
    for block in returning:
        ops, span = block.ops, block.ops[-1].span
        if numbers[span] < 2 or span is None or None in span:
            continue
        # The exit also leaves the handler, in an ``except`` clause: SWAP; POP_EXC; RETURN.
        begin = len(ops) - 1
        while begin and ops[begin - 1].op in (Op.SWAP, Op.POP_EXC):
            begin -= 1
        if not begin or _new_values(ops[:begin])[-1] == 1:  # else ``a or b``: the value was tested before
            exit = tuple((instr.op, instr.arg) for instr in ops[begin:])
            groups.setdefault((span, exit, block.region), []).append((block, begin))
    several = [
        arms for arms in groups.values() if len({block.ops[at - 1].span if at else None for block, at in arms}) > 1
    ]
    managers = spans_of_managers(graph) if several else set()
    for arms in several:
        first, begin = arms[0]
        if first.ops[-1].span in managers:  # a return in a ``with`` has its span
            continue
        # Arms that are copies of each other, the joined return, then what the arms have in common before it.
        _merge_copies(graph, [block for block, _ in arms])
        end = graph.new_block(first.ops[begin:], End(), first.region)
        for block, begin in arms:
            block.ops, block.term = block.ops[:begin], Jump(end.id)
        _join_operations(graph, [block for block, _ in arms], LONGEST_COPY - len(end.ops))


def _join_operations(graph: FlowGraph, blocks: List[Block], longest: int) -> None:
    """Join the copies of up to ``longest`` operations at the end of ``blocks``, as the call of ``f`` in ``return f(a if
    b else c) if d else e``: one operation each time, with the blocks that share it."""
    groups: Dict[object, List[Block]] = {}
    for block in blocks if longest else ():
        if block.ops:
            last = block.ops[-1]
            groups.setdefault((last.op, comparable(last), last.span), []).append(block)
    for same in groups.values():
        if len(same) > 1:
            joined = graph.new_block(same[0].ops[-1:], same[0].term, same[0].region)
            for block in same:
                block.ops, block.term = block.ops[:-1], Jump(joined.id)
            _join_operations(graph, same, longest - 1)


def _merge_copies(graph: FlowGraph, blocks: List[Block]) -> None:
    """Redirect jumps to copies among ``blocks`` to their originals, which have the same spans: two tests may lead to
    one value, as to ``a`` in ``a if (b if c else d) else e``."""
    originals: Dict[object, int] = {}
    copies: Dict[int, int] = {}
    for block in blocks:
        key = tuple((instr.op, comparable(instr), instr.span) for instr in block.ops)
        original = originals.setdefault(key, block.id)
        if original != block.id:
            copies[block.id] = original
    for block in graph.blocks.values() if copies else ():
        for target in block.successors():
            if target in copies:
                block.redirect(target, copies[target])
    if copies:
        graph.drop_unreachable()


def join_returns_of_expression(graph: FlowGraph) -> None:
    """Join all returns of ``eval`` code: it is one expression, which returns once."""
    if mode_of(graph.code) is not Mode.EVAL:
        return
    returning = [block for block in graph.blocks.values() if block.ops and block.ops[-1].op is Op.RETURN]
    end = graph.new_block(returning[-1].ops[-1:], End(), None)
    for block in returning:
        block.ops, block.term = block.ops[:-1], Jump(end.id)


def join_failed_chains(graph: FlowGraph) -> None:
    """Join ``if not a < b < c: return d`` on one line, which returns twice."""
    # a; b; SWAP 2; COPY 2; COMPARE <; BRANCH false -> 2
    # 1: c; COMPARE <; BRANCH true -> 4 (false -> 3)
    # 2: POP; d; RETURN           where the first test fails, ``b`` is dropped: becomes ``POP; JUMP -> 3``
    # 3: d; RETURN
    #
    # At the end of an ``except`` clause, both have a POP_EXC before the rest; only in the copy it has the test's line.
    if not {Op.SWAP, Op.COPY} <= graph.code.kinds:
        return
    ends = [block for block in graph.blocks.values() if _is_exit(block) or _ends_clause(block)]
    dropping = [block for block in ends if block.ops[0].op is Op.POP]
    predecessors = graph.predecessors() if dropping else {}
    dropping = [each for each in dropping if all(_tests_a_chain(graph.blocks[id]) for id in predecessors[each.id])]
    exits: Dict[object, Block] = {}
    for block in ends if dropping else ():
        exits.setdefault(_whole(block.ops, block), block)
    for block in dropping:
        rest = block.ops[1:]
        original = exits.get(_whole(rest, block), exits.get(_whole(rest, block, placed=False)))
        if original is not None:
            block.ops, block.term = block.ops[:1], Jump(original.id)


def _whole(ops: List[Instr], block: Block, *, placed: bool = True) -> object:
    lines = [instr.line if placed or instr.op is not Op.POP_EXC else None for instr in ops]
    code = tuple((instr.op, comparable(instr), line) for instr, line in zip(ops, lines))
    return code, block.successors(), block.region, block.leaves


def _ends_clause(block: Block) -> bool:
    """Return whether ``block`` is the end of an ``except`` clause, perhaps after a failed test of a chain."""
    kinds = [instr.op for instr in block.ops[:3]]
    return isinstance(block.term, Jump) and kinds in ([Op.POP_EXC], [Op.POP, Op.POP_EXC])


def _tests_a_chain(block: Block) -> bool:
    """Return whether ``block`` ends with ``a < b`` of ``a < b < c``, and a jump if that is false."""
    ops = [(instr.op, instr.arg) for instr in block.ops[-3:-1]]
    return isinstance(block.term, Branch) and ops == [(Op.SWAP, 2), (Op.COPY, 2)]


def join_class_ends(graph: FlowGraph) -> None:
    """Join the ends of a class body: the code that the compiler adds has no line, so that each copy has the line of the
    code before it."""
    # if a: ...           ...; CONST ('x',); STORE __static_attributes__; CLOSURE; COPY 1; STORE __classcell__; RETURN
    # else: ...           ...; and the same again
    if graph.code.code.co_flags & inspect.CO_OPTIMIZED:
        return
    ends: Dict[object, Block] = {}
    for block in list(graph.blocks.values()):
        begin = _end_of_class(block.ops)
        if begin is None:
            continue
        end = block.ops[begin:]
        returns = graph.blocks[block.term.target].ops if isinstance(block.term, Jump) else []
        key = (block.region, tuple((instr.op, instr.arg) for instr in [*end, *returns]))
        if key not in ends:
            ends[key] = graph.new_block(end, block.term, block.region)
        block.ops, block.term = block.ops[:begin], Jump(ends[key].id, end[0].offset)


def _end_of_class(ops: List[Instr]) -> Optional[int]:
    """Return where the end of a class starts in a block: its values are constants, cells, and the cell that is returned
    as well. ``None`` if the block has no such end."""
    # Backwards: each value is followed by its store, but for the one that is returned at last.
    begin = None
    for index in reversed(range(len(ops))):
        instr = ops[index]
        if instr.op in (Op.CONST, Op.CLOSURE):
            begin = index if ops[index + 1 :] and ops[index + 1].op is not Op.RETURN else begin
        elif instr.op not in (Op.COPY, Op.RETURN) and not (instr.op is Op.STORE and instr.arg in _CLASS_ENDS):
            break
    return begin


def _leaves(graph: FlowGraph, block: Block) -> bool:
    """Return whether ``block`` returns or raises, and may be a copy. ``return <constant>`` is a separate block by now,
    and so is the code after the end of a region."""
    if leaves_with_value(block.ops) or way_out_of_manager(graph, block):
        return False
    if isinstance(block.term, End):
        return _is_exit(block) and not returns_constant(block)
    if not isinstance(block.term, Jump):
        return False
    target = graph.blocks[block.term.target]
    return returns_constant(target) or (_is_exit(target) and target.region != block.region)


def _is_exit(block: Block) -> bool:
    return isinstance(block.term, End) and bool(block.ops) and block.ops[-1].op in (Op.RETURN, Op.RAISE, Op.RERAISE)


class _Ending:
    """The possible exits of a block: its last one, two, ... operations.

    An exit may be cut off if the operations before it are whole statements, or compute one value; between two arms of
    an expression, only if this holds for both. ``tests``: the result of ``Arms.tests_of`` for the block.
    ``new_values``: how many values the operations before each one leave.
    """

    def __init__(self, graph: FlowGraph, block: Block, tests: Optional[int]) -> None:
        self.id, self.ops, self.tests = block.id, block.ops, tests
        self.new_values = _new_values(block.ops)
        # The compiler counts instructions, not operations: LONGEST_COPY of them, with the return that a jump leads to.
        following = graph.blocks[block.term.target].ops if isinstance(block.term, Jump) else ()
        offsets = {instr.offset for instr in following}
        self.longest = 0
        for instr in reversed(block.ops):
            offsets.add(instr.offset)
            if len(offsets) > LONGEST_COPY:
                break
            self.longest += 1
        self.short = self.longest
        # No other statement can raise the exception of an assert, which has no name: an exit begins with it, or before.
        raised = [at for at, each in enumerate(block.ops) if each.op is Op.SPECIAL and each.arg == "AssertionError"]
        self.shortest = len(block.ops) - raised[-1] if raised and block.ops[-1].op is Op.RAISE else 0
        # 3.10: an exit of any length, if it begins with an instruction without a line.
        adding = next((index for index, instr in enumerate(block.ops) if instr.op in _WITHOUT_LINE), len(block.ops))
        self.longest = max(self.longest, len(block.ops) - adding)

    def operation(self, count: int) -> object:
        """Return a key for the first operation of the exit of ``count`` operations; ``None`` if that is too long."""
        if count > self.longest:
            return None
        instr = self.ops[-count]
        return instr.op, line_of_statement(instr), type(instr.arg), comparable(instr)

    def is_copied(self, count: int) -> bool:
        """Return whether the compiler copies an exit of ``count`` operations, or the source can't have it twice."""
        instr = self.ops[-count]
        if instr.op is Op.MAKE_FUNCTION:  # it belongs to the code object before it
            return False
        if count < self.shortest:
            return False
        return count <= self.short or instr.op is Op.ADD

    def begins_with_pop(self, count: int) -> bool:
        """Return whether the exit of ``count`` operations is the whole block, and first drops an earlier value."""
        return count == len(self.ops) and self.ops[0].op is Op.POP

    def values_before(self, count: int) -> int:
        """Return the number of new values on the stack before the exit of ``count`` operations."""
        return self.new_values[len(self.ops) - count]


def _common_exits(endings: List[_Ending]) -> Dict[int, int]:
    """Return the length of the longest exit that each block shares with another one, if there is any."""
    # Sort the endings into groups by their last operation, each group by the last but one, and so on: a trie from the
    # back. Longer exits come later and overwrite shorter ones.
    common: Dict[int, int] = {}
    todo: List[Tuple[int, List[_Ending]]] = [(1, endings)]
    while todo:
        count, same = todo.pop()
        further: Dict[object, List[_Ending]] = {}
        for ending in same:
            operation = ending.operation(count)
            if operation is not None:
                further.setdefault(operation, []).append(ending)
        for sharing in further.values():
            if len(sharing) > 1:
                if sharing[0].is_copied(count) or any(ending.begins_with_pop(count) for ending in sharing):
                    common.update((ending.id, count) for ending in _that_may_be_cut(sharing, count))
                todo.append((count + 1, sharing))
    return common


def _that_may_be_cut(sharing: List[_Ending], count: int) -> Iterator[_Ending]:
    """Yield the blocks with the same exit that have another one to share it with."""
    # Before the exit there are whole statements (no new value) or one value.
    fit = [ending for ending in sharing if ending.values_before(count) <= 1]
    values = sum(ending.values_before(count) for ending in fit)
    numbers = Counter(ending.tests for ending in fit)
    for ending in fit:
        if ending.tests is None:
            others = len(fit)
        else:  # other tests lead to another arm: only copies of this arm, or blocks that are no arms, share its exit
            others = numbers[ending.tests] + numbers[None]
            if ending.values_before(count):
                others = max(others, values)
        if others > 1:
            yield ending


def _new_values(ops: List[Instr]) -> List[int]:
    """Return how many new values the first 0, 1, ... of ``ops`` leave on the stack."""
    # ``lowest`` is how far the operations have reached down into earlier values: what is above that is new.
    depth = lowest = 0
    result = [0]
    for instr in ops:
        takes, leaves = effect(instr.op, instr.arg)
        lowest = min(lowest, depth - takes)
        depth += leaves - takes
        result.append(depth - lowest)
    return result
