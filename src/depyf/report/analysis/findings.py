"""The findings worth acting on, in the order of their cost: the user's own code before libraries."""

from __future__ import annotations

from collections import Counter
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.diagnosis.break_advice import advice_for_phase, described_break
from depyf.report.model.counts import counts_of, distinct_breaks, lost
from depyf.report.model.phases import slowest_part
from depyf.report.model.places import place_text
from depyf.report.model.run import Finding, GraphBreak, Place, Recompile, Run

_LONGEST_CHECK = 80
"""The number of characters of a guard that a title shows."""


def findings_of(run: Run) -> Tuple[Finding, ...]:
    """The findings: those of the user's own code, then those of libraries, the most expensive first. Weights are
    seconds, estimated by what the compilations took. Facts about the machine and its compilers, which have no line of
    the program, come last.
    """
    found = [*_fallbacks(run), *_breaks(run), *_recompiles(run), *_cudagraphs(run)]
    found.sort(key=lambda finding: (_is_of_a_library(run, finding.place), -finding.weight))
    return (*found, *_slow(run))


def _is_of_a_library(run: Run, place: Optional[Place]) -> bool:
    return place is not None and 0 <= place[0] < len(run.sources) and run.sources[place[0]].library


def _start_of(run: Run, function: Optional[int]) -> Optional[Place]:
    """The first line of a function."""
    return None if function is None else (run.functions[function].source, run.functions[function].first_line)


def _function_name(run: Run, index: object) -> str:
    return run.functions[index].qualified_name if isinstance(index, int) else "a function"


def _seconds_by_function(run: Run) -> Dict[int, float]:
    seconds: Dict[int, float] = {}
    for each in run.compilations:
        if each.function is not None:
            root = run.root(each.function)
            seconds[root] = seconds.get(root, 0.0) + (each.seconds or 0.0) + (each.backward_seconds or 0.0)
    return seconds


def _fallbacks(run: Run) -> Iterator[Finding]:
    seconds = _seconds_by_function(run)
    for each in lost(run):
        name = _function_name(run, each.function)
        spent = seconds.get(run.root(each.function), 0.0) if each.function is not None else 0.0
        limit = "limit" in each.cause
        title = f"{name} hit the recompile limit" if limit else f"{name} runs as plain Python: {each.cause}"
        first = each.reason.strip().split("\n")[0]
        text = (
            f"{first}. {each.advice}".strip()
            if not limit
            else f"Calls that no cache entry fits run uncompiled. {each.advice}"
        )
        yield Finding(title, text, 10.0 + spent, each.place or _start_of(run, each.function), each.compile_id)


def _breaks(run: Run) -> Iterator[Finding]:
    by_function: Dict[int, List[GraphBreak]] = {}
    functions = {each.compile_id: each.function for each in run.compilations}
    lost_at = {(each.compile_id, each.place) for each in lost(run) if each.place}
    for each in run.breaks:
        function = functions.get(each.compile_id or "")
        if function is not None and (each.compile_id, each.place) not in lost_at:  # the fallback is what it led to
            by_function.setdefault(run.root(function), []).append(each)
    seconds = _seconds_by_function(run)
    for function, breaks in by_function.items():
        kinds: Dict[str, List[GraphBreak]] = {}
        for each in distinct_breaks(breaks):
            kinds.setdefault(each.reason, []).append(each)
        share = seconds.get(function, 0.0) / (sum(map(len, kinds.values())) + 1)
        for kind, alike in kinds.items():
            yield _breaks_of_a_kind(run, run.functions[function].qualified_name, kind, alike, share * len(alike))


def _breaks_of_a_kind(run: Run, name: str, kind: str, breaks: Sequence[GraphBreak], seconds: float) -> Finding:
    """One finding for the breaks of a function that have one cause, and so one advice."""
    first = min(breaks, key=lambda each: _is_of_a_library(run, each.place))
    place, called = _own_place(run, first)
    kind = described_break(kind, *(each.explanation for each in (first, *breaks)))
    title = f"Graph break in {name}: {kind}" if len(breaks) == 1 else f"{len(breaks)} graph breaks in {name}: {kind}"
    others = [place_text(run, each.place) for each in breaks if each.place not in (place, None, first.place)]
    more = (
        f" Also at {', '.join(others[:3])}{f' and {len(others) - 3} more' if len(others) > 3 else ''}."
        if others
        else ""
    )
    return Finding(title, f"{called}{first.advice}{more}".strip(), 0.5 * len(breaks) + seconds, place, first.compile_id)


