"""Compare two runs of one program: before and after a change of its code, its settings or of PyTorch. Functions are
matched by qualified name and file name, their compilations by number. Times are shown, but do not count as a
difference, as they differ in every run. More runs of the same two programs give times their spread.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.watch import counted
from depyf.base.late_regex import regex
from depyf.base.messages import listed
from depyf.base.plain_data import Answer
from depyf.base.quick_dataclass import dataclass
from depyf.report.diff.comparison_of_code import changed_graphs, changed_kernels, compared_lookups
from depyf.report.diff.matching import NO_FUNCTION, ComparedRun, FunctionKey, aligned, name_of, without_line
from depyf.report.diff.measured import measured_times
from depyf.report.diff.times import Times
from depyf.report.model.counts import (
    GRAPH_BREAK,
    RAISED,
    Counts,
    added,
    counts_by_function,
    counts_of,
    distinct_breaks,
    lost,
    raised,
    status_in_words,
)
from depyf.report.model.headline import many
from depyf.report.model.phases import phase_totals
from depyf.report.model.run import Compilation, Fallback
from depyf.torch_trace.breaks import title_line

Diffs = Tuple[Tuple[str, Tuple[str, ...]], ...]
"""What was compared (a stage, a kernel), and the lines of a unified diff."""


_WORSE_WHEN_MORE = {
    "graph breaks": "graph break",
    "recompilations": "recompilation",
    "fallbacks to eager": "fallback to eager",
    "graphs": "graph",
}
"""The counts for which more is worse, with the name of one."""

_OF_A_BREAK = regex(r"(?:Unsupported|UserError): ")
"""The class of an exception for a graph break: a dump quotes breaks of ``fullgraph=True`` with their class."""


@dataclass(frozen=True)
class Change:
    """One difference. ``kind`` is ``function``, ``break``, ``recompile``, ``fallback``, ``failure``, ``graph`` or
    ``kernel``; ``before`` and ``after`` are texts about each side.
    """

    kind: str
    title: str
    text: str = ""
    before: str = ""
    after: str = ""
    diffs: Diffs = field(default=(), repr=False)


@dataclass(frozen=True)
class RunComparison(Answer, kind="diff"):
    """``counts`` and ``times`` are by name: before, after; ``notes`` say which settings differ, and what could not be
    compared.

    ``functions`` are the counts of each of the user's functions by name, None where it was not compiled. ``caches`` say
    what PyTorch's caches answered differently, and why: that is no change. ``measured`` has the time of a call and of
    lines, where both runs were profiled.
    """

    before: str
    after: str
    changes: Tuple[Change, ...]
    counts: Mapping[str, Tuple[int, int]]
    times: Mapping[str, Times]
    notes: Tuple[str, ...] = ()
    functions: Mapping[str, Tuple[Optional[Counts], Optional[Counts]]] = field(default_factory=dict)
    caches: Tuple[str, ...] = ()
    measured: Mapping[str, Times] = field(default_factory=dict)

    _properties = ("same",)

    @property
    def same(self) -> bool:
        return not self.changes

    def worse(self) -> List[str]:
        """Return what got worse, in words: more graph breaks, recompilations, fallbacks or graphs, or none at all.
        Raises ``ValueError`` if one side lacks these numbers."""
        if "graph breaks" not in self.counts:
            raise ValueError("what got worse is not known: " + "; ".join(self.notes))
        found = [
            f"{many(self.counts[name][1], one, name)}, {self.counts[name][0]} before"
            for name, one in _WORSE_WHEN_MORE.items()
            if self.counts[name][1] > self.counts[name][0]
        ]
        before, after = self.counts["graphs"]
        return [*found, f"nothing is compiled any more: {before} graphs before"] if before and not after else found


def compare(
    before: ComparedRun, after: ComparedRun, repeated: Tuple[Sequence[ComparedRun], Sequence[ComparedRun]] = ((), ())
) -> RunComparison:
    """Return the changes between two runs; facts that only one run can have are not compared.

    ``repeated`` are more runs of the program before, and of the program after. They give times, and nothing else; a
    note names those that compiled something else than the run that is compared.
    """
    # What only one side can have would be a difference of the readers, not of the runs: a log lacks fallbacks without a
    # compile id. Then functions are named alike, and their compilations paired by number.
    unlogged = _unlogged(before, after) + _unlogged(after, before)
    before, after = aligned(_as_logged(before, after), _as_logged(after, before))
    matched = _matched(before, after)
    comparable = before.has_events and after.has_events
    changes = [
        *_functions(before, after),
        *(_what_happened(before, after, matched) if comparable else ()),
        *(
            Change("graph", f"{_title(key, number)}: {listed([stage for stage, _ in diffs], 4)} changed", diffs=diffs)
            for key, number, one, other in matched
            for diffs in [changed_graphs(before, one, after, other)]
            if diffs
        ),
        *(
            Change("kernel", f"{_title(key, number)}: {title}", text, diffs=diffs)
            for key, number, one, other in matched
            for title, text, diffs in [changed_kernels(before, one, after, other)]
            if title
        ),
    ]
    notes = tuple(
        f"{side.name} has no manifest: graph breaks, recompilations, fallbacks, guards and times are not compared"
        for side in (before, after)
        if not side.has_events
    )
    notes += _settings(before, after)
    if unlogged:
        notes += (f"not compared: {counted(unlogged, 'fallback')} of frames that torch's trace does not log",)
    notes += tuple(
        f"{before.function_at(index)[0]} was in {before.file_name(before.run.functions[index].source)} and is in {file}"
        for index, file in before.moved.items()
    )
    notes += (*_of_repeated(before, repeated[0]), *_of_repeated(after, repeated[1]))
    counts, times = _counts(before, after), _times((before, *repeated[0]), (after, *repeated[1]))
    caches = compared_lookups(before, after, [(_title(key, number), one, other) for key, number, one, other in matched])
    measured = measured_times((before, *repeated[0]), (after, *repeated[1]))
    by_root = _by_root(before, after)
    return RunComparison(before.name, after.name, tuple(changes), counts, times, notes, by_root, caches, measured)


def _of_repeated(first: ComparedRun, repeated: Sequence[ComparedRun]) -> Iterator[str]:
    """Yield which further runs of a program compiled something else than the first, and which have no times."""
    others = [side.name for side in repeated if not compare(first, side).same]
    if others:
        yield f"{first.name} and {listed(others, 4)} did not compile the same: only their times are compared"
    without = [side.name for side in repeated if not side.has_events]
    if without:
        yield f"{listed(without, 4)}: no manifest, so no times, and not counted among the runs"


def _settings(before: ComparedRun, after: ComparedRun) -> Tuple[str, ...]:
    """Return which settings of PyTorch's one side alone had, a text each; nothing where a side did not look."""
    if not (before.run.settings and after.run.settings):
        return ()
    had = [dict.fromkeys(each for settings in side.run.settings for each in settings) for side in (before, after)]
    return tuple(
        f"only {side.name} has the settings {', '.join(alone)}"
        for side, own, other in ((before, had[0], had[1]), (after, had[1], had[0]))
        for alone in [[each for each in own if each not in other]]
        if alone
    )


