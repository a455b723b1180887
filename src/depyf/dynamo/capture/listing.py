"""A disassembly as a Python file, for code objects without proved source. Each instruction is one line with a string,
so the file parses, a debugger accepts breakpoints in it and steps instruction by instruction. The bytecode itself is
not touched.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Dict, Mapping, Sequence

from depyf.dynamo.capture.line_table import with_lines
from depyf.dynamo.store.names import StableNames
from depyf.messages import cut
from depyf.quick_dataclass import dataclass

_PLAIN = frozenset({int, str, float, bytes, bool, complex, type(None), type(Ellipsis)})


@dataclass(frozen=True)
class Listing:
    """The text of a listing and the line (1-based) of every instruction, by byte offset."""

    text: str
    lines: Mapping[int, int]


def listing_of(code: CodeType, header: Sequence[str], stable: StableNames) -> Listing:
    """Return the listing of ``code`` (nested code excluded) under ``header``, lines that are written as comments."""
    out = [f"# {line}".rstrip() for line in header]
    lines: Dict[int, int] = {}
    for instruction in dis.get_instructions(_printable(code)):
        mark = ">>" if instruction.is_jump_target else "  "
        argument = "" if instruction.arg is None else _shortened(instruction.argrepr or str(instruction.arg))
        row = f"{mark} {instruction.offset:5} {instruction.opname:<26} {argument}".rstrip()
        out.append(repr(stable.text(row)))
        lines[instruction.offset] = len(out)
    return Listing("\n".join(out) + "\n", lines)


def running_from(code: CodeType, listing: Listing, path: str) -> CodeType:
    """Return ``code`` with its lines pointing into the listing, which is (to be) stored at ``path``."""
    line_at: Dict[int, int] = {}
    line = 1
    for offset in range(0, len(code.co_code), 2):
        # An inline cache has no line of its own: it belongs to the instruction before it.
        line = listing.lines.get(offset, line)
        line_at[offset] = line
    return with_lines(code, path, line_at.__getitem__)


def _printable(code: CodeType) -> CodeType:
    """Return ``code`` for display only: constants of other classes, whose ``__repr__`` may raise, are described."""
    return code.replace(co_consts=tuple(_described(const) for const in code.co_consts))


def _described(const: object) -> object:
    if isinstance(const, CodeType):
        return f"<code of {const.co_name}>"
    if type(const) in _PLAIN:
        return const
    if type(const) in (tuple, frozenset):
        return tuple(_described(item) for item in const)  # type: ignore[attr-defined]
    return f"<a {type(const).__name__}>"


def _shortened(argument: str, limit: int = 160) -> str:
    return cut(argument.replace("\n", "\\n"), limit)
