"""Statements at the top of a class or module that can't be had: which they are, and what stands in their place.

While the source is made and compared, a call of a name that nobody has stands there, on both sides. What is shown is a
``raise`` that says which lines are missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Callable, Dict, List, Mapping, Sequence

from depyf.bytecode.added_names import CELLS, added_at_end, added_at_start
from depyf.bytecode.parsing import parse
from depyf.normal.ops import NormalCode, Op
from depyf.normal.spine import Segment, segments, with_holes
from depyf.source.source_text import SourceText

_CALL = re.compile(r"^( *)__depyf_missing_(\d+)__\(\)$", re.MULTILINE)
_LONGEST = 300


@dataclass(frozen=True)
class Hole:
    """``segment`` of the operations of a code object is left out, for ``reason``; ``lines`` says where it stood."""

    segment: Segment
    lines: str
    reason: str
    number: int


def candidates(normal: NormalCode) -> List[Segment]:
    """The statements that may be left out: what the compiler adds has to stay, the functions for which it adds it, and
    imports from ``__future__`` with what is before them."""
    added = {*added_at_start(normal.code), *added_at_end(normal.code)}
    found: List[Segment] = []
    for start, end in segments(normal):
        ops = normal.ops[start:end]
        if any(instr.op is Op.IMPORT and instr.arg[0] == "__future__" for instr in ops):
            found.clear()
        elif ops and not any(
            instr.op is Op.SETUP_ANNOTATIONS
            or (instr.op is Op.STORE and instr.arg[1] in added)
            or (instr.op is Op.CLOSURE and instr.arg in CELLS)
            for instr in ops
        ):
            found.append((start, end))
    return found


def failing(among: Sequence[Segment], objection: Callable[[Sequence[Segment]], str]) -> Dict[Segment, str]:
    """Those to which there is an objection, with it; by halves, as most are in order."""
    why = objection(among) if among else ""
    if not why:
        return {}
    if len(among) == 1:
        return {among[0]: why}
    middle = len(among) // 2
    return {**failing(among[:middle], objection), **failing(among[middle:], objection)}


def holes_for(normal: NormalCode, left_out: Mapping[Segment, str], first_number: int) -> List[Hole]:
    """``left_out`` are the reasons by the statements; the holes are numbered from ``first_number`` on."""
    return [
        Hole(segment, f"{_lines(normal, segment)} of {normal.code.co_name}", reason, number)
        for number, (segment, reason) in enumerate(left_out.items(), first_number)
    ]


def without(normal: NormalCode, holes: Sequence[Hole]) -> NormalCode:
    """``normal`` with calls in the place of ``holes``."""
    return with_holes(normal, [(hole.segment, f"__depyf_missing_{hole.number}__") for hole in holes])


def _lines(normal: NormalCode, segment: Segment) -> str:
    lines = sorted({instr.line for instr in normal.ops[segment[0] : segment[1]] if instr.line is not None})
    if not lines:
        return "a statement"
    return f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"


def shown(source: SourceText, holes: Sequence[Hole]) -> SourceText:
    """``source`` with ``raise`` statements in the place of the calls; all lines stay where they are."""
    by_number = {hole.number: hole for hole in holes}

    def raising(match: re.Match[str]) -> str:
        hole = by_number[int(match.group(2))]
        why = hole.reason.split("\n", 1)[0][:_LONGEST]
        message = f"depyf: {hole.lines} could not be decompiled: {why}"
        return f"{match.group(1)}raise NotImplementedError({message!r})"

    text = _CALL.sub(raising, source.text)
    return replace(source, text=text, tree=parse(text))
