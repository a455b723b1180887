"""How CPython 3.10 spells the normal form: 3.9 and what changed. ``lowering.py`` imports it by its number."""

from __future__ import annotations

from typing import List

from depyf.decompiler.bytecode.instructions import Instruction
from depyf.decompiler.normal import v39
from depyf.decompiler.normal.draft import Draft, Lowering, Rule
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.normal.rules import simple
from depyf.decompiler.normal.v38 import rotate


def _match(op: Op) -> Rule:
    """Push the match and whether there was one; without one the match is not used any more."""

    def rule(lowering: Lowering, ins: Instruction) -> List[Draft]:
        if lowering.neighbour(1) != "POP_JUMP_IF_FALSE":
            raise ValueError(f"{lowering.code.co_name}: the result of the match is not tested at offset {ins.offset}")
        arg = ins.arg if op is Op.MATCH_CLASS else None
        return [Draft(op, arg), Draft(Op.COPY, 1), Draft(Op.CONST, None), Draft(Op.IS, True)]

    return rule


DIALECT = v39.DIALECT.changed(
    {
        "GEN_START": None,
        "ROT_N": lambda lowering, ins: rotate(ins.arg),
        "MATCH_CLASS": _match(Op.MATCH_CLASS),
        "MATCH_KEYS": _match(Op.MATCH_KEYS),
        "MATCH_MAPPING": simple(Op.MATCH_MAPPING),
        "MATCH_SEQUENCE": simple(Op.MATCH_SEQUENCE),
        "GET_LEN": simple(Op.GET_LEN),
        "COPY_DICT_WITHOUT_KEYS": lambda lowering, ins: [  # subject keys -> subject rest
            Draft(Op.COPY, 2),
            Draft(Op.SWAP, 2),
            Draft(Op.INTRINSIC, ("COPY_DICT_WITHOUT_KEYS", 2)),
        ],
    },
    copies_loop_tests=True,
)
