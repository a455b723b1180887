"""Reject bytecode with an inconsistent operand stack."""

from __future__ import annotations

from typing import Dict, List, Tuple

from depyf.normal.effects import effect
from depyf.normal.ops import ENDS, Instr, NormalCode, Op

_LOOK_BELOW = frozenset({Op.COPY, Op.SWAP, Op.ADD, Op.UPDATE})


def _counts_from(instr: Instr) -> int:
    """Return the depth of the value that an operation reads below the top (1 is the top)."""
    return int(instr.arg) if instr.op in (Op.COPY, Op.SWAP) else int(instr.arg[1])


def stack_depths(code: NormalCode) -> Dict[int, int]:
    """Return the stack depth before each operation.

    Every operation has enough operands on the stack, and the same depth on all paths to it: the interpreter assumes
    that, and so do the layers above. Raises ``ValueError`` where it is not so.
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
                # An exhausted for loop has popped its iterator, and pushes no value.
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
