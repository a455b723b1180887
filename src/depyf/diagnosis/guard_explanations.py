"""Explain a failed guard: its subject, the value it was compiled for, the current value, and what avoids the failure.
There is one row for each kind of guard. The advice follows from the cause and the origin of the value
(``guard_advice``).
"""

from __future__ import annotations

import builtins
import functools
from dataclasses import field
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.base.messages import listed
from depyf.base.plain_data import NOT_DATA
from depyf.base.quick_dataclass import dataclass, replace
from depyf.diagnosis.guard import NO_GUARD, Guard, GuardKind, items
from depyf.diagnosis.guard_advice import (
    ANY_FRAME,
    SMALL_SIZE_ADVICE,
    GuardCause,
    GuardedFrame,
    ValueOrigin,
    advice_for_guard,
    kind_of_guard,
    origin_of,
)
from depyf.diagnosis.guard_sources import as_written, helper_as_written, is_tested
from depyf.diagnosis.state_explanations import StateExplanation, explain_keys, explain_state

MORE, AND = "more has changed since that entry was compiled: ", "; "
"""What an advice has behind what avoids one failure: how to avoid the others of the same entry."""


@dataclass(frozen=True)
class GuardExplanation:
    """``subject`` is the guarded value, as users write it (``self.layers[0].training``), empty for global state.

    ``words`` is one sentence without a full stop. ``before`` and ``now`` are values as texts, None where they are not
    known. ``advice`` says what avoids it, empty where nothing does; it follows from ``cause`` and from where the
    subject comes from, which ``guard`` and the function say (``in_frame``). ``checked`` is what was compared, without
    the values: ``size of x in dimension 0``.
    """

    subject: str
    words: str
    before: Optional[str] = None
    now: Optional[str] = None
    advice: str = ""
    cause: GuardCause = GuardCause.UNKNOWN
    guard: Guard = field(default=NO_GUARD, metadata=NOT_DATA)
    kind: str = ""
    """The cause, more closely where the advice needs it."""
    others: Tuple[GuardExplanation, ...] = ()
    """Of a recompilation: the guards of the same entry that fail on their own, too."""

    @property
    def is_of_a_kind(self) -> bool:
        """Whether each kind of value needs an entry of its own, as each dtype does: no setting avoids that."""
        return self.cause in _KINDS

    @property
    def is_for_another(self) -> bool:
        """Whether the entry is for another object, class or function: what depends on it was not compared."""
        return self.cause in _FOR_ANOTHER

    @property
    def whole_advice(self) -> str:
        """Return the advice, and what avoids the failures of the others: to follow one of them would not be enough."""
        together = {subject for subject, _ in self.guard.together} if self.cause is GuardCause.SIZE else set()
        names: Dict[str, Dict[str, None]] = {}
        for each in self.others:
            if not (each.cause is GuardCause.SIZE and each.subject in together):  # the advice marks it already
                names.setdefault(each.advice, {})[each.checked] = None
        own = self.advice.rstrip(".")
        parts = [
            listed(subjects, _MOST_SUBJECTS) + (f" ({'the same' if advice == own else advice})" if advice else "")
            for advice, subjects in names.items()
        ]
        if not parts:
            return self.advice
        left = len(parts) - _MOST_OTHERS
        more = [f"and {left} more"] if left > 0 else []
        changed = f"{MORE}{'; '.join([*parts[:_MOST_OTHERS], *more])}"
        return f"{own}{AND}{changed}" if own else changed

    @property
    def checked(self) -> str:
        """Return what was compared, without the values; failures with the same text have the same cause."""
        detail = as_written(self.guard.detail)
        if self.cause is GuardCause.NONE and not detail:  # a guard on its class
            return self.subject
        if self.cause is GuardCause.UNKNOWN:
            return as_written(self.guard.code) or self.words
        if self.cause in _COMPARED_IS_DETAIL and detail:
            return helper_as_written(detail)
        if self.cause is GuardCause.GONE:
            return f"{self.subject or 'an object'} is gone"
        if self.cause in (GuardCause.MEMBER, GuardCause.NAMED, GuardCause.MOVED):
            return self.subject
        if self.cause is GuardCause.METADATA:
            return " ".join(("metadata", detail, "of", self.subject or "a tensor subclass")).replace("  ", " ")
        if self.cause is GuardCause.IDENTITY and self.subject:
            return f"identity of {self.subject}"
        if self.cause in _PRESENCE:
            return f"{_PRESENCE[self.cause]} {self.subject}"
        of = f" of {self.subject}" if self.subject else ""
        what = "size" if self.cause in SIZES_OF_TENSORS else self.cause.value
        return f"{what}{of}" + (f" in {_dimensions(detail)}" if self.cause in _OF_A_DIMENSION else "")


