"""The headline of a run, and of its findings."""

from __future__ import annotations

import math
from typing import Dict, Iterator, List, Optional, Tuple

from depyf.answers.watch import counted
from depyf.base.messages import listed
from depyf.report.model.counts import RAISED, SKIPPED, Counts, counts_of, lost, raised
from depyf.report.model.phases import slowest_part
from depyf.report.model.places import is_of_a_library
from depyf.report.model.run import Fallback, Finding, Run

EXPORTED = "exported_program"
"""The stage of the program that torch.export made, in torch's trace."""

ORDER_OF_FINDINGS = (
    "Findings that your own lines lead to come first, then findings of libraries; what depyf.shadow found comes before "
    "all others. In both, recompile limits come "
    "first; the others are sorted by the compile time that they cost, then by how often they happened. Facts about "
    "the machine come last."
)

_NAMED = 3
_NOT_SEEN = "some of it before the session began: graph breaks from then are not known"


def headline(run: Run) -> str:
    """Return the result in one line: that nothing was compiled, and why, or how many functions in how many graphs, and
    what took most of the compile time, if that is long.
    """
    if not run.compilations and not run.fallbacks:
        return _without_compilations(run)
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
        (len(raised(run)), "error while compiling", "errors while compiling"),
    )
    found = [many(*each) for each in numbers if each[0]]
    # Times only where one kind of phase takes most of them.
    words, seconds, _ = slowest_part(run)
    if words:
        share = seconds / counts.seconds if counts.seconds else math.inf
        # More than 100 %: several processes compile at the same time, or the time of the compilations is not known.
        found.append(f"{f'{100 * share:.0f} %' if share <= 1 else 'most'} of the compile time in {words}")
    if not any(each[0] for each in numbers):
        earlier = any(each.earlier for each in run.compilations)
        found.insert(0, _NOT_SEEN if earlier else "without graph breaks or recompilations")
    return f"{text}, {', '.join(found)}"


def _without_compilations(run: Run) -> str:
    exported = [each for each in run.artifacts if each.stage == EXPORTED]
    if exported:
        issues = f", with {many(len(run.findings), 'issue')}" if run.findings else ""
        return f"{many(len(exported), 'program')} exported{issues}; nothing was compiled"
    if run.artifacts and run.origin == "files":  # a dump of the original depyf
        return f"{many(len(run.artifacts), 'file')} of a dump that do not say which compilations they belong to"
    loaded = sum(each.kind == "kernels" for each in run.artifacts)  # vLLM loads what it has compiled ahead of time
    if loaded:
        were = "were" if loaded > 1 else "was"
        return f"nothing was compiled, {many(loaded, 'compiled graph')} of an earlier run {were} loaded"
    return "nothing was compiled" + (f", {many(len(run.artifacts), 'file')} of other calls" if run.artifacts else "")


def _why_no_graph(run: Run) -> List[str]:
    """Return the functions that Dynamo saw, each with its result: the user's functions before functions of libraries,
    frames that Dynamo began to compile before skipped frames."""
    skipped = [each for each in run.fallbacks if each.cause == SKIPPED]
    begun = (*raised(run), *lost(run), *(each for each in skipped if each.compile_id is not None))
    seen = [(each.function, _came_to(each)) for each in begun]
    for one in run.compilations:
        if one.function is not None and one.status in ("empty", "failed", "skipped"):
            failed = one.status == "failed"
            result = "failed to compile" if failed else "has no operation on tensors in it"
            seen.append((run.root(one.function), result))
    seen += [(each.function, _came_to(each)) for each in skipped if each.compile_id is None]
    reasons: Dict[str, str] = {}
    for function, result in sorted(seen, key=lambda each: _is_of_a_library(run, each[0])):
        name = "a frame" if function is None else run.functions[function].qualified_name
        reasons.setdefault(name, f"{name} {result}")
    found = list(reasons.values())
    return [*found[:_NAMED], *([f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else [])]


def _is_of_a_library(run: Run, function: Optional[int]) -> bool:
    return function is not None and is_of_a_library(run, (run.functions[function].source, 1))


def _came_to(each: Fallback) -> str:
    if each.cause == RAISED:
        return "failed to compile, and the call raised the error"
    return "has nothing in it to compile" if each.cause == SKIPPED else f"runs as plain Python ({each.cause})"


def compile_time(counts: Counts) -> str:
    """Return the compile time in words. It is not known where something was compiled, and no compilation has ended."""
    return in_seconds(counts.seconds) if counts.seconds or not counts.compilations else "not known"


def in_seconds(seconds: float) -> str:
    """Return a compile time as texts have it: ``12.30 s``."""
    return f"{seconds:.2f} s"


def cost_of(finding: Finding) -> str:
    """Return the compile time of a finding, as text for after its location; empty if it has none."""
    return f", {in_seconds(finding.seconds)}" if finding.seconds else ""


many = counted
"""``1 graph``, ``2 graphs``."""


def settings_in_words(run: Run) -> Iterator[Tuple[str, Tuple[str, ...]]]:
    """Yield the settings that were no defaults, with the compile ids that they were in force for, in words, where these
    are not all."""
    for number, settings in enumerate(run.settings):
        ids = [each.compile_id for each in run.compilations if each.settings == number]
        if settings and ids:
            yield "" if len(run.settings) == 1 else f" ({listed(ids, _NAMED)})", settings
