"""From what torch reported (events, in process or out of a log) to the model of the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.diagnosis.break_advice import advice_for_cudagraphs, advice_for_fallback
from depyf.report.analysis.anchors import anchored, from_cache
from depyf.report.analysis.artifacts import artifacts_of
from depyf.report.analysis.compilations import Compilations, calls_in
from depyf.report.analysis.facts import FallbackFact, Provenance, TransformedFact
from depyf.report.analysis.findings import findings_of
from depyf.report.analysis.functions import Functions, Key
from depyf.report.analysis.linking import linked
from depyf.report.analysis.noted import with_noted
from depyf.report.analysis.sources import ReadText, Sources, read_source
from depyf.report.model.counts import totals_of
from depyf.report.model.run import Artifact, Compilation, CudaGraphSkip, Fallback, Function, Phase, Recompile, Run
from depyf.torch_trace.cudagraphs import skips
from depyf.torch_trace.events import Event
from depyf.torch_trace.metrics import spans


def build_run(
    events: Sequence[Event],
    artifacts: Optional[Sequence[Artifact]] = None,
    *,
    origin: str = "prepare_debug",
    rank: Optional[int] = None,
    command: Sequence[str] = (),
    started: Optional[float] = None,
    depyf: str = "",
    torch: str = "",
    python: str = "",
    names: Optional[Mapping[object, str]] = None,
    directory: str = "",
    read: ReadText = read_source,
    graphs: Optional[Mapping[str, str]] = None,
    transformed: Sequence[TransformedFact] = (),
    fallbacks: Optional[Sequence[FallbackFact]] = None,
    full_code: Optional[Mapping[Key, str]] = None,
    provenance: Optional[Mapping[str, Provenance]] = None,
    notes: Sequence[str] = (),
) -> Run:
    """The model of a run out of its ``events``, in their order, and its ``artifacts``.

    ``artifacts`` come with their ``text`` (the answer's have it too; ``report.manifest`` leaves it out where there is a
    file); their links and the kernels are found here. With None they are made from the payloads of the events.

    The rest is what events do not say, all of it optional: ``names`` are torch's numbers for file names (``str``
    records of a log), ``directory`` is where the program ran, ``read`` gives the text of a source file. ``graphs``
    are the names of compiled graphs by compile id, ``full_code`` the artifacts that tell the story of a function,
    ``provenance`` is by artifact. ``fallbacks`` are those that the process saw; with None they come from the metrics.
    """
    names = names or {}
    sources = Sources(read, [*names.values(), *_mentioned(events)], directory)
    functions = Functions(sources)
    begin = started if started is not None else min((event.created for event in events), default=0.0)
    known = Compilations(events, sources, functions, names, begin)
    made = artifacts_of(events) if artifacts is None else artifacts
    texts = {artifact.id: artifact.text or "" for artifact in made}
    facts = {fact.compile_id: fact for fact in transformed if fact.compile_id is not None}
    functions.of_compilations.update({number: fact.qualified_name for number, fact in facts.items()})
    compilations: List[Compilation] = []
    for compile_id in dict.fromkeys([*known.ids(), *facts]):
        fact = facts.get(compile_id)
        each = known.compilation(compile_id, fact, (graphs or {}).get(compile_id))
        if fact is not None:
            each = replace(each, calls=calls_in(texts.get(fact.artifact or "", ""), fact, functions))
        compilations.append(each)
    breaks, recompiles = known.breaks(), known.recompiles()
    failures = Counter(guard.entry for each in recompiles for guard in each.failed)
    compilations = [_with_failures(each, failures) for each in compilations]
    skipped = (
        _from_metrics(compilations) if fallbacks is None else [_fallback(f, functions, sources) for f in fallbacks]
    )
    for key, artifact_id in (full_code or {}).items():
        functions.full_code[functions.index(*key)] = artifact_id
    noted = anchored(made, with_noted(made, events, provenance or {}), from_cache(events), sources)
    linked_artifacts, kernels = linked(made, noted, sources, {f.artifact: f for f in transformed})
    table = functions.table()
    run = Run(
        depyf=depyf,
        torch=torch,
        python=python,
        origin=origin,
        rank=rank,
        command=tuple(command),
        started=begin,
        functions=table,
        compilations=tuple(compilations),
        artifacts=tuple(linked_artifacts),
        kernels=tuple(kernels),
        breaks=breaks,
        recompiles=_with_places(recompiles, table),
        fallbacks=tuple(skipped),
        cudagraph_skips=tuple(_cudagraph_skips(events, sources)),
        phases=tuple(_phases(events, begin)),
        notes=(*notes, *noted.notes),
    )
    run = replace(run, sources=sources.table())
    return replace(run, findings=findings_of(run), totals=totals_of(run))


def _mentioned(events: Sequence[Event]) -> List[str]:
    """Full names of files that events mention, for those that only mention the last parts."""
    found = (event.meta.get("co_filename") for event in events if isinstance(event.meta, Mapping))
    return [str(path) for path in found if path]


def _cudagraph_skips(events: Sequence[Event], sources: Sources) -> Iterator[CudaGraphSkip]:
    for each in skips(events):
        place = None if each.place is None else sources.place(*each.place)
        yield CudaGraphSkip(each.compile_id, each.reason, place, advice_for_cudagraphs(each.reason))


def _with_places(recompiles: Sequence[Recompile], functions: Sequence[Function]) -> Tuple[Recompile, ...]:
    """Each with the line that it is about: of its first guard, or else where the function begins."""
    starts = [(each.source, each.first_line) for each in functions]
    return tuple(replace(each, place=each.failed[0].place or starts[each.function]) for each in recompiles)


def _with_failures(compilation: Compilation, failures: Mapping[Optional[str], int]) -> Compilation:
    """How often its guards did not hold, counted by the recompilations that followed where nobody else counted.

    ``failures`` are those of the guards of each cache entry.
    """
    if compilation.guard_failures is not None:
        return compilation
    return replace(compilation, guard_failures=failures.get(compilation.compile_id, 0))


def _fallback(fact: FallbackFact, functions: Functions, sources: Sources) -> Fallback:
    return Fallback(
        function=functions.index(*fact.function, fact.qualified_name),
        compile_id=fact.compile_id,
        cause=fact.cause,
        reason=fact.reason,
        place=None if fact.place is None else sources.place(*fact.place),
        advice=fact.advice or advice_for_fallback(fact.cause, fact.reason),
    )


def _from_metrics(compilations: Sequence[Compilation]) -> List[Fallback]:
    found = []
    for each in compilations:
        if each.status not in ("failed", "skipped") or not each.metrics:
            continue
        kind = each.failure.split(":")[0]
        cause = (
            "skipped"
            if each.status == "skipped"
            else "recompile limit reached"
            if "limit" in each.failure.split("\n")[0].lower()
            else "graph break that Dynamo can't go on from"
            if kind in ("Unsupported", "UserError")
            else "error while compiling"
        )
        reason = each.failure.partition(": ")[2] or each.failure
        found.append(Fallback(each.function, each.compile_id, cause, reason, None, advice_for_fallback(cause, reason)))
    return found


def _phases(events: Sequence[Event], begin: float) -> List[Phase]:
    found = spans([event for event in events if event.name == "chromium_event"])
    backward: Dict[int, bool] = {}
    phases = []
    for index, span in enumerate(found):
        above = span.parent is not None and backward[span.parent]
        backward[index] = above or "bwd" in span.name or "backward" in span.name
        phases.append(Phase(span.compile_id, span.name, span.start - begin, span.seconds, backward[index], span.parent))
    return phases
