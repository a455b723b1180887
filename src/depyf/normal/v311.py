"""How CPython 3.11 spells the normal form."""

from __future__ import annotations

from typing import Dict, List

from depyf.bytecode.instructions import Instruction
from depyf.normal.draft import Dialect, Draft, Lowering, Rule
from depyf.normal.ops import Op
from depyf.normal.rules import (
    COMMON,
    branch,
    branch_or_pop,
    build,
    format_value,
    jump,
    keyword_names,
    kind_arg,
    load_method,
    named,
    nothing,
    simple,
    with_arg,
)
from depyf.normal.undo import ANEXT, END_ASYNC_FOR, SEND, join_async_for, join_send_loops, skip_cleanup_handlers


def deref(op: Op, scope: str) -> Rule:
    return lambda lowering, ins: [Draft(op, (scope, lowering.locals_plus[ins.arg]))]


def fast(op: Op) -> Rule:
    def rule(lowering: Lowering, ins: Instruction) -> List[Draft]:
        name = lowering.locals_plus[ins.arg]
        if not lowering.is_cell(ins.arg):
            return [Draft(op, ("fast", name))]
        if op is Op.LOAD:  # LOAD_CLOSURE and LOAD_FAST do the same: they push the cell itself
            return [Draft(Op.CLOSURE, name)]
        if op is Op.STORE:
            return [Draft(op, ("cell", name))]
        raise ValueError(f"{lowering.code.co_name}: {ins.name} deletes the cell of {name!r} at offset {ins.offset}")

    return rule


def _load_global(lowering: Lowering, ins: Instruction) -> List[Draft]:
    load = Draft(Op.LOAD, ("global", lowering.code.co_names[ins.arg >> 1]))
    return [Draft(Op.NULL), load] if ins.arg & 1 else [load]


def _kw_names(lowering: Lowering, ins: Instruction) -> List[Draft]:
    lowering.keyword_names = lowering.code.co_consts[ins.arg]
    return []


def _call(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.CALL, (ins.arg, keyword_names(lowering.take_keyword_names(), ins), "below"))]


def call_ex(null: str) -> Rule:
    return lambda lowering, ins: [Draft(Op.CALL_EX, (bool(ins.arg & 1), null))]


def binary_op(lowering: Lowering, ins: Instruction) -> List[Draft]:
    symbol = lowering.table.binary_operators[ins.arg]
    if symbol.endswith("="):
        return [Draft(Op.INPLACE, symbol[:-1])]
    return [Draft(Op.BINARY, symbol)]


def _compare(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.COMPARE, lowering.table.compare_operators[ins.arg])]


