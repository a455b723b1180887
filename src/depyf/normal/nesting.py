"""Estimate the nesting of the syntax tree of a code object before decompiling it."""

from __future__ import annotations

from typing import List, Tuple

from depyf.normal.effects import FIXED, effect
from depyf.normal.ops import NormalCode, Op

_TESTS = (Op.BRANCH, Op.FOR)
_ENDS = (
    Op.STORE, Op.STORE_ATTR, Op.STORE_SUBSCR, Op.DELETE, Op.DELETE_ATTR, Op.DELETE_SUBSCR, Op.POP, Op.JUMP, Op.RETURN,
    Op.RAISE, Op.RERAISE,
)  # fmt: skip
_LETTERS = {**dict.fromkeys(Op, "."), **dict.fromkeys(_ENDS, ";"), **dict.fromkeys(_TESTS, "t")}
_PUSHES = frozenset(op for op, effects in FIXED.items() if effects == (0, 1))


def bounds(code: NormalCode) -> Tuple[int, int]:
    """Return a lower bound of ``nesting``, and what is usually an upper bound: the number of tests, and that with the
    operations of the longest statement. This takes a fraction of the time."""
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
        if op is Op.COPY:
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
        if takes == 1:
            depth = 1 + (depths.pop() if depths else 0)
        else:
            depth = 1 + max(depths[-takes:], default=0)
            del depths[-takes:]
        depths += (depth,) * leaves
        if depth > deepest:
            deepest = depth
    return deepest + tests
