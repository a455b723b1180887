"""The result of ``profile``: measured time on the lines, modules and kernels of a program, beside eager mode.

All times are seconds of one call (one step), the mean over the faster half of the profiled calls, except in ``Beside``,
which has medians of calls that ran without a profiler.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Dict, Final, Iterator, List, Literal, Optional, Sequence, Tuple

from depyf.answers.nonfinite import Line
from depyf.answers.watch import counted, shortened
from depyf.answers.worth import Beside, sentences
from depyf.base.messages import duration
from depyf.base.plain_data import Answer

KernelKind = Literal["kernel", "library call", "operation"]
KERNEL: Final = "kernel"
LIBRARY_CALL: Final = "library call"
OPERATION: Final = "operation"

_MOST_LINES = 25
_MOST_KERNELS = 15
_MOST_PAIRS = 8
_MOST_GAPS = 6


@dataclass(frozen=True)
class Cost:
    """What ran for a line, a module or a kernel in one call.

    ``shared`` is the part of the time that was divided: a fused kernel computes several lines, and each of its graph
    nodes gets an equal share. ``bytes`` are the sizes of the tensors that were read and written, ``operations`` the
    floating point operations by the formulas of ``torch.utils.flop_counter``; both are lower bounds, as kernels whose
    sizes are not known add nothing.
    """

    forward: float = 0.0
    backward: float = 0.0
    shared: float = 0.0
    calls: float = 0.0
    bytes: int = 0
    operations: int = 0

    @property
    def seconds(self) -> float:
        return self.forward + self.backward


@dataclass(frozen=True)
class LineTime:
    """The cost of one source line. ``library``: the line is in an installed package. ``eager`` is the time of this line
    in eager mode; None where eager mode was not measured."""

    line: Line
    cost: Cost
    kernels: Tuple[str, ...] = ()
    library: bool = False
    eager: Optional[float] = None

    @property
    def slower(self) -> bool:
        """Whether this line takes longer than in eager mode."""
        return self.eager is not None and self.cost.seconds > self.eager


@dataclass(frozen=True)
class ModuleTime:
    """The cost of the operations that were called in one ``torch.nn.Module`` itself, not in modules inside of it."""

    name: str
    type: str
    cost: Cost
    eager: Optional[float] = None


@dataclass(frozen=True)
class KernelTime:
    """The cost of one generated kernel, library call, or operation of PyTorch.

    ``graph`` is the compile id of its graph, empty for what is in no compiled graph. ``lines`` are the lines that it
    computes, ``modules`` the names of the modules.
    """

    name: str
    kind: KernelKind
    cost: Cost
    graph: str = ""
    lines: Tuple[Line, ...] = ()
    modules: Tuple[str, ...] = ()


@dataclass(frozen=True)
class PartOfKernel:
    """What Inductor has as one node when it has fused all it could: ``name`` has its graph nodes, ``kernel`` is the
    kernel that computes it. A C++ kernel may hold several such parts, each with loops of its own."""

    name: str
    kernel: str
    lines: Tuple[Line, ...] = ()

    def __str__(self) -> str:
        where = ", ".join(f"{shortened(each.file)}:{each.line}" for each in self.lines[:2])
        return f"{self.name} ({where})" if where else self.name


@dataclass(frozen=True)
class NotFused:
    """Two parts with data in common that Inductor has not fused, and why. ``advice``: what to do, if anything."""

    first: PartOfKernel
    second: PartOfKernel
    reason: str
    advice: str = ""
    graph: str = ""

    def __str__(self) -> str:
        return f"{self.first} and {self.second}: {self.reason}" + (f" ({self.advice})" if self.advice else "")


@dataclass(frozen=True)
class Gap:
    """A stretch of a call in which nothing computed: on a GPU no kernel, without one no kernel and no operation.

    ``after`` is the line that computed last, ``before`` the line that computed next; None at an end of the call, beside
    a compilation, and where the line is not known. ``seconds`` are of one call, ``times`` is how often a call has the
    gap. ``guards``, ``calling`` and ``launching`` are parts of ``seconds`` in which the calling thread evaluated
    guards, ran the wrappers of graphs, and launched kernels of a GPU; the rest is other Python.
    """

    after: Optional[Line]
    before: Optional[Line]
    seconds: float
    times: float = 1.0
    guards: float = 0.0
    calling: float = 0.0
    launching: float = 0.0

    @property
    def python(self) -> float:
        return max(0.0, self.seconds - self.guards - self.calling - self.launching)

    def parts(self) -> Dict[str, float]:
        """Return what the calling thread did meanwhile, in seconds by name, without what took no time."""
        named = {"guards": self.guards, "calling graphs": self.calling, "launching kernels": self.launching}
        return {name: value for name, value in {**named, "other Python": self.python}.items() if value > 1e-9}

    def __str__(self) -> str:
        did = ", ".join(f"{name} {duration(value)}" for name, value in self.parts().items())
        return f"{duration(self.seconds)} {_between(self.after, self.before)}: {did}"


def _between(after: Optional[Line], before: Optional[Line]) -> str:
    """Say where a gap is: between two lines, or at an end of the call."""
    first, second = (None if each is None else f"{shortened(each.file)}:{each.line}" for each in (after, before))
    if first is not None and second is not None:
        return f"on {first}" if first == second else f"between {first} and {second}"
    return f"after {first}" if first is not None else f"before {second}" if second is not None else "in the call"


@dataclass(frozen=True)
class TimelineEntry:
    """What ran from ``start`` on, in seconds since the call began. ``what`` is a kind of kernel, "guards", "calling"
    (the wrappers of graphs) or "launching" (of a kernel of a GPU). ``where``: the calling thread, another one, or the
    device. ``graph`` and ``lines`` as in ``KernelTime``."""

    name: str
    what: str
    where: str
    start: float
    seconds: float
    graph: str = ""
    lines: Tuple[Line, ...] = ()
    backward: bool = False


@dataclass(frozen=True)
class Outside:
    """Operations on a line that ran in no compiled graph, and the reason, as far as it is known."""

    line: Optional[Line]
    cost: Cost
    reason: str


@dataclass(frozen=True)
class Parts:
    """One call, divided: the parts add up to ``seconds``, the time of the calling thread.

    ``graphs`` are kernels and operations of compiled graphs, ``outside`` operations in no graph, ``guards`` the search
    for a cache entry (its guards are evaluated), ``calling`` transformed code and the wrappers around graphs,
    ``python`` the rest.
    """

    seconds: float = 0.0
    graphs: float = 0.0
    outside: float = 0.0
    guards: float = 0.0
    calling: float = 0.0
    python: float = 0.0


@dataclass(frozen=True)
class MachineLimits:
    """What the machine reached in two short measurements: a copy of 64 MiB (bytes read and written), and a product of
    float32 matrices. Both are per second, with as many threads as the program uses. Data in a cache is faster."""

    bytes: float
    operations: float

    def shares(self, cost: Cost) -> Tuple[float, float]:
        """Return which share of both a kernel reaches. It may be above 1 where its data is in a cache."""
        seconds = cost.seconds
        return (cost.bytes / seconds / self.bytes, cost.operations / seconds / self.operations) if seconds else (0, 0)


@dataclass(frozen=True)
class Profiled(Answer, kind="profile"):
    """The result of ``profile``; prints as tables. Lines, modules and kernels are sorted by time.

    ``steps`` is the number of profiled calls, ``seconds`` the time of their kernels and operations for one call (of
    ``device``), ``attributed`` the share of that which belongs to a known line. ``compile_seconds`` were spent on
    compiling, before what was profiled. ``times`` are the seconds of steps that ran after that, without the profiler.
    ``limits`` are of the machine, None where they could not be measured. ``not_fused`` are pairs of parts of kernels
    with the reasons of Inductor's scheduler, the slowest kernels first; empty where PyTorch gives none. ``gaps`` are
    the times in which nothing computed, the longest first; ``timeline`` is what ran in one call.
    """

    function: str
    steps: int
    seconds: float
    attributed: float
    parts: Parts
    lines: Tuple[LineTime, ...] = field(default=(), repr=False)
    modules: Tuple[ModuleTime, ...] = field(default=(), repr=False)
    kernels: Tuple[KernelTime, ...] = field(default=(), repr=False)
    outside: Tuple[Outside, ...] = field(default=(), repr=False)
    compile_seconds: float = 0.0
    device: str = "cpu"
    eager: Optional[Beside] = None
    notes: Tuple[str, ...] = ()
    times: Tuple[float, ...] = field(default=(), repr=False)
    limits: Optional[MachineLimits] = None
    not_fused: Tuple[NotFused, ...] = field(default=(), repr=False)
    gaps: Tuple[Gap, ...] = field(default=(), repr=False)
    timeline: Tuple[TimelineEntry, ...] = field(default=(), repr=False)

    def sentences(self) -> Tuple[str, ...]:
        """Say in three sentences whether compiling pays; raises ``ValueError`` where eager mode was not measured."""
        if self.eager is None:
            raise ValueError("eager mode was not measured: call depyf.profile(fn, ...), which runs it, too")
        return tuple(sentences(self.eager, loss_of(self.lines)))

    def worth(self) -> str:
        """Return the three sentences as one text; raises ``ValueError`` as ``sentences`` does."""
        return " ".join(self.sentences())

    def slower(self) -> List[LineTime]:
        """Return the lines that take longer than in eager mode, the largest loss first."""
        return slower(self.lines)

    def __str__(self) -> str:
        return "\n".join(_text(self))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{each}</th>" for each in ("forward", "backward", "share", "eager", "line"))
        rows = (
            "<tr>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in (*_cells(self, each), str(each.line)))
            + "</tr>"
            for each in self.lines[:_MOST_LINES]
        )
        worth = "" if self.eager is None else f"<p>{html.escape(self.worth())}</p>"
        return (
            f"<p>{html.escape(_summary(self))}</p>{worth}"
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        )


def slower(lines: Sequence[LineTime]) -> List[LineTime]:
    """Return the lines that take longer than in eager mode, the largest loss first."""
    found = [each for each in lines if each.slower]
    return sorted(found, key=lambda each: (each.eager or 0.0) - each.cost.seconds)


def loss_of(lines: Sequence[LineTime]) -> str:
    """Say which line has lost most; empty where no line is slower than in eager mode."""
    for worst in slower(lines)[:1]:
        place, took = f"{shortened(worst.line.file)}:{worst.line.line}", duration(worst.cost.seconds)
        return f"{place} has lost most: {took} instead of {duration(worst.eager) or '0 s'}"
    return ""


def _summary(profiled: Profiled) -> str:
    whole = f"depyf profiled {profiled.function}: {counted(profiled.steps, 'call')}, "
    if not profiled.seconds:
        return f"{whole}no kernels and operations ({profiled.device})"
    return (
        f"{whole}{duration(profiled.seconds)} of kernels and operations a call ({profiled.device}), "
        f"{_percent(profiled.attributed)} of it on known lines"
    )


def _text(profiled: Profiled) -> Iterator[str]:
    yield _summary(profiled)
    parts = profiled.parts
    yield "  a call: " + ", ".join(
        f"{words} {duration(seconds)}"
        for words, seconds in (
            ("in all", parts.seconds),
            ("graphs", parts.graphs),
            ("operations in no graph", parts.outside),
            ("guards", parts.guards),
            ("calling graphs", parts.calling),
            ("other Python", parts.python),
        )
        if seconds
    )
    if profiled.compile_seconds:
        yield f"  compiling took {duration(profiled.compile_seconds)}, before"
    if profiled.eager is not None:
        yield f"  {profiled.worth()}"
    yield f"  {'forward':>9} {'backward':>9} {'share':>6} {'eager':>9}  line"
    for each in profiled.lines[:_MOST_LINES]:
        forward, backward, share, eager = _cells(profiled, each)
        yield f"  {forward:>9} {backward:>9} {share:>6} {eager:>9}  {each.line}"
    yield from _more(profiled.lines, _MOST_LINES, "line")
    if profiled.modules:
        yield f"  {'forward':>9} {'backward':>9} {'share':>6} {'eager':>9}  module"
    for module in profiled.modules[:_MOST_LINES]:
        forward, backward, share, eager = _cells(profiled, module)
        yield f"  {forward:>9} {backward:>9} {share:>6} {eager:>9}  {module.name} ({module.type})"
    yield from _more(profiled.modules, _MOST_LINES, "module")
    yield f"  {'time':>9} {'calls':>6}  kernel"
    for kernel in profiled.kernels[:_MOST_KERNELS]:
        where = f" [{kernel.graph}]" if kernel.graph else f" ({kernel.kind} in no graph)"
        lines = ", ".join(f"{shortened(each.file)}:{each.line}" for each in kernel.lines)
        told = f"{kernel.name}{where}  {lines}".rstrip() + _of_limits(profiled.limits, kernel.cost)
        yield f"  {duration(kernel.cost.seconds):>9} {kernel.cost.calls:>6g}  {told}"
    yield from _more(profiled.kernels, _MOST_KERNELS, "kernel")
    yield from _gaps(profiled)
    yield from (f"  not fused: {pair}" for pair in profiled.not_fused[:_MOST_PAIRS])
    yield from _more(profiled.not_fused, _MOST_PAIRS, "pair")
    for outside in profiled.outside[:_MOST_KERNELS]:
        yield f"  in no graph: {duration(outside.cost.seconds)} {outside.line or 'line unknown'}: {outside.reason}"
    yield from (f"  note: {note}" for note in profiled.notes)


_NAMED_SHARE = 0.01


def _gaps(profiled: Profiled) -> Iterator[str]:
    """Yield the sum of the gaps, and the gaps that take 1 % of the call or more."""
    whole, total = profiled.parts.seconds, sum(each.seconds for each in profiled.gaps)
    if not whole or total < _NAMED_SHARE * whole:
        return
    waits = "the GPU computes nothing" if profiled.device != "cpu" else "no kernel and no operation runs"
    yield f"  gaps: in {duration(total)} of a call ({_percent(total / whole)}) {waits}"
    named = [each for each in profiled.gaps if each.seconds >= _NAMED_SHARE * whole]
    yield from (f"    {gap}" for gap in named[:_MOST_GAPS])
    yield from _more(named, _MOST_GAPS, "gap")


def _of_limits(limits: Optional[MachineLimits], cost: Cost) -> str:
    """Return the shares of the machine's limits, in words; nothing where they are small, or not known."""
    shares = zip(("memory", "arithmetic"), (0, 0) if limits is None else limits.shares(cost))
    told = [f"{100 * share:.0f} % of {name}" for name, share in shares if share >= _NAMED_SHARE]
    return f"  ({', '.join(told)})" if told else ""


def _cells(profiled: Profiled, each: LineTime | ModuleTime) -> Tuple[str, str, str, str]:
    share = each.cost.seconds / profiled.seconds if profiled.seconds else 0.0
    backward = duration(each.cost.backward) if each.cost.backward else ""
    return duration(each.cost.forward), backward, _percent(share), duration(each.eager)


def _more(rows: Sequence[object], most: int, word: str) -> List[str]:
    return [f"  ... and {counted(len(rows) - most, f'more {word}')}"] if len(rows) > most else []


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def added(one: Cost, other: Cost) -> Cost:
    """Return the sum of two costs."""
    return Cost(*(a + b for a, b in zip(_values(one), _values(other))))  # type: ignore[arg-type]


def _values(cost: Cost) -> Tuple[float, ...]:
    return cost.forward, cost.backward, cost.shared, cost.calls, cost.bytes, cost.operations


def eager_times(lines: Sequence[LineTime], modules: Sequence[ModuleTime]) -> Dict[object, float]:
    """Return the seconds of each line, by file and number, and of each module, by name."""
    found: Dict[object, float] = {(each.line.file, each.line.line): each.cost.seconds for each in lines}
    found.update({each.name: each.cost.seconds for each in modules})
    return found
