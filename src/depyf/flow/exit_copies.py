"""Short blocks that end in ``return`` or ``raise`` are copied to every jump to them.

    if a: LOAD x                        send(x if a else y)
          CALL 1; POP; RETURN None
    else: LOAD y
          CALL 1; POP; RETURN None

Copies have the lines of what they are copies of. The blocks that end in one are cut where it begins; equal blocks are
joined in another step.
"""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, Optional

from depyf.flow.arms import Arms
from depyf.flow.equal_blocks import leaves_with_value
from depyf.flow.graph import Block, Branch, End, FlowGraph, Jump, returns_constant
from depyf.normal.effects import effect
from depyf.normal.ops import Instr, Op

_LONGEST = 4
"""How many instructions a block may have that the compiler copies."""

_CLASS_ENDS = [("name", name) for name in ("__static_attributes__", "__classdictcell__", "__classcell__")]


def split_exit_copies(graph: FlowGraph) -> bool:
    """Cut the blocks that end in copies of the same exit. Returns whether anything was cut."""
    groups: Dict[Any, List[Block]] = {}
    for block in graph.blocks.values():
        if block.ops and _leaves(graph, block) and block.ops[-1].line is not None:
            last = block.ops[-1]
            where = block.term.target if isinstance(block.term, Jump) else None
            groups.setdefault((where, block.region, block.leaves, last.op, last.line), []).append(block)
    cuts: Dict[int, int] = {}
    arms = Arms(graph)
    for blocks in groups.values():
        for place, one in enumerate(blocks):
            for two in blocks[:place]:
                common = _common_exit(graph, one, two, _are_arms(arms.tests_of(one.id), arms.tests_of(two.id)))
                for block in (one, two):
                    cuts[block.id] = max(common, cuts.get(block.id, 0))
    changed = False
    for id, common in cuts.items():
        block = graph.blocks[id]
        if 0 < common < len(block.ops):
            rest = graph.new_block(block.ops[-common:], block.term, block.region)
            block.ops, block.term = block.ops[:-common], Jump(rest.id)
            changed = True
    return changed


def join_returned_comparisons(graph: FlowGraph) -> None:
    """``return a or b < c < d``: the last comparison returns by a copy, with a line of its own (3.8, 3.9); the way out
    of the chain in its middle shows where the return stands."""
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


def join_class_ends(graph: FlowGraph) -> None:
    """What the compiler adds at the end of a class body has no line of its own: where it is copied, the copies have the
    lines of what is before them."""
    if graph.code.code.co_flags & inspect.CO_OPTIMIZED:
        return
    ends: Dict[Any, Block] = {}
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
    """Where that begins in a block: its values are constants, cells, and the cell that is returned as well."""
    begin = None
    for index in reversed(range(len(ops))):
        instr = ops[index]
        if instr.op in (Op.CONST, Op.CLOSURE):
            begin = index if ops[index + 1 :] and ops[index + 1].op is not Op.RETURN else begin
        elif instr.op not in (Op.COPY, Op.RETURN) and not (instr.op is Op.STORE and instr.arg in _CLASS_ENDS):
            break
    return begin


def _leaves(graph: FlowGraph, block: Block) -> bool:
    """Whether ``block`` returns or raises, and may be a copy; ``return <constant>`` is a block of its own by now, and
    what comes behind the end of a region is one anyway."""
    if leaves_with_value(block.ops):
        return False
    if isinstance(block.term, End):
        return _is_exit(block) and not returns_constant(block)
    if not isinstance(block.term, Jump):
        return False
    target = graph.blocks[block.term.target]
    return returns_constant(target) or (_is_exit(target) and target.region != block.region)


def _is_exit(block: Block) -> bool:
    return isinstance(block.term, End) and bool(block.ops) and block.ops[-1].op in (Op.RETURN, Op.RAISE)


def _are_arms(one: Optional[int], two: Optional[int]) -> bool:
    """Whether two blocks with these tests are different arms of an expression."""
    return one is not None and two is not None and one != two


def _common_exit(graph: FlowGraph, one: Block, two: Block, arms: bool) -> int:
    """How many operations the longest exit has that both blocks may end in: what is before it in them is a whole number
    of statements, or computes one value; ``arms``: it does, for they are two arms of an expression."""
    longest = 0
    offsets = {instr.offset for instr in (graph.blocks[one.term.target].ops if isinstance(one.term, Jump) else ())}
    for count, (mine, theirs) in enumerate(zip(reversed(one.ops), reversed(two.ops)), 1):
        offsets.add(mine.offset)
        if not _same(mine, theirs) or len(offsets) > _LONGEST:
            break
        if arms and (_new_values(one.ops[:-count]), _new_values(two.ops[:-count])) != (1, 1):
            continue
        if _new_values(one.ops[:-count]) <= 1 and _new_values(two.ops[:-count]) <= 1:
            longest = count
    return longest


def _same(one: Instr, two: Instr) -> bool:
    if one.op is not two.op or one.line != two.line:
        return False
    return one.arg is two.arg or (one.op is not Op.CONST and type(one.arg) is type(two.arg) and one.arg == two.arg)


def _new_values(ops: List[Instr]) -> int:
    """How many values ``ops`` leave on the stack that were not there before."""
    depth = lowest = 0
    for instr in ops:
        takes, leaves = effect(instr.op, instr.arg)
        lowest = min(lowest, depth - takes)
        depth += leaves - takes
    return depth - lowest