_MOST_SUBJECTS, _MOST_OTHERS = 3, 4
"""So many values are named for one advice, and so many pieces of advice for one recompilation."""

_KINDS = frozenset(
    (GuardCause.DTYPE, GuardCause.RANK, GuardCause.TENSOR_KIND, GuardCause.REQUIRES_GRAD, GuardCause.CLASS)
    + (GuardCause.NONE, GuardCause.TRAINING, GuardCause.MEMBER, GuardCause.NAMED, GuardCause.FUNCTION)
    + (GuardCause.IDENTITY, GuardCause.GONE, GuardCause.BACKEND)
)
_FOR_ANOTHER = frozenset((GuardCause.IDENTITY, GuardCause.FUNCTION, GuardCause.CLASS, GuardCause.GONE))
_COMPARED_IS_DETAIL = frozenset(
    (GuardCause.NUMBER, GuardCause.FLOAT, GuardCause.COMPLEX, GuardCause.MODULE_NUMBER, GuardCause.CONSTANT_NUMBER)
    + (
        GuardCause.STATIC_NUMBER,
        GuardCause.TESTED,
        GuardCause.BRANCH,
        GuardCause.CHOICE,
        GuardCause.NONE,
        GuardCause.TRAINING,
        GuardCause.SIZES,
        GuardCause.EQUAL_SIZES,
    )
)
_PRESENCE = {
    GuardCause.MEMBERS: "keys of",
    GuardCause.ATTRIBUTES: "attributes of",
    GuardCause.ITEMS: "items of",
}
"""What is checked by guards on whether something is there."""
SIZES_OF_TENSORS = frozenset(
    (GuardCause.SIZE, GuardCause.PARAMETER_SIZE, GuardCause.MARKED_SIZE, GuardCause.CONSTANT_SIZE)
    + (GuardCause.STATIC_SIZE,)
)
"""The causes of guards on the sizes of one tensor."""
_OF_A_DIMENSION = SIZES_OF_TENSORS | {GuardCause.STRIDE}


def _dimensions(detail: str) -> str:
    """Return "dimension 0", "dimensions 0 and 1"."""
    return f"dimensions {' and '.join(detail.split(', '))}" if "," in detail else f"dimension {detail}"


@functools.lru_cache(maxsize=1024)  # entries that a call misses for the same reason
def explain(guard: Guard, frame: GuardedFrame = ANY_FRAME) -> GuardExplanation:
    """Return the explanation of a guard of ``frame`` that failed."""
    row = _EXPLANATIONS.get(guard.kind)
    explanation = _unexplained(guard) if row is None else row(guard)
    return in_frame(replace(explanation, guard=guard), frame)


def in_frame(explanation: GuardExplanation, frame: GuardedFrame) -> GuardExplanation:
    """Return the same with the advice for a guard of this function."""
    if explanation.cause is GuardCause.UNKNOWN:
        return explanation
    guard = explanation.guard
    if _is_of_small_size(explanation):
        return replace(explanation, advice=SMALL_SIZE_ADVICE, kind="size of 0 or 1")
    origin = origin_of(guard.code or guard.source, explanation.subject, frame)
    cause = _cause_in(frame, explanation.cause, origin)
    of_program = origin in (ValueOrigin.ARGUMENT, ValueOrigin.ATTRIBUTE)
    if (
        of_program
        and cause in (GuardCause.NUMBER, GuardCause.FLOAT)
        and is_tested(explanation.subject, guard.user_code)
    ):
        cause = GuardCause.TESTED
    advice = advice_for_guard(cause, origin, explanation.subject, guard.detail, guard.together)
    kind = kind_of_guard(cause, origin, explanation.subject)
    return replace(explanation, cause=cause, advice=advice or explanation.advice, kind=kind)


