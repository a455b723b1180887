"""How CPython 3.12 spells the normal form: 3.11 and what changed."""

from __future__ import annotations

from typing import Dict, List

from depyf.decompiler.bytecode.instructions import Instruction
from depyf.decompiler.normal import v311
from depyf.decompiler.normal.draft import Draft, Lowering, Rule, Step
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.normal.rules import branch, simple
from depyf.decompiler.normal.undo import (
    CLEANUP_THROW,
    END_SEND,
    STOP_ITERATION,
    guard_turned_branches,
    skip_stop_iteration_handlers,
)

_UNARY_INTRINSICS: Dict[str, Draft] = {
    "STOPITERATION_ERROR": Draft(STOP_ITERATION),
    "UNARY_POSITIVE": Draft(Op.UNARY, "+"),
    "LIST_TO_TUPLE": Draft(Op.LIST_TO_TUPLE),
}
_STATEMENTS = {"PRINT": Op.PRINT, "IMPORT_STAR": Op.IMPORT_STAR}


def _unary_intrinsic(lowering: Lowering, ins: Instruction) -> List[Draft]:
    name = lowering.table.unary_intrinsics[ins.arg]
    if name == "ASYNC_GEN_WRAP":
        return []
    if name in _STATEMENTS:  # they push None, which the next POP_TOP pops
        return [Draft(_STATEMENTS[name]), Draft(Op.CONST, None)]
    known = _UNARY_INTRINSICS.get(name)
    return [Draft(known.op, known.arg) if known is not None else Draft(Op.INTRINSIC, (name, 1))]


def _binary_intrinsic(lowering: Lowering, ins: Instruction) -> List[Draft]:
    name = lowering.table.binary_intrinsics[ins.arg]
    return [Draft(Op.PREP_RERAISE_STAR) if name == "PREP_RERAISE_STAR" else Draft(Op.INTRINSIC, (name, 2))]


def _load_attr(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Lower a load: with the low bit ``obj -> method self`` or ``obj -> NULL attribute``. The calls are equivalent, so
    always the second."""
    attribute = Draft(Op.ATTR, lowering.code.co_names[ins.arg >> 1])
    return [*lowering.null_below(ins), attribute] if ins.arg & 1 else [attribute]


def load_super_attr(method: List[Draft]) -> Rule:
    """Lower ``super class self -> attribute``: bit 0 is set for a method call (which ``method`` prepares), bit 1 if
    ``super`` was called with arguments; without them the bytecode has the operands, too."""

    def rule(lowering: Lowering, ins: Instruction) -> List[Draft]:
        loaded = [Draft(Op.SUPER_ATTR, (lowering.code.co_names[ins.arg >> 2], bool(ins.arg & 2)))]
        return [*loaded, *(Draft(draft.op, draft.arg) for draft in method)] if ins.arg & 1 else loaded

    return rule


def _load_fast_and_clear(lowering: Lowering, ins: Instruction) -> List[Draft]:
    scope = "cell" if lowering.is_cell(ins.arg) else "fast"
    return [Draft(Op.TAKE, (scope, lowering.locals_plus[ins.arg]))]


def _make_cell(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Drop those at the start: they make the cells that the code object lists."""
    distance = -1
    while lowering.neighbour(distance) in ("MAKE_CELL", "COPY_FREE_VARS"):
        distance -= 1
    return [Draft(Op.MAKE_CELL, lowering.locals_plus[ins.arg])] if lowering.neighbour(distance) else []


def _load_from_dict_or_deref(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return _load_from_namespace(lowering, ins, "deref", lowering.locals_plus[ins.arg])


def _load_from_dict_or_globals(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return _load_from_namespace(lowering, ins, "global", lowering.code.co_names[ins.arg])


def _load_from_namespace(lowering: Lowering, ins: Instruction, otherwise: str, name: str) -> List[Draft]:
    """Lower a lookup in the namespace of a class first, as in class bodies and in their scopes of type parameters and
    annotations, which have the namespace in a cell."""
    if lowering.drafts and lowering.drafts[-1].op is Op.LOAD:
        if lowering.take_previous(Op.LOAD, ins).arg != ("deref", "__classdict__"):
            raise ValueError(
                f"{lowering.code.co_name}: {ins.name} at offset {ins.offset} does not look up a name in a class"
            )
        return [Draft(Op.LOAD, (f"body{otherwise}", name))]
    lowering.take_previous(Op.NAMESPACE, ins)
    return [Draft(Op.LOAD, ("classderef" if otherwise == "deref" else "name", name))]


TURNED_BRANCHES = Step(guard_turned_branches, frozenset({"JUMP_BACKWARD"}))
STOP_ITERATIONS = Step(skip_stop_iteration_handlers, frozenset({"CALL_INTRINSIC_1"}))

_GONE = (
    "ASYNC_GEN_WRAP", "IMPORT_STAR", "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP", "LIST_TO_TUPLE", "LOAD_CLASSDEREF",
    "LOAD_METHOD", "POP_JUMP_BACKWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE",
    "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_FORWARD_IF_NONE",
    "POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_TRUE", "PRECALL", "PREP_RERAISE_STAR", "PRINT_EXPR",
    "UNARY_POSITIVE",
)  # fmt: skip

DIALECT = v311.DIALECT.changed(
    {
        "END_FOR": None,  # FOR_ITER jumps over it
        "INTERPRETER_EXIT": None,
        "END_SEND": simple(END_SEND),
        "CLEANUP_THROW": simple(CLEANUP_THROW),
        "CALL_INTRINSIC_1": _unary_intrinsic,
        "CALL_INTRINSIC_2": _binary_intrinsic,
        "LOAD_ATTR": _load_attr,
        "LOAD_SUPER_ATTR": load_super_attr([Draft(Op.NULL), Draft(Op.SWAP, 2)]),
        "LOAD_FAST_CHECK": v311.LOAD_FAST,
        "LOAD_FAST_AND_CLEAR": _load_fast_and_clear,
        "MAKE_CELL": _make_cell,
        "LOAD_LOCALS": simple(Op.NAMESPACE),
        "LOAD_FROM_DICT_OR_DEREF": _load_from_dict_or_deref,
        "LOAD_FROM_DICT_OR_GLOBALS": _load_from_dict_or_globals,
        "COMPARE_OP": lambda lowering, ins: [Draft(Op.COMPARE, lowering.table.compare_operators[ins.arg >> 4])],
        "BINARY_SLICE": lambda lowering, ins: [Draft(Op.BUILD, ("slice", 2)), Draft(Op.SUBSCR)],
        "STORE_SLICE": lambda lowering, ins: [Draft(Op.BUILD, ("slice", 2)), Draft(Op.STORE_SUBSCR)],
        "RETURN_CONST": lambda lowering, ins: [Draft(Op.CONST, lowering.code.co_consts[ins.arg]), Draft(Op.RETURN)],
        "POP_JUMP_IF_TRUE": branch("true"),
        "POP_JUMP_IF_FALSE": branch("false"),
        "POP_JUMP_IF_NONE": branch("none"),
        "POP_JUMP_IF_NOT_NONE": branch("not none"),
    },
    without=_GONE,
    steps=(TURNED_BRANCHES, v311.SEND_LOOPS, v311.ASYNC_LOOPS, v311.CLEANUP_HANDLERS, STOP_ITERATIONS),
    threads_operands=False,
)
