"""How CPython 3.15 spells the normal form: 3.14 and what changed. ``lowering.py`` imports it by its number.

An iterator takes two slots of the stack now: itself, and an index or NULL. So does the awaitable in the loop of
``await`` or ``yield from``; but that loop becomes one operation, and these slots are never visible.
"""

from __future__ import annotations

import ast
from typing import List

from depyf.decompiler.bytecode.instructions import Instruction
from depyf.decompiler.normal import v314
from depyf.decompiler.normal.draft import Draft, Lowering
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.normal.slots import SECOND_SLOT

_LAZINESS = ("", "lazy", "eager")
_NO_LITERALS = frozenset({"AssertionError", "NotImplementedError", "tuple", "all", "any", "list", "set"})


def _load_common_constant(lowering: Lowering, ins: Instruction) -> List[Draft]:
    text = lowering.table.common_constants[ins.arg]
    if text in _NO_LITERALS:
        return [Draft(Op.SPECIAL, text)]
    return [Draft(Op.CONST, ast.literal_eval(text))]


def _get_iter(lowering: Lowering, ins: Instruction) -> List[Draft]:
    if ins.arg:
        return [Draft(Op.YIELD_FROM_ITER)]
    return [Draft(Op.ITER), Draft(SECOND_SLOT)]


def _push_null(lowering: Lowering, ins: Instruction) -> List[Draft]:
    if lowering.neighbour(1) == "FOR_ITER":  # over a new generator
        return [Draft(SECOND_SLOT)]
    if lowering.neighbour(-1) in ("GET_AWAITABLE", "GET_ANEXT"):
        return []
    return [Draft(Op.NULL)]


def _pop_iter(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Drop it after END_FOR, the exit of FOR_ITER: the FOR of the normal form has popped the iterator."""
    return [] if lowering.neighbour(-1) == "END_FOR" else [Draft(Op.POP), Draft(Op.POP)]


def _pop_top(lowering: Lowering, ins: Instruction) -> List[Draft]:
    """Drop it after RETURN_GENERATOR, which is now between the iterator of a generator expression and its loop. It pops
    the value that the first ``send`` pushes."""
    return [] if lowering.neighbour(-1) == "RETURN_GENERATOR" else [Draft(Op.POP)]


def _import_name(lowering: Lowering, ins: Instruction) -> List[Draft]:
    return [Draft(Op.IMPORT, (lowering.code.co_names[ins.arg >> 2], _LAZINESS[ins.arg & 3]))]


DIALECT = v314.DIALECT.changed(
    {
        "LOAD_COMMON_CONSTANT": _load_common_constant,
        "GET_ITER": _get_iter,
        "PUSH_NULL": _push_null,
        "POP_ITER": _pop_iter,
        "IMPORT_NAME": _import_name,
        "RETURN_GENERATOR": None,
        "POP_TOP": _pop_top,
    },
    without=["GET_YIELD_FROM_ITER"],
)
