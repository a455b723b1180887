"""Line tables: the line of each instruction of a code object, and since 3.11 its columns."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from depyf.base.late_regex import regex
from depyf.decompiler.bytecode.code import Code, PortableCode, version_of

LineRange = Tuple[int, int, Optional[int]]
"""The byte offsets of its first unit and after its last one, and its line (``None``: the compiler gave none)."""


class Span(NamedTuple):
    """The part of the source that an instruction was compiled from. Columns are in bytes of UTF-8, from 0; they are
    ``None`` where the table has none: before 3.11, and with ``-X no_debug_ranges``."""

    line: int
    column: Optional[int]
    end_line: int
    end_column: Optional[int]


_new = tuple.__new__
"""Makes a named tuple at half the cost of a call of its class."""

SpanRange = Tuple[int, int, Optional[Span]]
"""The byte offsets of its first unit and after its last one, and its span (``None``: the compiler gave none)."""


def spans_of_units(code: Code) -> List[Optional[Span]]:
    """Return the span of each code unit (two bytes); ``None`` where the compiler gave none."""
    count = len(code.co_code) // 2 + 1
    spans: List[Optional[Span]] = []
    if version_of(code) >= (3, 11):
        for length, span in _locations(code):
            spans += (span,) * length
        spans += (None,) * (count - len(spans))
        return spans[:count]
    spans = [None] * count
    for start, end, span in span_ranges(code):
        first, last = start // 2, min(end // 2, len(spans))
        if span is not None and first < last:
            spans[first:last] = [span] * (last - first)
    return spans


Position = Tuple[Optional[int], Optional[int], Optional[int], Optional[int]]
"""Line, last line, column, last column."""

_VARINT = rb"[\x40-\x7f]{0,5}[\x00-\x3f]"
_WELL_FORMED = regex(
    rb"(?:[\x80-\xcf][\x00-\x7f]|[\xd0-\xe7][\x00-\x7f]{2}|[\xe8-\xef]V|[\xf0-\xf7]V{4}|[\xf8-\xff])*".replace(
        b"V", b"(?:" + _VARINT + b")"
    )
)
"""A whole line table of 3.11 or later."""


def positions_of_units(code: Code) -> Optional[List[Position]]:
    """Return the position of each code unit as the interpreter reads it, at a fraction of the cost of
    ``spans_of_units``; ``None`` where it can't, or its reader may read beyond the end of the table."""
    if version_of(code) < (3, 11) or isinstance(code, PortableCode) or not _WELL_FORMED.fullmatch(code.co_linetable):
        return None
    positions: List[Position] = list(code.co_positions())
    missing = len(code.co_code) // 2 + 1 - len(positions)
    positions += [(None, None, None, None)] * missing
    return positions


def line_ranges(code: Code) -> Iterator[LineRange]:
    """Yield the entries of the line table of ``code``, in order of offsets."""
    for start, end, span in span_ranges(code):
        yield start, end, None if span is None else span.line


def line_of_offset(code: Code) -> Dict[int, int]:
    """Return the line of every byte offset that has one."""
    ranges = code.co_lines() if hasattr(code, "co_lines") else line_ranges(code)  # new in 3.10
    return {offset: line for start, end, line in ranges if line is not None for offset in range(start, end, 2)}


def span_ranges(code: Code) -> Iterator[SpanRange]:
    """Yield the entries of the line table of ``code`` as spans, in order of offsets."""
    version = version_of(code)
    if version >= (3, 11):
        return _with_offsets(_locations(code))
    if version >= (3, 10):
        return _without_columns(_line_deltas(code.co_linetable, code.co_firstlineno))
    # The running interpreter's own code objects call the table by its old name.
    table = code.co_linetable if isinstance(code, PortableCode) else code.co_lnotab
    return _without_columns(_lnotab(table, code.co_firstlineno, len(code.co_code)))


def _without_columns(ranges: Iterator[LineRange]) -> Iterator[SpanRange]:
    for start, end, line in ranges:
        yield start, end, None if line is None else Span(line, None, line, None)


def _with_offsets(ranges: Iterable[Tuple[int, Optional[Span]]]) -> Iterator[SpanRange]:
    offset = 0
    for length, span in ranges:
        yield offset, offset + 2 * length, span
        offset += 2 * length


def _locations(code: Code) -> List[Tuple[int, Optional[Span]]]:
    """Decode the format of CPython 3.11's Objects/locations.md: return numbers of code units with their span."""
    # An entry starts with a byte ``1kkkklll``: its kind, and the number of code units less one.
    found: List[Tuple[int, Optional[Span]]] = []
    size, line, position = len(code.co_linetable), code.co_firstlineno, 0
    table = code.co_linetable + b"\0\0"  # columns that are missing at its end are 0

    def number() -> int:
        nonlocal position
        if position < size and table[position] < 64:
            position += 1
            return table[position - 1]
        value = shift = 0
        while position < size and shift < 36:
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

    while position < size:
        first = table[position]
        position += 1
        kind = first >> 3 & 15
        if kind <= 9:  # short forms: same line, one more byte of columns
            column = kind << 3 | table[position] >> 4
            span: Optional[Span] = _new(Span, (line, column, line, column + (table[position] & 15)))
            position += 1
        elif kind <= 12:  # one-line forms: line delta in the kind, two bytes of columns
            line += kind - 10
            span = _new(Span, (line, table[position], line, table[position + 1]))
            position += 2
        elif kind == 13:  # no columns
            line += signed()
            span = Span(line, None, line, None)
        elif kind == 14:  # long form: several lines, or large columns; these are one larger, 0 for none
            line += signed()
            end_line, first_column, end_column = line + number(), number() - 1, number() - 1
            known = first_column >= 0 and end_column >= 0
            span = Span(line, first_column if known else None, end_line, end_column if known else None)
        else:  # 15: no location
            span = None
        found.append(((first & 7) + 1, span))
    return found


def _line_deltas(table: bytes, line: int) -> Iterator[LineRange]:
    """Decode CPython 3.10's Objects/lnotab_notes.txt: pairs of offset and line deltas, -128 for no line."""
    start = 0
    for position in range(0, len(table) - 1, 2):
        end, delta = start + table[position], _signed_byte(table[position + 1])
        if delta != -128:
            line += delta
        if end != start:
            yield start, end, None if delta == -128 else line
        start = end


def _lnotab(table: bytes, line: int, size: int) -> Iterator[LineRange]:
    """Decode the format up to 3.9: unsigned offset deltas and signed line deltas; the last line goes to the end."""
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
