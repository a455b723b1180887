"""Compare two recorded runs: the first step at which both differ by more than rounding, and the values that differ.

Two runs never have the same bits for long: rounding grows from step to step. So a difference is judged by the
differences before. A difference is more than rounding if it exceeds what the dtype allows, and ten times the largest
earlier difference of that value. A difference that has grown slowly is drift, and no fault.

The size of a difference is estimated from the sketches of two digests, relative to the size of the tensor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.recorded import (
    GRADIENT,
    INPUT,
    KINDS,
    OUTPUT,
    PARAMETER,
    PROJECTIONS,
    START,
    WEIGHTED,
    Digest,
    Event,
    Recording,
    unit_of,
)
from depyf.base.messages import listed
from depyf.base.plain_data import Answer

JUMP = 10.0
"""So many times the largest earlier difference is no rounding."""

_ALLOWED = ((2.0**-40, 1e-9), (2.0**-20, 1e-4), (2.0**-10, 1e-2), (math.inf, 5e-2))
"""By unit of rounding of the coarsest dtype: the relative difference of an output that may be rounding."""

_AFTER = 5.0
"""Gradients and parameters may differ by so many times that."""

_CANCELLING = 100.0
"""So many units of rounding, relative to the largest gradient, a gradient may have that is zero but for rounding."""

_MOST_SHARE = 0.3


@dataclass(frozen=True)
class PartedValue:
    """A value that differs between two runs: by ``error``, relative, or, where that is None, by what ``why`` says."""

    name: str
    error: Optional[float]
    allowed: float
    why: str = ""

    def __str__(self) -> str:
        return self.why if self.error is None else f"relative difference {self.error:.2g}"


@dataclass(frozen=True)
class Parting:
    """Where two recordings part by more than rounding.

    ``step`` is counted from 0. ``kind`` is one of ``KINDS``, ``where`` the module, function or optimizer, ``values``
    what differs. ``before`` is the largest earlier difference of these values. ``random`` names the random number
    generators in use whose states differ since this step or the step before.
    """

    step: int
    kind: str
    where: str
    values: Tuple[PartedValue, ...]
    before: float
    random: Tuple[str, ...] = ()
    input_agrees: bool = False
    """Whether the input of that module was compared and is the same up to rounding."""
    children: bool = False
    """Whether modules inside of that module were compared in this step."""

    @property
    def last(self) -> str:
        """The module of the last value: gradients are computed from the last parameter to the first."""
        shown = self.values[-1].name.partition(" ")[2]
        return shown.rpartition(".")[0] or self.where


@dataclass(frozen=True)
class RecordingsCompared:
    """Two recordings compared. ``parting`` is None where they agree up to rounding and drift. ``by_steps`` is false if
    one of the programs has no optimizer: then a step is the call of an outermost module or compiled function.
    ``largest`` has, by kind, the largest relative difference and its step."""

    before: Recording
    after: Recording
    steps: int
    by_steps: bool
    compared: int
    equal: int
    parting: Optional[Parting]
    largest: Mapping[str, Tuple[float, int]]
    drifts: bool
    notes: Sequence[str]


@dataclass(frozen=True)
class PairsCompared(Answer, kind="recordings"):
    """The answer of ``depyf diff`` of recordings: one comparison for each rank that both runs have."""

    pairs: Tuple[RecordingsCompared, ...]


class _Comparison:
    def __init__(self, before: Recording, after: Recording) -> None:
        self._sides = before, after
        self._by_steps = before.steps > 0 and after.steps > 0
        # Ranks are given other data, and share parameters, and gradients when the optimizer begins its step.
        self._are_ranks = self._by_steps and before.header.get("rank") != after.header.get("rank")
        events = [*before.events, *after.events]
        types = {each.dtype for event in events for each in event.values} | {each.precision for each in events}
        self._unit = max([unit_of(each) for each in types], default=0.0)
        self._allowed = next(allowed for unit, allowed in _ALLOWED if self._unit <= unit)
        self._largest: Dict[Tuple[str, str, str], float] = {}
        self._by_kind: Dict[str, Tuple[float, int]] = {}
        self._compared = self._equal = 0
        self._discrete: Dict[str, int] = {}
        """Where integers differ, and the first step."""

    def answer(self) -> RecordingsCompared:
        steps = [self._steps_of(each) for each in self._sides]
        shared = sorted(set(steps[0]) & set(steps[1]))
        parting = None
        for step in shared:
            parting = self._parting_in(step, steps[0][step], steps[1][step])
            if parting is not None:
                break
        drifts = any(error > self._allowed_for(kind) for kind, (error, _) in self._by_kind.items())
        return RecordingsCompared(
            *self._sides,
            steps=len([each for each in shared if each >= 0]),
            by_steps=self._by_steps,
            compared=self._compared,
            equal=self._equal,
            parting=parting,
            largest=self._by_kind,
            drifts=drifts and parting is None,
            notes=self._notes(steps),
        )

    def _steps_of(self, recording: Recording) -> Dict[int, List[Event]]:
        """Return the events of each step; what the program starts with is step -1."""
        found: Dict[int, List[Event]] = {}
        for each in recording.events:
            if self._are_ranks and each.kind not in (START, GRADIENT, PARAMETER):
                continue
            number = each.step if self._by_steps else each.call - 1
            found.setdefault(-1 if each.kind == START else number, []).append(each)
        return found

    def _parting_in(self, step: int, before: List[Event], after: List[Event]) -> Optional[Parting]:
        """Compare what both runs have in a step; return where they part first."""
        found: Dict[Tuple[str, str, str], float] = {}
        agreeing: List[Event] = []
        for ours, theirs in _pairs(before, after):
            values, errors = self._parted(step, ours, theirs)
            found.update(errors)
            if values:
                places = [(ours.kind, ours.where, each.name.partition(" ")[0]) for each in values]
                known = max((self._largest.get(each, 0.0) for each in places), default=0.0)
                return Parting(
                    max(step, 0),
                    ours.kind,
                    ours.where,
                    tuple(values),
                    known,
                    self._random_since(step, ours, theirs),
                    any(each.kind == INPUT and each.where == ours.where for each in agreeing),
                    any(each.where.startswith(f"{ours.where}.") for each in agreeing),
                )
            agreeing.append(ours)
        for place, error in found.items():
            self._largest[place] = max(error, self._largest.get(place, 0.0))
            if error > self._by_kind.get(place[0], (0.0, 0))[0]:
                self._by_kind[place[0]] = error, step
        return None

    def _parted(
        self, step: int, ours: Event, theirs: Event
    ) -> Tuple[List[PartedValue], Dict[Tuple[str, str, str], float]]:
        """Return the values of an event that differ by more than rounding, and all differences."""
        others = {each.name.partition(" ")[0]: each for each in theirs.values}
        sizes = [each.norm / math.sqrt(each.count) for each in ours.values if each.count and not each.is_discrete]
        base = self._allowed_for(ours.kind)
        # What is zero but for rounding (the gradient of a bias before a normalisation) has the rounding of terms that
        # cancel. So a small tensor is judged by the size of the largest one.
        share = min(_MOST_SHARE, _CANCELLING * self._unit / base)
        least = share * max(sizes, default=0.0) if ours.kind in (GRADIENT, PARAMETER) else 0.0
        parted: List[PartedValue] = []
        errors: Dict[Tuple[str, str, str], float] = {}
        own = {each.name.partition(" ")[0]: each for each in ours.values}
        for key, each in own.items():
            place = ours.kind, ours.where, key
            other = others.get(key)
            if other is None or key.endswith(WEIGHTED):
                continue
            self._compared += 1
            self._equal += each.bits == other.bits and each.shape == other.shape
            why = _differs_in_kind(each, other)
            shown = max(each.name, other.name, key=len)
            if why:
                parted.append(PartedValue(shown, None, 0.0, why))
            elif each.is_discrete and each.bits != other.bits:
                if ours.kind == START or (ours.kind == INPUT and "." not in ours.where):
                    parted.append(PartedValue(shown, None, 0.0, "other integers"))
                else:  # rounding may make it, too: the index of the largest value, say
                    self._discrete.setdefault(f"{ours.kind} of {ours.where}", step)
            elif not each.is_discrete:
                error = relative_difference(each, other, least)
                ours_too, theirs_too = own.get(key + WEIGHTED), others.get(key + WEIGHTED)
                if ours_too is not None and theirs_too is not None:
                    error = min(error, relative_difference(ours_too, theirs_too, least))
                errors[place] = error
                allowed = max(base, JUMP * self._largest.get(place, 0.0))
                if not error <= allowed:
                    parted.append(PartedValue(shown, error, allowed))
        return parted, errors

    def _allowed_for(self, kind: str) -> float:
        return self._allowed * (_AFTER if kind in (GRADIENT, PARAMETER) else 1)

    def _random_since(self, step: int, ours: Event, theirs: Event) -> Tuple[str, ...]:
        """Return the generators whose states differ here, are used, and did not differ two steps before."""
        states = [_states(each) for each in (ours, theirs)]
        differing = [each for each in states[0] if states[0][each] != states[1].get(each)]
        found = []
        for name in differing:
            used = any(len({_states(each).get(name) for each in side.events}) > 1 for side in self._sides)
            earlier = [
                [_states(each).get(name) for each in self._steps_of(side).get(step - 2, ())] for side in self._sides
            ]
            if used and (not all(earlier) or earlier[0][-1] == earlier[1][-1]):
                found.append(name)
        return tuple(found)

    def _notes(self, steps: Sequence[Mapping[int, object]]) -> List[str]:
        notes = []
        sizes = [len([each for each in side if each >= 0]) for side in steps]
        if sizes[0] != sizes[1]:
            notes.append(f"the runs have {sizes[0]} and {sizes[1]} steps; what both have was compared")
        if any(each.steps for each in self._sides) and not self._by_steps:
            notes.append("only one run has calls of Optimizer.step: calls of outermost modules are compared instead")
        if self._are_ranks:
            notes.append("two ranks: only parameters, and gradients when the optimizer begins its step, are compared")
        for where, step in list(self._discrete.items())[:3]:
            since = f"integers differ since step {max(step, 0)}: {where}"
            notes.append(f"{since}; rounding may do that, so it does not count")
        for side in self._sides:
            if side.damaged:
                notes.append(f"{side.path}: {side.damaged} damaged lines were passed over")
        return notes


def compare_recordings(before: Recording, after: Recording) -> RecordingsCompared:
    """Return where two recordings part, and how far they differ before."""
    return _Comparison(before, after).answer()


def relative_difference(ours: Digest, theirs: Digest, least: float = 0.0) -> float:
    """Estimate the norm of the difference of two tensors, relative to the larger one. ``least``: the smallest size of
    a value (root mean square) to which a difference is related."""
    if ours.bits == theirs.bits:
        return 0.0
    differences = [one - two for one, two in zip(ours.sketch, theirs.sketch)]
    distance = math.sqrt(sum(each * each for each in differences) / PROJECTIONS)  # a power may raise OverflowError
    size = max(ours.norm, theirs.norm, least * math.sqrt(ours.count))
    return distance / size if size else distance and math.inf


def _differs_in_kind(ours: Digest, theirs: Digest) -> str:
    if ours.shape != theirs.shape:
        return f"other sizes: {list(ours.shape)} and {list(theirs.shape)}"
    if ours.is_discrete != theirs.is_discrete:
        return f"other dtypes: {ours.dtype} and {theirs.dtype}"
    if ours.nonfinite != theirs.nonfinite:
        return f"{ours.nonfinite} and {theirs.nonfinite} values are NaN or infinite"
    if ours.kinds and theirs.kinds and ours.kinds != theirs.kinds:
        return f"{_nonfinite(ours)}, and {_nonfinite(theirs)}"
    return ""


def _nonfinite(each: Digest) -> str:
    named = zip(each.kinds, ("NaN", "inf", "-inf"))
    return f"{listed([f'{count} {name}' for count, name in named if count], 3)} of {each.count} values"


def _pairs(before: List[Event], after: List[Event]) -> Iterator[Tuple[Event, Event]]:
    """Pair the events of a step that both runs have, in order.

    A module that the runs do not call equally often is left out: where compiled code calls one of three, it is not
    known which.
    """
    sides: List[Dict[Tuple[str, str], List[Event]]] = [{}, {}]
    for side, events in zip(sides, (before, after)):
        for each in events:
            side.setdefault((each.kind, each.where), []).append(each)
    taken: Dict[Tuple[str, str], int] = {}
    for each in sorted(before, key=lambda event: event.kind == PARAMETER):
        key = each.kind, each.where
        at = taken[key] = taken.get(key, -1) + 1
        others = sides[1].get(key, ())
        if len(others) == len(sides[0][key]):
            yield each, others[at]


def _states(event: Event) -> Dict[str, str]:
    return dict(each.partition(":")[::2] for each in event.random.split())


_WORDS = {
    START: "the parameters and buffers that {where} starts with",
    INPUT: "the input of {where}",
    OUTPUT: "the output of {where}",
    "loss": "the loss that backward() starts from",
    GRADIENT: "gradients, where {where} begins its step",
    PARAMETER: "parameters, after the step of {where}",
}
_MOST_VALUES = 5


def lines_of(found: RecordingsCompared, command: str) -> List[str]:
    """Return the comparison as text. ``command`` names the operation: ``depyf shadow --at 30 train.py``."""
    unit = "steps" if found.by_steps else "calls"
    lines = []
    if found.parting is not None:
        lines += _parting_lines(found, found.parting, command)
    elif not found.compared:
        lines.append("nothing was compared: the runs share no module, optimizer or compiled function")
    elif found.compared == found.equal:
        named = [[each.name for event in side.events for each in event.values] for side in (found.before, found.after)]
        both = [sum(not each.partition(" ")[0].endswith(WEIGHTED) for each in names) for names in named]
        whole = both == [found.compared] * 2 and not found.before.damaged and not found.after.damaged
        what = "the runs are" if whole else "what both runs have is"
        lines.append(f"{what} the same, bit by bit: {found.steps} {unit}, {found.compared} values")
    else:
        what = "drift apart, without a jump" if found.drifts else "agree up to rounding"
        values = f"{found.compared} values, {found.equal} of them bit by bit"
        lines.append(f"the runs {what}: {found.steps} {unit}, {values}")
    for kind in KINDS:
        if kind in found.largest:
            error, step = found.largest[kind]
            before = " before" if found.parting is not None else ""
            lines.append(f"  largest relative difference{before}, {kind}: {error:.2g} ({unit[:-1]} {max(step, 0)})")
    return [*lines, *(f"note: {each}" for each in found.notes)]


def _parting_lines(found: RecordingsCompared, parting: Parting, command: str) -> List[str]:
    unit = "step" if found.by_steps else "call"
    what = _WORDS[parting.kind].format(where=parting.where)
    when = "before the first step" if parting.kind == START else f"at {unit} {parting.step} (counted from 0)"
    lines = [f"the runs part {when}: {what}"]
    for each in parting.values[:_MOST_VALUES]:
        name = each.name.partition(" ")[2] if parting.kind in (GRADIENT, PARAMETER) else each.name
        limit = "" if each.error is None else f" (up to {each.allowed:.2g} may be rounding)"
        lines.append(f"  {name or 'result'}: {each}{limit}")
    if len(parting.values) > _MOST_VALUES:
        lines.append(f"  and {len(parting.values) - _MOST_VALUES} more")
    if parting.kind not in (START, INPUT) and parting.before:
        lines.append(f"  the largest difference of these before: {parting.before:.2g}")
    if parting.random:
        return [*lines, f"random numbers differ ({', '.join(parting.random)}): {_of_random(parting)}"]
    return lines + _reason(parting, command)


def _of_random(parting: Parting) -> str:
    if parting.kind == START:
        return "other seeds"
    if parting.kind == INPUT:
        return "other seeds, or one run has drawn more random numbers; seed all generators, and compare again"
    return (
        "one run draws them in another way, as Inductor does without torch._inductor.config.fallback_random = True, or "
        "the seeds differ"
    )


def _reason(parting: Parting, command: str) -> List[str]:
    """Return what is known of the operation, and how it is found."""
    if parting.kind == START:
        return ["the runs do not start with the same values: other seeds, checkpoints or initialisations"]
    if parting.kind == INPUT:
        if "." in parting.where:
            return [f"all modules that were called before agree: the code that calls {parting.where} differs"]
        return ["all values before agree, so the runs are given other data"]
    lines = []
    if parting.kind == OUTPUT and parting.input_agrees:
        inside = ", and what the modules in it compute does, too" if parting.children else ""
        lines.append(f"module: {parting.where}; its input agrees{inside}")
    elif parting.kind == GRADIENT:
        lines.append(f"module: {parting.last} is the first, in the order of the backward, whose gradient differs")
    elif parting.kind == PARAMETER:
        lines.append(f"module: {parting.last}; its gradients agree, so the step of {parting.where} differs")
    elif parting.kind == "loss":
        lines.append("module: none; the outputs of modules agree, so the loss is computed otherwise")
    return [*lines, f"operation: not known from digests. For compiled code, this names it: {command}"]
