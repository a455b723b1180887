"""Measured time on lines, modules and kernels, as a part of the model of a run. Times are seconds of one call."""

from __future__ import annotations

from dataclasses import field
from typing import Mapping, Optional, Tuple

from depyf.base.quick_dataclass import dataclass


@dataclass(frozen=True)
class TimedLine:
    """The time of one source line; ``eager`` is its time in eager mode, None where that was not measured.

    ``shared`` is the part of kernels that compute other lines, too, divided by the number of graph nodes. ``bytes`` and
    ``operations`` are lower bounds.
    """

    place: Tuple[int, int]
    forward: float = 0.0
    backward: float = 0.0
    shared: float = 0.0
    eager: Optional[float] = None
    bytes: int = 0
    operations: int = 0


@dataclass(frozen=True)
class TimedModule:
    """The time of the operations that a ``torch.nn.Module`` calls itself, without the modules inside of it."""

    name: str
    type: str
    forward: float = 0.0
    backward: float = 0.0
    eager: Optional[float] = None


@dataclass(frozen=True)
class TimedKernel:
    """The time of a kernel, library call or operation. ``graph`` is the compile id of its graph, empty outside."""

    name: str
    kind: str
    graph: str = ""
    seconds: float = 0.0
    backward: bool = False
    calls: float = 0.0
    bytes: int = 0
    operations: int = 0
    places: Tuple[Tuple[int, int], ...] = ()


@dataclass(frozen=True)
class TimedPair:
    """Two parts of kernels that Inductor has not fused, the reason, and what to do about it (empty if nothing)."""

    first: str
    second: str
    reason: str
    advice: str = ""
    first_places: Tuple[Tuple[int, int], ...] = ()
    second_places: Tuple[Tuple[int, int], ...] = ()


@dataclass(frozen=True)
class TimedOutside:
    """Operations on a line that ran in no compiled graph, and the reason."""

    reason: str
    seconds: float = 0.0
    place: Optional[Tuple[int, int]] = None


@dataclass(frozen=True)
class TimedGap:
    """A stretch of a call in which nothing computed, after one line and before another. A line is None at an end of
    the call, beside a compilation, and where it is not known.

    ``times`` is how often a call has it. ``guards``, ``calling`` and ``launching`` are parts of ``seconds``: what the
    calling thread did for compiled graphs meanwhile; the rest is other Python.
    """

    seconds: float = 0.0
    times: float = 1.0
    guards: float = 0.0
    calling: float = 0.0
    launching: float = 0.0
    after: Optional[Tuple[int, int]] = None
    before: Optional[Tuple[int, int]] = None


@dataclass(frozen=True)
class TimedRun:
    """What ran from ``start`` on, in seconds since the call began. ``what`` is the kind of a kernel, ``guards``,
    ``calling`` (the wrappers of graphs) or ``launching``; ``where`` is a thread, or the device."""

    name: str
    what: str
    where: str
    start: float
    seconds: float
    graph: str = ""
    backward: bool = False
    places: Tuple[Tuple[int, int], ...] = ()

    @property
    def kernel(self) -> bool:
        """Whether something was computed, or launched."""
        return self.what not in ("guards", "calling")


@dataclass(frozen=True)
class Timing:
    """What was measured of one function, or of a block of the program.

    ``seconds`` are of all kernels and operations of a call on ``device``, ``attributed`` is the share with a known
    line. ``parts`` divide the time of a call on the calling thread, by name. ``compiled`` and ``eager`` are medians of
    calls without a profiler, None where eager mode was not measured; ``worth`` are sentences about these. ``limits``
    are the bytes and the operations per second that the machine reached in a short measurement. ``timeline`` is what
    ran in one call, in order.
    """

    function: str
    steps: int = 0
    seconds: float = 0.0
    attributed: float = 0.0
    device: str = "cpu"
    parts: Mapping[str, float] = field(default_factory=dict)
    compiled: Optional[float] = None
    eager: Optional[float] = None
    worth: Tuple[str, ...] = ()
    lines: Tuple[TimedLine, ...] = ()
    modules: Tuple[TimedModule, ...] = ()
    kernels: Tuple[TimedKernel, ...] = ()
    outside: Tuple[TimedOutside, ...] = ()
    notes: Tuple[str, ...] = ()
    limits: Optional[Tuple[float, float]] = None
    not_fused: Tuple[TimedPair, ...] = ()
    gaps: Tuple[TimedGap, ...] = ()
    timeline: Tuple[TimedRun, ...] = ()
