"""Redundant jumps in the source: ``continue`` at the end of a loop body, ``return`` at the end of a function, ``pass``.

The instructions are the same without the statement, but a jump (or a NOP) has its span.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import Dict, FrozenSet, Iterator, List, Optional, Tuple

from depyf.base.quick_enum import Enum
from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.normal.ops import ENDS, Instr, NormalCode, Op

_IDLE = frozenset({Op.JUMP, Op.RETURN, Op.POP, Op.POP_EXC, Op.SWAP, Op.COPY, Op.NULL})
"""Operations of a compiled jump; each may also be the end of the statement before."""


class Written(Enum):
    """A statement that is only a jump."""

    CONTINUE = "continue"
    CONTINUE_ALONE = "continue after a jump"
    """Only jumps lead to it: it is the first statement of its block."""
    PASS = "pass"
    RETURN = "return"
    RETURN_NONE = "return None"
    RETURN_NOTHING = "return or return None"
    """Without columns they are equal."""


class WrittenJumps:
    """The jumps of a code object that have source spans."""

    def __init__(self, code: NormalCode) -> None:
        # ``_idle``: the spans of NOPs, sorted, and for each the innermost other one around it.
        self._ops, self._first_line = code.ops, code.code.co_firstlineno
        self._left: Optional[int] = None
        self._nops = code.idle
        self._idle = sorted({span for span in code.idle if None not in span})
        self._starts = [span.line for span in self._idle]
        self._within = _within(self._idle)
        jumps = self._continues(code) if Op.JUMP in code.kinds else ()
        self.jumps = sorted(set(jumps) | set(self._passes(code)), key=lambda jump: jump[0][:2])
        """``continue`` and ``pass`` statements with their spans, in the order of the source."""

    @cached_property
    def wildcards(self) -> List[Span]:
        """The spans of ``_`` in ``case _``, in order."""
        return [span for span in self._idle if self._is(span, "_")]

    @cached_property
    def _busy(self) -> FrozenSet[Span]:
        return _busy(self._ops)

    @cached_property
    def _busy_lines(self) -> FrozenSet[int]:
        return frozenset(span.line for span in self._busy)

    @cached_property
    def _sorted_lines(self) -> List[int]:
        return sorted(line for line in self._busy_lines if line is not None)

    @cached_property
    def _busy_ends(self) -> List[Tuple[int, int]]:
        """The lines and columns at which effective operations end, in order."""
        return sorted(
            (span.end_line, span.end_column)
            for span in self._busy
            if span.end_line is not None and span.end_column is not None
        )

    @cached_property
    def _bindings(self) -> Dict[Tuple[int, Optional[int]], int]:
        """How long `` as error`` is in each ``except`` clause that has it, by the end of the type before it."""
        ops = self._ops
        return {
            (kind.span.end_line, kind.span.end_column): len(" as ") + len(store.arg[1])
            for kind, check, store in zip(ops, ops[1:], ops[3:])
            if check.op is Op.CHECK_EXC and store.op is Op.STORE and kind.span is not None
        }

    def around(self, first: Span, last: Span) -> Optional[Span]:
        """Return the span of the innermost statement around ``first`` and ``last`` that starts with a NOP, if any."""
        if None in first or None in last:
            return None
        # The last NOP before ``first``, then the ones around it, until one ends after ``last``.
        end = max(first[2:], last[2:])
        index = bisect_left(self._starts, first.line) - 1
        while index >= 0 and self._idle[index][2:] < end:
            index = self._within[index]
        return self._idle[index] if index >= 0 else None

    def continues_between(self, one: Span, two: Span) -> bool:
        """Return whether a ``continue`` is written between the starts of the tests at ``one`` and ``two``."""
        return any(
            kind is not Written.PASS and one.line <= span.line <= two.line and (None in span or one < span < two)
            for span, kind in self.jumps
        )

    def loops_before(self, span: Optional[Span]) -> bool:
        """Return whether a ``while True`` stands before the test at ``span``, which is the first in the loop: its
        constant leaves a NOP (3.14), as a ``pass`` in front of a ``while`` does."""
        if span is None or span.column is None:
            return False
        index = bisect_left(self._starts, span.line) - 1
        if index < 0:
            return False
        before = self._idle[index]
        if before.column is None or not (self._is(before, "True") or self._is(before, "1")):
            return False
        # pass                while True:       nothing is done in between; the NOP of ``pass`` is where the ``while``
        # while a: ...            if a: ...     of the test is, six columns before it
        between = bisect_left(self._sorted_lines, span.line) - bisect_left(self._sorted_lines, before.line)
        return between == 0 and before.column != span.column - len("while ") and not _is_further_right(before, span)

    def constant_of_loop(self, line: int, column: Optional[int]) -> Optional[Span]:
        """Return the span of the constant of a ``while True`` whose first statement starts there; ``None`` if there is
        no such loop. The constant leaves a NOP (3.12) that is as long as a ``pass``."""
        index = bisect_left(self._idle, (line, column)) - 1
        found = self._idle[index] if index >= 0 and column is not None else None
        if found is None or found.column is None or not (self._is(found, "True") or self._is(found, "1")):
            return None
        if bisect_left(self._sorted_lines, line) != bisect_left(self._sorted_lines, found.line):
            return None  # something is done in between
        assert column is not None
        # On a line before, the constant is six columns to the right of the loop, and the statement is indented.
        return found if found.line == line or -8 < found.column - column < 5 else None

    def idle_behind(self, line: int) -> Optional[Span]:
        """Return the first span after ``line`` that only a NOP has, or an iterator that is dropped; ``None`` if
        something else is done first."""
        index = bisect_left(self.quiet, (line + 1,))
        found = self.quiet[index] if index < len(self.quiet) else None
        if found is None or found.line in self._busy_lines:
            return None
        done = bisect_left(self._sorted_lines, found.line) - bisect_right(self._sorted_lines, line)
        return None if done else found

    @cached_property
    def quiet(self) -> List[Span]:
        """The spans that only NOPs have, or iterators that are dropped."""
        dropped = {instr.span for instr in self._ops if instr.op is Op.POP and instr.span is not None}
        return sorted(span for span in {*self._idle, *dropped} - self._busy if None not in span)

    def may_loop_before(self, span: Optional[Span]) -> bool:
        """Return whether a ``while True`` may stand before the test at ``span``, which is the first in the loop: its
        line has a NOP (3.10)."""
        if span is None or span.line is None:
            return True
        lines, index = self._sorted_lines, bisect_left(self._sorted_lines, span.line)
        first = lines[index - 1] if index else 0
        return any(
            idle.line is None or (first <= idle.line <= span.line and not _is_further_right(idle, span))
            for idle in self._nops
        )

    def of_return(self, span: Optional[Span]) -> Optional[Written]:
        """Return the statement whose constant None has this span; ``None`` if it is not in the source."""
        # ``return`` has a span of six columns; the None of ``return None``, and a ``pass`` at the end of a function,
        # which returns None, have spans of four.
        if span is None:
            return None
        if span.column is None:
            return None if span.line in self._busy_lines else Written.RETURN_NOTHING
        if self._is(span, "return"):
            return Written.RETURN
        if self._is(span, "None"):
            if span.line == self._first_line:  # "def f(): pass" is more usual than the other
                return Written.PASS
            # "if a: pass" or "if a: return None": what is before it on the line leaves room for "return" or does not.
            before = bisect_right(self._busy_ends, (span.line, span.column)) - 1
            if before >= 0 and self._busy_ends[before][0] == span.line:
                end = self._busy_ends[before]
                room = span.column - end[1] - self._bindings.get(end, 0)
                return Written.PASS if room < len(": return ") else Written.RETURN_NONE
            # "return None" starts 7 columns before: blocks are indented by even numbers of columns
            if self._left is None:
                self._left = _left(self._ops)
            return Written.PASS if (span.column - self._left) % 2 == 0 else Written.RETURN_NONE
        return None

    def _continues(self, code: NormalCode) -> Iterator[Tuple[Span, Written]]:
        jumps = [
            (index, instr) for index, instr in enumerate(code.ops) if instr.op is Op.JUMP or instr.op is Op.POP_EXC
        ]
        # 1. A ``continue`` out of an ``except`` clause has its span on the POP_EXC as well; only there, where a
        #    ``finally`` body is between that and the jump.
        # 2. A JUMP with the span of a ``continue``; without columns, any jump back on a line where nothing is done.
        # 3. A JUMP with the span of a ``pass``: the end of a branch, which jumps over the others.
        for index, instr in jumps:
            if instr.op is Op.POP_EXC and instr.span is not None and self._is(instr.span, "continue"):
                yield instr.span, Written.CONTINUE
            if instr.op is Op.JUMP and instr.span is not None and instr.target is not None:
                alone = index > 0 and code.ops[index - 1].op in ENDS
                kind = Written.CONTINUE_ALONE if alone else Written.CONTINUE
                if instr.span.column is None:
                    if instr.target <= index and instr.line not in self._busy_lines:
                        yield instr.span, kind
                elif self._is(instr.span, "continue"):
                    yield instr.span, kind
                elif self._is(instr.span, "pass"):
                    yield instr.span, Written.PASS

    def _passes(self, code: NormalCode) -> Iterator[Tuple[Span, Written]]:
        for span in code.idle:
            if self._is(span, "continue"):
                yield span, Written.CONTINUE
            elif self._is(span, "pass"):
                yield span, Written.PASS

    def _is(self, span: Span, text: str) -> bool:
        """Return whether ``span`` is as long as ``text``, and no effective operation has it."""
        if span.column is None or span.end_column is None or span.line != span.end_line:
            return False
        return span.end_column - span.column == len(text) and span not in self._busy


def _is_further_right(one: Span, two: Span) -> bool:
    """Return whether columns show that ``one`` begins too far to the right of the test ``two`` for the constant of a
    ``while`` around the ``if`` of that test: "while " is three longer than "if ", which is indented."""
    return one.column is not None and two.column is not None and one.column > two.column + 2


def _within(spans: List[Span]) -> List[int]:
    """Return the index of the innermost span around each of the sorted ``spans``; -1 for the outermost ones."""
    around: List[int] = []
    result: List[int] = []
    for index, span in enumerate(spans):
        while around and spans[around[-1]][2:] < span[2:]:
            around.pop()
        result.append(around[-1] if around else -1)
        around.append(index)
    return result


def _left(ops: Tuple[Instr, ...]) -> int:
    """Return the column of the leftmost statement, as far as instructions that end one show it."""
    columns = [
        instr.span.column
        for before, instr in zip(ops, ops[1:])
        if instr.op in (Op.POP, Op.STORE, Op.RETURN)
        and instr.span is not None
        and instr.span.column is not None
        and not (before.op is Op.CONST and before.arg is None)
    ]
    return min(columns, default=0)


def _busy(ops: Tuple[Instr, ...]) -> FrozenSet[Span]:
    """Return the spans of all operations that do more than jump."""
    # Not ``None; STORE e; DELETE e`` of ``except E as e``, which have the span of the jump that leaves the clause.
    spans = [instr.span for instr in ops]
    return frozenset(
        [
            span
            for before, span, instr in zip([None, *spans], spans, ops)
            if span is not None
            and instr.op not in _IDLE
            and not (instr.op is Op.CONST and instr.arg is None)
            and not (span == before and instr.op in (Op.STORE, Op.DELETE))
        ]
    )
