"""A constant that is an operand of a returned ``and`` or ``or``, and returns on its own."""

from __future__ import annotations

from typing import Dict, Iterator, List, Set

from depyf.flow.graph import Block, Branch, End, FlowGraph, Jump
from depyf.normal.ops import Instr, Op


def join_returned_constants(graph: FlowGraph) -> None:
    """Join ``return a and b and (None if c else d)``. The jump of the constant to the return is replaced by a copy of
    that (3.10 on). It returns for the same statement as the earlier tests, whose value waits there."""
    if Op.COPY not in graph.code.kinds or not any(map(_returns_new_constant, graph.blocks.values())):
        return
    seen: Dict[int, Set[int]] = {}
    for block in graph.blocks.values():
        if not isinstance(block.term, Branch) or [(instr.op, instr.arg) for instr in block.ops[-1:]] != [(Op.COPY, 1)]:
            continue
        for out, behind in ((block.term.target, block.term.fall), (block.term.fall, block.term.target)):
            returning = graph.blocks[out]
            if not _returns_one(returning.ops):
                continue
            for id in _operand(graph, behind, seen.setdefault(out, {out})):
                last = graph.blocks[id]
                constant, exit = last.ops[: -len(returning.ops)], last.ops[-len(returning.ops) :]
                if not constant or constant[-1].op is not Op.CONST or not _same_operations(exit, returning.ops):
                    continue
                if returning.region == last.region and returning.leaves == last.leaves:
                    last.ops, last.term = constant, Jump(returning.id)


def _returns_new_constant(block: Block) -> bool:
    """Return whether ``block`` ends by returning a constant that it computes, perhaps from an ``except`` clause."""
    if not isinstance(block.term, End) or not block.ops or block.ops[-1].op is not Op.RETURN:
        return False
    return [instr.op for instr in block.ops[:-1] if instr.op not in (Op.SWAP, Op.POP_EXC)][-1:] == [Op.CONST]


def _operand(graph: FlowGraph, first: int, seen: Set[int]) -> Iterator[int]:
    """Yield the ends of the code from ``first`` on that are not behind ``seen``, to which this is added."""
    todo = [first]
    while todo:
        id = todo.pop()
        if id not in seen:
            seen.add(id)
            block = graph.blocks[id]
            todo.extend(block.successors())
            if isinstance(block.term, End):
                yield id


def _returns_one(ops: List[Instr]) -> bool:
    """Return whether ``ops`` return a value from the stack, at the end of a handler or elsewhere."""
    names = [instr.op for instr in ops]
    return names in ([Op.RETURN], [Op.POP_EXC, Op.RETURN], [Op.SWAP, Op.POP_EXC, Op.RETURN])


def _same_operations(one: List[Instr], two: List[Instr]) -> bool:
    return [(instr.op, instr.arg) for instr in one] == [(instr.op, instr.arg) for instr in two]
