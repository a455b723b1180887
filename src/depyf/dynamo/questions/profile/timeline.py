"""When things ran in the profiled calls: the timeline of one call, and the gaps in all of them.

A gap is a stretch in which nothing computed: no kernel ran on the device or, without a device, no kernel and no
operation on any thread. The program waited for its own Python, for guards, or for the wrappers of graphs.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from depyf.answers.nonfinite import Line
from depyf.answers.profiled import Gap, KernelKind, TimelineEntry
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.questions.profile.spans import Launched
from depyf.dynamo.questions.profile.units import CALLING, GUARDS, Division, Unit

MOST_RAN = 4000
"""A timeline with more entries ends there: the profile of a training step has a few hundred."""

_LAUNCHING = "launching"
_HOST = "calling thread"
_NAMES = {GUARDS: "guards", CALLING: "calling graphs"}
_AT_ONCE = 1e-9


@dataclass(frozen=True)
class PlacedUnit:
    """A unit of work with what is known of it. ``graph`` is a compile id, empty outside of graphs."""

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
    """A time in which something computed. ``placed`` is None for a compilation, whose time is nobody's."""

    start: float
    end: float
    placed: Optional[PlacedUnit] = None


class Timeline:
    """The units of the calls that count, in time. ``steps`` are the numbers of these calls."""

    def __init__(
        self, division: Division, placed: Sequence[PlacedUnit], steps: Sequence[int], *, on_device: bool
    ) -> None:
        self._division = division
        self._steps = steps
        self._on_device = on_device
        self.left_out = 0
        """How many entries of the timeline are not in it."""
        self._placed: Dict[int, List[PlacedUnit]] = {step: [] for step in steps}
        for each in placed:
            self._placed[each.unit.step].append(each)

    def of_one_call(self) -> Tuple[TimelineEntry, ...]:
        """Return what ran in the call of median length, in the order of its starts, at most ``MOST_RAN`` entries."""
        if not self._steps:
            return ()
        lengths = self._division.lengths
        step = sorted(self._steps, key=lengths.__getitem__)[len(self._steps) // 2]
        begin = self._division.begins[step]
        found = [
            TimelineEntry(_NAMES[part], part, _HOST, start - begin, end - start)
            for part, start, end in self._joined(step)
        ]
        for placed in self._placed[step]:
            found += self._ran(placed, begin)
        self.left_out = max(0, len(found) - MOST_RAN)
        return tuple(sorted(found, key=lambda each: each.start)[:MOST_RAN])

    def _joined(self, step: int) -> Iterator[Tuple[str, float, float]]:
        """Yield the stretches of a call; those that follow each other at once are one: wrappers call wrappers."""
        part, begin, end = "", 0.0, 0.0
        of_step = [each for each in self._division.stretches if each.step == step]
        for each in sorted(of_step, key=lambda each: each.start):
            if each.part == part and each.start - end < _AT_ONCE:
                end = each.end
                continue
            if part:
                yield part, begin, end
            part, begin, end = each.part, each.start, each.end
        if part:
            yield part, begin, end

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
        """Return the gaps, those between the same lines together, the longest first; seconds are of one call."""
        sums: Dict[Tuple[Optional[Line], Optional[Line]], List[float]] = {}
        for step in self._steps:
            parts = {part: self._intervals(step, part) for part in (GUARDS, CALLING, _LAUNCHING)}
            for start, end, after, before in self._gaps_of(step):
                found = sums.setdefault((after, before), [0.0] * 5)
                values = (end - start, 1.0, *(_overlap(start, end, each) for each in parts.values()))
                found[:] = [one + other / len(self._steps) for one, other in zip(found, values)]
        made = [Gap(after, before, *values) for (after, before), values in sums.items()]
        return tuple(sorted(made, key=lambda each: -each.seconds))

    def _gaps_of(self, step: int) -> Iterator[Tuple[float, float, Optional[Line], Optional[Line]]]:
        """Yield the begin and the end of each gap of a call, the line that computed last, and the line that does next.
        The line is None at the begin and at the end of the call."""
        begin = self._division.begins[step]
        skipped = [_Busy(*each) for each in self._division.skipped]
        # ``lengths`` are without compilations: those in this call have to be added for its end.
        end = begin + self._division.lengths[step]
        end += sum(each.end - each.start for each in skipped if begin <= each.start and each.end <= end)
        reached, last = begin, None
        for each in sorted([*self._busy(step), *skipped, _Busy(end, end)], key=lambda each: each.start):
            lines = each.placed.lines if each.placed is not None else ()
            start = min(each.start, end)
            if start > reached:
                yield reached, start, last, lines[0] if lines else None
            if each.end >= reached:
                reached, last = max(reached, each.end), lines[-1] if lines else None

    def _busy(self, step: int) -> Iterator[_Busy]:
        for placed in self._placed[step]:
            if not self._on_device:
                yield _Busy(placed.unit.span.start, placed.unit.span.end, placed)
                continue
            for kernel in placed.kernels:
                if kernel.start is not None:
                    yield _Busy(kernel.start, kernel.start + kernel.seconds, placed)

    def _intervals(self, step: int, part: str) -> List[Tuple[float, float]]:
        """Return the times of the calling thread that a part takes, in order. Without a device no operation is
        launched: it runs."""
        if part != _LAUNCHING:
            stretches = self._division.stretches
            return sorted((each.start, each.end) for each in stretches if (each.step, each.part) == (step, part))
        spans = [each.unit.span for each in self._placed[step]] if self._on_device else []
        return sorted((each.start, each.end) for each in spans if each.thread == self._division.main_thread)


def _overlap(start: float, end: float, intervals: Sequence[Tuple[float, float]]) -> float:
    """Return how much of a time is in intervals that are sorted and do not overlap."""
    total = 0.0
    for begin, until in intervals[max(0, bisect_right(intervals, (start, float("inf"))) - 1) :]:
        if begin >= end:
            break
        total += max(0.0, min(until, end) - max(begin, start))
    return total
