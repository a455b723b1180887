"""What ``torch.profiler`` recorded, as spans of threads that are nested by time.

Only public attributes of its events are read, so that a recorded or synthesised list of events does as well. Times are
in seconds. Kernels of a device are no spans: the operation that launched them has their times.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import field
from typing import Deque, Dict, Iterable, Iterator, List, NamedTuple, Optional, Protocol, Sequence, Tuple

from depyf.base.quick_dataclass import dataclass


class _Range(Protocol):
    start: float
    end: float


class _DeviceKernel(Protocol):
    name: str
    duration: float


class ProfilerEvent(Protocol):
    """The attributes of ``torch.autograd.profiler_util.FunctionEvent`` that are read; its times are microseconds."""

    name: str
    time_range: _Range
    thread: int
    sequence_nr: int
    fwd_thread: Optional[int]
    kernels: Sequence[_DeviceKernel]
    device_type: object


class Launched(NamedTuple):
    """A kernel that ran on a device; ``start`` is None where the profiler does not say when."""

    name: str
    seconds: float
    start: Optional[float] = None


@dataclass(eq=False)
class Span:
    """Something that ran on a thread of the host, and what ran inside of it.

    ``sequence`` is autograd's number: an operation of a forward and the node of its backward have the same.
    ``on_device`` are the kernels that it launched on a device itself.
    """

    name: str
    start: float
    end: float
    thread: int
    sequence: int = -1
    on_device: Tuple[Launched, ...] = ()
    inside: List[Span] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def own_seconds(self) -> float:
        """The time in which nothing ran inside of it."""
        return self.seconds - sum(each.seconds for each in self.inside)

    def walk(self) -> Iterator[Span]:
        """Yield this span and all spans inside of it, in the order of their starts."""
        yield self
        for each in self.inside:
            yield from each.walk()

    def device_seconds(self) -> float:
        """Return the time of all device kernels that were launched in it."""
        return sum(kernel.seconds for each in self.walk() for kernel in each.on_device)


def spans_of(events: Iterable[ProfilerEvent]) -> List[Span]:
    """Return the outermost spans of all threads, in the order of their starts; each holds the spans inside of it."""
    of_host, starts = _apart(events)
    spans = [
        Span(
            name=event.name,
            start=event.time_range.start * 1e-6,
            end=event.time_range.end * 1e-6,
            thread=event.thread,
            sequence=event.sequence_nr if event.sequence_nr is not None else -1,
            on_device=tuple(_launched(each, starts) for each in event.kernels),
        )
        # The longer of two that start together is outside.
        for event in sorted(of_host, key=lambda event: (event.time_range.start, -event.time_range.end))
    ]
    # The profiler rounds times: a span may end a little after the span around it does, and is cut there.
    outermost: List[Span] = []
    open_spans: dict[int, List[Span]] = {}
    for span in spans:
        stack = open_spans.setdefault(span.thread, [])
        while stack and stack[-1].end <= span.start:
            stack.pop()
        if stack:
            span.end = min(span.end, stack[-1].end)
            stack[-1].inside.append(span)
        else:
            outermost.append(span)
        stack.append(span)
    return outermost


_Starts = Dict[Tuple[str, float], Deque[float]]


def _apart(events: Iterable[ProfilerEvent]) -> Tuple[List[ProfilerEvent], _Starts]:
    """Return the events of the host, and the starts of the kernels of devices by name and duration (in seconds), in
    order."""
    of_host: List[ProfilerEvent] = []
    starts: Dict[Tuple[str, float], List[float]] = defaultdict(list)
    for event in events:
        if str(event.device_type).rpartition(".")[2] == "CPU":
            of_host.append(event)
        elif not getattr(event, "is_user_annotation", False):  # the mark of a Triton kernel has the kernel's name
            taken = event.time_range.end - event.time_range.start
            starts[event.name, round(taken, 3)].append(event.time_range.start * 1e-6)
    return of_host, {key: deque(sorted(found)) for key, found in starts.items()}


def _launched(kernel: _DeviceKernel, starts: _Starts) -> Launched:
    """Return a kernel with its start. Of kernels with one name and one duration the first that runs is the first that
    was launched, which is so on one stream of a GPU."""
    known = starts.get((kernel.name, round(kernel.duration, 3)))
    return Launched(kernel.name, kernel.duration * 1e-6, known.popleft() if known else None)