def _return_generator(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Push None, as the first ``send`` does, for the POP_TOP behind it: the pair has no effect."""
    return [Draft(Op.CONST, None)]


_RULES: Dict[str, Rule] = {
    **COMMON,
    "CACHE": nothing,
    "RESUME": nothing,
    "PRECALL": nothing,
    "MAKE_CELL": nothing,
    "COPY_FREE_VARS": nothing,
    "GEN_START": nothing,
    "ASYNC_GEN_WRAP": nothing,
    "RETURN_GENERATOR": _return_generator,
    "PUSH_NULL": simple(Op.NULL),
    "COPY": with_arg(Op.COPY),
    "SWAP": with_arg(Op.SWAP),
    "LOAD_FAST": fast(Op.LOAD),
    "STORE_FAST": fast(Op.STORE),
    "DELETE_FAST": fast(Op.DELETE),
    "LOAD_CLOSURE": fast(Op.LOAD),
    "LOAD_DEREF": deref(Op.LOAD, "deref"),
    "LOAD_CLASSDEREF": deref(Op.LOAD, "classderef"),
    "STORE_DEREF": deref(Op.STORE, "deref"),
    "DELETE_DEREF": deref(Op.DELETE, "deref"),
    "LOAD_GLOBAL": _load_global,
    "LOAD_ASSERTION_ERROR": simple(Op.SPECIAL, "AssertionError"),
    "UNARY_POSITIVE": simple(Op.UNARY, "+"),
    "BINARY_OP": binary_op,
    "COMPARE_OP": _compare,
    "IS_OP": lambda lowering, ins: [Draft(Op.IS, bool(ins.arg))],
    "CONTAINS_OP": lambda lowering, ins: [Draft(Op.IN, bool(ins.arg))],
    "BINARY_SUBSCR": simple(Op.SUBSCR),
    "LOAD_ATTR": named(Op.ATTR),
    "LOAD_METHOD": load_method,
    "BUILD_CONST_KEY_MAP": build("const_key_map"),
    "LIST_EXTEND": kind_arg(Op.UPDATE, "list"),
    "SET_UPDATE": kind_arg(Op.UPDATE, "set"),
    "DICT_UPDATE": kind_arg(Op.UPDATE, "map"),
    "DICT_MERGE": kind_arg(Op.UPDATE, "kwargs"),
    "LIST_TO_TUPLE": simple(Op.LIST_TO_TUPLE),
    "FORMAT_VALUE": format_value,
    "KW_NAMES": _kw_names,
    "CALL": _call,
    "CALL_FUNCTION_EX": call_ex("below"),
    "MAKE_FUNCTION": with_arg(Op.MAKE_FUNCTION),
    "IMPORT_STAR": simple(Op.IMPORT_STAR),
    "GET_YIELD_FROM_ITER": simple(Op.YIELD_FROM_ITER),
    "GET_ANEXT": simple(ANEXT),
    "END_ASYNC_FOR": simple(END_ASYNC_FOR),
    "GET_AWAITABLE": with_arg(Op.AWAITABLE),
    "SEND": lambda lowering, ins: [Draft(SEND, None, ins.target)],
    "YIELD_VALUE": simple(Op.YIELD),
    "JUMP_BACKWARD": jump,
    "JUMP_BACKWARD_NO_INTERRUPT": jump,
    "POP_JUMP_FORWARD_IF_TRUE": branch("true"),
    "POP_JUMP_BACKWARD_IF_TRUE": branch("true"),
    "POP_JUMP_FORWARD_IF_FALSE": branch("false"),
    "POP_JUMP_BACKWARD_IF_FALSE": branch("false"),
    "POP_JUMP_FORWARD_IF_NONE": branch("none"),
    "POP_JUMP_BACKWARD_IF_NONE": branch("none"),
    "POP_JUMP_FORWARD_IF_NOT_NONE": branch("not none"),
    "POP_JUMP_BACKWARD_IF_NOT_NONE": branch("not none"),
    "JUMP_IF_TRUE_OR_POP": branch_or_pop("true"),
    "JUMP_IF_FALSE_OR_POP": branch_or_pop("false"),
    "RERAISE": simple(Op.RERAISE),
    "PUSH_EXC_INFO": simple(Op.PUSH_EXC),
    "POP_EXCEPT": simple(Op.POP_EXC),
    "CHECK_EXC_MATCH": simple(Op.CHECK_EXC),
    "CHECK_EG_MATCH": simple(Op.CHECK_EXC_GROUP),
    "PREP_RERAISE_STAR": simple(Op.PREP_RERAISE_STAR),
    "BEFORE_WITH": simple(Op.WITH),
    "BEFORE_ASYNC_WITH": simple(Op.ASYNC_WITH),
    "WITH_EXCEPT_START": simple(Op.WITH_EXCEPT),
    "MATCH_MAPPING": simple(Op.MATCH_MAPPING),
    "MATCH_SEQUENCE": simple(Op.MATCH_SEQUENCE),
    "GET_LEN": simple(Op.GET_LEN),
    "MATCH_KEYS": simple(Op.MATCH_KEYS),
    "MATCH_CLASS": with_arg(Op.MATCH_CLASS),
    "PRINT_EXPR": simple(Op.PRINT),
}

DIALECT = Dialect(_RULES, (join_send_loops, join_async_for, skip_cleanup_handlers), copies_loop_tests=True)
