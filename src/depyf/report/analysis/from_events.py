"""Build the model of a run from torch's events (in process or from a log)."""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import replace
from depyf.diagnosis.break_advice import (
    advice_for_cudagraphs,
    advice_for_fallback,
    advice_for_rerecords,
    is_raised_limit,
)
from depyf.diagnosis.constraints import violated_constraint
from depyf.report.analysis.anchors import Anchored, anchored, from_cache
from depyf.report.analysis.artifacts import artifacts_of
from depyf.report.analysis.callers import call_sites, callers, of_callers, settings_of
from depyf.report.analysis.compilation_events import Settings, cache_lookups
from depyf.report.analysis.compilations import Compilations, calls_in, wrapped_names
from depyf.report.analysis.facts import Facts, FallbackFact, Files, LineOrigins, Recorder
from depyf.report.analysis.findings import export_issues, findings_of
from depyf.report.analysis.functions import UNCOMPILED, Functions, Key, frame_number
from depyf.report.analysis.in_parts import Parts
from depyf.report.analysis.linking import linked, with_noted
from depyf.report.analysis.memory import with_memory
from depyf.report.analysis.own_lines import at_own_lines
from depyf.report.analysis.shadowed import with_shadow
from depyf.report.analysis.shapes import shape_events
from depyf.report.analysis.sources import Sources
from depyf.report.analysis.stack_values import with_stack_values
from depyf.report.model.cache_lookup import CacheLookup
from depyf.report.model.counts import GRAPH_BREAK, LIMIT, RAISED, SKIPPED, SUPPRESSED, totals_of
from depyf.report.model.run import (
    Artifact,
    Compilation,
    CudaGraphRerecord,
    CudaGraphSkip,
    Fallback,
    Finding,
    GraphBreak,
    ModuleKernel,
    Phase,
    Place,
    Recompile,
    Run,
)
from depyf.report.model.starts import with_time_parts
from depyf.torch_trace.cudagraphs import rerecords, skips
from depyf.torch_trace.events import PHASE, Event
from depyf.torch_trace.metrics import spans
from depyf.torch_trace.user_code import innermost_line

_BY_US, _AS_NAMED, _NO_FACTS = Recorder(), Files(), Facts()


def build_run(
    events: Sequence[Event],
    artifacts: Optional[Sequence[Artifact]] = None,
    *,
    origin: Recorder = _BY_US,
    files: Files = _AS_NAMED,
    facts: Facts = _NO_FACTS,
) -> Run:
    """Return the model of a run made of its ``events``, in their order, and its ``artifacts``.

    ``artifacts`` come with their ``text`` (the answer's have it too; ``report.manifest`` leaves it out where there is a
    file); their links and the kernels are found here. With None they are made from the payloads of the events. The
    other arguments are optional facts that events lack.
    """
    sources = Sources(files.read, [*files.names.values(), *_mentioned(events)], files.directory)
    functions = Functions(sources)
    first = min((event.created for event in events), default=0.0)
    begin = first if origin.started is None else origin.started
    parts = Parts()
    # The order matters: each step may number more files and functions, which the tables at the end contain.
    known = Compilations(events, sources, functions, files.names, begin, parts)
    made = _with_memory(artifacts, events, parts)
    compilations = _compilations(known, made, facts, functions, parts)
    breaks, recompiles = known.breaks(), known.recompiles()
    # Transformed code of callers says what a value on the stack of a resume function is; a log has no such code.
    recompiles = parts.part("values on the stack", recompiles, with_stack_values, recompiles, compilations, made)
    compilations = _with_failures(compilations, recompiles)
    fallbacks = _fallbacks(known, facts, compilations, breaks, functions, sources, parts)  # may name more functions
    for key, artifact_id in facts.full_code.items():
        functions.full_code[functions.index(*key)] = artifact_id
    # Lines of texts are linked to the user's lines, and then kernels to what they compute.
    notes, linked_artifacts, kernels = _tied_to_lines(made, events, facts, sources, parts)
    run = replace(
        without_events(origin, begin),
        functions=functions.table(),
        compilations=tuple(compilations),
        artifacts=tuple(linked_artifacts),
        kernels=tuple(kernels),
        breaks=breaks,
        recompiles=recompiles,
        fallbacks=tuple(fallbacks),
        phases=parts.part("the times of the compiler's phases", (), _phases, events, begin),
        notes=(*facts.notes, *notes),
    )
    run = _with_caches(with_shadow(run, facts.shadowed, sources), events, sources, parts)
    run = parts.part("who called what was compiled", run, _with_stacks, run, events, files.names, sources)
    no_issues: Sequence[Finding] = ()
    issues = parts.part("what torch.export found", no_issues, export_issues, events, files.names, sources)
    run = replace(run, sources=sources.table())
    return replace(run, findings=findings_of(run, parts, issues), totals=totals_of(run), failures=parts.failures)


