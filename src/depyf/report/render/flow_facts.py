"""The path of a call of a compiled function, read from a run: its cache entries with the conditions of their guards.

The drawing (``flow.py``) and the Mermaid chart (``flow_file.py``) show it.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple
from urllib.parse import quote

from depyf.answers.watch import counted
from depyf.diagnosis.guard_groups import GROUPS, group_of
from depyf.diagnosis.guard_sources import as_written, in_words
from depyf.report.model.counts import SKIPPED, plain_calls
from depyf.report.model.run import Compilation, FailedEntryGuard, Place, Run
from depyf.report.render.branches import Branches

_NOTHING = "nothing to compile in it"


def has_entry(one: Compilation) -> bool:
    """Return whether a compilation made a cache entry, with guards to check."""
    if one.status == "empty":  # of a resume function that only returns, say, Dynamo makes none
        return bool(one.guards) or one.transformed is not None
    return one.status not in ("skipped", "limit", "failed")


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
            each.function: f"{each.cause}{plain_calls(each) and f', {plain_calls(each)}'}"
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
        # Colours are given in the order of the run, and repeat after ten, as on the page.
        order = dict.fromkeys([c.compile_id for c in run.compilations] + [a.compile_id or "" for a in run.artifacts])
        for each_id in order:
            if each_id and each_id in with_graph:
                self.colours[each_id] = len(self.colours) % 10
        # A box leads to the first graph of its compilation, its guards to their tree.
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
        # Breadth first along the calls in transformed code.
        for index in reached:  # grows while it is walked
            for entry in self.entries.get(index, ()):
                reached += [each for each in self.reached_from(entry) if each not in reached]
        own = self._families.get(root, [root])
        return [index for index in reached if index in own] + [index for index in own if index not in reached]

    def called_at(self, function: int, line: int) -> List[int]:
        """Return the user's functions that ``line`` of ``function`` calls and in which a graph broke, so that the line
        ran eagerly; only functions with compilations."""
        root = self.run.root(function)
        # The location after ``at`` in the stack of such a break is in the function that the line calls.
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
        """Return the address of an artifact inside the page; empty for no artifact."""
        return f"#stages/{quote(artifact, safe='')}{self.query}" if artifact else ""


MOST_CONDITIONS = 3
_LONGEST = 120


class Conditions:
    """The conditions of the entries of a run; failed guards are indexed once."""

    def __init__(self, run: Run) -> None:
        self._failed: Dict[str, List[FailedEntryGuard]] = {}
        for recompile in run.recompiles:
            for failed in recompile.failed:
                if failed.entry is not None:
                    self._failed.setdefault(failed.entry, []).append(failed)

    def of(self, entry: Compilation) -> List[str]:
        """Return the conditions of an entry that say most, each once; ``and N more`` ends a list that is cut."""
        # In this order: what has failed, symbols of dynamic shapes, plain values (``n == 3``).
        found = dict.fromkeys(self.failed(entry))
        found.update(dict.fromkeys(_symbol(text) for text in entry.dynamic))
        for guard in entry.guards:
            left, equals, right = guard.text.partition(" == ")
            if not equals or "\n" in right or left.strip() != guard.source:
                continue
            if GROUPS[group_of(guard.kind, guard.source, guard.text)].name == "Values":
                name = as_written(guard.source)
                if f"{name}: {right.strip()}" not in found and name != right.strip():
                    found[f"{name} == {right.strip()}"] = None
        lines = [each[:_LONGEST] for each in found]
        if len(lines) > MOST_CONDITIONS:
            lines[MOST_CONDITIONS - 1 :] = [f"and {len(lines) - MOST_CONDITIONS + 1} more conditions"]
        return lines

    def failed(self, entry: Compilation) -> List[str]:
        """Return the conditions that did not hold for a call, with the values that the entry was compiled for."""
        return [
            f"{each.checked}: {each.before}" if each.checked and each.before is not None else each.checked or each.text
            for each in self._failed.get(entry.compile_id, ())
        ]


def _symbol(text: str) -> str:
    """Return a symbol of a dynamic shape: ``s77: L['x'].size()[0]`` is ``dynamic: size of x in dimension 0 (s77)``, so
    that what is cut in a narrow box is its symbol."""
    name, _, source = text.partition(": ")
    return f"dynamic: {in_words(source)} ({name})" if source else text