CONSTANTS = {
    GuardCause.SIZE: GuardCause.CONSTANT_SIZE,
    GuardCause.NUMBER: GuardCause.CONSTANT_NUMBER,
    GuardCause.FLOAT: GuardCause.CONSTANT_NUMBER,
    GuardCause.TESTED: GuardCause.CONSTANT_NUMBER,
}
"""The cause where a size or a number that dynamic shapes could handle is a constant nevertheless."""
_STATIC = {
    GuardCause.SIZE: GuardCause.STATIC_SIZE,
    GuardCause.NUMBER: GuardCause.STATIC_NUMBER,
    GuardCause.FLOAT: GuardCause.STATIC_NUMBER,
    GuardCause.TESTED: GuardCause.STATIC_NUMBER,
}


def _cause_in(frame: GuardedFrame, cause: GuardCause, origin: ValueOrigin) -> GuardCause:
    """Return the cause with what is known of dynamic shapes in this function."""
    if cause is GuardCause.MODULE_NUMBER and frame.module_ints:  # PyTorch recommends the setting even so
        cause = GuardCause.NUMBER
    # A global number is a constant anyway, and so is a number after a graph break that was none before.
    is_number = cause in (GuardCause.NUMBER, GuardCause.FLOAT)
    if frame.dynamic is None or (is_number and origin in (ValueOrigin.GLOBAL, ValueOrigin.INTERMEDIATE)):
        return cause
    return (CONSTANTS if frame.dynamic else _STATIC).get(cause, cause)


def with_sizes_together(
    explanations: Sequence[GuardExplanation], frame: GuardedFrame = ANY_FRAME
) -> List[GuardExplanation]:
    """Return the explanations of one entry, where each guard on a size knows all sizes that have changed."""
    of_sizes = [each for each in explanations if each.cause is GuardCause.SIZE and not _is_of_small_size(each)]
    together = tuple((each.subject, each.guard.detail) for each in of_sizes)
    return [
        in_frame(replace(each, guard=replace(each.guard, together=together)), frame) if each in of_sizes else each
        for each in explanations
    ]


def _is_of_small_size(explanation: GuardExplanation) -> bool:
    """Return whether a size of 0 or 1 made a guard of a tensor's size fail: no mark makes these dynamic."""
    if explanation.cause is GuardCause.SIZE:
        before, now = ((each or "").split(", ") for each in (explanation.before, explanation.now))
        return all({"0", "1"} & {*pair} for pair in zip(before, now))
    # ``2 <= L['x'].size()[0]``, with a greatest size or without. With one, the actual size decides which bound failed.
    guard = explanation.guard
    least, size, *most = guard.operands if set(guard.operators) == {"<="} else ("", "")
    if least != "2" or guard.sizes != (size,) or ".size()[" not in size or len(most) > 1:
        return False
    return not most or (most[0].isdigit() and (guard.actual or "").endswith((" is 0", " is 1")))


def _unexplained(guard: Guard) -> GuardExplanation:
    return GuardExplanation("", f"this does not hold: {as_written(guard.code)}", None, guard.actual)


Row = Callable[[Guard], GuardExplanation]


def _row(cause: GuardCause, words: str, *, shows_values: bool = True) -> Row:
    """Return a row whose sentence is a template of ``name``, ``before``, ``now``, ``detail`` and ``is_now`` (``now`` in
    brackets, or nothing)."""

    def row(guard: Guard) -> GuardExplanation:
        before, now = _values(guard)
        text = words.format(
            name=guard.subject, before=before, now=now, detail=as_written(guard.detail), is_now=_is(guard.actual)
        )
        values = (before, now) if shows_values else (None, None)
        return GuardExplanation(guard.subject, text, *values, cause=cause)

    return row


def _values(guard: Guard) -> Tuple[Optional[str], Optional[str]]:
    return None if guard.expected is None else as_written(guard.expected), guard.actual


def _is(now: Optional[str]) -> str:
    return "" if now is None else f" ({now})"


def _requires_grad(guard: Guard) -> GuardExplanation:
    is_now, was = ("does not require grad", "requires grad") if guard.holds else ("requires grad", "does not")
    words = f"{guard.subject} {is_now}, and was compiled for one that {was}"
    return GuardExplanation(guard.subject, words, guard.expected, guard.actual, cause=GuardCause.REQUIRES_GRAD)


