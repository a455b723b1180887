"""The fast paths: both code objects have the same bytecode, or both programs the same operations."""

from __future__ import annotations

from operator import attrgetter
from types import CodeType
from typing import Callable, Dict, List, Optional

from depyf.bytecode.code import Code, is_code
from depyf.normal.ops import NormalCode, Op
from depyf.verify.comparison import Comparison
from depyf.verify.constants import constant_key, holds_nan, nan_objects
from depyf.verify.program import Program

CompareCodes = Callable[[Code, Code], Comparison]

_FIELDS = [
    "co_code", "co_names", "co_varnames", "co_cellvars", "co_freevars", "co_exceptiontable", "co_flags", "co_argcount",
    "co_posonlyargcount", "co_kwonlyargcount",
]  # fmt: skip
"""What an instruction's meaning depends on, beside the constants. ``co_exceptiontable`` is new in 3.11."""

_facts = attrgetter(*[field for field in _FIELDS if hasattr(CodeType, field)])


def same_bytecode(original: Code, candidate: Code) -> Optional[Dict[int, CodeType]]:
    """Return the code objects among the constants of ``candidate``, by the ``id`` of the original's, if both have the
    same bytecode on the same names and constants, else ``None``.

    The normal forms of such code objects are the same, so that the candidate's need not be made. The code objects among
    the constants are not compared here.
    """
    if not (type(original) is type(candidate) is CodeType) or len(original.co_consts) != len(candidate.co_consts):
        return None
    if _facts(original) != _facts(candidate):
        return None
    inner: Dict[int, CodeType] = {}
    for mine, theirs in zip(original.co_consts, candidate.co_consts):
        if type(mine) is type(theirs) is CodeType:
            if inner.setdefault(id(mine), theirs) is not theirs:
                return None
        elif mine is not theirs and (constant_key(mine) != constant_key(theirs) or holds_nan(mine)):
            return None
    return inner


def nested_comparisons(
    original: NormalCode, inner: Dict[int, CodeType], compare_codes: CompareCodes
) -> List[Comparison]:
    """Return the comparisons of the code objects that ``original`` loads with those that ``inner`` has for them."""
    if not inner:
        return []
    loaded = (instr.arg for instr in original.ops if instr.op is Op.CONST)
    return [compare_codes(code, inner[id(code)]) for code in loaded if id(code) in inner]


def same_operations(original: Program, candidate: Program, compare_codes: CompareCodes) -> Optional[List[Comparison]]:
    """Return the comparisons of the nested code objects if all operations are the same, else ``None``."""
    if len(original.ops) != len(candidate.ops):
        return None
    if nan_objects(original.ops) != nan_objects(candidate.ops) or original.open_tests != candidate.open_tests:
        return None
    nested: List[Comparison] = []
    for mine, theirs in zip(original.ops, candidate.ops):
        if mine.op is not theirs.op or mine.target != theirs.target or mine.handler != theirs.handler:
            return None
        if mine.op is not Op.CONST:
            if mine.arg != theirs.arg:
                return None
        elif mine.arg is not theirs.arg:
            if is_code(mine.arg) and is_code(theirs.arg):
                nested.append(compare_codes(mine.arg, theirs.arg))
            elif constant_key(mine.arg) != constant_key(theirs.arg):
                return None
    return nested
