"""The sides of a branch at which a graph broke: both have resume functions, which are named after one line."""

from __future__ import annotations

import ast
from typing import Dict, List, Optional, Tuple, Union

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.syntax import parse
from depyf.report.model.run import Compilation, Run

Branch = Union[ast.If, ast.While]


@dataclass(frozen=True)
class Onward:
    """A way on from transformed code: the resume ``function`` that it calls, and the user's line there, if known.

    ``side`` is ``true`` or ``false`` where the way depends on a condition of the user's; ``times`` counts the calls in
    the code.
    """

    function: int
    line: Optional[int] = None
    side: str = ""
    times: int = 1

    @property
    def label(self) -> str:
        return f"{self.side}: line {self.line}" if self.side else ""


class Branches:
    """Looks up branches in the sources of a run, which are parsed when they are asked for."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._found: Dict[int, List[Branch]] = {}

    def ways_on(self, entry: Compilation) -> Tuple[List[Onward], str]:
        """Return the resume functions that the code of an entry calls, each side of a branch by itself, and the
        condition of that branch (empty without a branch, or if the condition is not known).
        """
        counts: Dict[Tuple[int, Optional[int]], int] = {}
        for call in entry.calls:
            if call.function is not None:
                key = call.function, call.resumes_at
                counts[key] = counts.get(key, 0) + 1
        ways = [Onward(function, line, times=times) for (function, line), times in counts.items()]
        # Two ways with the sides ``true`` and ``false`` of one condition: named as such.
        if len(ways) == 2:
            one, other = (self._side(way) for way in ways)
            if one and other and one[0] != other[0] and one[1] == other[1]:
                named = [Onward(way.function, way.line, side, way.times) for way, side in zip(ways, (one[0], other[0]))]
                return sorted(named, key=lambda way: way.side, reverse=True), one[1]
        # Else one way for each resume function, whatever its lines.
        merged: Dict[int, int] = {}
        for way in ways:
            merged[way.function] = merged.get(way.function, 0) + way.times
        return [Onward(function, times=times) for function, times in merged.items()], ""

    def _side(self, way: Onward) -> Optional[Tuple[str, str]]:
        """Return the side of a branch at which a resume function continues, and the condition in the user's words."""
        one = self._run.functions[way.function]
        if way.line is None or one.resumes_at is None:
            return None
        at = one.resumes_at
        # The resume function is named after the line of the branch; the line at which it goes on says the side.
        here = [each for each in self._branches(one.source) if each.lineno <= at <= _last_line(each.test)]
        if not here:
            return None
        branch = here[-1]
        taken = branch.body[0].lineno <= way.line <= _last_line(branch.body[-1])
        text = self._run.sources[one.source].text or ""
        condition = " ".join((ast.get_source_segment(text, branch.test) or "").split())
        word = "while" if isinstance(branch, ast.While) else "if"
        return ("true" if taken else "false"), f"{word} {condition}"

    def _branches(self, source: int) -> List[Branch]:
        if source not in self._found:
            try:
                tree: Optional[ast.Module] = parse(self._run.sources[source].text or "")
            except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
                tree = None  # of another version of Python, or no Python
            found = () if tree is None else (each for each in ast.walk(tree) if isinstance(each, (ast.If, ast.While)))
            self._found[source] = sorted(found, key=lambda each: each.lineno)
        return self._found[source]


def _last_line(node: Union[ast.expr, ast.stmt]) -> int:
    return node.end_lineno or node.lineno
