"""The exits of ``with`` statements: calls of an exit method with three None. A return after such a call is no copy."""

from __future__ import annotations

from typing import List, Optional, Sequence, Set

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.flow.arms import RETURNING
from depyf.decompiler.flow.graph import Block, FlowGraph, Jump
from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.ops import Instr, Op


def way_out_of_manager(graph: FlowGraph, block: Block) -> List[int]:
    """Return the ids of the several blocks, from ``block`` on, that together call the exit method of a ``with`` and
    return an earlier value (see ``leaves_with_value``); an empty list if one block does both, or none does."""
    # In a ``try``, the call is in its region and the return is not: so they are several blocks.
    ops, way = list(block.ops), [block.id]
    while isinstance(block.term, Jump) and ops and ops[-1].op in RETURNING and block.term.target not in way:
        block = graph.blocks[block.term.target]
        if any(instr.op not in RETURNING for instr in block.ops):
            break
        ops += block.ops
        way.append(block.id)
    return way if len(way) > 1 and leaves_with_value(ops) else []


def leaves_with_value(ops: List[Instr]) -> bool:
    """Return whether ``ops`` call the exit function of a ``with`` and then return an earlier value. Each ``return`` has
    its own such block, equal to the others (it has the line of the ``with``); only shorter ones are copies."""
    if ops[-1].op is not Op.RETURN:
        return False
    call = max((index for index in range(3, len(ops)) if calls_exit(ops, index)), default=None)
    if call is None:
        return False
    # For each value on top of the stack: is it the result of the call, or a later one? RETURN must take an earlier one.
    later = [True]
    for instr in ops[call + 1 : -1]:
        if instr.op is Op.SWAP:
            later[:0] = [False] * (instr.arg - len(later))
            later[-1], later[-instr.arg] = later[-instr.arg], later[-1]
            continue
        takes, leaves = effect(instr.op, instr.arg)
        later = later[: max(len(later) - takes, 0)] + [True] * leaves
    return not any(later[-1:])


def calls_exit(ops: Sequence[Instr], index: int) -> bool:
    """Return whether the operation at ``index`` calls an exit method with three None."""
    arguments = [(instr.op, instr.arg) for instr in ops[index - 3 : index]]
    return ops[index].op is Op.CALL and arguments == [(Op.CONST, None)] * 3


def spans_of_managers(graph: FlowGraph) -> Set[Optional[Span]]:
    """Return the spans of the ``with`` statements that control leaves, as the calls of exit methods have them."""
    ops = graph.code.ops if {Op.WITH, Op.ASYNC_WITH} & graph.code.kinds else ()
    return {ops[index].span for index in range(3, len(ops)) if calls_exit(ops, index)}