def _dispatch_keys(guard: Guard) -> GuardExplanation:
    name, before, now = guard.subject, _keys(guard.expected), _keys(guard.actual)
    new = [key for key in now if key not in before]
    gone = [key for key in before if key not in now] if now else []
    change = " and ".join(
        [*(["has " + ", ".join(new)] if new else []), *(["lacks " + ", ".join(gone)] if gone else [])]
    )
    state = explain_keys(name, new, gone)
    if state is not None:
        return _of_state(name, state, guard.expected, guard.actual)
    words = (
        f"{name} is another kind of tensor (device, layout, view or mode): its dispatch key set {change or 'differs'}"
    )
    return GuardExplanation(name, words, guard.expected, guard.actual, cause=GuardCause.TENSOR_KIND)


def _keys(text: Optional[str]) -> Tuple[str, ...]:
    return () if text is None else tuple(text.split(", "))


def _global_state(guard: Guard) -> GuardExplanation:
    state = explain_state(guard.changed)
    return _of_state("", state, state.before, state.now)


def _of_state(name: str, state: StateExplanation, before: Optional[str], now: Optional[str]) -> GuardExplanation:
    return GuardExplanation(name, state.words, before, now, state.advice, cause=GuardCause.STATE)


def _missing(guard: Guard) -> GuardExplanation:
    if guard.subject.endswith(".__code__"):
        name = guard.subject[: -len(".__code__")]
        words = f"{name} is not a function of Python, and was one when this was compiled"
        return GuardExplanation(name, words, "function", cause=GuardCause.CLASS)
    # ``getattr failed on source c`` may be about ``c.scale``; depyf has looked where ``detail`` says so.
    is_vague = guard.code.startswith("getattr failed") and not guard.detail
    name = f"{guard.subject}, or an attribute of it," if is_vague else guard.subject
    cause = GuardCause.MEMBERS if guard.source.endswith("]") and not is_vague else GuardCause.ATTRIBUTES
    words = f"{name} is missing, and was there when this was compiled"
    # ``self.gate = nn.Linear(...)`` moves it from ``__dict__`` to ``_modules``: only a running program shows that.
    if guard.code.startswith("KeyError on") and cause is GuardCause.ATTRIBUTES and not guard.detail:
        words = f"{name} is missing, or registered in another way (as a module, parameter or buffer), since then"
    return GuardExplanation(guard.subject, words, None, "missing", cause=cause)


def _moved(guard: Guard) -> GuardExplanation:
    name, (before, now) = guard.subject, _values(guard)
    words = f"{name} is {now}, and was {before} when this was compiled"
    if before in (None, now):
        words = f"{name} is {now}, {guard.detail}; it was not that when this was compiled"
    return GuardExplanation(name, words, before, now, cause=GuardCause.MOVED)


def _number_of_keys(guard: Guard) -> GuardExplanation:
    name, before = guard.subject, guard.expected
    words = f"{name} has a different number of keys; it was compiled for {before or 'another number'}"
    return GuardExplanation(name, words, before, guard.actual, cause=GuardCause.KEYS)


def _gone(guard: Guard) -> GuardExplanation:
    words = f"{guard.subject or 'an object'} that this code was compiled for is gone, so PyTorch deleted the code"
    return GuardExplanation(guard.subject, words, cause=GuardCause.GONE)


def _not_computed(guard: Guard) -> GuardExplanation:
    words = f"relations of sizes that this was compiled for can't be computed for this call: {guard.code}"
    return GuardExplanation("", words, advice="pass views of the same kind each time")


def _marks(guard: Guard) -> GuardExplanation:
    before, now = guard.expected, guard.actual
    if guard.source:
        was = "none" if before is None else f"marks on {before}"
        marks = f"the marked dimensions ({guard.detail}) of {guard.subject}"
        words = f"{marks} are {now or 'different'}; it was compiled for {was}"
    elif before is None:
        words = "a dimension of a tensor is marked (mark_dynamic or the like), and none was when this was compiled"
    else:
        words = f"dimensions {now} of a tensor are marked ({guard.detail}); it was compiled for marks on {before}"
    return GuardExplanation(guard.subject, words, before, now, cause=GuardCause.MARKS)