def _own_place(run: Run, each: GraphBreak) -> Tuple[Optional[Place], str]:
    """The user's line that leads to a break in a library, and a text about the break's own line."""
    own = [place for place in each.stack if not _is_of_a_library(run, place)]
    if each.place is None or not own or not _is_of_a_library(run, each.place):
        return each.place, ""
    return own[-1], f"It is in {place_text(run, each.place)}, which this line comes to. "


def _recompiles(run: Run) -> Iterator[Finding]:
    seconds = {each.compile_id: (each.seconds or 0.0) + (each.backward_seconds or 0.0) for each in run.compilations}
    by_cause: Dict[Tuple[int, str], List[Recompile]] = {}
    for each in run.recompiles:
        by_cause.setdefault((run.root(each.function), each.cause or each.advice), []).append(each)
    causes = Counter(function for function, _ in by_cause)
    for (function, _), recompiles in by_cause.items():
        spent = sum(seconds.get(each.compile_id, 0.0) for each in recompiles)
        yield _recompiles_of_a_cause(run, function, recompiles, spent, alone=causes[function] == 1)


def _recompiles_of_a_cause(
    run: Run, function: int, recompiles: Sequence[Recompile], seconds: float, *, alone: bool
) -> Finding:
    """One finding for the recompilations of a function, and of its resume functions, that have one cause.

    ``alone`` says that they are all of the function's; else the title says which guards failed.
    """
    first = next((each for each in recompiles if each.function == function), recompiles[0])
    reasons = Counter(each.failed[0].words for each in (first, *recompiles) if each.failed)
    why = "; ".join(words for words, _ in reasons.most_common(3))
    times = "once" if len(recompiles) == 1 else f"{len(recompiles)} times"
    title = f"{run.functions[function].qualified_name} was recompiled {times}"
    title += "" if alone else _guards_on([each.failed[0].checked for each in recompiles if each.failed])
    after_breaks = sum(each.function != function for each in recompiles)
    if after_breaks:
        title += (
            ", where it resumes after a graph break"
            if after_breaks == len(recompiles)
            else f", {after_breaks} of them where it resumes after a graph break"
        )
    text = f"Because {why}. {first.advice}".strip() if why else first.advice
    return Finding(title, text, seconds, first.place, first.compile_id)


def _guards_on(checks: Sequence[str]) -> str:
    """What the guards that failed first compare, for a title."""
    distinct = [each for each in dict.fromkeys(checks) if each]
    if not distinct:
        return ""
    first = distinct[0] if len(distinct[0]) <= _LONGEST_CHECK else f"{distinct[0][:_LONGEST_CHECK]}…"
    return f" (guard on {first}{f' and {len(distinct) - 1} more' if len(distinct) > 1 else ''})"


def _cudagraphs(run: Run) -> Iterator[Finding]:
    functions = {each.compile_id: each.function for each in run.compilations}
    for each in run.cudagraph_skips:
        function = functions.get(each.compile_id or "")
        name = "" if function is None else f" in {_function_name(run, run.root(function))}"
        text = each.advice or "The graph runs without them: each kernel is launched by Python."
        yield Finding(f"CUDA graphs are not used{name}: {each.reason}", text, 1.0, each.place, each.compile_id)


def _slow(run: Run) -> Iterator[Finding]:
    """The part of compiling that takes most of the time, where that is long."""
    words, seconds, name = slowest_part(run)
    if words:
        total = counts_of(run).seconds
        text = f"{seconds:.1f} s of {total:.1f} s of compile time, phases inside of it not counted. "
        yield Finding(f"Most of the compile time is {words}", (text + advice_for_phase(name)).strip(), seconds)
