"""The exits of ``with`` statements: the exit method is called with three None, and a return behind it is no copy."""

from __future__ import annotations

from typing import List, Optional, Sequence, Set

from depyf.bytecode.lines import Span
from depyf.flow.graph import Block, FlowGraph, Jump
from depyf.normal.effects import effect
from depyf.normal.ops import Instr, Op


def leaves_manager(graph: FlowGraph, block: Block) -> bool:
    """Return whether the exit of a ``with`` at the end of ``block`` precedes a lone return: see ``leaves_with_value``.
    In a ``try`` the exit is in its region, and the return is not."""
    if not isinstance(block.term, Jump) or not block.ops or block.ops[-1].op is not Op.POP:
        return False
    behind = graph.blocks[block.term.target].ops
    return len(behind) == 1 and behind[0].op is Op.RETURN and leaves_with_value([*block.ops, *behind])


def leaves_with_value(ops: List[Instr]) -> bool:
    """Return whether ``ops`` call the exit function of a ``with`` and then return an earlier value. Each ``return`` has
    its own such block, equal to the others (it has the line of the ``with``); only shorter ones are copies."""
    if ops[-1].op is not Op.RETURN:
        return False
    call = max((index for index in range(3, len(ops)) if calls_exit(ops, index)), default=None)
    if call is None:
        return False
    depth = 1  # of the values from the call on
    for instr in ops[call + 1 : -1]:
        if instr.op is not Op.SWAP:
            takes, leaves = effect(instr.op, instr.arg)
            depth = max(depth - takes, 0) + leaves
    return depth < 1


def calls_exit(ops: Sequence[Instr], index: int) -> bool:
    """Return whether the operation at ``index`` calls an exit method with three None."""
    arguments = [(instr.op, instr.arg) for instr in ops[index - 3 : index]]
    return ops[index].op is Op.CALL and arguments == [(Op.CONST, None)] * 3


def spans_of_managers(graph: FlowGraph) -> Set[Optional[Span]]:
    """Return the spans of the managers that control leaves: those of their exit methods."""
    ops = graph.code.ops if {Op.WITH, Op.ASYNC_WITH} & graph.code.kinds else ()
    return {ops[index].span for index in range(3, len(ops)) if calls_exit(ops, index)}
