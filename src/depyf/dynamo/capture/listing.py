"""A disassembly as a Python file, for code objects without proved source, and the line table to run from that file.

Each instruction is one line with a string, so the file parses, a debugger accepts breakpoints in it and steps
instruction by instruction. The bytecode itself is not touched: only its line table, which has another format in 3.8 and
3.9, in 3.10, and from 3.11 on.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.base.messages import cut
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.store.names import StableNames
from depyf.report.render.hidden_values import HiddenValues

_PLAIN = frozenset({int, str, float, bytes, bool, complex, type(None), type(Ellipsis)})

_LONGEST_ARGUMENT = 160


@dataclass(frozen=True)
class Listing:
    """The text of a listing and the line (1-based) of every instruction, by byte offset."""

    text: str
    lines: Mapping[int, int]


def listing_of(code: CodeType, header: Sequence[str], stable: StableNames) -> Listing:
    """Return the listing of ``code`` (nested code excluded) under ``header``, lines that are written as comments."""
    out = [f"# {line}".rstrip() for line in header]
    lines: Dict[int, int] = {}
    # Dynamo puts objects of the user into constants; ``dis`` would call their ``__repr__``, which is code of the user.
    printable = code.replace(co_consts=tuple(_described(const, stable.hidden) for const in code.co_consts))
    for instruction in dis.get_instructions(printable):
        mark = ">>" if instruction.is_jump_target else "  "
        argument = "" if instruction.arg is None else instruction.argrepr or str(instruction.arg)
        argument = cut(argument.replace("\n", "\\n"), _LONGEST_ARGUMENT)
        row = f"{mark} {instruction.offset:5} {instruction.opname:<26} {argument}".rstrip()
        out.append(repr(stable.text(row)))
        lines[instruction.offset] = len(out)
    return Listing("\n".join(out) + "\n", lines)


def running_from(code: CodeType, listing: Listing, path: str) -> CodeType:
    """Return ``code`` with its lines pointing into the listing, which is (to be) stored at ``path``."""
    line_at: Dict[int, int] = {}
    line = 1
    for offset in range(0, len(code.co_code), 2):
        # dis yields no inline caches (3.11 and later), but line tables cover them: a cache belongs to the instruction
        # before it.
        line = listing.lines.get(offset, line)
        line_at[offset] = line
    return with_lines(code, path, line_at.__getitem__)


def _described(const: object, hidden: Optional[HiddenValues]) -> object:
    """Return a constant for display only: an object of another class is described."""
    if isinstance(const, CodeType):
        return f"<code of {const.co_name}>"
    if type(const) in _PLAIN:
        return const if hidden is None else hidden.shown(const)
    if type(const) in (tuple, frozenset):
        return tuple(_described(item, hidden) for item in const)  # type: ignore[attr-defined]
    return f"<a {type(const).__name__}>"


LineOf = Callable[[int], int]
"""The line (1 or more) of the instruction at a byte offset."""


def with_lines(code: CodeType, filename: str, line_of: LineOf) -> CodeType:
    """Return ``code`` with each instruction located in ``filename`` at ``line_of(offset)``. Nested code stays as it
    is.
    """
    # The format is known by the fields that came with it: 3.11 has exception tables, 3.10 line tables.
    table: Dict[str, Any]
    if hasattr(code, "co_exceptiontable"):
        table = {"co_linetable": _location_table(code, line_of)}
    elif hasattr(code, "co_linetable"):
        table = {"co_linetable": _range_table(code, line_of)}
    else:
        table = {"co_lnotab": _lnotab(code, line_of)}
    return code.replace(co_filename=filename, co_firstlineno=1, **table)


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
        # An entry covers at most 8 code units (of 2 bytes). Its first byte is 1kkkklll: the kind, 13 for "no columns",
        # and the number of units less one. The line difference follows; later entries of a run have the difference 0.
        for unit in range(start, end, 16):
            units = min(16, end - unit) // 2
            table.append(0x80 | 13 << 3 | (units - 1))
            table += _signed_varint(line - current)
            current = line
    return bytes(table)


def _signed_varint(number: int) -> bytes:
    """Return a signed number in groups of 6 bits, the lowest first; bit 6 says that more follow. The sign is bit 0."""
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
        # A difference that fits into no byte is split over entries of length 0; -128 means "no line".
        while not -127 <= delta <= 127:
            step = max(-127, min(127, delta))
            table += bytes((0, step & 0xFF))
            delta -= step
        # A run that is too long is split: the first part has the difference, the others stay on its line.
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
        # Offsets only grow, so long distances are skipped first, without a new line. Then come lines without a new
        # offset: a difference of more than a signed byte is split.
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
