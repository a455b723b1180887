"""How CPython 3.13 spells the normal form: 3.12 and what changed."""

from __future__ import annotations

from typing import List

from depyf.decompiler.bytecode.instructions import Instruction
from depyf.decompiler.normal import v312
from depyf.decompiler.normal.draft import Draft, Lowering, Rule, Template
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.normal.rules import CONVERSIONS, call_with_names, global_names, simple
from depyf.decompiler.normal.v311 import call_ex, loads, stores
from depyf.decompiler.normal.v312 import load_super_attr

_TRUTH_TESTS = ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT")
_TRUTHS = ("IS_OP", "CONTAINS_OP", "CHECK_EXC_MATCH", "MATCH_MAPPING", "MATCH_SEQUENCE", "UNARY_NOT")
_NOT_BEFORE = {8: 31, 4: 23, 16: 23, 2: 3, 1: 1}
"""The flags of SET_FUNCTION_ATTRIBUTE, each with those that are never set before it."""


def pair(first: Op, second: Op) -> Rule:
    """Return the rule of a superinstruction: two instructions on local variables, with four bits of argument each."""
    one, other = (loads if op is Op.LOAD else stores for op in (first, second))

    def rule(lowering: Lowering, ins: Instruction) -> List[Draft]:
        return [Draft(*lowering.table_of(one)[ins.arg >> 4]), Draft(*lowering.table_of(other)[ins.arg & 15])]

    return rule


def _load_global(lowering: Lowering, ins: Instruction) -> List[Draft]:
    load = Draft(Op.LOAD, lowering.table_of(global_names)[ins.arg >> 1])
    return [load, Draft(Op.NULL)] if ins.arg & 1 else [load]


def _load_attr(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Lower a load: with the low bit ``obj -> method self`` or ``obj -> attribute NULL``. The calls are equivalent, so
    always the second."""
    attribute = Draft(Op.ATTR, lowering.code.co_names[ins.arg >> 1])
    return [attribute, Draft(Op.NULL)] if ins.arg & 1 else [attribute]


def _to_bool(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Drop it before operations that test the truth of any value; without one it is ``not not x``."""
    if lowering.neighbour(1) in _TRUTH_TESTS:
        lowering.left_to_next = True
        return []
    return [Draft(Op.UNARY, "not"), Draft(Op.UNARY, "not")]


def _truth(known: Rule) -> Rule:
    """Mark the result as a bool: a test of it can't raise, and may be outside of the ``try`` around this."""

    def truth(lowering: Lowering, ins: Instruction) -> List[Draft]:
        lowering.left_to_next = lowering.neighbour(1) in _TRUTH_TESTS
        if isinstance(known, Template):
            return [Draft(known.op, known.arg)]
        assert known is not None
        return known(lowering, ins)

    return truth


def _compare(lowering: Lowering, ins: Instruction) -> List[Draft]:
    truth = _to_bool(lowering, ins) if ins.arg & 16 else []
    return [Draft(Op.COMPARE, lowering.table.compare_operators[ins.arg >> 5]), *truth]


def _format_simple(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Merge with a conversion just before it: older versions had one operation for both."""
    if lowering.neighbour(-1) == "CONVERT_VALUE":
        return [Draft(Op.FORMAT, (lowering.take_previous(Op.CONVERT, ins).arg, False))]
    return [Draft(Op.FORMAT, ("", False))]


def _set_function_attribute(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Merge into MAKE_FUNCTION: the operands are popped in the same order, closure first."""
    if ins.arg not in _NOT_BEFORE:
        raise ValueError(f"{lowering.code.co_name}: a function has no attribute {ins.arg} (offset {ins.offset})")
    made = lowering.take_previous(Op.MAKE_FUNCTION, ins)
    if made.arg & _NOT_BEFORE[ins.arg]:
        raise ValueError(f"{lowering.code.co_name}: the attributes of a function are set out of order at {ins.offset}")
    return [Draft(Op.MAKE_FUNCTION, made.arg | ins.arg)]


def _pop_top(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Drop it after END_FOR: FOR_ITER skips both, and the FOR of the normal form pops the iterator."""
    return [] if lowering.neighbour(-1) == "END_FOR" else [Draft(Op.POP)]


DIALECT = v312.DIALECT.changed(
    {
        "LOAD_FAST_LOAD_FAST": pair(Op.LOAD, Op.LOAD),
        "STORE_FAST_LOAD_FAST": pair(Op.STORE, Op.LOAD),
        "STORE_FAST_STORE_FAST": pair(Op.STORE, Op.STORE),
        "LOAD_GLOBAL": _load_global,
        "LOAD_ATTR": _load_attr,
        "LOAD_SUPER_ATTR": load_super_attr([Draft(Op.NULL)]),
        "CALL": lambda lowering, ins: [Draft(Op.CALL, (ins.arg, (), "above"))],
        "CALL_KW": lambda lowering, ins: call_with_names(lowering, ins, "above"),
        "CALL_FUNCTION_EX": call_ex("above"),
        "TO_BOOL": _to_bool,
        "COMPARE_OP": _compare,
        **{name: _truth(v312.DIALECT.rules[name]) for name in _TRUTHS},
        "CONVERT_VALUE": lambda lowering, ins: [Draft(Op.CONVERT, CONVERSIONS[ins.arg])],
        "FORMAT_SIMPLE": _format_simple,
        "FORMAT_WITH_SPEC": simple(Op.FORMAT, ("", True)),
        "MAKE_FUNCTION": simple(Op.MAKE_FUNCTION, 0),
        "SET_FUNCTION_ATTRIBUTE": _set_function_attribute,
        "POP_TOP": _pop_top,
    },
    without=["FORMAT_VALUE", "KW_NAMES", "LOAD_CLOSURE"],
)
