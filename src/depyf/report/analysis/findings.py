"""The findings worth acting on, in the order of their cost: the user's own code before libraries.

The cost is the compile time in seconds, then the number of times. What a finding costs while the program runs is in no
trace, and is not estimated; a recompile limit comes first, since calls after it may run as plain
Python.
"""

from __future__ import annotations

from collections import Counter
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from depyf.answers.watch import counted
from depyf.base.messages import listed
from depyf.base.quick_dataclass import replace
from depyf.diagnosis.break_advice import advice_for_phase, described_break, described_error, described_error_in_line
from depyf.diagnosis.breaks_of_wrappers import is_of_ddp
from depyf.diagnosis.compile_errors import is_of_python
from depyf.diagnosis.constraints import violated_constraint
from depyf.diagnosis.guard_explanations import AND, MORE
from depyf.diagnosis.recompile_limits import in_words
from depyf.report.analysis.costs import Costs
from depyf.report.analysis.in_parts import Parts
from depyf.report.analysis.shadowed import shadow_findings
from depyf.report.analysis.shapes import own_places
from depyf.report.analysis.sources import Sources
from depyf.report.model import run as run_model
from depyf.report.model.counts import LIMIT, RAISED, counts_of, distinct_breaks, lost, plain_calls, raised
from depyf.report.model.phases import slowest_part
from depyf.report.model.places import is_of_a_library, own_place, place_text
from depyf.report.model.run import FailedEntryGuard, Fallback, Finding, GraphBreak, Place, Recompile, Run
from depyf.torch_trace.breaks import reason_in_parts, without_type
from depyf.torch_trace.events import Event

_LONGEST_CHECK = 80
"""The number of characters of a guard that a title shows."""


def findings_of(run: Run, parts: Parts, issues: Sequence[Finding] = ()) -> Tuple[Finding, ...]:
    """Return the findings, with the ``issues`` of ``torch.export``, in this order: what ``shadow`` found, user code
    before libraries, limits first, more compile time first, more occurrences first. Facts about the machine and its
    compilers, which have no line of the program, come last."""
    none: List[Finding] = []
    # A recompilation of what goes on after a break is the recompilation's cost, and not the break's.
    costs = Costs(run)
    fallbacks = [*raised(run), *lost(run)]
    at_limits, elsewhere = ([each for each in fallbacks if (each.cause == LIMIT) is so] for so in (True, False))
    limits = parts.part("what to do first", none, _all_of, _fallbacks, run, costs, at_limits)
    found = [*issues, *limits]
    found += parts.part("what to do first", none, _all_of, _fallbacks, run, costs, elsewhere)
    for of_kind in (_recompiles, _breaks):
        found += parts.part("what to do first", none, _all_of, of_kind, run, costs)
    for without_cost in (_cudagraphs, _rerecorded):
        found += parts.part("what to do first", none, _all_of, without_cost, run)
    found.sort(
        key=lambda each: (
            is_of_a_library(run, each.place),
            each not in limits,  # calls after it may run as plain Python: slow each time, at no compile time
            -(each.seconds or 0.0),
            -each.count,
        )
    )
    wrong = parts.part("what to do first", none, _all_of, shadow_findings, run)
    return (*wrong, *found, *parts.part("where the time went", none, _all_of, _slow, run))


def _all_of(kind: Callable[..., Iterable[Finding]], *args: object) -> List[Finding]:
    return list(kind(*args))


def _start_of(run: Run, function: Optional[int]) -> Optional[Place]:
    """Return the first line of a function."""
    return None if function is None else (run.functions[function].source, run.functions[function].first_line)


def _function_name(run: Run, index: object) -> str:
    if not isinstance(index, int):
        return "a function"
    one, root = run.functions[index], run.functions[run.root(index)]
    return one.qualified_name if one is root else f"{root.qualified_name}, resumed at line {one.resumes_at},"


def _fallbacks(run: Run, costs: Costs, fallbacks: Sequence[Fallback]) -> Iterator[Finding]:
    # The same fallback of several compilations is one finding.
    alike: Dict[Tuple[object, ...], List[Fallback]] = {}
    for each in fallbacks:
        alike.setdefault((each.function, each.cause, each.reason, each.place, each.stack), []).append(each)
    for first, *more in alike.values():
        # The entries before it still run: what was lost is the time of the compilations that failed.
        yield _fallback(run, first, 1 + len(more), costs.take(each.compile_id for each in (first, *more)))


