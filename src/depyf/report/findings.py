"""What is worth acting on in a run, in the order of what it costs, and its totals."""

from __future__ import annotations

from collections import Counter
from typing import Dict, Iterator, List, Sequence, Tuple

from depyf.report.advice import advice_for_phase
from depyf.report.model import Fallback, Finding, GraphBreak, Run

SKIPPED = "skipped"
"""The cause of fallbacks that cost nothing: Dynamo looked at the frame and found nothing to compile."""

_MANY_BREAKS = 3
_OFTEN = 5
_SLOW_SHARE, _SLOW_SECONDS = 0.5, 5.0


def findings_of(run: Run) -> Tuple[Finding, ...]:
    """The findings, the most expensive first. Weights are seconds, estimated by what the compilations took."""
    found = [*_fallbacks(run), *_breaks(run), *_recompiles(run), *_cudagraphs(run), *_slow(run)]
    return tuple(sorted(found, key=lambda finding: -finding.weight))


def lost(run: Run) -> List[Fallback]:
    """The frames that were to be compiled and were not; in those that Dynamo skips there is nothing to compile."""
    return [each for each in run.fallbacks if each.cause != SKIPPED]


def totals_of(run: Run) -> Dict[str, float]:
    """Counts, and seconds where the name says so."""
    seen = {each.function for each in run.compilations}
    functions = [function for number, function in enumerate(run.functions) if number in seen]
    user_functions = [function for function in functions if function.resumes is None]
    compiled = [each for each in run.compilations if each.status == "compiled"]
    with_places = [kernel for kernel in run.kernels if kernel.places]
    return {
        "functions": len(user_functions),
        "resume_functions": len(functions) - len(user_functions),
        "compilations": len(run.compilations),
        "compiled": len(compiled),
        "graphs": len({(each.compile_id, each.graph) for each in compiled}),
        "graph_breaks": len(run.breaks),
        "recompiles": len(run.recompiles),
        "cudagraph_skips": len(run.cudagraph_skips),
        "fallbacks": len(lost(run)),
        "skipped": len(run.fallbacks) - len(lost(run)),
        "kernels": len(run.kernels),
        "kernels_with_a_line": len(with_places),
        "guards": sum(len(each.guards) for each in run.compilations),
        "compile_seconds": sum(each.seconds or 0.0 for each in run.compilations),
        "backward_compile_seconds": sum(each.backward_seconds or 0.0 for each in run.compilations),
    }


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
        yield Finding(title, text, 10.0 + spent, each.place, each.compile_id)


def _breaks(run: Run) -> Iterator[Finding]:
    by_function: Dict[int, List[GraphBreak]] = {}
    functions = {each.compile_id: each.function for each in run.compilations}
    told = {(each.compile_id, each.place) for each in lost(run) if each.place}
    for each in run.breaks:
        function = functions.get(each.compile_id or "")
        if function is not None and (each.compile_id, each.place) not in told:  # the fallback is what it led to
            by_function.setdefault(run.root(function), []).append(each)
    seconds = _seconds_by_function(run)
    for function, breaks in by_function.items():
        places = len({each.place for each in breaks})
        name = run.functions[function].qualified_name
        if places >= _MANY_BREAKS:
            title = f"{places} graph breaks in {name}"
            text = "Each ends a graph: less is fused, and Python runs in between. " + breaks[0].advice
            yield Finding(title, text, 1.0 + seconds.get(function, 0.0), breaks[0].place, breaks[0].compile_id)
        else:
            for each in {each.place: each for each in reversed(breaks)}.values():
                weight = 0.5 + seconds.get(function, 0.0) / (len(breaks) + 1)
                yield Finding(f"Graph break in {name}: {each.reason}", each.advice, weight, each.place, each.compile_id)


def _recompiles(run: Run) -> Iterator[Finding]:
    seconds = {each.compile_id: (each.seconds or 0.0) + (each.backward_seconds or 0.0) for each in run.compilations}
    by_function: Dict[int, List[int]] = {}
    for number, each in enumerate(run.recompiles):
        by_function.setdefault(run.root(each.function), []).append(number)
    for function, numbers in by_function.items():
        recompiles = [run.recompiles[number] for number in numbers]
        reasons = Counter(each.failed[0].words for each in recompiles if each.failed)
        spent = sum(seconds.get(each.compile_id, 0.0) for each in recompiles)
        times = "once" if len(recompiles) == 1 else f"{len(recompiles)} times"
        why = "; ".join(words for words, _ in reasons.most_common(3))
        advice = next((each.advice for each in recompiles if each.advice), "")
        after_breaks = sum(each.function != function for each in recompiles)
        title = f"{run.functions[function].qualified_name} was recompiled {times}"
        if after_breaks:
            title += (
                ", where it goes on after a graph break"
                if after_breaks == len(recompiles)
                else (f", {after_breaks} of them where it goes on after a graph break")
            )
        yield Finding(
            title,
            f"Because {why}. {advice}".strip() if why else advice,
            spent,
            recompiles[0].place,
            recompiles[0].compile_id,
        )
    failures: Dict[Tuple[int, str], int] = {}
    for each in run.recompiles:
        for guard in each.failed:
            key = (run.root(each.function), guard.text)
            failures[key] = failures.get(key, 0) + 1
    for (function, text), count in failures.items():
        if count >= _OFTEN:
            title = f"A guard of {run.functions[function].qualified_name} failed {count} times"
            yield Finding(title, f"`{text}` was checked in vain each time another entry was needed.", 0.1 * count)


def _cudagraphs(run: Run) -> Iterator[Finding]:
    functions = {each.compile_id: each.function for each in run.compilations}
    for each in run.cudagraph_skips:
        function = functions.get(each.compile_id or "")
        name = "" if function is None else f" in {_function_name(run, run.root(function))}"
        text = each.advice or "The graph runs without them: each kernel is launched by Python."
        yield Finding(f"CUDA graphs are not used{name}: {each.reason}", text, 1.0, each.place, each.compile_id)


def _slow(run: Run) -> Iterator[Finding]:
    """The phase that takes most of the time, where that is long."""
    total = sum((each.seconds or 0.0) + (each.backward_seconds or 0.0) for each in run.compilations)
    by_name: Dict[str, float] = {}
    for index, seconds in enumerate(own_seconds(run)):
        name = run.phases[index].name
        by_name[name] = by_name.get(name, 0.0) + seconds
    name, seconds = max(by_name.items(), key=lambda each: each[1], default=("", 0.0))
    if seconds >= _SLOW_SECONDS and seconds >= _SLOW_SHARE * total:
        text = f"{seconds:.1f} s of {total:.1f} s of compile time, phases inside of it not counted. "
        yield Finding(f"Most of the compile time is {name}", (text + advice_for_phase(name)).strip(), seconds)


def own_seconds(run: Run) -> Sequence[float]:
    """Of each phase, the seconds that are not those of a phase inside of it."""
    own = [phase.seconds for phase in run.phases]
    for phase in run.phases:
        if phase.parent is not None:
            own[phase.parent] -= phase.seconds
    return [max(0.0, seconds) for seconds in own]
