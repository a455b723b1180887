"""How CPython 3.11 spells the normal form."""

from __future__ import annotations

from functools import lru_cache
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from depyf.decompiler.bytecode.instructions import Instruction
from depyf.decompiler.normal.draft import Dialect, Draft, Lowering, Rule, Source, Step, Template
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.normal.rules import (
    COMMON,
    JUMP,
    branch,
    branch_or_pop,
    build,
    format_value,
    from_table,
    global_names,
    keyword_names,
    kind_arg,
    load_method,
    named,
    simple,
    with_arg,
)
from depyf.decompiler.normal.undo import (
    ANEXT,
    END_ASYNC_FOR,
    SEND,
    join_async_for,
    join_send_loops,
    skip_cleanup_handlers,
)


def slots(scope: str) -> Callable[[Lowering], Sequence[Tuple[str, str]]]:
    """Return the maker of the table of variables by slot."""
    return lambda lowering: [(scope, name) for name in lowering.locals_plus]


def loads(lowering: Lowering) -> Sequence[Tuple[Op, object]]:
    """Return the loads of all slots. LOAD_CLOSURE and LOAD_FAST do the same: of a cell they push the cell itself."""
    return [
        (Op.CLOSURE, name) if lowering.is_cell(index) else (Op.LOAD, ("fast", name))
        for index, name in enumerate(lowering.locals_plus)
    ]


def stores(lowering: Lowering) -> Sequence[Tuple[Op, object]]:
    """Return the stores to all slots."""
    return [
        (Op.STORE, ("cell" if lowering.is_cell(index) else "fast", name))
        for index, name in enumerate(lowering.locals_plus)
    ]


LOAD_FAST = Template(Op.LOAD, Source.VARIABLES, loads)
STORE_FAST = Template(Op.STORE, Source.VARIABLES, stores)


def _delete_fast(lowering: Lowering, ins: Instruction) -> List[Draft]:
    name = lowering.locals_plus[ins.arg]
    if lowering.is_cell(ins.arg):
        raise ValueError(f"{lowering.code.co_name}: {ins.name} deletes the cell of {name!r} at offset {ins.offset}")
    return [Draft(Op.DELETE, ("fast", name))]


_deref, _classderef = slots("deref"), slots("classderef")


def _load_global(lowering: Lowering, ins: Instruction) -> List[Draft]:
    load = Draft(Op.LOAD, lowering.table_of(global_names)[ins.arg >> 1])
    return [Draft(Op.NULL), load] if ins.arg & 1 else [load]


def _kw_names(lowering: Lowering, ins: Instruction) -> List[Draft]:
    lowering.keyword_names = lowering.code.co_consts[ins.arg]
    return []


def _call(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.CALL, (ins.arg, keyword_names(lowering.take_keyword_names(), ins), "below"))]


def call_ex(null: str) -> Rule:
    return lambda lowering, ins: [Draft(Op.CALL_EX, (bool(ins.arg & 1), null))]


def _binary_operators(lowering: Lowering) -> Sequence[Tuple[Op, Optional[str]]]:
    return _operations(tuple(lowering.table.binary_operators))


@lru_cache(maxsize=None)
def _operations(symbols: Tuple[str, ...]) -> Sequence[Tuple[Op, Optional[str]]]:
    return [
        (Op.SUBSCR, None)
        if symbol == "[]"
        else (Op.INPLACE, symbol[:-1])
        if symbol.endswith("=")
        else (Op.BINARY, symbol)
        for symbol in symbols
    ]


def compare_operators(lowering: Lowering) -> Sequence[str]:
    operators: Sequence[str] = lowering.table.compare_operators
    return operators


_RULES: Dict[str, Rule] = {
    **COMMON,
    "CACHE": None,
    "RESUME": None,
    "PRECALL": None,
    "MAKE_CELL": None,
    "COPY_FREE_VARS": None,
    "GEN_START": None,
    "ASYNC_GEN_WRAP": None,
    "RETURN_GENERATOR": simple(Op.CONST),  # pushes the None of the first ``send`` for the POP_TOP after it
    "PUSH_NULL": simple(Op.NULL),
    "COPY": with_arg(Op.COPY),
    "SWAP": with_arg(Op.SWAP),
    "LOAD_FAST": LOAD_FAST,
    "STORE_FAST": STORE_FAST,
    "DELETE_FAST": _delete_fast,
    "LOAD_CLOSURE": LOAD_FAST,
    "LOAD_DEREF": from_table(Op.LOAD, _deref),
    "LOAD_CLASSDEREF": from_table(Op.LOAD, _classderef),
    "STORE_DEREF": from_table(Op.STORE, _deref),
    "DELETE_DEREF": from_table(Op.DELETE, _deref),
    "LOAD_GLOBAL": _load_global,
    "LOAD_ASSERTION_ERROR": simple(Op.SPECIAL, "AssertionError"),
    "UNARY_POSITIVE": simple(Op.UNARY, "+"),
    "BINARY_OP": Template(Op.BINARY, Source.VARIABLES, _binary_operators),
    "COMPARE_OP": from_table(Op.COMPARE, compare_operators),
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
    "SEND": simple(SEND),
    "YIELD_VALUE": simple(Op.YIELD),
    "JUMP_BACKWARD": JUMP,
    "JUMP_BACKWARD_NO_INTERRUPT": JUMP,
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

SEND_LOOPS = Step(join_send_loops, frozenset({"SEND"}))
ASYNC_LOOPS = Step(join_async_for, frozenset({"GET_ANEXT"}))
CLEANUP_HANDLERS = Step(skip_cleanup_handlers, frozenset({"POP_EXCEPT"}))

DIALECT = Dialect(_RULES, (SEND_LOOPS, ASYNC_LOOPS, CLEANUP_HANDLERS), copies_loop_tests=True, threads_operands=True)
