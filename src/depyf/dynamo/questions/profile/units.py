"""Divide the spans of a profile: units of work, and what the rest of the time is spent on.

A unit is a kernel of Inductor's or the outermost span of an operation: ``aten::linear`` and not the ``aten::addmm`` in
it. Everything around the units is time of Python, of guards, or of the wrappers of graphs.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import dataclass, replace
from depyf.dynamo.questions.profile.marks import COMPILED, KERNEL, NUMBERED, STEP
from depyf.dynamo.questions.profile.spans import Span

_REGION = "Torch-Compiled Region: "
_LOOKUP = "TorchDynamo Cache Lookup"
_NODE = "autograd::engine::evaluate_function: "
_FORWARD, _BACKWARD = "CompiledFunction", "CompiledFunctionBackward"
_GRAPH = ("## Call CompiledFxGraph", "AOTDispatcher Runtime Wrapper", "Pregraph bytecode")
_TRITON = "triton_"
"""How the kernels begin that mark themselves for the profiler, with their names."""
_NO_UNITS = ("autograd::", "torch::autograd::")

GRAPHS, OUTSIDE, GUARDS, CALLING = "graphs", "outside", "guards", "calling"


@dataclass(frozen=True)
class Surroundings:
    """What is around a span: the compile id of the region, whether it is in the call of a graph, and of the node of a
    backward autograd's number."""

    region: str = ""
    in_graph: bool = False
    backward: bool = False
    sequence: int = -1


@dataclass(eq=False)
class Unit:
    """A kernel or an operation that ran. ``kernel`` and ``number`` are the numbers of its mark, None without one.
    ``named``: a kernel that is known by its name alone."""

    span: Span
    around: Surroundings
    step: int
    kernel: Optional[int] = None
    number: Optional[int] = None
    named: bool = False

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.span.inside[0].name if self.number is not None and self.span.inside else self.span.name

    @property
    def seconds(self) -> float:
        """Its time on the host; a mark around an operation takes time itself."""
        return self.span.seconds - self.span.own_seconds if self.number is not None else self.span.seconds

    @property
    def sequences(self) -> List[int]:
        """The numbers by which nodes of a backward know the operations in it."""
        return [each.sequence for each in self.span.walk() if each.sequence >= 0]


Interval = Tuple[float, float]