def _with_memory(artifacts: Optional[Sequence[Artifact]], events: Sequence[Event], parts: Parts) -> Sequence[Artifact]:
    """Return the artifacts, with the memory of graphs."""
    nothing: Sequence[Artifact] = ()
    # A session gives the files of its dump; a log has the same texts as payloads of events.
    made = artifacts if artifacts is not None else parts.part("graphs and code", nothing, artifacts_of, events)
    return parts.part("the memory of graphs", made, with_memory, made, events)


def without_events(origin: Recorder, started: float) -> Run:
    """Return the minimal facts about a run."""
    return Run(
        depyf=origin.depyf,
        torch=origin.torch,
        python=origin.python,
        origin=origin.origin,
        rank=origin.rank,
        command=tuple(origin.command),
        started=started,
        launch=origin.launch,
    )


def _tied_to_lines(
    made: Sequence[Artifact], events: Sequence[Event], facts: Facts, sources: Sources, parts: Parts
) -> Tuple[Sequence[str], List[Artifact], List[ModuleKernel]]:
    """Return notes about lines that have moved, the artifacts with their links, and the kernels in them."""
    nothing: Dict[str, LineOrigins] = {}
    provenance = parts.part("the lines of operations", nothing, with_noted, made, events)
    noted = parts.part(
        "lines that have moved", Anchored(provenance), anchored, made, provenance, from_cache(events), sources
    )
    transformed = {fact.artifact: fact for fact in facts.transformed}
    return (noted.notes, *linked(made, noted, sources, transformed, parts))


def _with_caches(run: Run, events: Sequence[Event], sources: Sources, parts: Parts) -> Run:
    """Add the look-ups in PyTorch's caches, what a start from them takes, and CUDA graphs that were skipped or recorded
    again."""
    nothing: Tuple[Tuple[CacheLookup, ...], Settings] = ((), ())
    lookups, settings = parts.part("what PyTorch's caches answered", nothing, cache_lookups, events)
    return replace(
        parts.part("what a start from caches takes", run, with_time_parts, run),
        cudagraph_skips=parts.part("why CUDA graphs were skipped", (), _cudagraph_skips, events, sources),
        cudagraph_rerecords=parts.part("why CUDA graphs were recorded again", (), _rerecords, events, sources),
        cache_lookups=lookups,
        cache_settings=settings,
    )


def _with_stacks(run: Run, events: Sequence[Event], names: Mapping[object, str], sources: Sources) -> Run:
    """Add the callers of compiled functions, the calls of ``torch.compile``, the settings in force, decisions about
    shapes, and the user's own lines. Files that only these name get numbers after the files of the run."""
    stacked = of_callers(events)
    called, sites = callers(stacked, names, sources, run), call_sites(stacked, sources)
    settings = settings_of(stacked)
    numbers = {each: number for number, each in enumerate(dict.fromkeys(settings.values()))}
    compilations = tuple(
        replace(
            each,
            callers=called.get(each.compile_id, ()),
            compiled_at=sites.get(each.compile_id),
            settings=numbers[settings[each.compile_id]] if each.compile_id in settings else None,
        )
        for each in run.compilations
    )
    shapes = shape_events(events, names, sources)
    run = replace(run, compilations=compilations, settings=tuple(numbers), shapes=shapes)
    return at_own_lines(run, sources)


