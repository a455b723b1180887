"""How CPython 3.8 spells the normal form."""

from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from depyf.decompiler.bytecode.instructions import Instruction
from depyf.decompiler.normal.blocks import (
    BEGIN_FINALLY,
    CALL_FINALLY,
    END_FINALLY,
    EXC_MATCH,
    POP_BLOCK,
    POP_FINALLY,
    SETUP_FINALLY,
    SETUP_WITH,
    WITH_CLEANUP_FINISH,
    WITH_CLEANUP_START,
    resolve_blocks,
)
from depyf.decompiler.normal.draft import Dialect, Draft, Lowering, Rule, Source, Step, Template
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.normal.rotations import undo_rotations
from depyf.decompiler.normal.rules import (
    COMMON,
    JUMP,
    branch,
    branch_or_pop,
    build,
    call_with_names,
    format_value,
    from_table,
    load_method,
    named,
    scoped,
    simple,
    take_constant,
    with_arg,
)
from depyf.decompiler.normal.undo import ANEXT, END_ASYNC_FOR, join_async_for

_OPERATORS: Dict[str, str] = {
    "POWER": "**", "MULTIPLY": "*", "MATRIX_MULTIPLY": "@", "MODULO": "%", "ADD": "+", "SUBTRACT": "-",
    "FLOOR_DIVIDE": "//", "TRUE_DIVIDE": "/", "LSHIFT": "<<", "RSHIFT": ">>", "AND": "&", "XOR": "^", "OR": "|",
}  # fmt: skip


def _fast(op: Op) -> Rule:
    return Template(op, Source.VARIABLES, lambda lowering: _slots(lowering, op))


def _slots(lowering: Lowering, op: Op) -> Sequence[Tuple[object, object]]:
    """Return the operations on the slots of variables. Those of cells are not used, so that they get no operation."""
    return [
        ("FAST_CELL", name) if name in lowering.cells_and_free else (op, ("fast", name)) for name in lowering.locals
    ]


def _deref(op: Op, scope: str) -> Rule:
    return from_table(op, lambda lowering: [(scope, name) for name in lowering.closure])


def rotate(count: int) -> List[Draft]:
    """Move the top below ``count`` - 1 others."""
    return [Draft(Op.SWAP, depth) for depth in range(count, 1, -1)]


