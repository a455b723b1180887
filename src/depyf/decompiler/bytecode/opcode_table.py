"""The facts about the opcodes of each CPython, read from the generated data in ``tables/``.

A table is a few lines of text, written by ``tools/record/generate_opcode_table.py`` (here part of the table of 3.11):

    magic: a70d0d0a
    compare_operators: <, <=, ==, !=, >, >=
    opcodes:
    CACHE POP_TOP PUSH_NULL 9 NOP ... 25 BINARY_SUBSCR/4 ... 93 +FOR_ITER ... (before 3.11: 113 =JUMP_ABSOLUTE)

Names have consecutive opcodes, starting at 0; a number is the opcode of the next name. ``/4`` is the number of cache
entries that follow the instruction. ``+`` marks jumps whose argument counts from the instruction, ``=`` jumps whose
argument counts from the start of the code.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from functools import lru_cache
from typing import Dict, FrozenSet, List, Optional, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode import tables

Version = Tuple[int, int]


@dataclass(frozen=True)
class OpcodeTable:
    """Facts about one CPython version's bytecode; no semantics."""

    version: Version
    magic: bytes
    opcodes: Dict[str, int]
    have_argument: int
    relative_jumps: FrozenSet[str]
    absolute_jumps: FrozenSet[str]
    caches: Dict[str, int]
    binary_operators: List[str]
    compare_operators: List[str]
    unary_intrinsics: List[str]
    """Names by the argument of CALL_INTRINSIC_1 (3.12), without their prefix."""
    binary_intrinsics: List[str]
    special_methods: List[str]
    """Names by the argument of LOAD_SPECIAL (3.14)."""
    common_constants: List[str]
    """The constants that LOAD_COMMON_CONSTANT (3.14) pushes, as Python expressions."""
    names: Dict[int, str]


def known_versions() -> List[Version]:
    """Return the versions that have a table, oldest first."""
    names = [module.name for module in pkgutil.iter_modules(tables.__path__)]
    return sorted((int(name[2]), int(name[3:])) for name in names)


def running_version() -> Version:
    """Return the ``(major, minor)`` of the running interpreter."""
    return sys.version_info[0], sys.version_info[1]


@lru_cache(maxsize=None)
def table_for(version: Optional[Version] = None) -> OpcodeTable:
    """Return the opcode table of ``version`` (default: the running interpreter).

    Raises ``NotImplementedError`` for a Python that has no table.
    """
    major, minor = version or running_version()
    try:
        module = importlib.import_module(f"depyf.decompiler.bytecode.tables.cp{major}{minor}")
    except ModuleNotFoundError:
        raise NotImplementedError(
            f"depyf has no opcode table for CPython {major}.{minor}; "
            "make one with tools/record/generate_opcode_table.py and add its rules to depyf/decompiler/normal/"
        ) from None
    return _parsed((major, minor), module.TABLE)


def _parsed(version: Version, text: str) -> OpcodeTable:
    """Parse the text of one table. Lists that the version lacks are empty."""
    facts, _, words = text.partition("opcodes:")
    fields = dict(line.split(": ", 1) for line in facts.split("\n") if line)
    # "FOR_ITER/1" with a "+" before it: a relative jump with one cache entry, one opcode after the word before.
    opcodes: Dict[str, int] = {}
    caches: Dict[str, int] = {}
    marked: Dict[str, List[str]] = {"+": [], "=": []}
    opcode = 0
    for word in words.split():
        if word.isdigit():
            opcode = int(word)
            continue
        name, _, count = word.lstrip("+=").partition("/")
        if count:
            caches[name] = int(count)
        if word[0] in marked:
            marked[word[0]].append(name)
        opcodes[name] = opcode
        opcode += 1

    def items(field: str) -> List[str]:
        return fields[field].split(", ") if field in fields else []

    return OpcodeTable(
        version=version,
        magic=bytes.fromhex(fields["magic"]),
        opcodes=opcodes,
        have_argument=int(fields["have_argument"]),
        relative_jumps=frozenset(marked["+"]),
        absolute_jumps=frozenset(marked["="]),
        caches=caches,
        binary_operators=items("binary_operators"),
        compare_operators=items("compare_operators"),
        unary_intrinsics=items("unary_intrinsics"),
        binary_intrinsics=items("binary_intrinsics"),
        special_methods=items("special_methods"),
        common_constants=items("common_constants"),
        names={code: name for name, code in opcodes.items()},
    )
