"""Estimate the nesting of the syntax tree of a code object before decompiling it."""

from __future__ import annotations

from typing import List

from depyf.normal.effects import effect
from depyf.normal.ops import NormalCode, Op

_TESTS = (Op.BRANCH, Op.FOR)


def nesting(code: NormalCode) -> int:
    """Return an estimate, usually an upper bound: every test may nest a statement in the one before it, and every
    operation its operands."""
    depths: List[int] = []  # of the expressions on the stack
    tests = deepest = 0
    for instr in code.ops:
        op = instr.op
        if op is Op.SWAP:
            continue
        if op is Op.COPY:
            depths.append(depths[-instr.arg] if instr.arg <= len(depths) else 1)
            continue
        if op in _TESTS:
            tests += 1
        takes, leaves = effect(op, instr.arg)
        if op is Op.ADD or op is Op.UPDATE:  # the display stays on the stack
            takes -= instr.arg[1]
            leaves = 0
        if not takes:
            depths.extend([1] * leaves)
            continue
        depth = 1 + max(depths[-takes:], default=0)
        del depths[-takes:]
        depths.extend([depth] * leaves)
        deepest = max(deepest, depth)
    return deepest + tests
