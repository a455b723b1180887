"""Write line tables: the same bytecode with other line numbers, in the format of the running Python."""

from __future__ import annotations

from types import CodeType
from typing import Any, Callable, Dict, Iterator, List, Tuple

LineOf = Callable[[int], int]
"""The line (1 or more) of the instruction at a byte offset."""


def with_lines(code: CodeType, filename: str, line_of: LineOf) -> CodeType:
    """Return ``code`` with each instruction located in ``filename`` at ``line_of(offset)``. Nested code is left as it
    is."""
    if hasattr(code, "co_exceptiontable"):
        table = _location_table(code, line_of)
        return code.replace(co_filename=filename, co_firstlineno=1, co_linetable=table)
    if hasattr(code, "co_linetable"):
        table = _range_table(code, line_of)
        return code.replace(co_filename=filename, co_firstlineno=1, co_linetable=table)
    old_fields: Dict[str, Any] = {"co_lnotab": _lnotab(code, line_of)}
    return code.replace(co_filename=filename, co_firstlineno=1, **old_fields)


def _runs(code: CodeType, line_of: LineOf) -> Iterator[Tuple[int, int, int]]:
    """Yield ``(start, end, line)`` of each longest run of code units on one line, offsets in bytes."""
    start, size = 0, len(code.co_code)
    while start < size:
        line, end = line_of(start), start + 2
        while end < size and line_of(end) == line:
            end += 2
        yield start, end, line
        start = end


def _location_table(code: CodeType, line_of: LineOf) -> bytes:
    """Return the table of 3.11 and later (CPython's Objects/locations.md): entries of kind 13, without columns."""
    table, current = bytearray(), 1
    for start, end, line in _runs(code, line_of):
        for unit in range(start, end, 16):
            units = min(16, end - unit) // 2
            table.append(0x80 | 13 << 3 | (units - 1))
            table += _signed_varint(line - current)
            current = line
    return bytes(table)


def _signed_varint(number: int) -> bytes:
    rest = (-number << 1) | 1 if number < 0 else number << 1
    out: List[int] = []
    while rest >= 64:
        out.append(rest & 63 | 64)
        rest >>= 6
    out.append(rest)
    return bytes(out)


def _range_table(code: CodeType, line_of: LineOf) -> bytes:
    """Return the table of 3.10 (PEP 626): pairs of a length in bytes (at most 254) and a signed line difference."""
    table, current = bytearray(), 1
    for start, end, line in _runs(code, line_of):
        delta, length = line - current, end - start
        while not -127 <= delta <= 127:
            step = max(-127, min(127, delta))
            table += bytes((0, step & 0xFF))
            delta -= step
        while length > 254:
            table += bytes((254, delta & 0xFF))
            delta, length = 0, length - 254
        table += bytes((length, delta & 0xFF))
        current = line
    return bytes(table)


def _lnotab(code: CodeType, line_of: LineOf) -> bytes:
    """Return the table of 3.8 and 3.9 (CPython's Objects/lnotab_notes.txt): pairs of offset and line difference."""
    table, current, offset = bytearray(), 1, 0
    for start, _, line in _runs(code, line_of):
        gap, delta = start - offset, line - current
        while gap > 254:
            table += bytes((254, 0))
            gap -= 254
        while not -127 <= delta <= 127:
            step = max(-127, min(127, delta))
            table += bytes((gap, step & 0xFF))
            gap, delta = 0, delta - step
        table += bytes((gap, delta & 0xFF))
        current, offset = line, start
    return bytes(table)
