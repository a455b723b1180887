"""The path of a call of a compiled function, read from a run: for the drawing and for the Mermaid chart."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple
from urllib.parse import quote

from depyf.answers.happening import counted
from depyf.report.model.counts import SKIPPED
from depyf.report.model.run import Compilation, Place, Run
from depyf.report.render.branches import Branches
from depyf.report.render.conditions import Conditions

_NOTHING = "nothing to compile in it"


def has_entry(one: Compilation) -> bool:
    """Return whether a compilation made a cache entry, with guards to check."""
    if one.status == "empty":  # of a resume function that only returns, say, Dynamo makes none
        return bool(one.guards) or one.transformed is not None
    return one.status not in ("skipped", "failed")


class FlowFacts:
    """What drawings of a run look up, indexed once. ``rank`` goes into addresses inside the page."""

    def __init__(self, run: Run, rank: Optional[int] = None) -> None:
        self.run = run
        self.branches = Branches(run)
        self.conditions = Conditions(run)
        self.query = "" if rank is None else f"?rank={rank}"
        self.entries: Dict[int, List[Compilation]] = {}
        for each in run.compilations:
            if each.function is not None:
                self.entries.setdefault(each.function, []).append(each)
        self.fallbacks: Dict[int, str] = {
            each.function: each.cause
            for each in run.fallbacks
            # A frame that has an entry is not skipped: it is another one that has name and line in common with it.
            if each.function is not None and not (each.cause == SKIPPED and self.cached(each.function))
        }

        self.colours: Dict[str, int] = {}
        self.graphs: Dict[str, str] = {}
        self.guards: Dict[str, str] = {}
        self.backward = {a.compile_id for a in run.artifacts if a.backward}
        self.kernels: Dict[Optional[str], Tuple[int, int]] = {}
        """The numbers of generated kernels and of calls of libraries, by compile id."""
        self._families: Dict[int, List[int]] = {}
        for kernel in run.kernels:
            own, library = self.kernels.get(kernel.compile_id, (0, 0))
            self.kernels[kernel.compile_id] = (own + (not kernel.extern), library + kernel.extern)
        with_graph = {a.compile_id for a in run.artifacts if a.kind in ("graph", "kernels")}
        order = dict.fromkeys([c.compile_id for c in run.compilations] + [a.compile_id or "" for a in run.artifacts])
        for each_id in order:
            if each_id and each_id in with_graph:
                self.colours[each_id] = len(self.colours) % 10
        for artifact in sorted(run.artifacts, key=lambda a: a.order):
            if artifact.compile_id and artifact.kind in ("graph", "kernels"):
                self.graphs.setdefault(artifact.compile_id, artifact.id)
            elif artifact.compile_id and artifact.kind == "guards":
                self.guards.setdefault(artifact.compile_id, artifact.id)
        for index in range(len(run.functions)):
            self._families.setdefault(self.run.root(index), []).append(index)

    def roots(self) -> List[int]:
        """Return the user's functions with something to draw, by index."""
        own = [index for index, each in enumerate(self.run.functions) if each.resumes is None]
        return [
            root
            for root in own
            if root in self.fallbacks or any(self.entries.get(index) for index in self.family(root))
        ]

    def cached(self, function: int) -> List[Compilation]:
        """Return the cache entries of a function, in the order in which their guards are checked."""
        return [each for each in self.entries.get(function, ()) if has_entry(each)]

    def otherwise(self, function: int) -> Optional[str]:
        """Return why a call runs eagerly on a cache miss, or raises an error; None if it is recompiled."""
        cause = self.fallbacks.get(function)
        if cause is None:
            lost = (each for each in self.entries.get(function, ()) if not has_entry(each))
            cause = next((each.failure or each.status for each in lost), None)
        return _NOTHING if cause in (SKIPPED, "empty") else cause

    def kernels_in_words(self, entry: Compilation) -> str:
        """Return ``8 kernels, 16 library calls``, empty where there are none."""
        own, library = self.kernels.get(entry.compile_id, (0, 0))
        words = [counted(number, what) for number, what in ((own, "kernel"), (library, "library call")) if number]
        return ", ".join(words)

    @staticmethod
    def graph_of(entry: Compilation) -> Optional[str]:
        """Return the graph that the transformed code of an entry calls."""
        return entry.graph or next((call.graph for call in entry.calls if call.graph), None)

    @staticmethod
    def reached_from(entry: Compilation) -> List[int]:
        """Return the resume functions that the transformed code of an entry calls, each once, in order."""
        return list(dict.fromkeys(call.function for call in entry.calls if call.function is not None))

    def family(self, root: int) -> List[int]:
        """Return the function with its resume functions, in the order in which calls reach them."""
        reached = [root]
        for index in reached:  # grows while it is walked
            for entry in self.entries.get(index, ()):
                reached += [each for each in self.reached_from(entry) if each not in reached]
        own = self._families.get(root, [root])
        return [index for index in reached if index in own] + [index for index in own if index not in reached]

    def called_at(self, function: int, line: int) -> List[int]:
        """Return the user's functions that Dynamo saw and a line of a function calls: the line ran eagerly,
        as the graph broke in what it calls."""
        root = self.run.root(function)
        at, ids = (self.run.functions[function].source, line), {each.compile_id for each in self._of_family(root)}
        inner = [
            each.stack[each.stack.index(at) + 1]
            for each in self.run.breaks
            if each.compile_id in ids and at in each.stack[:-1]
        ]
        found = {self._around(place): None for place in inner}
        return [each for each in found if each is not None and each != root and self._of_family(each)]

    def _of_family(self, root: int) -> List[Compilation]:
        return [each for index in self._families.get(root, ()) for each in self.entries.get(index, ())]

    def _around(self, place: Place) -> Optional[int]:
        """Return the innermost of the user's functions that has a line."""
        own = [
            (one.first_line, index)
            for index, one in enumerate(self.run.functions)
            if one.resumes is None and one.source == place[0] and one.first_line <= place[1] <= one.last_line
        ]
        return max(own)[1] if own else None

    def stage(self, artifact: Optional[str]) -> str:
        """Return the address of an artifact inside the page, empty where there is none."""
        return f"#stages/{quote(artifact, safe='')}{self.query}" if artifact else ""