def _class_of_tensor(guard: Guard) -> GuardExplanation:
    name, (before, now) = guard.subject, _values(guard)
    # Before PyTorch 2.15 the text does not say of which class the tensor was; a class of Python is no tensor.
    if now == "NoneType":
        return GuardExplanation(name, f"{name} is None, and was a tensor", before, "None", cause=GuardCause.NONE)
    was = "a tensor" if hasattr(builtins, now or "") else "a tensor of another class"
    return GuardExplanation(name, f"{name} is of class {now}, and was {was}", before, now, cause=GuardCause.CLASS)


def _class(guard: Guard) -> GuardExplanation:
    name, before = guard.subject, guard.expected
    if guard.actual == "None" and before:
        words = f"{name} is None, and was compiled for an object of class {before}"
        return GuardExplanation(name, words, before, "None", cause=GuardCause.NONE)
    words = f"{name} is not a {before}, which it was compiled for" if before else f"{name} is of another class"
    if before and guard.actual is not None:
        words = f"{name} is of class {guard.actual}, and was compiled for an object of class {before}"
    return GuardExplanation(name, words, before, guard.actual, cause=GuardCause.CLASS)


def _identity(guard: Guard) -> GuardExplanation:
    words = f"{guard.subject} is another object than the {guard.detail or 'object'} that it was compiled for"
    return GuardExplanation(guard.subject, words, cause=GuardCause.IDENTITY)


def _one_of_few(cause: GuardCause, what: str) -> Row:
    """Return a row for objects with names; ``what`` is used where the name of the first one is not known."""

    def row(guard: Guard) -> GuardExplanation:
        name, (before, now) = guard.subject, _values(guard)
        kind = f"{what} of {guard.detail}" if guard.detail and cause is GuardCause.MEMBER else what
        words = f"{name} is {now or f'another {kind}'}"
        if before is not None:
            words += f", and was compiled for {before}"
        else:
            words += f", and was compiled for another {kind}" if now else " than it was compiled for"
        return GuardExplanation(name, words, before, now, cause=cause)

    return row


def _metadata(guard: Guard) -> GuardExplanation:
    name, (before, now) = guard.subject or "a tensor subclass", _values(guard)
    what = f"metadata {guard.detail} of {name}" if guard.detail else f"the metadata of {name} (of __tensor_flatten__)"
    words = f"{what} is {now}, and was compiled for {before}"
    if before is None or now is None:
        words = f"{what} differs from that which it was compiled for"
    return GuardExplanation(guard.subject, words, before, now, cause=GuardCause.METADATA)


def _aliasing(guard: Guard) -> GuardExplanation:
    if guard.detail == "no_aliasing":
        return _EXPLANATIONS[GuardKind.SAME_TENSOR](guard)
    together, apart = guard.operands
    names = as_written(together or apart)
    now, was = ("do not overlap", "did") if together else ("overlap", "did not")
    if together and apart:
        names, now = as_written(f"{together}, {apart}"), "overlap in another way"
        return GuardExplanation("", f"{names} {now} in memory than when this was compiled", cause=GuardCause.OVERLAP)
    words = f"{names} {now} in memory; they {was} when this was compiled"
    return GuardExplanation("", words, cause=GuardCause.OVERLAP)


def _size(guard: Guard) -> GuardExplanation:
    cause = GuardCause.PARAMETER_SIZE if guard.is_of_parameter else GuardCause.SIZE
    if guard.hint == STATIC_MARK:
        cause = GuardCause.MARKED_SIZE
    name, (before, now) = guard.subject, _values(guard)
    changes = zip(*(each.split(", ") for each in (guard.detail, now or "", before or "")))
    sizes = [f"size {one} in dimension {at}, and was compiled for {other}" for at, one, other in changes]
    words = f"{name} has {'; it has '.join(sizes)}"
    return GuardExplanation(name, words, before, now, cause=cause)


STATIC_MARK = "static mark"
"""The hint of a guard on the size of a tensor that the program marks as static."""


def _function(guard: Guard) -> GuardExplanation:
    name, (before, now) = guard.subject[: -len(".__code__")], _values(guard)
    words = f"{name} is another function than it was compiled for"
    if now is not None:
        words = f"{name} is {now}, and was compiled for {before or 'another function'}"
    return GuardExplanation(name, words, before, now, cause=GuardCause.FUNCTION)


