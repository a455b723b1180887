"""Build the model of a run from torch's events (in process or from a log)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.diagnosis.break_advice import advice_for_cudagraphs, advice_for_fallback
from depyf.report.analysis.anchors import anchored, from_cache
from depyf.report.analysis.artifacts import artifacts_of
from depyf.report.analysis.compilations import Compilations, calls_in
from depyf.report.analysis.facts import Facts, FallbackFact, Files, Origin
from depyf.report.analysis.findings import findings_of
from depyf.report.analysis.functions import Functions
from depyf.report.analysis.linking import linked
from depyf.report.analysis.noted import with_noted
from depyf.report.analysis.sources import Sources
from depyf.report.model.counts import totals_of
from depyf.report.model.run import Artifact, Compilation, CudaGraphSkip, Fallback, Function, Phase, Recompile, Run
from depyf.torch_trace.cudagraphs import skips
from depyf.torch_trace.events import PHASE, Event
from depyf.torch_trace.metrics import spans

_BY_US, _AS_NAMED, _NO_FACTS = Origin(), Files(), Facts()


def build_run(
    events: Sequence[Event],
    artifacts: Optional[Sequence[Artifact]] = None,
    *,
    origin: Origin = _BY_US,
    files: Files = _AS_NAMED,
    facts: Facts = _NO_FACTS,
) -> Run:
    """The model of a run out of its ``events``, in their order, and its ``artifacts``.

    ``artifacts`` come with their ``text`` (the answer's have it too; ``report.manifest`` leaves it out where there is a
    file); their links and the kernels are found here. With None they are made from the payloads of the events. The rest
    is what events do not say, all of it optional.
    """
    sources = Sources(files.read, [*files.names.values(), *_mentioned(events)], files.directory)
    functions = Functions(sources)
    first = min((event.created for event in events), default=0.0)
    begin = first if origin.started is None else origin.started
    known = Compilations(events, sources, functions, files.names, begin)
    made = artifacts_of(events) if artifacts is None else artifacts
    compilations = _compilations(known, made, facts, functions)
    breaks, recompiles = known.breaks(), known.recompiles()
    compilations = _with_failures(compilations, recompiles)
    fallbacks = _fallbacks(facts, compilations, functions, sources)  # may name functions that nothing else does
    for key, artifact_id in facts.full_code.items():
        functions.full_code[functions.index(*key)] = artifact_id
    noted = anchored(made, with_noted(made, events, facts.provenance), from_cache(events), sources)
    linked_artifacts, kernels = linked(made, noted, sources, {fact.artifact: fact for fact in facts.transformed})
    table = functions.table()
    run = Run(
        depyf=origin.depyf,
        torch=origin.torch,
        python=origin.python,
        origin=origin.origin,
        rank=origin.rank,
        command=tuple(origin.command),
        started=begin,
        functions=table,
        compilations=tuple(compilations),
        artifacts=tuple(linked_artifacts),
        kernels=tuple(kernels),
        breaks=breaks,
        recompiles=_with_places(recompiles, table),
        fallbacks=tuple(fallbacks),
        cudagraph_skips=tuple(_cudagraph_skips(events, sources)),
        phases=tuple(_phases(events, begin)),
        notes=(*facts.notes, *noted.notes),
    )
    run = replace(run, sources=sources.table())
    return replace(run, findings=findings_of(run), totals=totals_of(run))


def _compilations(
    known: Compilations, artifacts: Sequence[Artifact], facts: Facts, functions: Functions
) -> List[Compilation]:
    """The compilations that the events or the process know of, with the calls in their transformed code."""
    texts = {artifact.id: artifact.text or "" for artifact in artifacts}
    transformed = {fact.compile_id: fact for fact in facts.transformed if fact.compile_id is not None}
    functions.of_compilations.update({number: fact.qualified_name for number, fact in transformed.items()})
    found: List[Compilation] = []
    for compile_id in dict.fromkeys([*known.ids(), *transformed]):
        fact = transformed.get(compile_id)
        each = known.compilation(compile_id, fact, facts.graphs.get(compile_id))
        if fact is not None:
            each = replace(each, calls=calls_in(texts.get(fact.artifact or "", ""), fact, functions))
        found.append(each)
    return found


def _fallbacks(
    facts: Facts, compilations: Sequence[Compilation], functions: Functions, sources: Sources
) -> Sequence[Fallback]:
    if facts.fallbacks is None:
        return list(_from_metrics(compilations))
    return [_fallback(fact, functions, sources) for fact in facts.fallbacks]


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


def _with_failures(compilations: Sequence[Compilation], recompiles: Sequence[Recompile]) -> List[Compilation]:
    """How often the guards of each failed, counted by the recompilations after it if not known otherwise."""
    failures = Counter(guard.entry for each in recompiles for guard in each.failed)
    return [
        each if each.guard_failures is not None else replace(each, guard_failures=failures.get(each.compile_id, 0))
        for each in compilations
    ]


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
    found = spans([event for event in events if event.name == PHASE])
    backward: Dict[int, bool] = {}
    phases = []
    for index, span in enumerate(found):
        above = span.parent is not None and backward[span.parent]
        backward[index] = above or "bwd" in span.name or "backward" in span.name
        phases.append(Phase(span.compile_id, span.name, span.start - begin, span.seconds, backward[index], span.parent))
    return phases