def _compilations(
    known: Compilations, artifacts: Sequence[Artifact], facts: Facts, functions: Functions, parts: Parts
) -> List[Compilation]:
    """Return the compilations in the events or in the process, with the calls in their transformed code."""
    transformed = {fact.compile_id: fact for fact in facts.transformed if fact.compile_id is not None}
    ids = {fact.artifact for fact in transformed.values()}
    texts = {artifact.id: artifact.content or "" for artifact in artifacts if artifact.id in ids}
    no_names: Dict[str, str] = {}
    functions.of_compilations.update(parts.part("names of modules", no_names, wrapped_names, known))
    functions.of_compilations.update({number: fact.qualified_name for number, fact in transformed.items()})
    functions.frames.update(_frames_without_code(known, facts))
    found: List[Compilation] = []
    for compile_id in dict.fromkeys([*known.ids(), *transformed]):
        fact = transformed.get(compile_id)
        bare, graph = Compilation(compile_id, None), facts.graphs.get(compile_id)
        each = parts.part("a compilation", bare, known.compilation, compile_id, fact, graph)
        if fact is not None:
            text = texts.get(fact.artifact or "", "")
            each = replace(each, calls=parts.part("calls of transformed code", (), calls_in, text, fact, functions))
            if fact.limits and each.function is not None:
                functions.limits[each.function] = fact.limits
        found.append(each)
    return found


def _frames_without_code(known: Compilations, facts: Facts) -> Dict[str, str]:
    """Return torch's numbers of the frames of resume functions without transformed code, by their names in calls
    (``uncompiled 1``). Frames that nothing distinguishes (both sides of a branch) are left out."""
    # Side 1: resume functions that transformed code calls, and that have no transformed code themselves. A call
    # names ``uncompiled 1`` instead of a compile id.
    called: Dict[Key, List[str]] = {}
    for key, frame in (resume for fact in facts.transformed for resume in fact.resumes.values()):
        if frame.startswith(UNCOMPILED) and frame not in called.setdefault(key, []):
            called[key].append(frame)
    # Side 2: frames in the events without transformed code, by name, file and first line.
    with_code = {frame_number(fact.compile_id or "") for fact in facts.transformed}
    compiled: Dict[Optional[Key], List[str]] = {}
    for compile_id in known.ids() if called else ():
        frame = frame_number(compile_id)
        if frame not in with_code and frame not in compiled.setdefault(known.key_of(compile_id), []):
            compiled[known.key_of(compile_id)].append(frame)
    # Only a key with one frame on both sides is sure: ``uncompiled 1`` is frame 3 of torch, say.
    both = ((frames, compiled.get(key, [])) for key, frames in called.items())
    return {frames[0]: numbers[0] for frames, numbers in both if len(frames) == len(numbers) == 1}


def _fallbacks(
    known: Compilations,
    facts: Facts,
    compilations: Sequence[Compilation],
    breaks: Sequence[GraphBreak],
    functions: Functions,
    sources: Sources,
    parts: Parts,
) -> Sequence[Fallback]:
    what = "why a function runs as plain Python"
    if facts.fallbacks is None:
        return parts.part(what, [], _from_metrics, known, compilations, breaks, sources)
    found = [parts.part(what, None, _fallback, fact, functions, sources) for fact in facts.fallbacks]
    return [each for each in found if each is not None]


def _mentioned(events: Sequence[Event]) -> List[str]:
    """Return full names of files in events, for other events that only have the last parts."""
    found = (event.meta.get("co_filename") for event in events if isinstance(event.meta, Mapping))
    return [str(path) for path in found if path]


def _cudagraph_skips(events: Sequence[Event], sources: Sources) -> Tuple[CudaGraphSkip, ...]:
    return tuple(
        CudaGraphSkip(
            each.compile_id,
            each.reason,
            None if each.place is None else sources.place(*each.place),
            advice_for_cudagraphs(each.reason),
        )
        for each in skips(events)
    )