def _rot_two(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Merge with ROT_THREE before it: the two reverse three values, which is one SWAP."""
    if lowering.neighbour(-1) == "ROT_THREE" and ins.offset not in lowering.targets:
        if [(draft.op, draft.arg) for draft in lowering.drafts[-2:]] == [(Op.SWAP, 3), (Op.SWAP, 2)]:
            lowering.drafts.pop()
            return []
    return rotate(2)


def _rot_three(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Merge with DUP_TOP before it: a copy of the top goes below two values."""
    if lowering.neighbour(-1) == "DUP_TOP" and ins.offset not in lowering.targets:
        duplicate = lowering.drafts.pop()
        lowering.drafts.append(Draft(Op.SWAP, 2, duplicate.offset, duplicate.span))
        return [Draft(Op.COPY, 2)]
    return rotate(3)


def _dup_top(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Push another None where 3.9 calls the exit function of a ``with``: LOAD_CONST None; DUP_TOP; DUP_TOP;
    CALL_FUNCTION 3."""
    before = [lowering.neighbour(distance) for distance in (-2, -1)]
    after = [lowering.neighbour(distance) for distance in (1, 2)]
    if (before[1] == "LOAD_CONST" and after == ["DUP_TOP", "CALL_FUNCTION"]) or (
        before == ["LOAD_CONST", "DUP_TOP"] and after[0] == "CALL_FUNCTION"
    ):
        known = lowering.drafts[-1]
        if known.op is Op.CONST and known.arg is None and ins.offset not in lowering.targets:
            return [Draft(Op.CONST, None)]
    return [Draft(Op.COPY, 1)]


def _make_function(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Drop the qualified name above the code: ``verify`` compares the name as a fact of the code."""
    name = take_constant(lowering, ins)
    if not isinstance(name, str):
        raise ValueError(f"{lowering.code.co_name}: a function without a name is made at offset {ins.offset}")
    return [Draft(Op.MAKE_FUNCTION, ins.arg)]


def _call(null: str) -> Rule:
    return lambda lowering, ins: [Draft(Op.CALL, (ins.arg, (), null))]


def _get_awaitable(lowering: Lowering, ins: Instruction) -> List[Draft]:
    before = lowering.neighbour(-1)
    where = 0
    if before == "BEFORE_ASYNC_WITH":
        where = 1
    elif before in ("WITH_CLEANUP_START", "WITH_EXCEPT_START"):
        where = 2
    elif before == "CALL_FUNCTION" and lowering.neighbour(-2) == "DUP_TOP":
        # 3.9 and 3.10 call __aexit__ with None, None, None where nothing was raised; no other call follows a DUP_TOP.
        where = 2
    return [Draft(Op.AWAITABLE, where)]


def _compare(lowering: Lowering, ins: Instruction) -> List[Draft]:
    symbol = lowering.table.compare_operators[ins.arg]
    if symbol in ("in", "not in"):
        return [Draft(Op.IN, symbol != "in")]
    if symbol in ("is", "is not"):
        return [Draft(Op.IS, symbol != "is")]
    if symbol == "exception match":
        return [Draft(EXC_MATCH)]
    return [Draft(Op.COMPARE, symbol)]


_RULES: Dict[str, Rule] = {
    **COMMON,
    **{f"BINARY_{name}": simple(Op.BINARY, symbol) for name, symbol in _OPERATORS.items()},
    **{f"INPLACE_{name}": simple(Op.INPLACE, symbol) for name, symbol in _OPERATORS.items()},
    "UNARY_POSITIVE": simple(Op.UNARY, "+"),
    "BINARY_SUBSCR": simple(Op.SUBSCR),
    "COMPARE_OP": _compare,
    "DUP_TOP": _dup_top,
    "DUP_TOP_TWO": lambda lowering, ins: [Draft(Op.COPY, 2), Draft(Op.COPY, 2)],
    "ROT_TWO": _rot_two,
    "ROT_THREE": _rot_three,
    "ROT_FOUR": lambda lowering, ins: rotate(4),
    "LOAD_FAST": _fast(Op.LOAD),
    "STORE_FAST": _fast(Op.STORE),
    "DELETE_FAST": _fast(Op.DELETE),
    "LOAD_CLOSURE": from_table(Op.CLOSURE, lambda lowering: lowering.closure),
    "LOAD_DEREF": _deref(Op.LOAD, "deref"),
    "LOAD_CLASSDEREF": _deref(Op.LOAD, "classderef"),
    "STORE_DEREF": _deref(Op.STORE, "deref"),
    "DELETE_DEREF": _deref(Op.DELETE, "deref"),
    "LOAD_GLOBAL": scoped(Op.LOAD, "global"),
    "LOAD_ATTR": named(Op.ATTR),
    "LOAD_METHOD": load_method,
    "CALL_METHOD": _call("below"),
    "CALL_FUNCTION": _call(""),
    "CALL_FUNCTION_KW": lambda lowering, ins: call_with_names(lowering, ins, ""),
    "CALL_FUNCTION_EX": lambda lowering, ins: [Draft(Op.CALL_EX, (bool(ins.arg & 1), ""))],
    "MAKE_FUNCTION": _make_function,
    "BUILD_CONST_KEY_MAP": build("const_key_map"),
    "BUILD_TUPLE_UNPACK": build("tuple_of"),
    "BUILD_LIST_UNPACK": build("list_of"),
    "BUILD_SET_UNPACK": build("set_of"),
    "BUILD_MAP_UNPACK": build("map_of"),
    "BUILD_TUPLE_UNPACK_WITH_CALL": build("arguments_of"),
    "BUILD_MAP_UNPACK_WITH_CALL": build("keywords_of"),
    "FORMAT_VALUE": format_value,
    "IMPORT_STAR": simple(Op.IMPORT_STAR),
    "PRINT_EXPR": simple(Op.PRINT),
    "GET_YIELD_FROM_ITER": simple(Op.YIELD_FROM_ITER),
    "YIELD_FROM": simple(Op.YIELD_FROM),
    "YIELD_VALUE": simple(Op.YIELD),
    "GET_AWAITABLE": _get_awaitable,
    "GET_ANEXT": simple(ANEXT),
    "END_ASYNC_FOR": simple(END_ASYNC_FOR),
    "JUMP_ABSOLUTE": JUMP,
    "POP_JUMP_IF_TRUE": branch("true"),
    "POP_JUMP_IF_FALSE": branch("false"),
    "JUMP_IF_TRUE_OR_POP": branch_or_pop("true"),
    "JUMP_IF_FALSE_OR_POP": branch_or_pop("false"),
    "SETUP_FINALLY": simple(SETUP_FINALLY),
    "SETUP_WITH": lambda lowering, ins: [Draft(Op.WITH), Draft(SETUP_WITH, target=ins.target)],
    "SETUP_ASYNC_WITH": simple(SETUP_WITH),
    "BEFORE_ASYNC_WITH": simple(Op.ASYNC_WITH),
    "POP_BLOCK": simple(POP_BLOCK),
    "POP_EXCEPT": simple(Op.POP_EXC),
    "BEGIN_FINALLY": simple(BEGIN_FINALLY),
    "CALL_FINALLY": simple(CALL_FINALLY),
    "END_FINALLY": simple(END_FINALLY),
    "POP_FINALLY": with_arg(POP_FINALLY),
    "WITH_CLEANUP_START": simple(WITH_CLEANUP_START),
    "WITH_CLEANUP_FINISH": simple(WITH_CLEANUP_FINISH),
}

_BLOCKS = frozenset(
    {"SETUP_FINALLY", "SETUP_WITH", "SETUP_ASYNC_WITH", "POP_BLOCK", "END_FINALLY", "RERAISE", "JUMP_IF_NOT_EXC_MATCH"}
)
_LOOPS, _ROTATIONS = frozenset({"GET_ANEXT"}), frozenset({"CALL_FUNCTION_EX"})

DIALECT = Dialect(
    _RULES,
    (Step(resolve_blocks, _BLOCKS), Step(join_async_for, _LOOPS), Step(undo_rotations, _ROTATIONS)),
    forgets_after_jumps=True,
    threads_operands=True,
)
