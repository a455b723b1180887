"""The summary of one rank: what is compared with other ranks, in a few kilobytes.

Each rank writes its own, so that a thousand ranks are compared without reading a thousand dumps. ``summary_of`` is a
pure function of the run. A file that is read may be damaged or malicious: it is validated here, and never executed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import field
from typing import Dict, List, Mapping, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.messages import cut
from depyf.base.quick_dataclass import dataclass, replace
from depyf.report.diff.graph_text import without_types
from depyf.report.diff.matching import NO_FUNCTION, ComparedRun, FunctionKey
from depyf.report.model.counts import counts_of
from depyf.report.model.headline import headline
from depyf.report.model.manifest import ManifestError, from_data, json_text
from depyf.report.model.phases import phase_totals
from depyf.report.model.run import Compilation, Function, Recompile, Run, SourceFile, Status
from depyf.torch_trace.breaks import title_line

SUMMARY_SCHEMA = 1

_LONGEST, _LARGEST = 300, 1 << 23
"""Characters of a text, and of a summary that is read: real ones have a few thousand."""

_LARGEST_NUMBER = 10**9
"""Of ranks, lines, counts and seconds."""

_LARGEST_TIME = 1e11
"""In seconds since the epoch."""

_PHASES = 6


@dataclass(frozen=True)
class BreakSummary:
    """A graph break: where, the first line of its reason, and how many compilations met it."""

    path: str
    line: int
    title: str
    count: int = 1


@dataclass(frozen=True)
class CompilationSummary:
    """``graph`` and ``operations`` are hashes of the captured graph, with and without types and shapes; empty where the
    graph is not known. ``reasons`` are the guards that failed before, in words.
    """

    compile_id: str
    status: str = "compiled"
    graph: str = ""
    operations: str = ""
    reasons: str = ""


@dataclass(frozen=True)
class FunctionSummary:
    """What was compiled of one function, in order."""

    name: str
    file: str = ""
    path: str = ""
    line: int = 0
    is_resume: bool = False
    compilations: Tuple[CompilationSummary, ...] = ()

    @property
    def key(self) -> FunctionKey:
        return (self.name, self.file)


@dataclass(frozen=True)
class FallbackSummary:
    """A function that falls back to eager."""

    name: str
    file: str
    cause: str
    reason: str = ""


@dataclass(frozen=True)
class RankSummary:
    """The whole summary. ``functions`` are in the order of their first compilations; ``phases`` are the longest, in
    seconds. ``name`` is what a reader calls the rank, and is not stored.
    """

    schema: int = SUMMARY_SCHEMA
    name: str = ""
    rank: Optional[int] = None
    depyf: str = ""
    torch: str = ""
    headline: str = ""
    started: Optional[float] = None
    seconds: float = 0.0
    phases: Mapping[str, float] = field(default_factory=dict)
    breaks: Tuple[BreakSummary, ...] = ()
    functions: Tuple[FunctionSummary, ...] = ()
    fallbacks: Tuple[FallbackSummary, ...] = ()

    def by_function(self) -> Dict[FunctionKey, FunctionSummary]:
        """Return the functions by name and file."""
        return {each.key: each for each in self.functions}

    def compiled(self) -> Tuple[object, ...]:
        """Return what was compiled, to be compared: equal ranks compiled the same in the same order."""
        return (
            tuple((each.key, tuple((one.status, one.graph) for one in each.compilations)) for each in self.functions),
            tuple(sorted((each.path, each.line, each.title, each.count) for each in self.breaks)),
            tuple(sorted((each.name, each.file, each.cause) for each in self.fallbacks)),
        )


def summary_of(side: ComparedRun) -> RankSummary:
    """Reduce a run to what is compared between ranks."""
    run = side.run
    reasons = {each.compile_id: each for each in run.recompiles}
    return RankSummary(
        name=side.name,
        rank=run.rank,
        depyf=run.depyf,
        torch=run.torch,
        headline=headline(run),
        started=run.started,
        seconds=round(counts_of(run).seconds, 6),
        phases={cut(name, _LONGEST): round(seconds, 3) for name, seconds in phase_totals(run)[:_PHASES]},
        breaks=_breaks(side),
        functions=tuple(
            _function(side, key, some, reasons) for key, some in side.compilations().items() if key != NO_FUNCTION
        ),
        fallbacks=tuple(
            FallbackSummary(
                *side.function_at(each.function), each.cause, cut(title_line(each.reason) or each.cause, _LONGEST)
            )
            for each in run.fallbacks
        ),
    )


def _breaks(side: ComparedRun) -> Tuple[BreakSummary, ...]:
    found: Dict[Tuple[str, int, str], int] = {}
    for each in side.run.breaks:
        path, line = ("", 0) if each.place is None else (side.run.sources[each.place[0]].path, each.place[1])
        key = (path, line, cut(title_line(each.reason), _LONGEST))
        found[key] = found.get(key, 0) + 1
    return tuple(BreakSummary(*key, count) for key, count in found.items())


def _function(
    side: ComparedRun, key: FunctionKey, compilations: List[Compilation], reasons: Mapping[str, Recompile]
) -> FunctionSummary:
    index = next(each.function for each in compilations if each.function is not None)
    function = side.run.functions[index]
    found = []
    for each in compilations:
        graph = side.captured_graph(each.compile_id)
        recompile = reasons.get(each.compile_id)
        words = [] if recompile is None else [failed.words or failed.text for failed in recompile.failed]
        found.append(
            CompilationSummary(
                each.compile_id,
                each.status,
                "" if graph is None else _hash(graph),
                "" if graph is None else _hash(without_types(graph)),
                cut("; ".join(words), _LONGEST),
            )
        )
    path = side.run.sources[function.source].path
    return FunctionSummary(*key, path, function.first_line, side.is_resume(index), tuple(found))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def summary_json(summary: RankSummary) -> str:
    """Return the text of a summary's file."""
    return json_text(replace(summary, name=""))