def _relation(guard: Guard) -> GuardExplanation:
    what = ", which does not hold" if guard.actual is None else f"; now: {guard.actual}"
    words = f"it was compiled for {as_written(guard.detail)}{what}"
    now = (guard.actual or "").rpartition(" is ")[2]
    if guard.bounded_size is not None and now.isdigit():
        name, dimension, bounds = guard.bounded_size
        words = f"{name} has size {now} in dimension {dimension}, and was compiled for {bounds}"
    is_of_sizes = any(part in guard.detail for part in (".size()", ".stride()", ".storage_offset()"))
    cause = GuardCause.SIZES if is_of_sizes else GuardCause.BRANCH
    if "use_duck_shape" in guard.hint:  # no line of the program asked for it
        cause = GuardCause.EQUAL_SIZES
    return GuardExplanation(guard.subject, words, None, guard.actual, cause=cause)


def _none(guard: Guard) -> GuardExplanation:
    was = guard.expected
    is_now = "None" if was == "not None" else "not None"
    words = f"{as_written(guard.detail)} is {is_now}, and was compiled for {was}"
    return GuardExplanation(guard.subject, words, was, guard.actual or is_now, cause=GuardCause.NONE)


def _same_object(guard: Guard) -> GuardExplanation:
    relation = "the same object" if guard.holds else "different objects"
    one, other = map(as_written, guard.operands)
    words = f"{one} and {other} are not {relation}; they were when this was compiled"
    return GuardExplanation(guard.subject, words, cause=GuardCause.SAME_OBJECT)


def _value(cause: GuardCause) -> Row:
    def row(guard: Guard) -> GuardExplanation:
        before, now = _values(guard)
        if guard.subject.endswith(_DEFAULT_DEVICE):
            words = f"the default device is {now or 'another one'}, and was {before} when this was compiled"
            return GuardExplanation("", words, before, now, cause=GuardCause.MODES)
        shown = helper_as_written(as_written(guard.detail))
        words = (
            f"{shown} is {now}, and was compiled for {before}"
            if now is not None
            else f"{shown} is not {before}, which it was compiled for"
        )
        of_none = cause is GuardCause.CHOICE and before == "None"
        found = _cause_of_number(guard) if cause is GuardCause.NUMBER else GuardCause.NONE if of_none else cause
        return GuardExplanation(guard.subject, words, before, now, cause=found)

    return row


_DEFAULT_DEVICE = "utils_device.CURRENT_DEVICE"
"""The end of PyTorch's name of the default device."""


def _cause_of_number(guard: Guard) -> GuardCause:
    if guard.is_of_module_number:
        return GuardCause.MODULE_NUMBER
    text = guard.expected or ""
    if text.endswith("j"):
        return GuardCause.COMPLEX
    return GuardCause.NUMBER if text.lstrip("-").isdigit() else GuardCause.FLOAT


def _length(guard: Guard) -> GuardExplanation:
    (before, now), name = _values(guard), guard.subject
    now = "empty" if now == "0" else now  # a guard that was read from an entry of PyTorch 2.4 has "empty" already
    has = "is empty" if now == "empty" else f"has {items(now or 'another number of')}"
    return GuardExplanation(name, f"{name} {has}, and was compiled for {before}", before, now, cause=GuardCause.LENGTH)


def _empty(guard: Guard) -> GuardExplanation:
    (before, now), name = _values(guard), guard.subject
    if name.endswith("_hooks"):
        owner, _, which = name.rpartition(".")
        words = f"{owner} has {which.strip('_').replace('_', ' ')}, and was compiled without"
        return GuardExplanation(owner, words, cause=GuardCause.MODULE_HOOKS)
    is_now = _is(items(now) if now and now.isdigit() else now)
    words = f"{name} is not empty{is_now}, and was compiled for an empty one"
    return GuardExplanation(name, words, before, now, cause=GuardCause.LENGTH)


def _attribute(guard: Guard) -> GuardExplanation:
    is_now, was = ("lacks", "had") if guard.holds else ("has", "lacked")
    name = f"{guard.subject}.{guard.detail}"
    words = f"{guard.subject} {is_now} the attribute {guard.detail}, which it {was} when this was compiled"
    return GuardExplanation(name, words, was, is_now, cause=GuardCause.ATTRIBUTES)


def _contains(guard: Guard) -> GuardExplanation:
    is_now, was = ("lacks", "had") if guard.holds else ("has", "lacked")
    name = guard.subject[: -len(".__dict__")] if guard.subject.endswith(".__dict__") else guard.subject
    words = f"{name} {is_now} {as_written(guard.detail)}, which it {was} when this was compiled"
    cause = GuardCause.ATTRIBUTES if name is not guard.subject else GuardCause.MEMBERS
    if guard.code.startswith(_OF_SETS):
        cause = GuardCause.ITEMS
    return GuardExplanation(name, words, was, is_now, cause=cause)