@dataclass
class Division:
    """All units of the steps in order, and what the calling thread spends on graphs without running them.

    ``stretches`` has, by step and part, when the calling thread was in the wrappers of graphs (``CALLING``) or in
    guards (``GUARDS``); ``spent`` has seconds by step and part. ``bounds`` are the begin and the end of each step.
    ``lengths`` are the seconds of each step without ``skipped``, the times of compilations, which are in order and do
    not overlap. ``main_thread`` is the profiler's number of the calling thread.
    """

    units: List[Unit] = field(default_factory=list)
    stretches: Dict[Tuple[int, str], List[Interval]] = field(default_factory=dict)
    spent: Dict[Tuple[int, str], float] = field(default_factory=dict)
    bounds: List[Interval] = field(default_factory=list)
    lengths: List[float] = field(default_factory=list)
    skipped: List[Interval] = field(default_factory=list)
    main_thread: Optional[int] = None

    def take(self, step: int, part: str, seconds: float) -> None:
        """Add time of a step to a part."""
        self.spent[step, part] = self.spent.get((step, part), 0.0) + seconds

    def calm_steps(self) -> List[int]:
        """Return the faster half of the steps: something else has run on the machine in the others."""
        order = sorted(range(len(self.lengths)), key=self.lengths.__getitem__)
        return sorted(order[: (len(order) + 1) // 2])


def divide(spans: Sequence[Span]) -> Division:
    """Divide the spans of all threads. What is before the first and after the last mark of a step does not count."""
    marks = [each for span in spans for each in span.walk() if each.name.startswith((STEP, COMPILED))]
    bounds = sorted((each for each in marks if each.name.startswith(STEP)), key=lambda each: each.start)
    division = Division()
    if len(bounds) < 2:
        return division
    division.main_thread = bounds[0].thread
    # A mark of a compilation comes at its end, and says how long it took.
    first, last = bounds[0].end, bounds[-1].start
    division.skipped = _union(
        (max(first, each.start - float(each.name[len(COMPILED) :])), min(last, each.end))
        for each in marks
        if each.name.startswith(COMPILED)
    )
    for before, after in zip(bounds, bounds[1:]):
        division.bounds.append((before.end, after.start))
        parts = _outside_of(division.skipped, before.end, after.start)
        division.lengths.append(sum(end - start for start, end in parts))
    divider = _Divider(division, [each.start for each in bounds])
    for span in spans:
        divider.visit(span, Surroundings())
    return division


def _union(intervals: Iterable[Interval]) -> List[Interval]:
    """Return the same times, in order and without overlaps: the backward may be compiled while the forward is."""
    found: List[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif start < end:
            found.append((start, end))
    return found


def _outside_of(intervals: Sequence[Interval], start: float, end: float) -> Iterator[Interval]:
    """Yield the parts of the time from ``start`` to ``end`` that lie in no interval. The intervals are in order."""
    for begin, until in intervals:
        if until <= start:
            continue
        if begin >= end:
            break
        if begin > start:
            yield start, begin
        start = max(start, until)
    if start < end:
        yield start, end


class _Divider:
    def __init__(self, division: Division, bounds: Sequence[float]) -> None:
        self._division = division
        self._bounds = bounds
        self._regions: Dict[int, str] = {}
        """The region of each forward of AOTAutograd's, by autograd's number: the backward has the same number."""

    def visit(self, span: Span, around: Surroundings) -> None:
        """Take the span, and what is inside of it."""
        if any(start <= span.start and span.end <= end for start, end in self._division.skipped):
            return
        around, part, kernel = self._entered(span, around)
        number = int(span.name[len(NUMBERED) :]) if span.name.startswith(NUMBERED) else None
        named = span.name.startswith(_TRITON)
        if kernel is not None or number is not None or named or _is_unit(span):
            step = self._step(span.start)
            if step is not None:
                self._division.units.append(Unit(span, around, step, kernel, number, named))
            return
        step = self._step(span.start)
        if part is not None and span.thread == self._division.main_thread and step is not None:
            # What ran inside of the span has a part of its own, and a compilation is nobody's time.
            for between in _outside_of([(each.start, each.end) for each in span.inside], span.start, span.end):
                for start, end in _outside_of(self._division.skipped, *between):
                    self._division.take(step, part, end - start)
                    self._division.stretches.setdefault((step, part), []).append((start, end))
        if step is not None:
            # A replay of a CUDA graph launches all kernels of a compiled graph at once, in no operation.
            for launched in span.on_device:
                replayed = Span(launched.name, span.start, span.start, span.thread, on_device=(launched,))
                self._division.units.append(Unit(replayed, around, step, named=True))
        for each in span.inside:
            self.visit(each, around)

    def _step(self, time: float) -> Optional[int]:
        step = bisect_right(self._bounds, time) - 1
        return step if 0 <= step < len(self._division.lengths) else None

    def _entered(self, span: Span, around: Surroundings) -> Tuple[Surroundings, Optional[str], Optional[int]]:
        """Return the surroundings of what is inside of a span, what part its own time is, and its kernel's number."""
        name = span.name
        if name.startswith(KERNEL):
            return around, None, int(name[len(KERNEL) :])
        if name == _LOOKUP:
            return around, GUARDS, None
        if name.startswith(_REGION):
            region = name[len(_REGION) :].split(" ")[0]
            return replace(around, region=region, in_graph=False, backward=False), CALLING, None
        if name == _FORWARD:
            self._regions.setdefault(span.sequence, around.region)
            return replace(around, in_graph=True), CALLING, None
        if name == _BACKWARD:
            region = self._regions.get(span.sequence, "")
            return replace(around, region=region, in_graph=True, backward=True), CALLING, None
        if name.startswith(_NODE):
            return replace(around, region="", in_graph=False, backward=True, sequence=span.sequence), None, None
        if name.startswith(_GRAPH):
            return replace(around, in_graph=name.startswith(_GRAPH[0]) or around.in_graph), CALLING, None
        return around, CALLING if around.in_graph else None, None


def _is_unit(span: Span) -> bool:
    """Return whether a span without a mark is an operation; one with marked operations in it is divided."""
    if "::" not in span.name or span.name.startswith(_NO_UNITS):
        return False
    return not any(each.name.startswith((NUMBERED, KERNEL)) for each in span.walk())
