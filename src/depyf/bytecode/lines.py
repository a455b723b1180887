"""Line tables: which line each instruction of a code object came from."""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from depyf.bytecode.code import Code, PortableCode, version_of

LineRange = Tuple[int, int, Optional[int]]
"""First byte offset, byte offset behind the last, line (``None``: the compiler gave none)."""


def lines_of_units(code: Code) -> List[Optional[int]]:
    """The line of each code unit (two bytes); ``None`` where the compiler gave none."""
    lines: List[Optional[int]] = [None] * (len(code.co_code) // 2 + 1)
    for start, end, line in line_ranges(code):
        for unit in range(start // 2, min(end // 2, len(lines))):
            lines[unit] = line
    return lines


def line_ranges(code: Code) -> Iterator[LineRange]:
    """The entries of the line table of ``code``, in order of offsets."""
    version = version_of(code)
    if version >= (3, 11):
        return _locations(code)
    if version >= (3, 10):
        return _line_deltas(code.co_linetable, code.co_firstlineno)
    # The running interpreter's own code objects call the table by its old name.
    table = code.co_linetable if isinstance(code, PortableCode) else code.co_lnotab
    return _lnotab(table, code.co_firstlineno, len(code.co_code))


def _locations(code: Code) -> Iterator[LineRange]:
    """The format of CPython 3.11's Objects/locations.md; columns are left out."""
    table, line = code.co_linetable, code.co_firstlineno
    position, offset = 0, 0

    def number() -> int:
        nonlocal position
        value = shift = 0
        while position < len(table) and shift < 36:
            byte = table[position]
            position += 1
            value |= (byte & 63) << shift
            shift += 6
            if not byte & 64:
                return value
        raise ValueError(f"{code.co_name}: the line table is malformed at byte {position}")

    def signed() -> int:
        value = number()
        return -(value >> 1) if value & 1 else value >> 1

    while position < len(table):
        first = table[position]
        position += 1
        kind, length = first >> 3 & 15, 2 * ((first & 7) + 1)
        known = True
        if kind <= 9:  # short forms: same line, one more byte of columns
            position += 1
        elif kind <= 12:  # one-line forms: line delta in the kind, two bytes of columns
            line += kind - 10
            position += 2
        elif kind == 13:
            line += signed()
        elif kind == 14:
            line += signed()
            number()
            number()
            number()
        else:
            known = False
        yield offset, offset + length, line if known else None
        offset += length


def _line_deltas(table: bytes, line: int) -> Iterator[LineRange]:
    """The format of CPython 3.10's Objects/lnotab_notes.txt: pairs of offset and line deltas, -128 for no line."""
    start = 0
    for position in range(0, len(table) - 1, 2):
        end, delta = start + table[position], _signed_byte(table[position + 1])
        if delta != -128:
            line += delta
        if end != start:
            yield start, end, None if delta == -128 else line
        start = end


def _lnotab(table: bytes, line: int, size: int) -> Iterator[LineRange]:
    """The format up to 3.9: offset deltas (unsigned) and line deltas (signed), the last line goes on to the end."""
    start = offset = 0
    for position in range(0, len(table) - 1, 2):
        advance = table[position]
        if advance:
            offset += advance
            yield start, offset, line
            start = offset
        line += _signed_byte(table[position + 1])
    if start < size:
        yield start, size, line


def _signed_byte(byte: int) -> int:
    return byte - 256 if byte > 127 else byte