def summary_from_json(text: str, name: str) -> RankSummary:
    """Return the summary that such a text describes; ``name`` is for messages. Raises ``ManifestError``."""
    if len(text) > _LARGEST:
        raise ManifestError(f"{name}: too large for the summary of a rank ({len(text)} characters)")
    try:
        data = json.loads(text)
        schema = data.get("schema") if isinstance(data, dict) else None
        if type(schema) is not int:
            raise ManifestError(f"{name}: not the summary of a rank (it has no number of a schema)")
        if schema > SUMMARY_SCHEMA:
            newest = f"this one reads up to {SUMMARY_SCHEMA}"
            raise ManifestError(f"{name}: written by a newer depyf (schema {schema}, {newest}); update depyf")
        return _checked(from_data(RankSummary, data))
    except synchronous(ManifestError):
        raise
    except synchronous(ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ManifestError(f"{name}: a damaged summary of a rank ({type(error).__name__}: {error})") from error


def _checked(summary: RankSummary) -> RankSummary:
    """Return the same with times that are numbers. Raises ``ValueError`` for functions that are named twice, and for
    numbers that no program has.
    """
    if len(summary.by_function()) != len(summary.functions):
        raise ValueError("a function is listed twice")
    numbers = [number for each in summary.breaks for number in (each.line, each.count)]
    numbers += [each.line for each in summary.functions]
    numbers += [] if summary.rank is None else [summary.rank]
    if not all(0 <= number <= _LARGEST_NUMBER for number in numbers):
        raise ValueError("a rank, a line or a count is negative or too large")
    phases = {str(name): _number(seconds) for name, seconds in summary.phases.items()}
    known = summary.started is not None and 0 <= summary.started <= _LARGEST_TIME
    started = summary.started if known else None
    return replace(summary, schema=SUMMARY_SCHEMA, started=started, seconds=_number(summary.seconds), phases=phases)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and 0 <= value <= _LARGEST_NUMBER else 0.0


ONLY_A_SUMMARY = "only the summary of this rank was read: its graphs, code and guards are in its own dump"


_NOT_COMPILED: Mapping[str, Status] = {"failed": "failed", "limit": "limit"}


def run_of_summary(summary: RankSummary) -> Run:
    """Return the run of a rank from its summary alone, for a page: functions and compilations."""
    sources: Dict[str, int] = {}
    for each in summary.functions:
        sources.setdefault(each.path or each.file, len(sources))
    functions = tuple(
        Function(each.name.rsplit(".", 1)[-1], each.name, sources[each.path or each.file], each.line, each.line)
        for each in summary.functions
    )
    compilations = tuple(
        Compilation(one.compile_id, index, _NOT_COMPILED.get(one.status, "compiled"))
        for index, each in enumerate(summary.functions)
        for one in each.compilations
    )
    return Run(
        origin="files",
        depyf=summary.depyf,
        torch=summary.torch,
        rank=summary.rank,
        sources=tuple(SourceFile(path) for path in sources),
        functions=functions,
        compilations=compilations,
        notes=(ONLY_A_SUMMARY,),
    )
