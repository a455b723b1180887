"""The headline of a run."""

from __future__ import annotations

import math
from typing import Dict, List

from depyf.report.model.counts import SKIPPED, counts_of, lost
from depyf.report.model.phases import slowest_part
from depyf.report.model.run import Run

_NAMED = 3


def headline(run: Run) -> str:
    """Return the result in one line: that nothing was compiled, and why, or how many functions in how many graphs, and
    what took most of the compile time, if that is long.
    """
    if not run.compilations and not run.fallbacks:
        if run.artifacts:  # a dump of the original depyf
            return f"{many(len(run.artifacts), 'file')} of a dump that do not say which compilations they belong to"
        return "nothing was compiled"
    counts = counts_of(run)
    if not counts.graphs:
        reasons = _why_no_graph(run)
        return "no graph was compiled" + (f": {'; '.join(reasons)}" if reasons else "")
    text = f"{many(counts.functions, 'function')} compiled as {many(counts.graphs, 'graph')}"
    if run.origin == "files":
        return f"{text}; graph breaks, recompilations and times are not known: there is no manifest"
    numbers = (
        (counts.graph_breaks, "graph break"),
        (counts.recompilations, "recompilation"),
        (counts.fallbacks, "fallback to eager", "fallbacks to eager"),
    )
    found = [many(*each) for each in numbers if each[0]]
    words, seconds, _ = slowest_part(run)
    if words:
        share = seconds / counts.seconds if counts.seconds else math.inf
        # More than all of it: several processes compile at the same time, or the time of the compilations is not known.
        found.append(f"{f'{100 * share:.0f} %' if share <= 1 else 'most'} of the compile time in {words}")
    if not any(each[0] for each in numbers):
        found.insert(0, "without graph breaks or recompilations")
    return f"{text}, {', '.join(found)}"


def _why_no_graph(run: Run) -> List[str]:
    """The functions that Dynamo saw, each with its result."""
    reasons: Dict[str, str] = {}
    for each in (*lost(run), *(each for each in run.fallbacks if each.cause == SKIPPED)):
        name = "a frame" if each.function is None else run.functions[each.function].qualified_name
        does = "has nothing in it to compile" if each.cause == SKIPPED else f"runs as plain Python ({each.cause})"
        reasons.setdefault(name, f"{name} {does}")
    for one in run.compilations:
        if one.function is not None and one.status in ("empty", "failed", "skipped"):
            name = run.functions[run.root(one.function)].qualified_name
            failed = one.status == "failed"
            reasons.setdefault(name, f"{name} {'failed to compile' if failed else 'has no operation on tensors in it'}")
    found = list(reasons.values())
    return [*found[:_NAMED], *([f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else [])]


def many(number: int, one: str, several: str = "") -> str:
    """Return ``1 graph``, ``2 graphs``."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"