def _fallback(run: Run, each: Fallback, times: int, seconds: float) -> Finding:
    """Return the finding of a fallback, or of a raised error; ``seconds`` is the time of its failed compilations."""
    name = _function_name(run, each.function)
    what, explanation = described_error(each.reason)
    if each.cause == RAISED:
        failed = f"{name} raised" if is_of_python(each.reason) else f"{name} can't be compiled: the call raised"
        title = f"{failed} {what}" + (" while it was compiled" if is_of_python(each.reason) else "")
        text = f"{explanation}. {each.advice}".strip() if explanation else each.advice
    elif each.cause == LIMIT:
        title = f"{name} hit the recompile limit"
        calls = plain_calls(each) or "Calls run as plain Python"
        text = f"{calls}, because no cache entry fits them. {each.advice}"
    else:
        title = f"{name} runs as plain Python: {each.cause}"
        text = f"{described_error_in_line(each.reason).rstrip('.')}. {each.advice}".strip()
    violated = violated_constraint(each.reason)
    if violated is not None:
        title, text = f"{name} can't be compiled: {violated.title}", each.advice
    place, called = _own_place(run, each)
    place = place or _start_of(run, each.function)
    kind = run_model.ERROR if each.cause == RAISED else run_model.LIMIT if each.cause == LIMIT else run_model.FALLBACK
    return Finding(title, f"{called}{text}".strip(), times, place, each.compile_id, seconds, kind)


def _breaks(run: Run, costs: Costs) -> Iterator[Finding]:
    by_function: Dict[int, List[GraphBreak]] = {}
    functions = {each.compile_id: each.function for each in run.compilations}
    # A break at which Dynamo gave up the whole frame is reported as that fallback, and not twice. Another one may be
    # at the same line, and in another compilation.
    gave_up = [fallback for fallback in (*raised(run), *lost(run)) if fallback.place]
    lost_at = {(fallback.place, reason_in_parts(without_type(fallback.reason)).title) for fallback in gave_up}
    lost_in = {(fallback.place, fallback.compile_id) for fallback in gave_up}
    for each in run.breaks:
        function, own_line = functions.get(each.compile_id or ""), own_place(run, each.place, each.stack)
        led_to_fallback = (own_line, each.reason) in lost_at or (own_line, each.compile_id) in lost_in
        if function is not None and not led_to_fallback:
            by_function.setdefault(run.root(function), []).append(each)
    # Dynamo meets a break in ``helper`` while it traces its caller ``f``, and again while it compiles ``helper``:
    # it is listed for the function that has the line, with the others as callers whose graphs it breaks.
    broken = _broken_functions(run, by_function)
    for function, breaks in by_function.items():
        kinds: Dict[Tuple[str, str], List[GraphBreak]] = {}
        # One finding for each kind of break: the advice is the same.
        distinct = distinct_breaks(breaks)
        own = [each for each in distinct if each.place is None or broken[each.place, each.reason][0] == function]
        for each in own:
            kinds.setdefault((each.reason, each.advice), []).append(each)
        for (kind, _), alike in kinds.items():
            met = [broken[each.place, each.reason] for each in alike if each.place is not None]
            callers = dict.fromkeys(caller for functions_met in met for caller in functions_met[1:])
            names = [_function_name(run, each) for each in (function, *callers)]
            yield _breaks_of_a_kind(run, names, kind, alike, _seconds_after(run, alike, costs))


def _seconds_after(run: Run, breaks: Sequence[GraphBreak], costs: Costs) -> float:
    """Return the compile time of what goes on after breaks, in any function that leads there, as far as no other
    finding has it."""
    # A resume function is named after the line at which it goes on: of the break, or of a call that led to it.
    same = {(each.place, each.reason) for each in breaks}
    met = [each for each in run.breaks if (each.place, each.reason) in same]
    callers = {each.compile_id: tuple(each.callers) for each in run.compilations}
    at = {each.place for each in met}
    for each in met:
        before = callers.get(each.compile_id or "", ())
        at.update(each.stack[len(before) if each.stack[: len(before)] == before else 0 :])
    resumed = {
        index
        for index, one in enumerate(run.functions)
        if one.resumes is not None and (one.source, one.resumes_at) in at
    }
    return costs.take(each.compile_id for each in run.compilations if each.function in resumed)