def _by_root(before: ComparedRun, after: ComparedRun) -> Dict[str, Tuple[Optional[Counts], Optional[Counts]]]:
    """Return the counts of the user's functions in both runs, without functions in which nothing was compiled.

    Functions of one name are counted together: lambdas, or files of one name in several folders.
    """
    found: Dict[str, List[Optional[Counts]]] = {}
    for at, side in enumerate((before, after)):
        for root, counts in counts_by_function(side.run).items():
            if counts.compilations or counts.fallbacks:
                # ``both`` is [before, after]; a function that was not compiled on one side keeps None there.
                both = found.setdefault(name_of(side.function_at(root)), [None, None])
                both[at] = added(both[at] or Counts(), counts)
    return {name: (one, other) for name, (one, other) in found.items()}


def _unlogged(side: ComparedRun, other: ComparedRun) -> int:
    """Count the fallbacks of ``side`` that can't be in the log that ``other`` is read from."""
    if side.is_log or not other.is_log:
        return 0
    return sum(each.compile_id is None for each in lost(side.run))


def _as_logged(side: ComparedRun, other: ComparedRun) -> ComparedRun:
    """Return ``side`` without the fallbacks that a log can't have. Torch's trace logs what has a compile id. Dynamo
    skips some frames before it makes one (generators)."""
    if side.is_log or not other.is_log:
        return side
    logged = tuple(each for each in side.run.fallbacks if each.compile_id is not None)
    return replace(side, run=replace(side.run, fallbacks=logged))


