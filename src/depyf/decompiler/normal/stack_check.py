"""Follow the operand stack of a code object: reject an inconsistent one, estimate how deeply its expressions nest."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from depyf.decompiler.normal.effects import FIXED, effect
from depyf.decompiler.normal.ops import ENDS, Handler, Instr, NormalCode, Op

_GOES = ENDS | {Op.BRANCH, Op.FOR}
_LOOK_BELOW = frozenset({Op.COPY, Op.SWAP, Op.ADD, Op.UPDATE})


def _counts_from(instr: Instr) -> int:
    """Return the depth of the value that an operation reads below the top (1 is the top)."""
    return int(instr.arg) if instr.op in (Op.COPY, Op.SWAP) else int(instr.arg[1])


def stack_depths(code: NormalCode) -> Dict[int, int]:
    """Return the stack depth before each operation that control reaches. Raises ``ValueError`` as ``checked_depths``
    does."""
    return {index: depth for index, depth in enumerate(checked_depths(code)) if depth >= 0}


def checked_depths(code: NormalCode) -> List[int]:
    """Return the stack depth before each operation; -1 for unreachable ones.

    Every operation has enough operands on the stack, and the same depth on all paths to it: the interpreter assumes
    that, and so do the layers above. Raises ``ValueError`` where it is not so.
    """
    name, ops, count = code.code.co_name, code.ops, len(code.ops)
    depths = [-1] * count
    todo: List[Tuple[int, int]] = [(0, 0)]
    entered: Optional[Handler] = None
    while todo:
        start, depth = todo.pop()
        if start < count and depths[start] == depth:
            continue
        for index in range(start, count):
            if depths[index] >= 0:  # another path was here before
                if depths[index] != depth:
                    raise ValueError(
                        f"{name}: the stack holds {depths[index]} values or {depth} at offset {ops[index].offset}, "
                        "depending on the path to it"
                    )
                break
            depths[index] = depth
            instr = ops[index]
            op, handler = instr.op, instr.handler
            taken, left = FIXED.get(op) or _checked_effect(name, instr, depth, count)
            if depth < taken:
                raise _underflow(name, instr, taken, depth)
            if handler is not None:
                if handler.depth > depth:
                    raise ValueError(
                        f"{name}: the handler of exceptions at offset {instr.offset} keeps {handler.depth} values of a "
                        f"stack of {depth}"
                    )
                if handler is not entered:  # neighbours share the object; the exception, and LASTI below it, are pushed
                    entered = handler
                    todo.append((handler.target, handler.depth + handler.lasti + 1))
            depth += left - taken
            if op in _GOES:
                if instr.target is not None:
                    # An exhausted for loop has popped its iterator, and pushes no value.
                    todo.append((instr.target, depth - 2 if op is Op.FOR else depth))
                if op in ENDS:
                    break
        else:
            raise ValueError(f"{name}: control reaches the end of the bytecode without a return")
    return depths


def _checked_effect(name: str, instr: Instr, depth: int, most: int) -> Tuple[int, int]:
    """Return how many values an operation takes and leaves, by its argument, which no compiler may have made."""
    if instr.op.__class__ is not Op:  # a helper name of a dialect, which one of its steps removes
        raise ValueError(f"{name}: {instr.op} at offset {instr.offset} is outside of its usual pattern")
    taken, left = effect(instr.op, instr.arg)
    if instr.op in _LOOK_BELOW and _counts_from(instr) < 1:
        raise _underflow(name, instr, taken, depth)
    if depth >= taken and left > taken + most:
        raise ValueError(
            f"{name}: {instr.op.value} at offset {instr.offset} leaves {left} values, and there are only "
            f"{most} operations to take them"
        )
    return taken, left


def _underflow(name: str, instr: Instr, taken: int, depth: int) -> ValueError:
    return ValueError(f"{name}: {instr.op.value} at offset {instr.offset} pops {taken} values from a stack of {depth}")


_TESTS = (Op.BRANCH, Op.FOR)
_STATEMENT_ENDS = (
    Op.STORE, Op.STORE_ATTR, Op.STORE_SUBSCR, Op.DELETE, Op.DELETE_ATTR, Op.DELETE_SUBSCR, Op.POP, Op.JUMP, Op.RETURN,
    Op.RAISE, Op.RERAISE,
)  # fmt: skip
_LETTERS = {**dict.fromkeys(Op, "."), **dict.fromkeys(_STATEMENT_ENDS, ";"), **dict.fromkeys(_TESTS, "t")}
_PUSHES = frozenset(op for op, effects in FIXED.items() if effects == (0, 1))


def bounds(code: NormalCode) -> Tuple[int, int]:
    """Return a lower bound of ``nesting``, the number of tests, and what is usually an upper bound: the operations of
    the longest statement added. This takes a fraction of the time of ``nesting``."""
    letters = "".join([_LETTERS[instr.op] for instr in code.ops])
    tests = letters.count("t")
    return tests, tests + max(map(len, letters.split(";")))


def nesting(code: NormalCode) -> int:
    """Return an estimate, usually an upper bound: every test may nest a statement in the one before it, and every
    operation its operands."""
    depths: List[int] = []  # of the expressions on the stack
    tests = deepest = 0
    for instr in code.ops:
        op = instr.op
        if op in _PUSHES:
            depths.append(1)
            continue
        if op is Op.SWAP:
            continue
        if op is Op.COPY:  # jumps are not followed: the stack may lack values that are there at run time
            depths.append(depths[-instr.arg] if instr.arg <= len(depths) else 1)
            continue
        if op in _TESTS:
            tests += 1
        takes, leaves = FIXED.get(op) or effect(op, instr.arg)
        if op is Op.ADD or op is Op.UPDATE:  # the display stays on the stack
            takes -= instr.arg[1]
            leaves = 0
        if not takes:
            depths += (1,) * leaves
            continue
        # The result is one level deeper than its deepest operand.
        if takes == 1:
            depth = 1 + (depths.pop() if depths else 0)
        else:
            depth = 1 + max(depths[-takes:], default=0)
            del depths[-takes:]
        depths += (depth,) * leaves
        if depth > deepest:
            deepest = depth
    return deepest + tests
