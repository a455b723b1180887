"""Facts about code objects for callers that do not decompile them: sweeps, and the reuse of earlier decompilations.

A module of its own: ``depyf.decompiler`` imports these names lazily, without the rest of the decompiler.
"""

from __future__ import annotations

from typing import Hashable, Optional

from depyf.base.asynchronous import synchronous
from depyf.decompiler.bytecode.code import COMPREHENSIONS, Code, is_code
from depyf.decompiler.bytecode.instructions import constants_read, decode
from depyf.decompiler.bytecode.opcode_table import table_for
from depyf.decompiler.lift.items import GENERIC_PREFIX
from depyf.decompiler.source.definitions.annotations import makes_annotations
from depyf.decompiler.verify.constants import ATOMS, constant_key, holds_nan


def check_python() -> None:
    """Raise ``DecompilationError`` when code of the running Python can't be decompiled."""
    table_for()


def is_compiler_made(code: Code) -> bool:
    """Return whether ``code`` is a part of the definition or expression around it, and has no text of its own:
    comprehensions, the code that makes type parameters and their bounds, and annotations (3.14)."""
    annotates = code.co_name.startswith(GENERIC_PREFIX) or "__classdict__" in code.co_freevars
    evaluates = makes_annotations(code) or code.co_varnames[:1] == (".format",)
    return annotates or evaluates or code.co_name in COMPREHENSIONS


def instruction_count(code: Code) -> int:
    """Return the number of instructions of a code object and its nested ones; malformed ones count by bytes."""
    inner = sum(instruction_count(constant) for constant in code.co_consts if is_code(constant))
    try:
        return len(decode(code).instructions) + inner
    except synchronous(ValueError):
        return len(code.co_code) // 2 + inner


def loaded_constants(code: Code) -> Optional[Hashable]:
    """Return a key of the constants that ``code`` loads, with their indices, and of the first, which may be a
    docstring. Keys are equal exactly if no program can distinguish the constants. ``None`` if a constant has no such
    key: code objects, other objects, NaN."""
    read = {0, *constants_read(code)} & set(range(len(code.co_consts)))
    found = [(at, code.co_consts[at]) for at in sorted(read)]
    if any(not _has_key(constant) or holds_nan(constant) for _, constant in found):
        return None
    return tuple((at, constant_key(constant)) for at, constant in found)


def _has_key(constant: object) -> bool:
    if type(constant) is tuple:
        return all(map(_has_key, constant))
    return type(constant) in (*ATOMS, float, complex)
