"""Redundant jumps in the source: ``continue`` at the end of a loop body, ``return`` at the end of a function, ``pass``.
The bytecode is the same without them, but a jump has a place of its own in the source.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from typing import Iterator, List, Optional, Tuple

from depyf.bytecode.lines import Span
from depyf.normal.ops import ENDS, Instr, NormalCode, Op

_IDLE = frozenset({Op.JUMP, Op.RETURN, Op.POP, Op.POP_EXC, Op.SWAP, Op.COPY, Op.NULL})
"""What a jump is compiled to, beside others; each may also stand for the end of the statement before."""


class Written(enum.Enum):
    """A statement that is nothing but a jump."""

    CONTINUE = "continue"
    CONTINUE_ALONE = "continue behind a jump"
    """Only jumps lead to it: nothing stands before it in its block."""
    PASS = "pass"
    RETURN = "return"
    RETURN_NONE = "return None"
    RETURN_NOTHING = "return or return None"
    """Without columns, nothing shows which."""


class WrittenJumps:
    """The jumps of a code object that have places of their own."""

    def __init__(self, code: NormalCode) -> None:
        self._busy = frozenset(_busy(code.ops))
        self._busy_lines = frozenset(span.line for span in self._busy)
        self._left = _left(code.ops)
        self._idle = sorted({span for span in code.idle if None not in span})
        self._starts = [span.line for span in self._idle]
        self._within = _within(self._idle)
        self.jumps = sorted(set(self._continues(code)) | set(self._passes(code)), key=lambda jump: jump[0][:2])
        """``continue`` and ``pass`` statements with their places, in the order of the source."""

    def around(self, first: Span, last: Span) -> Optional[Span]:
        """The place of the innermost statement around ``first`` and ``last`` that begins with an instruction that does
        nothing."""
        if None in first or None in last:
            return None
        end = max(first[2:], last[2:])
        index = bisect_left(self._starts, first.line) - 1
        while index >= 0 and self._idle[index][2:] < end:
            index = self._within[index]
        return self._idle[index] if index >= 0 else None

    def of_return(self, span: Optional[Span]) -> Optional[Written]:
        """What statement returns the constant None that has this span; ``None`` if nobody wrote one."""
        if span is None:
            return None
        if span.column is None:
            return None if span.line in self._busy_lines else Written.RETURN_NOTHING
        if self._is(span, "return"):
            return Written.RETURN
        if self._is(span, "None"):
            # "return None" begins 7 columns before: blocks are indented by even numbers of columns
            return Written.PASS if (span.column - self._left) % 2 == 0 else Written.RETURN_NONE
        return None

    def _continues(self, code: NormalCode) -> Iterator[Tuple[Span, Written]]:
        for index, instr in enumerate(code.ops):
            if instr.op is Op.JUMP and instr.span is not None and instr.target is not None:
                alone = index > 0 and code.ops[index - 1].op in ENDS
                kind = Written.CONTINUE_ALONE if alone else Written.CONTINUE
                if instr.span.column is None:
                    if instr.target <= index and instr.line not in self._busy_lines:
                        yield instr.span, kind
                elif self._is(instr.span, "continue"):
                    yield instr.span, kind
                elif self._is(instr.span, "pass"):  # the end of a branch, which jumps over the others
                    yield instr.span, Written.PASS

    def _passes(self, code: NormalCode) -> Iterator[Tuple[Span, Written]]:
        for span in code.idle:
            if self._is(span, "continue"):
                yield span, Written.CONTINUE
            elif self._is(span, "pass"):
                yield span, Written.PASS

    def _is(self, span: Span, text: str) -> bool:
        """Whether ``span`` is as long as ``text``, and nothing that does something was written there."""
        if span.column is None or span.end_column is None or span.line != span.end_line:
            return False
        return span.end_column - span.column == len(text) and span not in self._busy


def _within(spans: List[Span]) -> List[int]:
    """For each of ``spans``, which are sorted, the index of the innermost one around it; -1 if there is none."""
    around: List[int] = []
    result: List[int] = []
    for index, span in enumerate(spans):
        while around and spans[around[-1]][2:] < span[2:]:
            around.pop()
        result.append(around[-1] if around else -1)
        around.append(index)
    return result


def _left(ops: Tuple[Instr, ...]) -> int:
    """The column of the leftmost statement, as far as instructions that end one show it."""
    columns = [
        instr.span.column
        for before, instr in zip(ops, ops[1:])
        if instr.op in (Op.POP, Op.STORE, Op.RETURN)
        and instr.span is not None
        and instr.span.column is not None
        and not (before.op is Op.CONST and before.arg is None)
    ]
    return min(columns, default=0)


def _busy(ops: Tuple[Instr, ...]) -> Iterator[Span]:
    """Yield the places of all operations that do more than jump."""
    before: Optional[Span] = None
    for instr in ops:
        span = instr.span
        if span is not None and instr.op not in _IDLE and not (instr.op is Op.CONST and instr.arg is None):
            # the name of an exception is deleted where its handler is left, at the place of the jump
            if instr.op not in (Op.STORE, Op.DELETE) or span != before:
                yield span
        before = span
