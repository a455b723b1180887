"""Torch's metrics of each compilation (``compilation_metrics``), and its phases over time (``chromium_event``)."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.torch_trace.events import Event
from depyf.torch_trace.json_text import parsed

UNREAD_METRICS = frozenset({"dynamo_config", "inductor_config", "functorch_config", "graph_node_shapes", "stack_trace"})
"""Metrics that are long and reported elsewhere, or the same for all."""


def seconds_of(metrics: object) -> Optional[float]:
    """Return how long the compilation with these metrics took; None if torch does not report it."""
    if not isinstance(metrics, Mapping):
        return None
    microseconds = metrics.get("duration_us")
    if microseconds is not None:
        return _measured(float(microseconds) / 1e6)
    seconds = metrics.get("entire_frame_compile_time_s")  # up to 2.5
    return None if seconds is None else _measured(float(seconds))


def started_at(metrics: Mapping[str, Any]) -> Optional[float]:
    """Return when that compilation started, in seconds since the epoch; None if torch does not report it."""
    microseconds = metrics.get("start_time_us")
    if microseconds is not None:
        return _measured(float(microseconds) / 1e6)
    seconds = metrics.get("start_time")
    return None if seconds is None else _measured(float(seconds))


def _measured(seconds: float) -> Optional[float]:
    """Return a time; None for what nobody has measured: NaN in another's log, which is larger than nothing and smaller
    than nothing, would make any order by time arbitrary."""
    return seconds if abs(seconds) < _LARGEST else None


_LARGEST = 1e12
"""In seconds. Larger ones are no times: sums of some can't be stored."""


@dataclass(frozen=True)
class PhaseSpan:
    """One phase. ``parent`` is the index of the span around it; times are in seconds, ``start`` since the epoch."""

    compile_id: Optional[str]
    name: str
    start: float
    seconds: float
    parent: Optional[int]


READ_OF_PHASES = ("ph", "name", "ts", "pid", "tid")
"""The parts that are read of what begins or ends a phase."""


def spans(events: Iterable[Event]) -> List[PhaseSpan]:
    """Return the phases in the order of their starts. A phase without an end lasts until the last known event."""
    begun: List[Tuple[Optional[str], str, float, Optional[int]]] = []
    ends: Dict[int, float] = {}
    stacks: Dict[object, List[int]] = {}
    latest = 0.0
    for event in events:
        mark = _mark(event)
        if mark is None:
            continue
        phase, name, time, thread = mark
        latest = max(latest, time)
        # torch gives all threads one number: those that compile at the same time are distinguished by their compile ids
        stack = stacks.setdefault((thread, event.compile_id), [])
        # ``{"ph": "B", "name": "inductor_compile", "ts": ...}`` begins a phase, ``"E"`` ends it.
        if phase == "B":
            # What encloses a compilation may have no id: fullgraph_capture of an ahead-of-time compilation.
            around = stack or stacks.get((thread, None))
            begun.append((event.compile_id, name, time, around[-1] if around else None))
            stack.append(len(begun) - 1)
        else:
            # A phase whose end was lost (an exception) ends with the phase around it.
            while stack and any(begun[index][1] == name for index in stack):
                index = stack.pop()
                ends[index] = time
                if begun[index][1] == name:
                    break

    def end(index: int) -> float:
        return ends.get(index, latest)

    return [
        # What ends before is another thread's, and encloses nothing of this one.
        PhaseSpan(
            compile_id,
            name,
            start,
            max(0.0, end(at) - start),
            None if parent is None or end(parent) < end(at) else parent,
        )
        for at, (compile_id, name, start, parent) in enumerate(begun)
    ]


def _mark(event: Event) -> Optional[Tuple[str, str, float, object]]:
    """Return whether this begins or ends something, what, when (in seconds since the epoch) and in which thread."""
    try:
        data = event.meta if event.payload is None else parsed(event.payload)  # in process, or from a log
    except synchronous(ValueError):
        return None
    if not isinstance(data, dict) or data.get("ph") not in ("B", "E"):
        return None
    time = _measured(float(data.get("ts", 0)) / 1e6)
    return None if time is None else (str(data["ph"]), str(data.get("name")), time, (data.get("pid"), data.get("tid")))