def _rerecords(events: Sequence[Event], sources: Sources) -> Tuple[CudaGraphRerecord, ...]:
    return tuple(
        CudaGraphRerecord(
            each.compile_id,
            each.function,
            each.mode,
            each.reason,
            each.times,
            None if each.place is None else sources.place(*each.place),
            advice_for_rerecords(each.reason),
        )
        for each in rerecords(events)
    )


def _with_failures(compilations: Sequence[Compilation], recompiles: Sequence[Recompile]) -> List[Compilation]:
    """Return the compilations with the failures of their guards, counted by later recompilations if unknown."""
    failures = Counter(guard.entry for each in recompiles for guard in each.failed)
    return [
        each if each.guard_failures is not None else replace(each, guard_failures=failures.get(each.compile_id, 0))
        for each in compilations
    ]


def _fallback(fact: FallbackFact, functions: Functions, sources: Sources) -> Fallback:
    return Fallback(
        function=functions.index(*fact.function, fact.qualified_name, fact.compile_id or ""),
        compile_id=fact.compile_id,
        cause=fact.cause,
        reason=fact.reason,
        place=_place(fact.place, fact.reason, sources),
        advice=fact.advice or advice_for_fallback(fact.cause, fact.reason, fact.stack, sources.text),
        stack=sources.places(fact.stack),
        calls=fact.calls,
    )


def _place(known: Optional[Tuple[str, int]], reason: str, sources: Sources) -> Optional[Place]:
    """Return the user's line that a fallback is due to, if it is known."""
    violated = violated_constraint(reason)
    place = known if known is not None or violated is None else violated.location
    return None if place is None else sources.place(*place)


def _cause_in_metrics(metrics: Mapping[str, object], *, broken: bool, met: bool) -> str:
    """Return why a compilation failed. ``broken``: for a graph break; ``met``: Dynamo reported it, as it does where it
    goes on without the frame. With ``fullgraph=True`` it is an error of the program's."""
    suppressed = metrics.get("config_suppress_errors")  # from PyTorch 2.6 on
    if broken and (met or suppressed is not False):
        return GRAPH_BREAK
    if suppressed is None:
        return "error while compiling"
    return SUPPRESSED if suppressed else RAISED


def _from_metrics(
    known: Compilations, compilations: Sequence[Compilation], breaks: Sequence[GraphBreak], sources: Sources
) -> List[Fallback]:
    met = {each.compile_id for each in breaks}
    found = []
    for each in compilations:
        if each.status not in ("failed", "limit", "skipped") or not each.metrics:
            continue
        # ``failure`` is ``Unsupported: Data-dependent branching``: the class of the error, then its text.
        kind = each.failure.split(":")[0]
        cause = (
            SKIPPED
            if each.status == "skipped"
            else RAISED
            if is_raised_limit(kind)
            else LIMIT
            if each.status == "limit"
            else _cause_in_metrics(
                each.metrics, broken=kind in ("Unsupported", "UserError"), met=each.compile_id in met
            )
        )
        reason = each.failure.partition(": ")[2] or each.failure
        stack = () if cause == SKIPPED else known.error_stack(each.compile_id)
        place = _place(innermost_line(stack), reason, sources)
        advice = advice_for_fallback(cause, reason, stack, sources.text)
        found.append(Fallback(each.function, each.compile_id, cause, reason, place, advice, sources.places(stack)))
    return found


def _phases(events: Sequence[Event], begin: float) -> Tuple[Phase, ...]:
    found = spans([event for event in events if event.name == PHASE])
    backward: Dict[int, bool] = {}
    phases = []
    for index, span in enumerate(found):
        # Parents come before their children, so that a phase inside of a backward is found to be of the backward.
        above = span.parent is not None and backward[span.parent]
        backward[index] = above or "bwd" in span.name or "backward" in span.name
        phases.append(Phase(span.compile_id, span.name, span.start - begin, span.seconds, backward[index], span.parent))
    return tuple(phases)
