"""How CPython 3.14 spells the normal form: 3.13 and what changed."""

from __future__ import annotations

from typing import List

from depyf.bytecode.instructions import Instruction
from depyf.normal import v313
from depyf.normal.draft import Draft, Lowering
from depyf.normal.ops import Op
from depyf.normal.rules import CONVERSIONS, nothing, simple
from depyf.normal.slots import forget_second_slots
from depyf.normal.undo import (
    LOAD_SPECIAL,
    guard_turned_branches,
    join_async_for,
    join_send_loops,
    join_with_entries,
    skip_cleanup_handlers,
    skip_stop_iteration_handlers,
)
from depyf.normal.v311 import binary_op, fast


def _load_small_int(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.CONST, ins.arg)]


def _load_common_constant(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.SPECIAL, lowering.table.common_constants[ins.arg])]


def _load_special(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(LOAD_SPECIAL, lowering.table.special_methods[ins.arg])]


def _pop_iter(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Drop it behind END_FOR, the exit of FOR_ITER: the FOR of the normal form has popped the iterator."""
    return [] if lowering.neighbour(-1) == "END_FOR" else [Draft(Op.POP)]


def _binary_op(lowering: Lowering, ins: Instruction) -> List[Draft]:
    if lowering.table.binary_operators[ins.arg] == "[]":
        return [Draft(Op.SUBSCR)]
    return binary_op(lowering, ins)


def _call_function_ex(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Lower a call: the keywords, or a NULL in their place, are above the arguments."""
    if lowering.neighbour(-1) == "PUSH_NULL":
        lowering.take_previous(Op.NULL, ins)
        return [Draft(Op.CALL_EX, (False, "above"))]
    pushed = lowering.pushed(ins)
    if pushed is not None and pushed.op is Op.NULL:  # Dynamo pushes both NULLs of a call at the end, and swaps them
        return [Draft(Op.POP), Draft(Op.CALL_EX, (False, "above"))]
    return [Draft(Op.CALL_EX, (True, "above"))]


def _build_interpolation(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.INTERPOLATION, (CONVERSIONS[ins.arg >> 2], bool(ins.arg & 1)))]


DIALECT = v313.DIALECT.changed(
    {
        "NOT_TAKEN": nothing,
        "LOAD_FAST_BORROW": fast(Op.LOAD),
        "LOAD_FAST_BORROW_LOAD_FAST_BORROW": v313.pair(Op.LOAD, Op.LOAD),
        "LOAD_SMALL_INT": _load_small_int,
        "LOAD_COMMON_CONSTANT": _load_common_constant,
        "LOAD_SPECIAL": _load_special,
        "POP_ITER": _pop_iter,
        "POP_TOP": simple(Op.POP),
        "BINARY_OP": _binary_op,
        "CALL_FUNCTION_EX": _call_function_ex,
        "BUILD_INTERPOLATION": _build_interpolation,
        "BUILD_TEMPLATE": simple(Op.TEMPLATE),
    },
    without=[
        "BEFORE_ASYNC_WITH",
        "BEFORE_WITH",
        "BINARY_SUBSCR",
        "BUILD_CONST_KEY_MAP",
        "LOAD_ASSERTION_ERROR",
        "RETURN_CONST",
    ],
    steps=(
        guard_turned_branches,
        join_with_entries,
        join_send_loops,
        join_async_for,
        skip_cleanup_handlers,
        skip_stop_iteration_handlers,
        forget_second_slots,
    ),
    copies_loop_tests=False,
)
