"""Statements of a class or module that can't be decompiled, and their replacements.

While the source is made and compared, both sides have a call of an undefined name there. The text shows a ``raise``
that names the missing lines.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Callable, Collection, Dict, Iterable, List, Mapping, Optional, Sequence

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.added_names import CELLS, added_at_end, added_at_start
from depyf.decompiler.normal.inner_statements import InnerStatements
from depyf.decompiler.normal.ops import Instr, NormalCode, Op
from depyf.decompiler.normal.spine import Segment, segments, with_holes
from depyf.decompiler.source.source_text import SourceText

_CALL = regex(r"^( *)__depyf_missing_(\d+)__\(\)$", re.MULTILINE)
_LONGEST = 300


@dataclass(frozen=True)
class Hole:
    """``segment`` of the operations of a code object is omitted, for ``reason``; ``lines`` describes its position."""

    segment: Segment
    lines: str
    reason: str
    number: int


class Candidates:
    """The statements of one code object that may be omitted. The compiler's additions have to stay, the functions that
    cause them, and imports from ``__future__`` with the statements before them.

    The compiler copies ``finally`` bodies: of a statement in one, all copies are omitted together."""

    def __init__(self, normal: NormalCode) -> None:
        self._normal = normal
        self._inner = InnerStatements(normal)
        self._added = {*added_at_start(normal.code), *added_at_end(normal.code)}
        self._copies: Optional[Dict[object, List[Segment]]] = None

    def at_top(self) -> List[Segment]:
        """Return the candidates of the body; inside of a statement that has to stay, those in it."""
        found: List[Segment] = []
        for segment in segments(self._normal):
            ops = self._normal.ops[segment.start : segment.end]
            if any(instr.op is Op.IMPORT and instr.arg[0] == "__future__" for instr in ops):
                found.clear()  # nothing may precede it but the docstring, so no ``raise`` either
            elif ops:
                found.extend([segment] if self._may_go(ops) else self.within(segment))
        return found

    def within(self, segment: Segment) -> List[Segment]:
        """Return the candidates inside of ``segment``, one of all copies of a statement."""
        found: Dict[object, Segment] = {}
        for each in self._inner.within(segment):
            ops = [self._normal.ops[index] for index in self._inner.members(each) or ()]
            for candidate in [each] if self._may_go(ops) else self.within(each):
                found.setdefault(self._text(candidate), candidate)
        return list(found.values())

    def holes(self, left_out: Mapping[Segment, str], first_number: int) -> List[Hole]:
        """Return the holes of ``left_out``, which has the reasons; they are numbered from ``first_number`` on, by
        lines. Copies have the same number."""
        name = self._normal.code.co_name
        lines = {segment: self._lines(segment) for segment in left_out}
        numbers: Dict[object, int] = {}
        found: Dict[Segment, Hole] = {}
        for segment in sorted(lines, key=lambda each: (lines[each], each.start)):
            text = self._text(segment)
            number = numbers.setdefault(text, first_number + len(numbers))
            for copy in (segment, *self._index().get(text, ())):
                found.setdefault(copy, Hole(copy, f"{_shown(lines[segment])} of {name}", left_out[segment], number))
        return list(found.values())

    def _index(self) -> Dict[object, List[Segment]]:
        """Return the statements with the same text, where there may be several: those that ``try`` statements copy."""
        if self._copies is None:
            self._copies = {}
            todo = [(segment, self._has_handlers(segment)) for segment in segments(self._normal)]
            while todo:
                segment, has_copies = todo.pop()
                self._copies.setdefault(self._text(segment), []).append(segment)
                if has_copies:
                    todo.extend((inner, True) for inner in self._inner.within(segment))
        return self._copies

    def _has_handlers(self, segment: Segment) -> bool:
        return any(self._normal.ops[index].handler is not None for index in self._members(segment))

    def _text(self, segment: Segment) -> object:
        """Return what ``segment`` has in common with its copies only: lines and operations."""
        lines = tuple(self._lines(segment))
        ops = [self._normal.ops[index] for index in sorted(self._members(segment))]
        return (lines, tuple((instr.op, repr(instr.arg)) for instr in ops)) if lines else segment

    def _members(self, segment: Segment) -> Collection[int]:
        return self._inner.members(segment) or range(segment.start, segment.end)

    def _lines(self, segment: Segment) -> List[int]:
        lines = (self._normal.ops[index].line for index in self._members(segment))
        return sorted({line for line in lines if line is not None})

    def _may_go(self, ops: Iterable[Instr]) -> bool:
        return not any(
            instr.op is Op.SETUP_ANNOTATIONS
            or (instr.op is Op.STORE and instr.arg[1] in self._added)
            or (instr.op is Op.CLOSURE and instr.arg in CELLS)
            for instr in ops
        )


def failing(among: Sequence[Segment], objection: Callable[[Sequence[Segment]], str]) -> Dict[Segment, str]:
    """Return the segments with an objection, and the objection; by bisection, as most have none."""
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
    """Return the smallest statements inside of ``part`` with an objection; ``part`` itself if they do not explain it.
    ``objection`` takes the omitted segments; ``around`` is omitted meanwhile, ``why`` is the objection to ``part``."""
    # If an objection stays after all inner statements are omitted, it is to the header of ``part``.
    parts = inner(part)
    if not parts or objection([*around, *parts]):
        return {part: why}

    def left_out(visible: Sequence[Segment]) -> List[Segment]:
        return [*around, *(each for each in parts if each not in visible)]

    # Each inner statement is judged with the others omitted, and refined the same way.
    bad = failing(parts, lambda visible: objection(left_out(visible)))
    found: Dict[Segment, str] = {}
    for each, reason in bad.items():
        found.update(finest(each, reason, left_out([each]), inner, objection))
    return found if found and not objection([*around, *found]) else {part: why}


def without(normal: NormalCode, holes: Sequence[Hole]) -> NormalCode:
    """Return ``normal`` with calls in the place of ``holes``."""
    return with_holes(normal, [(hole.segment, f"__depyf_missing_{hole.number}__") for hole in holes])


def _shown(lines: Sequence[int]) -> str:
    if not lines:
        return "a statement"
    return f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"


def shown(source: SourceText, holes: Sequence[Hole]) -> SourceText:
    """Return ``source`` with ``raise`` statements in the place of the calls; all lines keep their numbers."""
    by_number = {hole.number: hole for hole in holes}

    def raising(match: re.Match[str]) -> str:
        hole = by_number[int(match.group(2))]
        why = hole.reason.split("\n", 1)[0][:_LONGEST]
        message = f"depyf: {hole.lines} could not be decompiled: {why}"
        return f"{match.group(1)}raise NotImplementedError({message!r})"

    text = _CALL.sub(raising, source.text)
    return replace(source, text=text)
