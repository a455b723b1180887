"""Map offsets of the original bytecode to lines of the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterable, List, Mapping, Tuple

from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.bytecode.lines import line_of_offset


@dataclass(frozen=True)
class LineMap:
    """The lines (1-based) of the source by byte offsets of the original bytecode, and vice versa."""

    offsets: Mapping[int, Tuple[int, ...]]
    lines: Mapping[int, int]


def line_map(candidate: Code, pairs: Iterable[Tuple[int, int]]) -> LineMap:
    """Return the lines of the original operations. ``pairs`` are byte offsets (original, candidate) of operations that
    correspond; the candidate's line table has the lines."""
    table = line_of_offset(candidate)
    lines: Dict[int, int] = {}
    offsets: Dict[int, List[int]] = {}
    for original, recompiled in sorted(pairs):
        line = table.get(recompiled)
        if line is not None and original not in lines:
            lines[original] = line
            offsets.setdefault(line, []).append(original)
    return LineMap({line: tuple(found) for line, found in sorted(offsets.items())}, lines)
