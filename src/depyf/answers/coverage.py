"""How much was checked, and what was not: the extent of a finding, or of its absence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator, Mapping

from depyf.answers.watch import counted

_NO_CALL = "no compiled function was called inside (a call that was already running is not observed)"


@dataclass(frozen=True)
class Coverage:
    """What was looked at while something observed compiled code.

    ``functions`` counts the calls of compiled functions, ``calls`` those of compiled graphs that were looked at (of
    ``graphs`` different ones; ``backwards`` of the calls were backward), ``operations`` those outside of graphs.
    ``missed`` has what was not observed: how often, by why (in words that follow on "3 calls"). ``passed_on`` counts
    the calls whose results were not finite because of what they were given, by what that was.
    """

    functions: int = 0
    graphs: int = 0
    calls: int = 0
    backwards: int = 0
    operations: int = 0
    missed: Mapping[str, int] = field(default_factory=dict)
    passed_on: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.calls or self.operations)

    def __str__(self) -> str:
        return "; ".join([self.extent, *self.gaps])

    @property
    def extent(self) -> str:
        """How far it has looked; or that it has not, and why."""
        if not self:
            return f"nothing was observed: {'; '.join(self._why_nothing())}"
        words = []
        if self.calls:
            backward = f" ({self.backwards} of them backward)" if self.backwards else ""
            words.append(f"{counted(self.calls, 'call')} of {counted(self.graphs, 'compiled graph')}{backward}")
        if self.operations:
            words.append(f"{counted(self.operations, 'operation')} outside of compiled graphs")
        return f"looked at {' and '.join(words)}"

    @property
    def gaps(self) -> Iterator[str]:
        """What it has not observed although it observed something, and what it skipped."""
        for words, count in self.passed_on.items():
            yield f"{counted(count, 'call')} passed on {words}"
        if self:
            yield from self.left_out
            if not self.calls and not self.missed:
                yield f"no compiled graph was observed: {next(self._why_nothing())}"

    @property
    def left_out(self) -> Iterator[str]:
        """Return what was not checked."""
        for why, count in self.missed.items():
            yield f"not observed: {counted(count, 'call')} {why}"

    def _why_nothing(self) -> Iterator[str]:
        for why, count in self.missed.items():
            yield f"{counted(count, 'call')} {why}"
        if not self.missed:
            yield _NO_CALL
