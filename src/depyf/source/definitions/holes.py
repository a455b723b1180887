"""Statements of a class or module that can't be had: which they are, and what stands in their place.

While the source is made and compared, a call of a name that nobody has stands there, on both sides. What is shown is a
``raise`` that says which lines are missing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Callable, Dict, Iterable, List, Mapping, Sequence

from depyf.bytecode.added_names import CELLS, added_at_end, added_at_start
from depyf.bytecode.parsing import parse
from depyf.lazy_pattern import re_compile
from depyf.normal.inner_statements import InnerStatements
from depyf.normal.ops import Instr, NormalCode, Op
from depyf.normal.spine import Segment, segments, with_holes
from depyf.quick_dataclass import dataclass
from depyf.source.source_text import SourceText

_CALL = re_compile(r"^( *)__depyf_missing_(\d+)__\(\)$", re.MULTILINE)
_LONGEST = 300


@dataclass(frozen=True)
class Hole:
    """``segment`` of the operations of a code object is left out, for ``reason``; ``lines`` says where it stood."""

    segment: Segment
    lines: str
    reason: str
    number: int


class Candidates:
    """The statements of one code object that may be left out: what the compiler adds has to stay, the functions for
    which it adds it, and imports from ``__future__`` with what is before them."""

    def __init__(self, normal: NormalCode) -> None:
        self._normal = normal
        self._inner = InnerStatements(normal)
        self._added = {*added_at_start(normal.code), *added_at_end(normal.code)}

    def at_top(self) -> List[Segment]:
        """Those of the body; the ones inside of a statement that has to stay."""
        found: List[Segment] = []
        for segment in segments(self._normal):
            ops = self._normal.ops[segment.start : segment.end]
            if any(instr.op is Op.IMPORT and instr.arg[0] == "__future__" for instr in ops):
                found.clear()
            elif ops:
                found.extend([segment] if self._may_go(ops) else self.within(segment))
        return found

    def within(self, segment: Segment) -> List[Segment]:
        """Those inside of ``segment``."""
        found: List[Segment] = []
        for each in self._inner.within(segment):
            ops = [self._normal.ops[index] for index in self._inner.members(each) or ()]
            found.extend([each] if self._may_go(ops) else self.within(each))
        return found

    def holes(self, left_out: Mapping[Segment, str], first_number: int) -> List[Hole]:
        """``left_out`` are the reasons by the statements; the holes are numbered from ``first_number`` on, by lines."""
        name = self._normal.code.co_name
        lines = {segment: self._lines(segment) for segment in left_out}
        return [
            Hole(segment, f"{_shown(lines[segment])} of {name}", left_out[segment], number)
            for number, segment in enumerate(sorted(lines, key=lambda each: (lines[each], each.start)), first_number)
        ]

    def _lines(self, segment: Segment) -> List[int]:
        members = self._inner.members(segment) or range(segment.start, segment.end)
        return sorted({line for line in (self._normal.ops[index].line for index in members) if line is not None})

    def _may_go(self, ops: Iterable[Instr]) -> bool:
        return not any(
            instr.op is Op.SETUP_ANNOTATIONS
            or (instr.op is Op.STORE and instr.arg[1] in self._added)
            or (instr.op is Op.CLOSURE and instr.arg in CELLS)
            for instr in ops
        )


def failing(among: Sequence[Segment], objection: Callable[[Sequence[Segment]], str]) -> Dict[Segment, str]:
    """Those to which there is an objection, with it; by halves, as most are in order."""
    why = objection(among) if among else ""
    if not why:
        return {}
    if len(among) == 1:
        return {among[0]: why}
    middle = len(among) // 2
    return {**failing(among[:middle], objection), **failing(among[middle:], objection)}


def finest(
    part: Segment,
    why: str,
    around: Sequence[Segment],
    inner: Callable[[Segment], Sequence[Segment]],
    objection: Callable[[Sequence[Segment]], str],
) -> Dict[Segment, str]:
    """The statements inside of ``part`` to which there is an objection; ``part`` itself, if it is not only of them.

    ``objection`` takes what is left out; ``around`` is left out meanwhile, ``why`` is what is objected to ``part``.
    """
    parts = inner(part)
    if not parts or objection([*around, *parts]):
        return {part: why}

    def left_out(visible: Sequence[Segment]) -> List[Segment]:
        return [*around, *(each for each in parts if each not in visible)]

    bad = failing(parts, lambda visible: objection(left_out(visible)))
    found: Dict[Segment, str] = {}
    for each, reason in bad.items():
        found.update(finest(each, reason, left_out([each]), inner, objection))
    return found if found and not objection([*around, *found]) else {part: why}


def without(normal: NormalCode, holes: Sequence[Hole]) -> NormalCode:
    """``normal`` with calls in the place of ``holes``."""
    return with_holes(normal, [(hole.segment, f"__depyf_missing_{hole.number}__") for hole in holes])


def _shown(lines: Sequence[int]) -> str:
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
