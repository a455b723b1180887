"""The fast path: both programs have the same operations."""

from __future__ import annotations

from typing import Callable, List, Optional

from depyf.bytecode.code import Code, is_code
from depyf.normal.ops import Instr, Op
from depyf.verify.comparison import Comparison
from depyf.verify.constants import constant_key, nan_objects
from depyf.verify.program import Program

CompareCodes = Callable[[Code, Code], Comparison]


def same_operations(original: Program, candidate: Program, compare_codes: CompareCodes) -> Optional[List[Comparison]]:
    """Return the comparisons of the nested code objects if all operations are the same, else ``None``."""
    if len(original.ops) != len(candidate.ops):
        return None
    if nan_objects(original.ops) != nan_objects(candidate.ops):
        return None
    nested: List[Comparison] = []
    for mine, theirs in zip(original.ops, candidate.ops):
        if not _same_but_for_constants(mine, theirs):
            return None
        if mine.op is Op.CONST and mine.arg is not theirs.arg:
            if is_code(mine.arg) and is_code(theirs.arg):
                nested.append(compare_codes(mine.arg, theirs.arg))
            elif constant_key(mine.arg) != constant_key(theirs.arg):
                return None
    return nested


def _same_but_for_constants(mine: Instr, theirs: Instr) -> bool:
    return (
        mine.op is theirs.op
        and mine.target == theirs.target
        and mine.handler == theirs.handler
        and (mine.op is Op.CONST or mine.arg == theirs.arg)
    )
