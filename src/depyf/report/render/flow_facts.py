"""The path of a call of a compiled function, read from a run: for the drawing and for the Mermaid chart."""

from __future__ import annotations

from typing import Dict, List, Optional
from urllib.parse import quote

from depyf.report.model.run import Compilation, Run

NO_ENTRY = ("skipped", "failed")
"""Statuses of compilations without a cache entry: there are no guards to check."""


class FlowFacts:
    """What drawings of a run look up, indexed once. ``rank`` goes into addresses inside the page."""

    def __init__(self, run: Run, rank: Optional[int] = None) -> None:
        self.run = run
        self.query = "" if rank is None else f"?rank={rank}"
        self.entries: Dict[int, List[Compilation]] = {}
        for each in run.compilations:
            if each.function is not None:
                self.entries.setdefault(each.function, []).append(each)
        self.fallbacks: Dict[int, str] = {e.function: e.cause for e in run.fallbacks if e.function is not None}

        self.colours: Dict[str, int] = {}
        self.graphs: Dict[str, str] = {}
        self.guards: Dict[str, str] = {}
        self.backward = {a.compile_id for a in run.artifacts if a.backward}
        self.kernels: Dict[Optional[str], int] = {}
        self._families: Dict[int, List[int]] = {}
        for kernel in run.kernels:
            self.kernels[kernel.compile_id] = self.kernels.get(kernel.compile_id, 0) + 1
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
        return [each for each in self.entries.get(function, ()) if each.status not in NO_ENTRY]

    def otherwise(self, function: int) -> Optional[str]:
        """Return why a call runs eagerly on a cache miss, None if it is recompiled."""
        cause = self.fallbacks.get(function)
        if cause is None:
            lost = (each for each in self.entries.get(function, ()) if each.status in NO_ENTRY)
            cause = next((each.failure or each.status for each in lost), None)
        return cause

    @staticmethod
    def graph_of(entry: Compilation) -> Optional[str]:
        """Return the graph that the transformed code of an entry calls."""
        return entry.graph or next((call.graph for call in entry.calls if call.graph), None)

    @staticmethod
    def reached_from(entry: Compilation) -> List[int]:
        """Return the resume functions that the transformed code of an entry calls, each once, in order."""
        return list(dict.fromkeys(call.function for call in entry.calls if call.function is not None))

    def family(self, root: int) -> List[int]:
        """The function with its resume functions, in the order in which calls reach them."""
        reached = [root]
        for index in reached:  # grows while it is walked
            for entry in self.entries.get(index, ()):
                reached += [each for each in self.reached_from(entry) if each not in reached]
        own = self._families.get(root, [root])
        return [index for index in reached if index in own] + [index for index in own if index not in reached]

    def stage(self, artifact: Optional[str]) -> str:
        """The address of an artifact inside the page, empty where there is none."""
        return f"#stages/{quote(artifact, safe='')}{self.query}" if artifact else ""
