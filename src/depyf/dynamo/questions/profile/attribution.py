"""Join the units of a profile with what is known of them: the result of ``profile``."""

from __future__ import annotations

from dataclasses import field
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.answers.nonfinite import Line
from depyf.answers.profiled import (
    KERNEL,
    LIBRARY_CALL,
    OPERATION,
    Cost,
    KernelKind,
    KernelTime,
    LineTime,
    ModuleTime,
    NotFused,
    Outside,
    Parts,
    Profiled,
    added,
)
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.questions.profile.listing import Listed, Site
from depyf.dynamo.questions.profile.marks import MarkedKernel
from depyf.dynamo.questions.profile.measuring import machine_limits
from depyf.dynamo.questions.profile.owners import KnownOwners, Owner, Owners, owner_of_caller, owner_of_site
from depyf.dynamo.questions.profile.timeline import PlacedUnit, Timeline
from depyf.dynamo.questions.profile.unfused import not_fused
from depyf.dynamo.questions.profile.units import CALLING, GRAPHS, GUARDS, OUTSIDE, Division, Unit
from depyf.report.model.run import ModuleKernel

_Key = Tuple[str, KernelKind, str, bool]


@dataclass
class _Row:
    cost: Cost = field(default_factory=Cost)
    names: Dict[str, None] = field(default_factory=dict)
    lines: Dict[Line, None] = field(default_factory=dict)


@dataclass(frozen=True)
class _Known:
    """What is known of a unit: its name and kind, its graph ("" for none), its owners, where it was called."""

    name: str
    kind: KernelKind
    graph: str
    owners: Owners
    backward: bool
    site: Optional[Site] = None


