"""How CPython 3.9 spells the normal form: 3.8 and what changed. ``lowering.py`` imports it by its number."""

from __future__ import annotations

from depyf.decompiler.normal import v38
from depyf.decompiler.normal.blocks import EXC_MATCH, RERAISE
from depyf.decompiler.normal.draft import Draft
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.normal.rules import from_table, kind_arg, simple

_GONE = (
    "BEGIN_FINALLY", "BUILD_LIST_UNPACK", "BUILD_MAP_UNPACK", "BUILD_MAP_UNPACK_WITH_CALL", "BUILD_SET_UNPACK",
    "BUILD_TUPLE_UNPACK", "BUILD_TUPLE_UNPACK_WITH_CALL", "CALL_FINALLY", "END_FINALLY", "POP_FINALLY",
    "WITH_CLEANUP_FINISH", "WITH_CLEANUP_START",
)  # fmt: skip

DIALECT = v38.DIALECT.changed(
    {
        "IS_OP": lambda lowering, ins: [Draft(Op.IS, bool(ins.arg))],
        "CONTAINS_OP": lambda lowering, ins: [Draft(Op.IN, bool(ins.arg))],
        "COMPARE_OP": from_table(Op.COMPARE, lambda lowering: lowering.table.compare_operators),
        "LOAD_ASSERTION_ERROR": simple(Op.SPECIAL, "AssertionError"),
        "LIST_EXTEND": kind_arg(Op.UPDATE, "list"),
        "SET_UPDATE": kind_arg(Op.UPDATE, "set"),
        "DICT_UPDATE": kind_arg(Op.UPDATE, "map"),
        "DICT_MERGE": kind_arg(Op.UPDATE, "kwargs"),
        "LIST_TO_TUPLE": simple(Op.LIST_TO_TUPLE),
        "JUMP_IF_NOT_EXC_MATCH": simple(EXC_MATCH),
        "RERAISE": simple(RERAISE),
        "WITH_EXCEPT_START": simple(Op.WITH_EXCEPT),
    },
    without=_GONE,
)
