"""A run in a few lines for the terminal: what was compiled, what went wrong, what it cost."""

from __future__ import annotations

from typing import List, Sequence, Tuple

from depyf.base.messages import cut, listed
from depyf.report.model.counts import counts_of, lost
from depyf.report.model.headline import compile_time, cost_of, headline, many
from depyf.report.model.phases import phase_totals
from depyf.report.model.places import place_text
from depyf.report.model.run import STALE, Run

_WIDTH = 24
_LONGEST = 110
_SHORTEST = 40
"""Of a finding's title, whatever stands after it."""


def summary_lines(run: Run, findings: int = 5, phases: int = 6) -> List[str]:
    """Return the headline, the counts, the time by phase and the first findings, in the order of the page."""
    lines = [headline(run), *(cut(f"! this dump is incomplete: {each}", _LONGEST) for each in run.failures)]
    if not run.compilations and not run.fallbacks:
        return [*lines, *_findings(run, findings), *run.notes]
    lines += [f"{name:<{_WIDTH}}{text}" for name, text in _counts(run)]
    times = phase_totals(run)[:phases]
    width = max((len(name) for name, _ in times), default=0) + 4
    lines += [f"{'  ' + name:<{width}}{seconds:7.2f} s" for name, seconds in times]
    stale = [f"! {note}" for note in run.notes if note.startswith(STALE)]
    return [*lines, *stale, *_findings(run, findings)]


def _findings(run: Run, most: int) -> List[str]:
    ends = [
        ("" if each.place is None else f" ({place_text(run, each.place)})") + cost_of(each)
        for each in run.findings[:most]
    ]
    return [
        f"! {cut(each.title, max(_SHORTEST, _LONGEST - len('! ') - len(end)))}{end}"
        for each, end in zip(run.findings, ends)
    ]


def _counts(run: Run) -> List[Tuple[str, str]]:
    """Return the rows of the summary; what each counts is defined in docs/glossary.md."""
    counts = counts_of(run)
    resumed = f" and {many(counts.resume_functions, 'resume function')}" if counts.resume_functions else ""
    libraries = f", {many(counts.library_kernels, 'library call')}" if counts.library_kernels else ""
    met = f", met in {counts.graph_breaks_met} compilations" if counts.graph_breaks_met > counts.graph_breaks else ""
    always = [
        ("functions compiled", f"{counts.functions}{resumed}, in {many(counts.compilations, 'compilation')}"),
        ("graphs", str(counts.graphs)),
        ("kernels", f"{counts.kernels}{libraries}"),
    ]
    if run.origin == "files":
        return always
    broken_at = dict.fromkeys(place_text(run, each.place) for each in run.breaks if each.place is not None)
    return [
        *always[:2],
        ("graph breaks", f"{counts.graph_breaks}{_listed(list(broken_at))}{met}"),
        ("recompilations", str(counts.recompilations) + _named(run, [each.function for each in run.recompiles])),
        ("fallbacks to eager", str(counts.fallbacks) + _named(run, [each.function for each in lost(run)])),
        *([("failed compilations", str(counts.failed))] if counts.failed else []),
        always[2],
        ("guards", str(counts.guards)),
        ("compile time", compile_time(counts)),
    ]


def whose_page(ours: Run, shown: Sequence[Run], *, of_many: bool) -> str:
    """Return the text after the path of a page in a distributed program: which ranks are on it.

    ``of_many``: no rank writes a page of all.
    """
    if ours.rank is None:
        return ""
    ranks = sorted({each.rank for each in shown if each.rank is not None} | {ours.rank})
    if len(ranks) > 1:
        return f" (ranks {', '.join(map(str, ranks))})"
    if of_many:
        return f" (rank {ours.rank})"
    return f" (rank {ours.rank}; the rank that ends last writes the page of all)"


def _named(run: Run, functions: Sequence[object]) -> str:
    known = dict.fromkeys(run.functions[run.root(each)].qualified_name for each in functions if isinstance(each, int))
    return _listed(list(known))


def _listed(names: List[str]) -> str:
    return f" ({listed(names, 3)})" if names else ""
