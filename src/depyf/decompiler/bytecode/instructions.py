"""Decode code objects to instructions and exception ranges; no semantics."""

from __future__ import annotations

import functools
from typing import AbstractSet, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Set, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.code import Code, check_facts, version_of
from depyf.decompiler.bytecode.lines import Span, positions_of_units, spans_of_units
from depyf.decompiler.bytecode.opcode_table import OpcodeTable, Version, table_for

_LARGEST_PREFIX = 0xFF_FFFF
"""The largest value of the prefixes, which hold the higher bytes of an argument."""


class Instruction(NamedTuple):
    """One instruction with its prefixes folded in.

    Byte offsets: ``offset`` of the instruction (or its first EXTENDED_ARG), ``end`` after its inline caches, ``target``
    of the target of a jump.
    """

    offset: int
    end: int
    name: str
    arg: int
    target: Optional[int]
    span: Optional[Span]

    @property
    def line(self) -> Optional[int]:
        """Return the line that it was compiled from; ``None`` where the compiler gave none."""
        return None if self.span is None else self.span.line


@dataclass(frozen=True)
class ExceptionRange:
    """Instructions at ``start <= offset < end`` unwind to ``target`` with ``depth`` values left on the stack."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


@dataclass(frozen=True)
class Decoded:
    code: Code
    version: Version
    table: OpcodeTable
    instructions: Tuple[Instruction, ...]
    exceptions: Tuple[ExceptionRange, ...]
    names: FrozenSet[str]
    """The names of all instructions, and perhaps more: some bytes at even offsets are inline caches."""


def decode(code: Code) -> Decoded:
    """Decode ``code`` as bytecode of the version that it was compiled for.

    Raises ``ValueError`` when the bytecode is malformed (unknown opcode, jump to nowhere, truncated tables).
    """
    check_facts(code)
    table = table_for(version_of(code))
    instructions, targets = _decode_instructions(code, table)
    exceptions = _decode_exception_table(code) if table.version >= (3, 11) else ()
    if targets or exceptions:
        starts = {instruction.offset for instruction in instructions}
        if not starts.issuperset(targets):
            _refuse_jump(code, instructions, starts)
        _check_exception_ranges(code, exceptions, starts)
    kinds = _kinds(table.version)
    names = frozenset([kinds[opcode].name for opcode in set(code.co_code[::2]) if opcode in kinds])
    return Decoded(code, table.version, table, instructions, exceptions, names)


def _refuse_jump(code: Code, instructions: Sequence[Instruction], starts: AbstractSet[int]) -> None:
    for instruction in instructions:
        if instruction.target is not None and instruction.target not in starts:
            raise ValueError(
                f"{code.co_name}: jump at offset {instruction.offset} to {instruction.target}, "
                "where no instruction starts"
            )


def _decode_instructions(code: Code, table: OpcodeTable) -> Tuple[Tuple[Instruction, ...], List[int]]:
    """Return the instructions, and the targets of those that jump."""
    found: List[Instruction] = []
    targets: List[int] = []
    raw = code.co_code
    kinds, size = _kinds(table.version), len(raw)
    positions = positions_of_units(code)
    spans = spans_of_units(code) if positions is None else []
    span: Optional[Span]
    new = tuple.__new__  # this loop is hot, and a call of a named tuple's class takes twice the time
    # ``start`` is the offset of the instruction with its prefixes, ``prefix`` the higher bytes of its argument.
    offset = start = prefix = 0
    while offset < size:
        kind = kinds.get(raw[offset])
        if kind is None:
            raise ValueError(f"{code.co_name}: unknown opcode {raw[offset]} at offset {offset}")
        name, length, jump, has_argument = kind
        arg = raw[offset + 1] | prefix if has_argument else 0
        offset += length
        target = None
        if jump is not None:
            if jump is _PREFIX:  # belongs to the next instruction, which starts here
                prefix = arg << 8
                if arg > _LARGEST_PREFIX or offset == size:
                    why = "no instruction follows" if offset == size else "the argument is larger than 32 bits"
                    raise ValueError(f"{code.co_name}: EXTENDED_ARG at offset {start}: {why}")
                continue
            target = jump.scale * arg + (offset if jump.relative else 0)
            targets.append(target)
        # The position of an instruction with prefixes is that of its first unit.
        if positions is None:
            span = spans[start >> 1]
        else:
            line, end_line, column, end_column = positions[start >> 1]
            span = None if line is None else new(Span, (line, column, end_line, end_column))
        found.append(new(Instruction, (start, offset, name, arg, target, span)))
        start, prefix = offset, 0
    if offset > size:
        raise ValueError(f"{code.co_name}: {name} at offset {found[-1].offset} has truncated inline caches")
    return tuple(found), targets


class _Jump(NamedTuple):
    """How the argument of a jump gives its target: ``scale`` bytes a unit, from the end of the instruction
    (``relative``) or from the beginning of the code."""

    scale: int
    relative: bool


_PREFIX = _Jump(0, False)
"""Marks EXTENDED_ARG, which is no instruction of its own."""


class _Kind(NamedTuple):
    """Facts for decoding one opcode; ``length``: bytes of the instruction with its inline caches."""

    name: str
    length: int
    jump: Optional[_Jump]
    has_argument: bool


@functools.lru_cache(maxsize=None)
def _kinds(version: Version) -> Dict[int, _Kind]:
    """Return the facts for decoding by opcode."""
    table = table_for(version)
    scale = 2 if version >= (3, 10) else 1

    def jump(name: str) -> Optional[_Jump]:
        if name == "EXTENDED_ARG":
            return _PREFIX
        if name in table.relative_jumps:
            return _Jump(-scale if "BACKWARD" in name else scale, True)
        return _Jump(scale, False) if name in table.absolute_jumps else None

    return {
        opcode: _Kind(name, 2 + 2 * table.caches.get(name, 0), jump(name), opcode >= table.have_argument)
        for opcode, name in table.names.items()
    }


_READS_CONSTANT = frozenset(("LOAD_CONST", "RETURN_CONST", "KW_NAMES"))


def constants_read(code: Code) -> Set[int]:
    """Return the indices of the constants that instructions of ``code`` read. Raises ``ValueError`` as ``decode``."""
    return {each.arg for each in decode(code).instructions if each.name in _READS_CONSTANT}


def _decode_exception_table(code: Code) -> Tuple[ExceptionRange, ...]:
    """Decode the variable-length format of CPython's Objects/exception_handling_notes.txt (3.11 and later)."""
    # Four numbers an entry: start, length, target, depth << 1 | lasti. A number has six bits a byte, the highest first;
    # bit 6 says that more follow. (Bit 7 marks the first byte of an entry, and is not needed.)
    numbers: List[int] = []
    value = read = more = 0
    for byte in code.co_exceptiontable:
        value, more, read = value << 6 | byte & 63, byte & 64, read + 1
        if not more:
            numbers.append(value)
            value = 0
        elif value > _LARGEST_PREFIX:
            break
    if more or len(numbers) % 4:
        raise ValueError(f"{code.co_name}: the exception table is malformed at byte {read}")
    each = iter(numbers)
    return tuple(
        [
            ExceptionRange(2 * start, 2 * (start + length), 2 * target, depth_lasti >> 1, bool(depth_lasti & 1))
            for start, length, target, depth_lasti in zip(each, each, each, each)
        ]
    )


def _check_exception_ranges(code: Code, ranges: Sequence[ExceptionRange], starts: AbstractSet[int]) -> None:
    """Check that ranges are inside the code, sorted and disjoint, and that their targets are instructions."""
    end = 0
    for entry in sorted(ranges, key=lambda entry: entry.start):
        if entry.start < end or entry.end > len(code.co_code):
            raise ValueError(
                f"{code.co_name}: the exception range from {entry.start} to {entry.end} overlaps with another, or "
                f"there is no code there"
            )
        if entry.target not in starts:
            raise ValueError(f"{code.co_name}: an exception goes to {entry.target}, where no instruction starts")
        end = entry.end
