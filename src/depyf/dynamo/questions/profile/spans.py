"""What ``torch.profiler`` recorded, as spans of threads that are nested by time.

Only public attributes of its events are read, so that a recorded or synthesised list of events does as well. Times are
in seconds. Kernels of a device are no spans: the operation that launched them has their time.
"""

from __future__ import annotations

from dataclasses import field
from typing import Iterable, Iterator, List, Optional, Protocol, Sequence, Tuple

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


@dataclass(eq=False)
class Span:
    """Something that ran on a thread of the host, and what ran inside of it.

    ``sequence`` is autograd's number: an operation of a forward and the node of its backward have the same.
    ``on_device`` are the kernels that it launched on a device itself, with their seconds.
    """

    name: str
    start: float
    end: float
    thread: int
    sequence: int = -1
    on_device: Tuple[Tuple[str, float], ...] = ()
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
        return sum(seconds for each in self.walk() for _, seconds in each.on_device)


def spans_of(events: Iterable[ProfilerEvent]) -> List[Span]:
    """Return the outermost spans of all threads, in the order of their starts; each holds the spans inside of it."""
    spans = [
        Span(
            name=event.name,
            start=event.time_range.start * 1e-6,
            end=event.time_range.end * 1e-6,
            thread=event.thread,
            sequence=event.sequence_nr if event.sequence_nr is not None else -1,
            on_device=tuple((each.name, each.duration * 1e-6) for each in event.kernels),
        )
        for event in events
        if str(event.device_type).rpartition(".")[2] == "CPU"  # others are on the operation that launched them
    ]
    # The longer of two that start together is outside. The profiler rounds times: a span may end a little after the
    # span around it does, and is cut there.
    spans.sort(key=lambda span: (span.start, -span.end))
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
