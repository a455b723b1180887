"""When things ran: the timeline of one profiled call, and the gaps of all profiled calls.

A gap is a stretch in which nothing computed: no kernel ran on the device or, without a device, no kernel and no
operation on any thread. The program waited for its own Python, for guards, or for the wrappers of graphs.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from depyf.answers.nonfinite import Line
from depyf.answers.profiled import Gap, KernelKind, TimelineEntry
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.questions.profile.spans import Launched
from depyf.dynamo.questions.profile.units import CALLING, GUARDS, Division, Interval, Unit

MOST_RAN = 2000
"""A timeline with more entries ends there: the profile of a training step has a few hundred."""

_LAUNCHING = "launching"
_HOST = "calling thread"
_NAMES = {GUARDS: "guards", CALLING: "calling graphs"}
_AT_ONCE = 1e-9


@dataclass(frozen=True)
class PlacedUnit:
    """A unit of work with its name, kind and lines. ``graph`` is a compile id, empty outside of graphs."""

    unit: Unit
    name: str
    kind: KernelKind
    graph: str
    lines: Tuple[Line, ...]
    backward: bool

    @property
    def kernels(self) -> Iterator[Launched]:
        """The kernels that the unit launched on a device, with their starts where these are known."""
        for span in self.unit.span.walk():
            yield from span.on_device


class _Busy(NamedTuple):
    """A time in which something computed. ``lines`` are empty for a compilation, which is no time of the program."""

    start: float
    end: float
    lines: Tuple[Line, ...] = ()


class Timeline:
    """The units of the counted calls, with their times. ``steps`` are the numbers of the counted calls."""

    def __init__(
        self, division: Division, placed: Sequence[PlacedUnit], steps: Sequence[int], *, on_device: bool
    ) -> None:
        self._division = division
        self._steps = steps
        self._on_device = on_device
        self.notes: List[str] = []
        """What the gaps and the timeline lack, and why."""
        self._placed: Dict[int, List[PlacedUnit]] = {step: [] for step in steps}
        for each in placed:
            self._placed[each.unit.step].append(each)

    def of_one_call(self) -> Tuple[TimelineEntry, ...]:
        """Return what ran in one call, in order, at most ``MOST_RAN`` entries: of the calls that count in the one of
        median length."""
        if not self._steps:
            return ()
        step = sorted(self._steps, key=self._division.lengths.__getitem__)[len(self._steps) // 2]
        begin = self._division.bounds[step][0]
        found = [
            TimelineEntry(name, part, _HOST, start - begin, end - start)
            for part, name in _NAMES.items()
            for start, end in _joined(self._intervals(step, part))
        ]
        for placed in self._placed[step]:
            found += self._ran(placed, begin)
        if len(found) > MOST_RAN:
            more = len(found) - MOST_RAN
            self.notes.append(f"the timeline ends after {MOST_RAN} entries of a call: {more} more are not in it")
        return tuple(sorted(found, key=lambda each: each.start)[:MOST_RAN])

    def _ran(self, placed: PlacedUnit, begin: float) -> Iterator[TimelineEntry]:
        """Yield the unit on its thread, and each kernel that it launched on the device."""
        span, kernels = placed.unit.span, list(placed.kernels)
        kind, graph, lines, backward = placed.kind, placed.graph, placed.lines, placed.backward
        if span.end > span.start:  # the kernels of a replay have no times on the host
            where = _HOST if span.thread == self._division.main_thread else f"thread {span.thread}"
            # A kernel of the device computes; on the host it is launched.
            what = _LAUNCHING if kernels else kind
            yield TimelineEntry(
                placed.name, what, where, span.start - begin, placed.unit.seconds, graph, lines, backward
            )
        for kernel in kernels:
            if kernel.start is not None:
                yield TimelineEntry(
                    kernel.name, kind, "cuda", kernel.start - begin, kernel.seconds, graph, lines, backward
                )

    def gaps(self) -> Tuple[Gap, ...]:
        """Return the gaps, those between the same lines together, the longest first; seconds are of one call. None
        where the profiler does not say when a kernel of the device ran."""
        kernels = (kernel for units in self._placed.values() for each in units for kernel in each.kernels)
        if self._on_device and any(kernel.start is None for kernel in kernels):
            self.notes.append("the profiler does not say when each kernel ran on the device: gaps are not known")
            return ()
        sums: Dict[Tuple[Optional[Line], Optional[Line]], List[float]] = {}
        for step in self._steps:
            parts = [self._intervals(step, part) for part in (GUARDS, CALLING, _LAUNCHING)]
            for start, end, after, before in self._gaps_of(step):
                found = sums.setdefault((after, before), [0.0] * 5)
                values = (end - start, 1.0, *(_overlap(start, end, each) for each in parts))
                found[:] = [one + other / len(self._steps) for one, other in zip(found, values)]
        made = [Gap(after, before, *values) for (after, before), values in sums.items()]
        return tuple(sorted(made, key=lambda each: -each.seconds))

    def _gaps_of(self, step: int) -> Iterator[Tuple[float, float, Optional[Line], Optional[Line]]]:
        """Yield the begin and the end of each gap of a call, the line that computed last, and the line that computes
        next. A line is None at an end of the call, beside a compilation, and where it is not known."""
        begin, end = self._division.bounds[step]
        busy = [*self._busy(step), *itertools.starmap(_Busy, self._division.skipped), _Busy(end, end)]
        reached, last = begin, None
        for each in sorted(busy, key=lambda each: each.start):
            start = min(each.start, end)
            if start > reached:
                yield reached, start, last, each.lines[0] if each.lines else None
            if each.end >= reached:
                reached, last = each.end, each.lines[-1] if each.lines else None

    def _busy(self, step: int) -> Iterator[_Busy]:
        for placed in self._placed[step]:
            if not self._on_device:
                yield _Busy(placed.unit.span.start, placed.unit.span.end, placed.lines)
                continue
            for kernel in placed.kernels:
                if kernel.start is not None:
                    yield _Busy(kernel.start, kernel.start + kernel.seconds, placed.lines)

    def _intervals(self, step: int, part: str) -> List[Interval]:
        """Return the times of the calling thread that a part takes, in order. Without a device no operation is
        launched: it runs."""
        if part != _LAUNCHING:
            return sorted(self._division.stretches.get((step, part), ()))
        launching = [each for each in self._placed[step] if self._on_device and any(each.kernels)]
        spans = (each.unit.span for each in launching)
        return sorted((each.start, each.end) for each in spans if each.thread == self._division.main_thread)


def _joined(intervals: Sequence[Interval]) -> Iterator[Interval]:
    """Yield the times; of those that touch one is made: a wrapper of a graph calls the next one."""
    open_one: Optional[Interval] = None
    for start, end in intervals:
        if open_one is not None and start - open_one[1] < _AT_ONCE:
            open_one = open_one[0], end
            continue
        if open_one is not None:
            yield open_one
        open_one = start, end
    if open_one is not None:
        yield open_one


def _overlap(start: float, end: float, intervals: Sequence[Interval]) -> float:
    """Return how much of a time is in intervals that are in order and do not overlap."""
    total = 0.0
    for at in range(max(0, bisect_right(intervals, (start, float("inf"))) - 1), len(intervals)):
        begin, until = intervals[at]
        if begin >= end:
            break
        total += max(0.0, min(until, end) - max(begin, start))
    return total