def _broken_functions(run: Run, by_function: Dict[int, List[GraphBreak]]) -> Dict[Tuple[Place, str], List[int]]:
    """Return the functions that each break, by place and reason, is in: first the one that has its line, if one does,
    then those that call it. Dynamo meets a break while it traces a caller, and again in the function that it compiles
    then."""
    found: Dict[Tuple[Place, str], List[int]] = {}
    for function, breaks in by_function.items():
        one = run.functions[function]
        for place, reason in {(each.place, each.reason): None for each in breaks if each.place}:
            its_own = place[0] == one.source and one.first_line <= place[1] <= one.last_line
            known = found.setdefault((place, reason), [])
            known.insert(0 if its_own else len(known), function)
    return found


def _breaks_of_a_kind(
    run: Run, names: Sequence[str], kind: str, breaks: Sequence[GraphBreak], seconds: float
) -> Finding:
    """Return one finding for the breaks of a function that have one cause, and therefore one advice. ``names``
    starts with the function; the others are callers whose graphs these breaks break, too."""
    name, *callers = names
    first = min(breaks, key=lambda each: is_of_a_library(run, each.place))
    place, called = _own_place(run, first)
    kind = described_break(kind, *(each.explanation for each in (first, *breaks)))
    title = f"Graph break in {name}: {kind}" if len(breaks) == 1 else f"{len(breaks)} graph breaks in {name}: {kind}"
    # The finding has one place: the first in the code of the user. The others are named in the text.
    lines = dict.fromkeys(own_place(run, each.place, each.stack) for each in breaks)
    others = [place_text(run, line) for line in lines if line not in (place, None)]
    more = (
        f" Also at {', '.join(others[:3])}{f' and {len(others) - 3} more' if len(others) > 3 else ''}."
        if others
        else ""
    )
    if callers:
        more += f" This breaks graphs of {listed(callers, 3)}, too."
    stack = [(run.sources[source].path, line, "") for source, line in first.stack]
    cost = None if is_of_ddp(stack) else seconds  # nothing is lost by those
    text = f"{called}{first.advice}{more}".strip()
    return Finding(title, text, len(breaks), place, first.compile_id, cost, run_model.BREAK)


def _own_place(run: Run, each: Union[GraphBreak, Fallback, FailedEntryGuard]) -> Tuple[Optional[Place], str]:
    """Return the user's line that leads to something, and a text about the line in a library, if any."""
    at = each.place if isinstance(each, GraphBreak) or not each.stack else each.stack[-1]
    own = own_place(run, at, each.stack)
    what = "The guard is" if isinstance(each, FailedEntryGuard) else "It is"
    return (own, "") if own == at else (own, f"{what} in {place_text(run, at)}, which is reached from this line. ")


def _recompiles(run: Run, costs: Costs) -> Iterator[Finding]:
    by_cause: Dict[Tuple[int, str, str], List[Recompile]] = {}
    for each in run.recompiles:
        by_cause.setdefault((run.root(each.function), each.cause, _remedy(each)), []).append(each)
    for (function, *_), recompiles in by_cause.items():
        spent = costs.take(each.compile_id for each in recompiles)
        yield _recompiles_of_a_cause(run, function, recompiles, spent)


def _remedy(recompile: Recompile) -> str:
    """Return the advice for the guard that failed, without what else has changed: that differs from call to call."""
    return recompile.advice.partition(f"{AND}{MORE}")[0].rstrip(".")


def _recompiles_of_a_cause(run: Run, function: int, recompiles: Sequence[Recompile], seconds: float) -> Finding:
    """Return one finding for the recompilations of a function, and of its resume functions, that have one cause."""
    first = next((each for each in recompiles if each.function == function), recompiles[0])
    reasons = Counter(each.failed[0].words for each in (first, *recompiles) if each.failed)
    why = "; ".join(words for words, _ in reasons.most_common(3))
    title = f"{run.functions[function].qualified_name} was recompiled {_times(len(recompiles))}"
    title += _guards_on([each.failed[0].checked for each in recompiles if each.failed])
    # Resume functions are counted with the function that they continue; the title says how many it were.
    after_breaks = sum(each.function != function for each in recompiles)
    if after_breaks:
        title += (
            ", where it resumes after a graph break"
            if after_breaks == len(recompiles)
            else f", {_times(after_breaks)} where it resumes after a graph break"
        )
    advice = first.advice
    if any(each.advice != advice for each in recompiles):
        more = sum(MORE in each.advice for each in recompiles)
        advice = f"{_remedy(first)}. In {more} of the {len(recompiles)}, more has changed: each of them says what."
    text = f"Because {why}. {_own_place(run, first.failed[0])[1]}{advice}".strip() if why else advice
    close = [each for each in run.functions[first.function].limits if each.is_close]
    if close:
        text = f"{text} Cache entries: {in_words(close)}.".lstrip()
    return Finding(title, text, len(recompiles), first.place, first.compile_id, seconds, run_model.RECOMPILATION)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _guards_on(checks: Sequence[str]) -> str:
    """Return what the guards that failed first compare, for a title."""
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
        title = f"CUDA graphs are not used{name}: {each.reason}"
        yield Finding(title, text, 1, each.place, each.compile_id, kind=run_model.CUDA_GRAPHS)


