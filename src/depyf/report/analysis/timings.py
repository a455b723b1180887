"""Put what ``profile`` has measured into the model of a run: lines as places in its sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Sequence, Tuple

from depyf.base.quick_dataclass import replace
from depyf.report.analysis.sources import read_source
from depyf.report.model.run import Place, Run, SourceFile
from depyf.report.model.timing import (
    TimedGap,
    TimedKernel,
    TimedLine,
    TimedModule,
    TimedOutside,
    TimedPair,
    TimedRun,
    Timing,
)
from depyf.torch_trace.user_code import is_library

if TYPE_CHECKING:  # a session in which nothing is profiled loads none of these
    from depyf.answers.nonfinite import Line
    from depyf.answers.profiled import KernelTime, LineTime, Profiled

_MOST_KERNELS, _MOST_GAPS = 400, 100
"""Of a program with more, the page has those that take longest."""


def with_timings(run: Run, measured: Sequence[Profiled]) -> Run:
    """Return the run with these measurements; files that it does not have yet become sources of it."""
    places = _Places(run)
    timings = tuple(_timing(each, places) for each in measured)
    return replace(run, timings=timings, sources=tuple(places.sources))


class _Places:
    def __init__(self, run: Run) -> None:
        self.sources: List[SourceFile] = list(run.sources)
        self._known: Dict[str, int] = {source.path: index for index, source in enumerate(run.sources)}

    def of(self, line: Line) -> Place:
        """Return a line as a place."""
        index = self._known.get(line.file)
        if index is None:
            index = self._known[line.file] = len(self.sources)
            self.sources.append(SourceFile(line.file, read_source(line.file), is_library(line.file)))
        return index, line.line


def _timing(profiled: Profiled, places: _Places) -> Timing:
    parts, beside = profiled.parts, profiled.eager
    gaps, timeline = _in_time(profiled, places)
    return Timing(
        function=profiled.function,
        steps=profiled.steps,
        seconds=profiled.seconds,
        attributed=profiled.attributed,
        device=profiled.device,
        parts={
            "kernels and operations of graphs": parts.graphs,
            "operations in no graph": parts.outside,
            "guards": parts.guards,
            "calling graphs": parts.calling,
            "other Python": parts.python,
        },
        compiled=None if beside is None else beside.compiled.median,
        eager=None if beside is None else beside.eager.median,
        worth=() if beside is None else profiled.sentences(),
        lines=tuple(_line(each, places) for each in profiled.lines),
        modules=tuple(
            TimedModule(each.name, each.type, each.cost.forward, each.cost.backward, each.eager)
            for each in profiled.modules
        ),
        kernels=tuple(_kernel(each, places) for each in profiled.kernels[:_MOST_KERNELS]),
        outside=tuple(
            TimedOutside(each.reason, each.cost.seconds, None if each.line is None else places.of(each.line))
            for each in profiled.outside
        ),
        not_fused=tuple(
            TimedPair(
                each.first.name,
                each.second.name,
                each.reason,
                each.advice,
                tuple(places.of(line) for line in each.first.lines),
                tuple(places.of(line) for line in each.second.lines),
            )
            for each in profiled.not_fused
        ),
        notes=profiled.notes,
        gaps=gaps,
        timeline=timeline,
        limits=None if profiled.limits is None else (profiled.limits.bytes, profiled.limits.operations),
    )


def _line(each: LineTime, places: _Places) -> TimedLine:
    cost = each.cost
    return TimedLine(
        places.of(each.line), cost.forward, cost.backward, cost.shared, each.eager, cost.bytes, cost.operations
    )


def _in_time(profiled: Profiled, places: _Places) -> Tuple[Tuple[TimedGap, ...], Tuple[TimedRun, ...]]:
    """Return the gaps and the timeline of a call."""
    gaps = []
    for gap in profiled.gaps[:_MOST_GAPS]:
        after, before = (None if line is None else places.of(line) for line in (gap.after, gap.before))
        gaps.append(TimedGap(gap.seconds, gap.times, gap.guards, gap.calling, gap.launching, after, before))
    timeline = []
    for ran in profiled.timeline:
        where = tuple(map(places.of, ran.lines))
        timeline.append(TimedRun(ran.name, ran.what, ran.where, ran.start, ran.seconds, ran.graph, ran.backward, where))
    return tuple(gaps), tuple(timeline)


def _kernel(each: KernelTime, places: _Places) -> TimedKernel:
    cost = each.cost
    return TimedKernel(
        each.name,
        each.kind,
        each.graph,
        cost.seconds,
        backward=cost.backward > 0,
        calls=cost.calls,
        bytes=cost.bytes,
        operations=cost.operations,
        places=tuple(places.of(line) for line in each.lines),
    )
