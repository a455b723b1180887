"""The type of the per-version opcode tables; the tables themselves are generated data in ``tables/``."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from dataclasses import field
from functools import lru_cache
from typing import Dict, FrozenSet, List, Optional, Tuple

from depyf.bytecode import tables
from depyf.quick_dataclass import dataclass

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
    names: Dict[int, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", {code: name for name, code in self.opcodes.items()})


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
        module = importlib.import_module(f"depyf.bytecode.tables.cp{major}{minor}")
    except ModuleNotFoundError:
        raise NotImplementedError(
            f"depyf has no opcode table for CPython {major}.{minor}; "
            "make one with tools/record/generate_opcode_table.py and add a lowering beside depyf/normal/"
        ) from None
    table: OpcodeTable = module.TABLE
    return table
