"""Constant folding and comparisons by identity: computed silently, or an event."""

from __future__ import annotations

import operator
from typing import Callable, Dict, Optional

from depyf.decompiler.normal.ops import Instr, Op
from depyf.decompiler.verify.constants import FOLDABLE
from depyf.decompiler.verify.containers import Answer
from depyf.decompiler.verify.events import EVENTS
from depyf.decompiler.verify.machine import Machine
from depyf.decompiler.verify.side import Side
from depyf.decompiler.verify.stops import Event
from depyf.decompiler.verify.values import Const, Ref, Value, known_truth


def truth_of(machine: Machine, side: Side, value: Value) -> Optional[Value]:
    """Return the truth of ``value`` as a constant or a known truth; ``None`` if testing it is an event."""
    value = machine.resolve(value)
    if value.is_bool:
        return value
    known = known_truth(value)
    if known is None and isinstance(value, Ref):
        fresh = side.heap[value]
        # ``if [a]:`` with a new list. New functions and cells are true.
        known = bool(fresh.items) if fresh.kind in ("list", "tuple", "map", "set") else True
    return None if known is None else machine.values.const(known)


def unary(machine: Machine, side: Side, instr: Instr) -> Answer:
    if instr.arg != "not":
        return EVENTS[Op.UNARY](machine, side, instr)
    truth = truth_of(machine, side, side.stack[-1])
    if truth is None:
        # ``not a`` and ``if a`` make the same event: ``__bool__`` or ``__len__`` may run. The result is negated.
        return Event("truth of", None, (side.stack[-1],), "b", 1, negated=True)
    side.pop()
    side.push(machine.values.negate(truth))
    return None


def is_(machine: Machine, side: Side, instr: Instr) -> Answer:
    left, right = machine.resolve(side.stack[-2]), machine.resolve(side.stack[-1])
    # No code runs. ``(a is None) is True`` is ``a is None``, as the left is known to be a truth.
    same = machine.resolve(machine.values.same_object(left, right))
    side.drop(2)
    side.push(machine.values.negate(same) if instr.arg else same)
    return None


def binary(machine: Machine, side: Side, instr: Instr) -> Answer:
    """Fold arithmetic of small constants, which the compiler folds in some places and not in others (3.14)."""
    left, right = machine.resolve(side.stack[-2]), machine.resolve(side.stack[-1])
    if isinstance(left, Const) and isinstance(right, Const):
        one, two = left.value, right.value
        if type(one) is int and type(two) is int and max(abs(one), abs(two)) < _SMALL and instr.arg in _ARITHMETIC:
            side.drop(2)
            side.push(machine.values.const(_ARITHMETIC[instr.arg](one, two)))
            return None
    return EVENTS[Op.BINARY](machine, side, instr)


_SMALL = 1 << 32
_ARITHMETIC: Dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def compare(machine: Machine, side: Side, instr: Instr) -> Answer:
    left, right = machine.resolve(side.stack[-2]), machine.resolve(side.stack[-1])
    if isinstance(left, Const) and isinstance(right, Const):
        folded = _fold_comparison(instr.arg, left.value, right.value)
        if folded is not None:
            side.drop(2)
            side.push(machine.values.const(folded))
            return None
    return EVENTS[Op.COMPARE](machine, side, instr)


def _fold_comparison(symbol: str, left: object, right: object) -> Optional[bool]:
    if type(left) not in FOLDABLE or type(right) not in FOLDABLE:
        return None
    if symbol == "==":
        return bool(left == right)
    if symbol == "!=":
        return bool(left != right)
    if isinstance(left, int) and isinstance(right, int):
        return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[symbol]
    return None
