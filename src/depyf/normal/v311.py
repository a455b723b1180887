"""How CPython 3.11 spells the normal form."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from depyf.bytecode.instructions import Instruction
from depyf.normal.lowering import Draft, Lowering, Rule
from depyf.normal.ops import Op
from depyf.normal.undo import ANEXT, END_ASYNC_FOR, SEND

COPIES_LOOP_TESTS = True


def _nothing(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return []


def _simple(op: Any, arg: Any = None) -> Rule:
    return lambda lowering, ins: [Draft(op, arg)]


def _with_arg(op: Any) -> Rule:
    return lambda lowering, ins: [Draft(op, ins.arg)]


def _named(op: Op) -> Rule:
    return lambda lowering, ins: [Draft(op, lowering.code.co_names[ins.arg])]


def _scoped(op: Op, scope: str) -> Rule:
    return lambda lowering, ins: [Draft(op, (scope, lowering.code.co_names[ins.arg]))]


def _deref(op: Op, scope: str) -> Rule:
    return lambda lowering, ins: [Draft(op, (scope, lowering.locals_plus[ins.arg]))]


def _fast(op: Op) -> Rule:
    def rule(lowering: Lowering, ins: Instruction) -> List[Draft]:
        name = lowering.locals_plus[ins.arg]
        if name not in lowering.cells:
            return [Draft(op, ("fast", name))]
        if op is Op.LOAD:  # LOAD_CLOSURE and LOAD_FAST do the same: they push the cell itself
            return [Draft(Op.CLOSURE, name)]
        raise ValueError(f"{lowering.code.co_name}: {ins.name} replaces the cell of {name!r} at offset {ins.offset}")

    return rule


def _load_global(lowering: Lowering, ins: Instruction) -> List[Draft]:
    load = Draft(Op.LOAD, ("global", lowering.code.co_names[ins.arg >> 1]))
    return [Draft(Op.NULL), load] if ins.arg & 1 else [load]


def _load_method(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """``obj -> method self`` or ``obj -> NULL attribute``: both call the same, so always the second."""
    return [Draft(Op.NULL), Draft(Op.SWAP, 2), Draft(Op.ATTR, lowering.code.co_names[ins.arg])]


def _kw_names(lowering: Lowering, ins: Instruction) -> List[Draft]:
    lowering.keyword_names = lowering.code.co_consts[ins.arg]
    return []


def _call(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.CALL, (ins.arg, lowering.take_keyword_names(), "below"))]


def _binary_op(lowering: Lowering, ins: Instruction) -> List[Draft]:
    symbol = lowering.table.binary_operators[ins.arg]
    if symbol.endswith("="):
        return [Draft(Op.INPLACE, symbol[:-1])]
    return [Draft(Op.BINARY, symbol)]


def _compare(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.COMPARE, lowering.table.compare_operators[ins.arg])]


def _branch(kind: str) -> Rule:
    return lambda lowering, ins: [Draft(Op.BRANCH, kind, ins.target)]


def _branch_or_pop(kind: str) -> Rule:
    return lambda lowering, ins: [Draft(Op.COPY, 1), Draft(Op.BRANCH, kind, ins.target), Draft(Op.POP)]


def _format(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.FORMAT, (("", "s", "r", "a")[ins.arg & 3], bool(ins.arg & 4)))]


def _build(kind: str, count: Optional[int] = None) -> Rule:
    return lambda lowering, ins: [Draft(Op.BUILD, (kind, ins.arg if count is None else count))]


def _kind_arg(op: Op, kind: str) -> Rule:
    return lambda lowering, ins: [Draft(op, (kind, ins.arg))]


def _slice(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.BUILD, ("slice", ins.arg))]


def _jump(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.JUMP, None, ins.target)]


def _unpack_ex(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.UNPACK_EX, (ins.arg & 0xFF, ins.arg >> 8))]


def _return_generator(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """The POP_TOP behind it takes what the first ``send`` pushes, so the pair does nothing."""
    return [Draft(Op.CONST, None)]


RULES: Dict[str, Rule] = {
    "CACHE": _nothing,
    "NOP": _nothing,
    "RESUME": _nothing,
    "PRECALL": _nothing,
    "MAKE_CELL": _nothing,
    "COPY_FREE_VARS": _nothing,
    "GEN_START": _nothing,
    "ASYNC_GEN_WRAP": _nothing,
    "RETURN_GENERATOR": _return_generator,
    "POP_TOP": _simple(Op.POP),
    "PUSH_NULL": _simple(Op.NULL),
    "COPY": _with_arg(Op.COPY),
    "SWAP": _with_arg(Op.SWAP),
    "LOAD_CONST": lambda lowering, ins: [Draft(Op.CONST, lowering.code.co_consts[ins.arg])],
    "LOAD_FAST": _fast(Op.LOAD),
    "STORE_FAST": _fast(Op.STORE),
    "DELETE_FAST": _fast(Op.DELETE),
    "LOAD_CLOSURE": _fast(Op.LOAD),
    "LOAD_DEREF": _deref(Op.LOAD, "deref"),
    "LOAD_CLASSDEREF": _deref(Op.LOAD, "classderef"),
    "STORE_DEREF": _deref(Op.STORE, "deref"),
    "DELETE_DEREF": _deref(Op.DELETE, "deref"),
    "LOAD_GLOBAL": _load_global,
    "STORE_GLOBAL": _scoped(Op.STORE, "global"),
    "DELETE_GLOBAL": _scoped(Op.DELETE, "global"),
    "LOAD_NAME": _scoped(Op.LOAD, "name"),
    "STORE_NAME": _scoped(Op.STORE, "name"),
    "DELETE_NAME": _scoped(Op.DELETE, "name"),
    "LOAD_BUILD_CLASS": _simple(Op.SPECIAL, "__build_class__"),
    "LOAD_ASSERTION_ERROR": _simple(Op.SPECIAL, "AssertionError"),
    "UNARY_POSITIVE": _simple(Op.UNARY, "+"),
    "UNARY_NEGATIVE": _simple(Op.UNARY, "-"),
    "UNARY_INVERT": _simple(Op.UNARY, "~"),
    "UNARY_NOT": _simple(Op.UNARY, "not"),
    "BINARY_OP": _binary_op,
    "COMPARE_OP": _compare,
    "IS_OP": lambda lowering, ins: [Draft(Op.IS, bool(ins.arg))],
    "CONTAINS_OP": lambda lowering, ins: [Draft(Op.IN, bool(ins.arg))],
    "BINARY_SUBSCR": _simple(Op.SUBSCR),
    "STORE_SUBSCR": _simple(Op.STORE_SUBSCR),
    "DELETE_SUBSCR": _simple(Op.DELETE_SUBSCR),
    "LOAD_ATTR": _named(Op.ATTR),
    "STORE_ATTR": _named(Op.STORE_ATTR),
    "DELETE_ATTR": _named(Op.DELETE_ATTR),
    "LOAD_METHOD": _load_method,
    "BUILD_TUPLE": _build("tuple"),
    "BUILD_LIST": _build("list"),
    "BUILD_SET": _build("set"),
    "BUILD_MAP": _build("map"),
    "BUILD_STRING": _build("string"),
    "BUILD_SLICE": _slice,
    "BUILD_CONST_KEY_MAP": _build("const_key_map"),
    "LIST_APPEND": _kind_arg(Op.ADD, "list"),
    "SET_ADD": _kind_arg(Op.ADD, "set"),
    "MAP_ADD": _kind_arg(Op.ADD, "map"),
    "LIST_EXTEND": _kind_arg(Op.UPDATE, "list"),
    "SET_UPDATE": _kind_arg(Op.UPDATE, "set"),
    "DICT_UPDATE": _kind_arg(Op.UPDATE, "map"),
    "DICT_MERGE": _kind_arg(Op.UPDATE, "kwargs"),
    "LIST_TO_TUPLE": _simple(Op.LIST_TO_TUPLE),
    "UNPACK_SEQUENCE": _with_arg(Op.UNPACK),
    "UNPACK_EX": _unpack_ex,
    "FORMAT_VALUE": _format,
    "KW_NAMES": _kw_names,
    "CALL": _call,
    "CALL_FUNCTION_EX": lambda lowering, ins: [Draft(Op.CALL_EX, bool(ins.arg & 1))],
    "MAKE_FUNCTION": _with_arg(Op.MAKE_FUNCTION),
    "IMPORT_NAME": _named(Op.IMPORT),
    "IMPORT_FROM": _named(Op.IMPORT_FROM),
    "IMPORT_STAR": _simple(Op.IMPORT_STAR),
    "SETUP_ANNOTATIONS": _simple(Op.SETUP_ANNOTATIONS),
    "GET_ITER": _simple(Op.ITER),
    "GET_YIELD_FROM_ITER": _simple(Op.YIELD_FROM_ITER),
    "GET_AITER": _simple(Op.AITER),
    "GET_ANEXT": _simple(ANEXT),
    "END_ASYNC_FOR": _simple(END_ASYNC_FOR),
    "GET_AWAITABLE": _with_arg(Op.AWAITABLE),
    "SEND": _simple(SEND),
    "YIELD_VALUE": _simple(Op.YIELD),
    "FOR_ITER": lambda lowering, ins: [Draft(Op.FOR, False, ins.target)],
    "JUMP_FORWARD": _jump,
    "JUMP_BACKWARD": _jump,
    "JUMP_BACKWARD_NO_INTERRUPT": _jump,
    "POP_JUMP_FORWARD_IF_TRUE": _branch("true"),
    "POP_JUMP_BACKWARD_IF_TRUE": _branch("true"),
    "POP_JUMP_FORWARD_IF_FALSE": _branch("false"),
    "POP_JUMP_BACKWARD_IF_FALSE": _branch("false"),
    "POP_JUMP_FORWARD_IF_NONE": _branch("none"),
    "POP_JUMP_BACKWARD_IF_NONE": _branch("none"),
    "POP_JUMP_FORWARD_IF_NOT_NONE": _branch("not none"),
    "POP_JUMP_BACKWARD_IF_NOT_NONE": _branch("not none"),
    "JUMP_IF_TRUE_OR_POP": _branch_or_pop("true"),
    "JUMP_IF_FALSE_OR_POP": _branch_or_pop("false"),
    "RETURN_VALUE": _simple(Op.RETURN),
    "RAISE_VARARGS": _with_arg(Op.RAISE),
    "RERAISE": _simple(Op.RERAISE),
    "PUSH_EXC_INFO": _simple(Op.PUSH_EXC),
    "POP_EXCEPT": _simple(Op.POP_EXC),
    "CHECK_EXC_MATCH": _simple(Op.CHECK_EXC),
    "CHECK_EG_MATCH": _simple(Op.CHECK_EXC_GROUP),
    "PREP_RERAISE_STAR": _simple(Op.PREP_RERAISE_STAR),
    "BEFORE_WITH": _simple(Op.WITH),
    "BEFORE_ASYNC_WITH": _simple(Op.ASYNC_WITH),
    "WITH_EXCEPT_START": _simple(Op.WITH_EXCEPT),
    "MATCH_MAPPING": _simple(Op.MATCH_MAPPING),
    "MATCH_SEQUENCE": _simple(Op.MATCH_SEQUENCE),
    "GET_LEN": _simple(Op.GET_LEN),
    "MATCH_KEYS": _simple(Op.MATCH_KEYS),
    "MATCH_CLASS": _with_arg(Op.MATCH_CLASS),
    "PRINT_EXPR": _simple("PRINT_EXPR"),
}
