"""Decode code objects to instructions and exception ranges; no semantics."""

from __future__ import annotations

from typing import AbstractSet, Dict, Iterator, NamedTuple, Optional, Sequence, Tuple

from depyf.bytecode.code import Code, check_facts, version_of
from depyf.bytecode.lines import Span, spans_of_units
from depyf.bytecode.opcode_table import OpcodeTable, Version, table_for
from depyf.quick_dataclass import dataclass

_LARGEST_PREFIX = 0xFF_FFFF
"""Prefixes that hold the higher bytes of an argument."""


class Instruction(NamedTuple):
    """One instruction with its prefixes folded in.

    ``offset`` and ``end`` are byte offsets (``offset`` is that of the first EXTENDED_ARG, ``end`` is
    after the inline caches); ``target`` is the byte offset of a jump's target.
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


def decode(code: Code) -> Decoded:
    """Decode ``code`` as bytecode of the version that it was compiled for.

    Raises ``ValueError`` when the bytecode is malformed (unknown opcode, jump to nowhere, truncated tables).
    """
    check_facts(code)
    table = table_for(version_of(code))
    instructions = tuple(_decode_instructions(code, table))
    starts = {instruction.offset for instruction in instructions}
    for instruction in instructions:
        if instruction.target is not None and instruction.target not in starts:
            raise ValueError(
                f"{code.co_name}: jump at offset {instruction.offset} to {instruction.target}, "
                "where no instruction starts"
            )
    exceptions = tuple(_decode_exception_table(code)) if table.version >= (3, 11) else ()
    _check_exception_ranges(code, exceptions, starts)
    return Decoded(code, table.version, table, instructions, exceptions)


def _decode_instructions(code: Code, table: OpcodeTable) -> Iterator[Instruction]:
    raw = code.co_code
    names, caches = table.names, table.caches
    scale = 2 if table.version >= (3, 10) else 1
    extended = table.opcodes["EXTENDED_ARG"]
    spans = spans_of_units(code)
    offset, start, prefix = 0, -1, 0
    while offset < len(raw):
        if start < 0:
            start = offset
        opcode, arg = raw[offset], raw[offset + 1] | prefix
        offset += 2
        if opcode == extended:
            prefix = arg << 8
            if arg > _LARGEST_PREFIX or offset == len(raw):
                raise ValueError(f"{code.co_name}: the prefixes at offset {start} make no argument of 32 bits")
            continue
        try:
            name = names[opcode]
        except KeyError:
            raise ValueError(f"{code.co_name}: unknown opcode {opcode} at offset {offset - 2}") from None
        end = offset + 2 * caches.get(name, 0)
        if end > len(raw):
            raise ValueError(f"{code.co_name}: {name} at offset {offset - 2} has its inline caches cut off")
        target = None
        if name in table.relative_jumps:
            delta = arg * scale
            target = end - delta if "BACKWARD" in name else end + delta
        elif name in table.absolute_jumps:
            target = arg * scale
        yield Instruction(start, end, name, arg if opcode >= table.have_argument else 0, target, spans[start // 2])
        offset, start, prefix = end, -1, 0


def line_of_offset(code: Code) -> Dict[int, int]:
    """Return the line of every byte offset of ``code`` that has one."""
    return {2 * unit: span.line for unit, span in enumerate(spans_of_units(code)) if span is not None}


def _decode_exception_table(code: Code) -> Iterator[ExceptionRange]:
    """Decode the variable-length format of CPython's Objects/exception_handling_notes.txt (3.11 and later)."""
    table = code.co_exceptiontable
    position = 0

    def number() -> int:
        nonlocal position
        value = 0
        while position < len(table):
            byte = table[position]
            position += 1
            value = value << 6 | byte & 63
            if not byte & 64:
                return value
            if value > _LARGEST_PREFIX:
                break
        raise ValueError(f"{code.co_name}: the exception table is malformed at byte {position}")

    while position < len(table):
        start, length, target, depth_lasti = number() * 2, number() * 2, number() * 2, number()
        yield ExceptionRange(start, start + length, target, depth_lasti >> 1, bool(depth_lasti & 1))


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