def _rerecorded(run: Run) -> Iterator[Finding]:
    functions = {each.compile_id: each.function for each in run.compilations}
    for each in run.cudagraph_rerecords:
        function = functions.get(each.compile_id or "")
        name = each.function if function is None else _function_name(run, run.root(function))
        title = f"The CUDA graph of {name} was recorded again {counted(each.times, 'time')}: {each.reason}"
        yield Finding(title, each.advice, each.times, each.place, each.compile_id, kind=run_model.CUDA_GRAPHS)


def _slow(run: Run) -> Iterator[Finding]:
    """Yield the part of compiling that takes most of the time, if that is long."""
    words, seconds, name = slowest_part(run)
    if words:
        total = counts_of(run).seconds
        # Nothing compiles where a cache is loaded; compilers run side by side; kernels are tuned when they first run.
        whole = f" of {total:.1f} s of compile time" if total >= seconds else ""
        text = f"{seconds:.1f} s{whole}, without nested phases. "
        # Its seconds are those of compilations, which may be the cost of other findings: they are in the text alone.
        text = (text + advice_for_phase(name)).strip()
        yield Finding(f"Most of the compile time is {words}", text, kind=run_model.COMPILE_TIME)


_NO_FAKE, _OTHER_FAKE = "missing_fake_kernel", "mismatched_fake_kernel"
_OF_EXPORT = frozenset({_NO_FAKE, _OTHER_FAKE, "propagate_real_tensors", "propagate_real_tensors_provenance"})

_REGISTER = "torch.export can't know what it returns: register one with torch.library.register_fake."
_AGREE = (
    "What it returns has another size, stride, dtype or device than the operator's own result: mend the fake kernel."
)
_CHECK = "It depends on data, and the program holds for this result only: say so with torch._check, or avoid the test."


def export_issues(events: Sequence[Event], names: Mapping[object, str], sources: Sources) -> Sequence[Finding]:
    """Return operators without or with a wrong fake kernel, and tests of data that were taken as for the examples, each
    once."""
    met: List[Finding] = []
    for event in events:
        if event.name not in _OF_EXPORT or not isinstance(event.meta, Mapping):
            continue
        operator = event.meta.get("op")
        if event.name == _NO_FAKE:
            met.append(Finding(f"{operator} has no fake kernel", _REGISTER))
        elif event.name == _OTHER_FAKE:
            reason = str(event.meta.get("reason") or "").strip()
            met.append(Finding(f"The fake kernel of {operator} is wrong", f"{reason} {_AGREE}".strip()))
        else:
            stack = own_places(event.meta.get("user_stack") or event.meta.get("stack"), names, sources)
            place: Optional[Place] = stack[-1] if stack else None
            title = f"{event.meta.get('expr')} was taken as {event.meta.get('result')}"
            met.append(Finding(title, f"{_where(event.meta)}{_CHECK}", place=place))
    return tuple(replace(issue, count=times, kind=run_model.EXPORT) for issue, times in Counter(met).items())


def _where(meta: Mapping[str, object]) -> str:
    """Return the user's variables that hold the symbols: ``Here n is u0. ``."""
    frame = meta.get("frame_locals")
    held = frame.get("locals") if isinstance(frame, Mapping) else None
    named = [
        f"{name} is {', '.join(map(str, symbols))}"
        for name, symbols in (held.items() if isinstance(held, Mapping) else ())
        if isinstance(symbols, list) and symbols
    ]
    return f"Here {'; '.join(named)}. " if named else ""