_OF_SETS = ("set.__contains__(", "not set.__contains__(", "___set_contains(", "not ___set_contains(")


def _nan(guard: Guard) -> GuardExplanation:
    name, now = guard.subject, guard.actual
    if guard.expected is not None:
        words = f"{name} is not nan{_is(now)}, and was compiled for nan"
    else:
        was = "was" if guard.holds else "was not"
        words = f"{name} is {'not nan' if guard.holds else 'nan'}, which it {was} when this was compiled"
    return GuardExplanation(name, words, guard.expected, now, cause=GuardCause.FLOAT)


_EXPLANATIONS: Mapping[GuardKind, Row] = {
    GuardKind.RELATION: _relation,
    GuardKind.NUMBER: _value(GuardCause.NUMBER),
    GuardKind.CHOICE: _value(GuardCause.CHOICE),
    GuardKind.TRAINING: _value(GuardCause.TRAINING),
    GuardKind.NONE: _none,
    GuardKind.SAME_OBJECT: _same_object,
    GuardKind.LENGTH: _length,
    GuardKind.EMPTY: _empty,
    GuardKind.KEYS: _row(
        GuardCause.KEYS, "the keys of {name}, or their order, have changed: {detail} was {before}{is_now}"
    ),
    GuardKind.NUMBER_OF_KEYS: _number_of_keys,
    GuardKind.CONTAINS: _contains,
    GuardKind.ATTRIBUTE: _attribute,
    GuardKind.MISSING: _missing,
    GuardKind.MOVED: _moved,
    GuardKind.NAN: _nan,
    GuardKind.ITERATOR_LENGTH: _value(GuardCause.LENGTH),
    GuardKind.ITERATOR_STATE: _value(GuardCause.CHOICE),
    GuardKind.CLASS: _class,
    GuardKind.FAKE_SCRIPT_CLASS: _class,
    GuardKind.CLASS_OF_DICT: _row(GuardCause.CLASS, "{name} is of another class than it was compiled for"),
    GuardKind.IDENTITY: _identity,
    GuardKind.MEMBER: _one_of_few(GuardCause.MEMBER, "member"),
    GuardKind.NAMED: _one_of_few(GuardCause.NAMED, "class or function"),
    GuardKind.METADATA: _metadata,
    GuardKind.FUNCTION: _function,
    GuardKind.TENSOR_CLASS: _class_of_tensor,
    GuardKind.ALIASING: _aliasing,
    GuardKind.SIZE: _size,
    GuardKind.STRIDE: _row(
        GuardCause.STRIDE, "{name} has stride {now} in dimension {detail}, and was compiled for {before}"
    ),
    GuardKind.RANK: _row(GuardCause.RANK, "{name} has {now} dimension(s), and was compiled for {before}"),
    GuardKind.DTYPE: _row(GuardCause.DTYPE, "{name} has dtype {now}, and was compiled for {before}"),
    GuardKind.REQUIRES_GRAD: _requires_grad,
    GuardKind.DISPATCH_KEYS: _dispatch_keys,
    GuardKind.SAME_TENSOR: _row(
        GuardCause.SAME_TENSOR, "two arguments are the same tensor, and were compiled as different ones"
    ),
    GuardKind.MARKS: _marks,
    GuardKind.GLOBAL_STATE: _global_state,
    GuardKind.MODES: _row(
        GuardCause.MODES,
        "the active torch function modes (such as torch.set_default_device) differ from those at compile time",
    ),
    GuardKind.HOOKS: _row(
        GuardCause.HOOKS, "the active saved-tensors hooks differ from those at compile time", shows_values=False
    ),
    GuardKind.BACKEND: _row(GuardCause.BACKEND, "it was compiled with another backend callable"),
    GuardKind.NOT_COMPUTED: _not_computed,
    GuardKind.GONE: _gone,
}

WITHOUT_EXPLANATION = frozenset((GuardKind.UNKNOWN, GuardKind.TENSOR))
"""Kinds of which PyTorch's text is shown as it is. Of a tensor what differs is explained."""
