"""How CPython 3.14 spells the normal form: 3.13 and what changed. ``lowering.py`` imports it by its number."""

from __future__ import annotations

from typing import List

from depyf.decompiler.bytecode.instructions import Instruction
from depyf.decompiler.normal import v311, v312, v313
from depyf.decompiler.normal.draft import Draft, Lowering, Step
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.normal.rules import CONVERSIONS, from_table, simple, with_arg
from depyf.decompiler.normal.slots import forget_second_slots
from depyf.decompiler.normal.undo import LOAD_SPECIAL, join_with_entries


def _pop_iter(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Drop it after END_FOR, the exit of FOR_ITER: the FOR of the normal form has popped the iterator."""
    return [] if lowering.neighbour(-1) == "END_FOR" else [Draft(Op.POP)]


def _call_function_ex(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Lower a call: the keywords, or a NULL in their place, are above the arguments."""
    if lowering.neighbour(-1) == "PUSH_NULL":
        lowering.take_previous(Op.NULL, ins)
        return [Draft(Op.CALL_EX, (False, "above"))]
    pushed = lowering.pushed(ins)
    if pushed is not None and pushed.op is Op.NULL:  # Dynamo pushes both NULLs of a call at the end, and swaps them
        return [Draft(Op.POP), Draft(Op.CALL_EX, (False, "above"))]
    return [Draft(Op.CALL_EX, (True, "above"))]


_GONE = (
    "BEFORE_ASYNC_WITH", "BEFORE_WITH", "BINARY_SUBSCR", "BUILD_CONST_KEY_MAP", "LOAD_ASSERTION_ERROR", "RETURN_CONST",
)  # fmt: skip

DIALECT = v313.DIALECT.changed(
    {
        "NOT_TAKEN": None,
        "LOAD_FAST_BORROW": v311.LOAD_FAST,
        "LOAD_FAST_BORROW_LOAD_FAST_BORROW": v313.pair(Op.LOAD, Op.LOAD),
        "LOAD_SMALL_INT": with_arg(Op.CONST),
        "LOAD_COMMON_CONSTANT": from_table(Op.SPECIAL, lambda lowering: lowering.table.common_constants),
        "LOAD_SPECIAL": from_table(LOAD_SPECIAL, lambda lowering: lowering.table.special_methods),
        "POP_ITER": _pop_iter,
        "POP_TOP": simple(Op.POP),
        "CALL_FUNCTION_EX": _call_function_ex,
        "BUILD_INTERPOLATION": lambda lowering, ins: [
            Draft(Op.INTERPOLATION, (CONVERSIONS[ins.arg >> 2], bool(ins.arg & 1)))
        ],
        "BUILD_TEMPLATE": simple(Op.TEMPLATE),
    },
    without=_GONE,
    steps=(
        v312.TURNED_BRANCHES,
        Step(join_with_entries, frozenset({"LOAD_SPECIAL"})),
        v311.SEND_LOOPS,
        v311.ASYNC_LOOPS,
        v311.CLEANUP_HANDLERS,
        v312.STOP_ITERATIONS,
        Step(forget_second_slots),
    ),
    copies_loop_tests=False,
    threads_tests=True,
    threads_operands=True,
)