def _what_happened(before: ComparedRun, after: ComparedRun, matched: Sequence[Pair]) -> List[Change]:
    """Return the changes in events of torch's trace, which files alone do not have."""
    return [
        *_texts(before, after, "break", "Graph break", _breaks),
        *_recompiles(before, after),
        *_texts(before, after, "fallback", "Runs as plain Python", lambda side: _fallbacks(side, lost(side.run))),
        *_texts(before, after, "failure", "Failed to compile", lambda side: _fallbacks(side, raised(side.run))),
        *_failures(matched),
    ]


Pair = Tuple[FunctionKey, int, Compilation, Compilation]


def _matched(before: ComparedRun, after: ComparedRun) -> List[Pair]:
    """Return the pairs of compilations of one function with the same number from 0."""
    then, now = _by_function(before), _by_function(after)
    return [
        (key, number, one, other)
        for key, compilations in then.items()
        if key != NO_FUNCTION
        for number, (one, other) in enumerate(zip(compilations, now.get(key, [])))
    ]


def _by_function(side: ComparedRun) -> Dict[FunctionKey, List[Compilation]]:
    found: Dict[FunctionKey, List[Compilation]] = {}
    for key, compilations in side.compilations().items():
        found.setdefault(without_line(key), []).extend(compilations)
    return found


def _functions(before: ComparedRun, after: ComparedRun) -> List[Change]:
    """Return functions that are compiled in one run only. Resume functions follow from graph breaks. What a caller's
    graph has instead is compiled as well."""
    then, now = _by_function(before), _by_function(after)
    return [
        *(
            Change("function", f"{'Compiled on its own' if before.in_a_graph(key) else 'Compiled'} now: {name_of(key)}")
            for key in now
            if key not in then and _worth_reporting(after, now[key])
        ),
        *(
            Change(
                "function",
                f"{'Part of the graph of a caller now' if after.in_a_graph(key) else 'No longer compiled'}: "
                f"{name_of(key)}",
            )
            for key in then
            if key not in now and _worth_reporting(before, then[key])
        ),
    ]


def _worth_reporting(side: ComparedRun, compilations: Sequence[Compilation]) -> bool:
    return not all(side.is_resume(each.function) for each in compilations)


Details = Dict[Tuple[str, str], str]
"""Where and why, by the name of the function and the reason."""


def _texts(
    before: ComparedRun,
    after: ComparedRun,
    kind: str,
    what: str,
    find: Callable[[ComparedRun], List[Tuple[Tuple[str, str], str]]],
) -> List[Change]:
    """Return what was added and removed, counted: the same break may be in several compilations."""
    then, now = find(before), find(after)
    numbers_then, numbers_now = Counter(key for key, _ in then), Counter(key for key, _ in now)
    details: Details = {**dict(then), **dict(now)}
    changes = []
    for key in details:
        one, other = numbers_then[key], numbers_now[key]
        if one == other:
            continue
        # ``new``, ``gone``, or how often on both sides
        state = "new" if not one else "gone" if not other else f"{one} before, {other} now"
        where = f" in {key[0]}" if key[0] else ""
        changes.append(
            Change(kind, f"{what}{where}: {state}", f"{key[1]}" + (f" ({details[key]})" if details[key] else ""))
        )
    return changes


