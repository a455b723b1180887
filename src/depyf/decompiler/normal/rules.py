"""Builders of rules, and the rules of the instructions with the same meaning in all versions."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple, Union

from depyf.decompiler.bytecode.instructions import Instruction
from depyf.decompiler.normal.draft import Draft, Lowering, MakeTable, Rule, Source, Template
from depyf.decompiler.normal.ops import Op

CONVERSIONS = ("", "s", "r", "a")
"""The conversions of formatted values, in the order of their numbers."""


def simple(op: Union[Op, str], arg: object = None) -> Rule:
    return Template(op, Source.GIVEN, arg)


def with_arg(op: Union[Op, str]) -> Rule:
    return Template(op, Source.OWN)


def kind_arg(op: Op, kind: str) -> Rule:
    return Template(op, Source.KIND, kind)


def from_table(op: Union[Op, str], make: MakeTable) -> Rule:
    return Template(op, Source.TABLE, make)


def named(op: Op) -> Rule:
    return from_table(op, _names)


def scoped(op: Op, scope: str) -> Rule:
    return from_table(op, SCOPED_NAMES[scope])


def branch(kind: str) -> Rule:
    return Template(Op.BRANCH, Source.GIVEN, kind)


def _names(lowering: Lowering) -> Sequence[str]:
    return lowering.code.co_names


def _constants(lowering: Lowering) -> Sequence[object]:
    return lowering.code.co_consts


def global_names(lowering: Lowering) -> Sequence[Tuple[str, str]]:
    return [("global", name) for name in lowering.code.co_names]


def _names_in_namespace(lowering: Lowering) -> Sequence[Tuple[str, str]]:
    return [("name", name) for name in lowering.code.co_names]


SCOPED_NAMES = {"global": global_names, "name": _names_in_namespace}


def branch_or_pop(kind: str) -> Rule:
    return lambda lowering, ins: [Draft(Op.COPY, 1), Draft(Op.BRANCH, kind, target=ins.target), Draft(Op.POP)]


def load_method(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Lower ``obj -> method self`` or ``obj -> NULL attribute``: the calls are equivalent, so always the second."""
    return [*lowering.null_below(ins), Draft(Op.ATTR, lowering.code.co_names[ins.arg])]


def format_value(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.FORMAT, (CONVERSIONS[ins.arg & 3], bool(ins.arg & 4)))]


def build(kind: str) -> Rule:
    return kind_arg(Op.BUILD, kind)


def build_slice(lowering: Lowering, ins: Instruction) -> List[Draft]:
    if ins.arg not in (2, 3):
        raise ValueError(f"{lowering.code.co_name}: a slice of {ins.arg} values at offset {ins.offset}")
    return [Draft(Op.BUILD, ("slice", ins.arg))]


JUMP = Template(Op.JUMP)


def import_name(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.IMPORT, (lowering.code.co_names[ins.arg], ""))]


def unpack_ex(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.UNPACK_EX, (ins.arg & 0xFF, ins.arg >> 8))]


def take_constant(lowering: Lowering, ins: Instruction) -> Any:
    """Remove and return the constant that was pushed only for ``ins`` (keyword names)."""
    return lowering.take_previous(Op.CONST, ins).arg


def call_with_names(lowering: Lowering, ins: Instruction, null: str) -> List[Draft]:
    """Lower a call whose keyword names are a constant on top of the stack; ``null``: see CALL in ``ops.py``."""
    constant = lowering.pushed(ins)
    if constant is None or constant.op is not Op.CONST:
        raise ValueError(f"{lowering.code.co_name}: {ins.name} at offset {ins.offset} has no constant names")
    call = Draft(Op.CALL, (ins.arg, keyword_names(constant.arg, ins), null))
    if constant is lowering.drafts[-1]:
        lowering.drafts.pop()
        return [call]
    return [Draft(Op.POP), call]


def keyword_names(names: object, ins: Instruction) -> Tuple[str, ...]:
    """Return ``names`` as keyword names of a call. Raises ``ValueError`` when they can't be."""
    if type(names) is tuple and len(names) <= ins.arg and all(type(name) is str for name in names):
        return names
    raise ValueError(f"the call at offset {ins.offset} has no names for its keywords")


LOAD_CONST = from_table(Op.CONST, _constants)


COMMON: Dict[str, Rule] = {
    "NOP": None,
    "POP_TOP": simple(Op.POP),
    "LOAD_CONST": LOAD_CONST,
    "LOAD_BUILD_CLASS": simple(Op.SPECIAL, "__build_class__"),
    "STORE_GLOBAL": scoped(Op.STORE, "global"),
    "DELETE_GLOBAL": scoped(Op.DELETE, "global"),
    "LOAD_NAME": scoped(Op.LOAD, "name"),
    "STORE_NAME": scoped(Op.STORE, "name"),
    "DELETE_NAME": scoped(Op.DELETE, "name"),
    "UNARY_NEGATIVE": simple(Op.UNARY, "-"),
    "UNARY_INVERT": simple(Op.UNARY, "~"),
    "UNARY_NOT": simple(Op.UNARY, "not"),
    "STORE_SUBSCR": simple(Op.STORE_SUBSCR),
    "DELETE_SUBSCR": simple(Op.DELETE_SUBSCR),
    "STORE_ATTR": named(Op.STORE_ATTR),
    "DELETE_ATTR": named(Op.DELETE_ATTR),
    "BUILD_TUPLE": build("tuple"),
    "BUILD_LIST": build("list"),
    "BUILD_SET": build("set"),
    "BUILD_MAP": build("map"),
    "BUILD_STRING": build("string"),
    "BUILD_SLICE": build_slice,
    "LIST_APPEND": kind_arg(Op.ADD, "list"),
    "SET_ADD": kind_arg(Op.ADD, "set"),
    "MAP_ADD": kind_arg(Op.ADD, "map"),
    "UNPACK_SEQUENCE": with_arg(Op.UNPACK),
    "UNPACK_EX": unpack_ex,
    "IMPORT_NAME": import_name,
    "IMPORT_FROM": named(Op.IMPORT_FROM),
    "SETUP_ANNOTATIONS": simple(Op.SETUP_ANNOTATIONS),
    "GET_ITER": simple(Op.ITER),
    "GET_AITER": simple(Op.AITER),
    "FOR_ITER": simple(Op.FOR, False),
    "JUMP_FORWARD": JUMP,
    "RETURN_VALUE": simple(Op.RETURN),
    "RAISE_VARARGS": with_arg(Op.RAISE),
}