class Attribution:
    """The rows of a result, from the units of one profile."""

    def __init__(
        self,
        division: Division,
        listed: Mapping[int, Sequence[Listed]],
        kernels: Sequence[MarkedKernel],
        owners: KnownOwners,
    ) -> None:
        self._division = division
        self._listed = listed
        self._kernels = kernels
        self._owners = owners
        self._counted = division.calm_steps()
        self._steps = max(1, len(self._counted))
        self.on_device = any(unit.span.device_seconds() for unit in division.units)
        self._by_sequence: Dict[int, _Known] = {}
        """The operations of forwards, by autograd's number: nodes of eager backwards have the same."""
        self._in_backward: Optional[Site] = None
        """The line that has run the last operation of an eager backward that is not of a forward."""
        self._lines: Dict[Line, _Row] = {}
        self._modules: Dict[Tuple[str, str], _Row] = {}
        self._rows: Dict[_Key, _Row] = {}
        self._outside: Dict[Tuple[Optional[Line], str], _Row] = {}
        self._ran: Dict[int, ModuleKernel] = {}
        """The kernels of the session that ran, by ``id``."""
        self._placed: List[PlacedUnit] = []
        self.unknown: Set[MarkedKernel] = set()
        """Kernels that ran and are in no record of the session."""
        self.seconds = 0.0
        self._owned = 0.0
        for unit in division.units:
            self._add(unit)

    @property
    def attributed(self) -> float:
        """The share of the time of all units whose line is known; 1 where nothing ran."""
        return min(1.0, self._owned / self.seconds) if self.seconds else 1.0

    def _add(self, unit: Unit) -> None:
        seconds = (unit.span.device_seconds() if self.on_device else unit.seconds) / self._steps
        known = self._known(unit)
        for sequence in [] if unit.around.backward else unit.sequences:
            self._by_sequence[sequence] = known
        if unit.step not in self._counted:
            return
        lines = tuple(dict.fromkeys(owner.line for owner in known.owners if owner.line is not None))
        self._placed.append(PlacedUnit(unit, known.name, known.kind, known.graph, lines, known.backward))
        listed = self._listed.get(id(unit), ())
        size = sum(each.bytes for each in listed) / self._steps
        operations = sum(each.operations for each in listed) / self._steps
        self.seconds += seconds
        if unit.span.thread == self._division.main_thread:
            self._division.take(unit.step, GRAPHS if known.graph else OUTSIDE, unit.seconds)
        whole = _cost(seconds, 1 / self._steps, size, operations, Owner(None, None, 1.0), backward=known.backward)
        row = self._rows.setdefault((known.name, known.kind, known.graph, known.backward), _Row())
        row.cost = added(row.cost, whole)
        for owner in known.owners:
            cost = _cost(seconds, 1 / self._steps, size, operations, owner, backward=known.backward)
            if owner.line is not None:
                self._owned += cost.seconds
                _grow(self._lines.setdefault(owner.line, _Row()), cost, known.name)
                row.lines[owner.line] = None
            if owner.module is not None:
                _grow(self._modules.setdefault(owner.module, _Row()), cost, known.name)
                row.names[owner.module[0]] = None
        if not known.graph:
            line = known.owners[0].line if known.owners else None
            reason = self._owners.why_outside(known.site, unit.around.region)
            _grow(self._outside.setdefault((line, reason), _Row()), whole, known.name)

    def _owners_of_running(self, kernel: ModuleKernel) -> Owners:
        self._ran[id(kernel)] = kernel
        return self._owners.of_kernel(kernel)

    def _known(self, unit: Unit) -> _Known:
        around = unit.around
        site = next((each.site for each in self._listed.get(id(unit), ()) if each.site is not None), None)
        if unit.kernel is not None:
            mark = self._kernels[unit.kernel]
            kernel = self._owners.kernel(mark.path, mark.name)
            if kernel is None:  # compiled before the session: its graph is known only by the region
                self.unknown.add(mark)
                return _Known(mark.name, KERNEL, around.region or "?", owner_of_caller(site), around.backward)
            owners = self._owners_of_running(kernel) or owner_of_caller(site)
            return _Known(mark.name, KERNEL, kernel.compile_id or "?", owners, bool(kernel.backward))
        name = unit.name
        if unit.named:
            kernel = self._owners.launched(around.region, name, backward=around.backward)
            owners = () if kernel is None else self._owners_of_running(kernel)
            return _Known(name, KERNEL, around.region, owners, around.backward)
        if site is not None and site.generated:
            call = self._owners.called_at(site)
            if call is None:
                return _Known(name, OPERATION, around.region or "?", owner_of_caller(site), around.backward)
            owners = self._owners_of_running(call) or owner_of_caller(site)
            return _Known(call.name, LIBRARY_CALL, call.compile_id or "?", owners, bool(call.backward), site)
        if site is not None and site.node:
            owners = self._owners.of_nodes(around.region, [site.node], backward=around.backward)
            owners = owners or owner_of_caller(site)
            return _Known(name, OPERATION, around.region or "?", owners, around.backward, site)
        artifact = None if site is None else self._owners.dumped(site)
        if site is not None and artifact is not None:
            graph = (artifact.compile_id or "?") if artifact.kind == "graph" else ""
            owners = self._owners.of_line(artifact, site.line) or owner_of_caller(site)
            return _Known(name, OPERATION, graph, owners, around.backward, site)
        if around.in_graph:  # of the wrappers around a graph: the line calls them
            owners = () if site is None else owner_of_site(site)
            return _Known(name, OPERATION, around.region, owners, around.backward, site)
        before = self._by_sequence.get(around.sequence) if around.backward else None
        if before is not None:  # the node of an operation whose forward ran eagerly, or in a graph of no AOTAutograd
            return _Known(name, OPERATION, before.graph and "", before.owners, True, before.site)
        # Autograd adds gradients without the dispatcher, which the listing does not see: the line that runs the
        # backward is that of the operations around.
        if around.backward:
            site = self._in_backward = site or self._in_backward
        return _Known(name, OPERATION, "", () if site is None else owner_of_site(site), around.backward, site)

    def profiled(
        self,
        function: str,
        steps: int,
        took: Optional[Mapping[object, float]] = None,
        none: Optional[float] = 0.0,
    ) -> Profiled:
        """Return the result as far as the profiled calls say it; ``took`` and ``none`` as in ``lines``."""
        device = "cuda" if self.on_device else "cpu"
        timeline = Timeline(self._division, self._placed, self._counted, on_device=self.on_device)
        return Profiled(
            function=function,
            steps=steps,
            seconds=self.seconds,
            attributed=self.attributed,
            parts=self.parts(),
            lines=self.lines(took, none),
            modules=self.modules(took, none),
            kernels=self.kernels(),
            outside=self.outside(),
            device=device,
            limits=machine_limits(device) if self.seconds else None,
            not_fused=self.not_fused(),
            gaps=timeline.gaps(),
            timeline=timeline.of_one_call(),
            notes=tuple(timeline.notes),
        )

    def parts(self) -> Parts:
        """Return the time of one call of the calling thread, divided."""
        found: Dict[str, float] = {}
        for (step, name), seconds in self._division.spent.items():
            if step in self._counted:
                found[name] = found.get(name, 0.0) + seconds / self._steps
        whole = sum(self._division.lengths[step] for step in self._counted) / self._steps
        return Parts(
            seconds=whole,
            graphs=found.get(GRAPHS, 0.0),
            outside=found.get(OUTSIDE, 0.0),
            guards=found.get(GUARDS, 0.0),
            calling=found.get(CALLING, 0.0),
            python=max(0.0, whole - sum(found.values())),
        )

    def lines(
        self, eager: Optional[Mapping[object, float]] = None, none: Optional[float] = 0.0
    ) -> Tuple[LineTime, ...]:
        """Return the lines, the slowest first; ``eager`` has their seconds in eager mode, ``none`` is for others."""
        made = []
        for line, row in self._lines.items():
            took = None if eager is None else eager.get((line.file, line.line), none)
            library = Owner(line, None, 1.0).library
            made.append(LineTime(line, row.cost, tuple(row.names), library, took))
        return tuple(sorted(made, key=lambda each: -each.cost.seconds))

    def modules(
        self, eager: Optional[Mapping[object, float]] = None, none: Optional[float] = 0.0
    ) -> Tuple[ModuleTime, ...]:
        """Return the modules, the slowest first."""
        made = []
        for (name, kind), row in self._modules.items():
            made.append(ModuleTime(name, kind, row.cost, None if eager is None else eager.get(name, none)))
        return tuple(sorted(made, key=lambda each: -each.cost.seconds))

    def kernels(self) -> Tuple[KernelTime, ...]:
        """Return kernels, library calls and operations, the slowest first."""
        made = [
            KernelTime(name, kind, row.cost, graph, tuple(row.lines), tuple(row.names))
            for (name, kind, graph, _), row in self._rows.items()
        ]
        return tuple(sorted(made, key=lambda each: -each.cost.seconds))

    def not_fused(self) -> Tuple[NotFused, ...]:
        """Return the pairs of parts of kernels that Inductor has not fused, those of the slowest kernels first."""
        seconds = {(name, graph, back): row.cost.seconds for (name, _, graph, back), row in self._rows.items()}
        return not_fused(self._ran.values(), seconds, self._owners, "cuda" if self.on_device else "cpu")

    def outside(self) -> Tuple[Outside, ...]:
        """Return what ran in no compiled graph, the slowest first."""
        made = [Outside(line, row.cost, reason) for (line, reason), row in self._outside.items()]
        return tuple(sorted(made, key=lambda each: -each.cost.seconds))


def _grow(row: _Row, cost: Cost, name: str) -> None:
    row.cost = added(row.cost, cost)
    row.names[name] = None


def _cost(seconds: float, calls: float, size: float, operations: float, owner: Owner, *, backward: bool) -> Cost:
    part = seconds * owner.share
    return Cost(
        forward=0.0 if backward else part,
        backward=part if backward else 0.0,
        shared=part if owner.share < 1 else 0.0,
        calls=calls,
        bytes=round(size * owner.share),
        operations=round(operations * owner.share),
    )
