"""Bytecode that uses the stack as no compiler would is refused before anything is made of it."""

from __future__ import annotations

from typing import Dict, List, Tuple

from depyf.normal.effects import effect
from depyf.normal.ops import ENDS, Instr, NormalCode, Op

_LOOK_BELOW = frozenset({Op.COPY, Op.SWAP, Op.ADD, Op.UPDATE})


def _counts_from(instr: Instr) -> int:
    """Which value from the top an operation that looks below it means, 1 being the top."""
    return int(instr.arg) if instr.op in (Op.COPY, Op.SWAP) else int(instr.arg[1])


def stack_depths(code: NormalCode) -> Dict[int, int]:
    """How many values lie on the stack before each operation.

    Every operation finds on the stack what it takes, and finds as much by whichever way control gets there: the
    interpreter takes that for granted, and so do the layers above. Raises ``ValueError`` where it is not so.
    """
    name, ops = code.code.co_name, code.ops
    depths: Dict[int, int] = {}
    todo: List[Tuple[int, int]] = [(0, 0)]
    while todo:
        index, depth = todo.pop()
        while index not in depths:
            depths[index] = depth
            instr = ops[index]
            taken, left = effect(instr.op, instr.arg)
            if depth < taken or (instr.op in _LOOK_BELOW and _counts_from(instr) < 1):
                raise ValueError(
                    f"{name}: {instr.op.value} at offset {instr.offset} takes {taken} values from a stack of {depth}"
                )
            if left > taken + len(ops):
                raise ValueError(
                    f"{name}: {instr.op.value} at offset {instr.offset} leaves {left} values, and there are only "
                    f"{len(ops)} operations to take them"
                )
            handler = instr.handler
            if handler is not None:
                if handler.depth > depth:
                    raise ValueError(
                        f"{name}: the handler of exceptions at offset {instr.offset} keeps {handler.depth} values of a "
                        f"stack of {depth}"
                    )
                todo.append((handler.target, handler.depth + handler.lasti + 1))
            depth += left - taken
            if instr.target is not None:
                # A for loop that is done has taken its iterator away, and leaves no value.
                todo.append((instr.target, depth - 2 if instr.op is Op.FOR else depth))
            if instr.op in ENDS:
                break
            index += 1
        else:
            if depths[index] != depth:
                raise ValueError(
                    f"{name}: the stack holds {depths[index]} values or {depth} at offset {ops[index].offset}, "
                    "depending on where control comes from"
                )
    return depths