def _breaks(side: ComparedRun) -> List[Tuple[Tuple[str, str], str]]:
    return [
        ((side.root_of_id(each.compile_id)[0], title_line(each.reason)), side.place(each.place))
        for each in distinct_breaks(side.run.breaks)
    ]


def _fallbacks(side: ComparedRun, which: Sequence[Fallback]) -> List[Tuple[Tuple[str, str], str]]:
    """Return the fallbacks without the facts that a dump has and a log lacks (whether it was raised, the limit's
    value)."""
    found = []
    for each in which:
        cause = each.cause.partition(",")[0]
        is_break, text = _OF_A_BREAK.match(each.reason), _OF_A_BREAK.sub("", each.reason)
        cause = GRAPH_BREAK if is_break and each.cause != RAISED else cause
        # The text of a limit has its value, which a log lacks: only the cause is compared.
        reason = "" if "limit" in cause else f": {title_line(text).rpartition('Error: ')[2]}"
        found.append(((side.root_of(each.function)[0], f"{cause}{reason}"), side.place(each.place)))
    return found


def _recompiles(before: ComparedRun, after: ComparedRun) -> List[Change]:
    """Return functions that are compiled more often or less often than before, with the guards that failed. Resume
    functions count as the function that they continue: a removed graph break removes their recompilations."""
    then, now = _reasons(before), _reasons(after)
    changes = []
    for key in dict.fromkeys([*then, *now]):
        one, other = then.get(key, []), now.get(key, [])
        if len(one) != len(other):
            changes.append(
                Change(
                    "recompile",
                    f"Recompilations of {name_of(key)}: {len(one)} before, {len(other)} now",
                    before="\n".join(one),
                    after="\n".join(other),
                )
            )
    return changes


def _reasons(side: ComparedRun) -> Dict[FunctionKey, List[str]]:
    found: Dict[FunctionKey, List[str]] = {}
    for each in side.run.recompiles:
        words = next((failed.words or failed.text for failed in each.failed), "")
        found.setdefault(side.root_of(each.function), []).append(f"{each.compile_id}: {words}")
    return found


def _failures(matched: Sequence[Pair]) -> List[Change]:
    return [
        Change(
            "failure",
            f"{_title(key, number)}: {status_in_words(one)} before, {status_in_words(other)} now",
            title_line(other.failure or one.failure),
        )
        for key, number, one, other in matched
        if one.status != other.status
    ]


def _counts(before: ComparedRun, after: ComparedRun) -> Dict[str, Tuple[int, int]]:
    """Return (before, after) for each count that both runs have."""

    def of(side: ComparedRun) -> Dict[str, int]:
        counts = counts_of(side.run)
        found = {"compilations": counts.compilations, "graphs": counts.graphs}
        if before.has_events and after.has_events:
            found["graph breaks"] = counts.graph_breaks
            found["recompilations"] = counts.recompilations
            found["fallbacks to eager"] = counts.fallbacks
            found["guards"] = counts.guards
        return {**found, "kernels": counts.kernels}

    one, other = of(before), of(after)
    return {name: (one[name], other[name]) for name in one}


def _times(before: Sequence[ComparedRun], after: Sequence[ComparedRun]) -> Dict[str, Times]:
    """Return the compile time, and its six longest phases, of each run. Runs without times are left out."""
    runs = [[side.run for side in sides if side.has_events] for sides in (before, after)]
    if not all(side[0].has_events for side in (before, after)):
        return {}
    totals = [[dict(phase_totals(run)) for run in side] for side in runs]
    whole = Times(*(tuple(counts_of(run).seconds for run in side) for side in runs))
    phases = {
        name: Times(*(tuple(run.get(name, 0.0) for run in side) for side in totals))
        for name in {name for side in totals for run in side for name in run}
    }
    longest = sorted(phases, key=lambda name: -max(phases[name].medians))[:6]
    return {"compile time": whole, **{f"  {name}": phases[name] for name in longest}}


def _title(key: FunctionKey, number: int) -> str:
    return name_of(key) + (f", compilation {number + 1}" if number else "")
