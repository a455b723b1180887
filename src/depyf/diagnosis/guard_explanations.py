"""Explain a failed guard: its subject, the value it was compiled for, the current value, and what avoids the failure.
There is one row for each kind of guard. The advice follows from the cause and the origin of the value
(``guard_advice``).
"""

from __future__ import annotations

from typing import Callable, Mapping, Optional, Tuple

from depyf.diagnosis.guard import NO_GUARD, Guard, GuardKind, items
from depyf.diagnosis.guard_advice import (
    ANY_FRAME,
    SMALL_SIZE_ADVICE,
    GuardCause,
    GuardedFrame,
    advice_for_guard,
    kind_of_guard,
    origin_of,
)
from depyf.diagnosis.guard_sources import as_written, helper_as_written
from depyf.diagnosis.state_explanations import StateExplanation, explain_keys, explain_state
from depyf.quick_dataclass import dataclass, replace


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
    guard: Guard = NO_GUARD
    kind: str = ""
    """The cause, more closely where the advice needs it: recompilations of one kind have one advice."""

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
        if self.cause is GuardCause.IDENTITY and self.subject:
            return f"identity of {self.subject}"
        of = f" of {self.subject}" if self.subject else ""
        return f"{self.cause.value}{of}" + (f" in dimension {detail}" if self.cause in _OF_A_DIMENSION else "")


_COMPARED_IS_DETAIL = frozenset(
    (GuardCause.NUMBER, GuardCause.CHOICE, GuardCause.NONE, GuardCause.TRAINING, GuardCause.SIZES)
)
_OF_A_DIMENSION = frozenset((GuardCause.SIZE, GuardCause.STRIDE))


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
    origin = origin_of(guard.code or guard.source, explanation.subject, frame)
    advice = advice_for_guard(explanation.cause, origin, explanation.subject, guard.detail)
    kind = kind_of_guard(explanation.cause, origin, explanation.subject)
    if _is_of_small_size(explanation):
        advice, kind = SMALL_SIZE_ADVICE, "size of 0 or 1"
    return replace(explanation, advice=advice or explanation.advice, kind=kind)


def _is_of_small_size(explanation: GuardExplanation) -> bool:
    """Return whether a size of 0 or 1 made a guard of a tensor's size fail: no mark makes these dynamic."""
    if explanation.cause is GuardCause.SIZE:
        return bool({"0", "1"} & {explanation.before, explanation.now})
    least, _, rest = explanation.guard.code.partition(" <= ")
    size, _, most = rest.partition(" <= ")
    if least != "2" or size.count(".size()[") != 1 or set(" <>*+/") & set(size):
        return False
    return not most or (most.isdigit() and (explanation.guard.actual or "").endswith((" is 0", " is 1")))


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
    state = explain_state(guard.operands)
    return _of_state("", state, state.before, state.now)


def _of_state(name: str, state: StateExplanation, before: Optional[str], now: Optional[str]) -> GuardExplanation:
    return GuardExplanation(name, state.words, before, now, state.advice, cause=GuardCause.STATE)


def _missing(guard: Guard) -> GuardExplanation:
    words = f"{guard.subject} is missing, and was there when this was compiled"
    return GuardExplanation(guard.subject, words, None, "missing", cause=GuardCause.MEMBERS)


def _number_of_keys(guard: Guard) -> GuardExplanation:
    name, before = guard.subject, guard.expected
    than = "it was compiled for" if before is None else f"{before}, which it was compiled for"
    words = f"{name} has another number of keys than {than}"
    return GuardExplanation(name, words, before, guard.actual, cause=GuardCause.KEYS)


def _gone(guard: Guard) -> GuardExplanation:
    what = f"{guard.subject or 'an object'} that this code was compiled for is gone"
    return GuardExplanation(guard.subject, f"{what}, so torch has thrown the code away", cause=GuardCause.GONE)


def _not_computed(guard: Guard) -> GuardExplanation:
    words = f"relations of sizes that this was compiled for can't be computed for this call: {guard.code}"
    return GuardExplanation("", words, advice="pass views of the same kind each time")


def _marks(guard: Guard) -> GuardExplanation:
    before, now = guard.expected, guard.actual
    if guard.source:
        was = "none" if before is None else f"marks on {before}"
        marks = f"the marked dimensions ({guard.detail}) of {guard.subject}"
        words = f"{marks} are {now or 'others'}, and it was compiled for {was}"
    elif before is None:
        words = "a dimension of a tensor is marked (mark_dynamic or the like), and none was when this was compiled"
    else:
        words = f"dimensions {now} of a tensor are marked ({guard.detail}), and it was compiled for marks on {before}"
    return GuardExplanation(guard.subject, words, before, now, cause=GuardCause.MARKS)


def _class(guard: Guard) -> GuardExplanation:
    name, before = guard.subject, guard.expected
    if guard.actual == "None" and before:
        words = f"{name} is None, and was compiled for an object of class {before}"
        return GuardExplanation(name, words, before, "None", cause=GuardCause.NONE)
    words = f"{name} is not a {before}, which it was compiled for" if before else f"{name} is of another class"
    return GuardExplanation(name, words, before, cause=GuardCause.CLASS)


def _identity(guard: Guard) -> GuardExplanation:
    words = f"{guard.subject} is another object than the {guard.detail or 'object'} that it was compiled for"
    return GuardExplanation(guard.subject, words, cause=GuardCause.IDENTITY)


def _function(guard: Guard) -> GuardExplanation:
    name = guard.subject[: -len(".__code__")]
    return GuardExplanation(name, f"{name} is another function than it was compiled for", cause=GuardCause.FUNCTION)


def _relation(guard: Guard) -> GuardExplanation:
    what = ", which does not hold" if guard.actual is None else f"; now: {guard.actual}"
    words = f"it was compiled for {as_written(guard.detail)}{what}"
    return GuardExplanation(guard.subject, words, None, guard.actual, cause=GuardCause.SIZES)


def _none(guard: Guard) -> GuardExplanation:
    was = guard.expected
    is_now = "None" if was == "not None" else "not None"
    words = f"{as_written(guard.detail)} is {is_now}, and was compiled for {was}"
    return GuardExplanation(guard.subject, words, was, guard.actual or is_now, cause=GuardCause.NONE)


def _same_object(guard: Guard) -> GuardExplanation:
    relation = "the same object" if guard.holds else "different objects"
    one, other = map(as_written, guard.operands)
    words = f"{one} and {other} are not {relation}, which they were compiled for"
    return GuardExplanation(guard.subject, words, cause=GuardCause.SAME_OBJECT)


def _value(cause: GuardCause) -> Row:
    def row(guard: Guard) -> GuardExplanation:
        before, now = _values(guard)
        shown = helper_as_written(as_written(guard.detail))
        words = (
            f"{shown} is {now}, and was compiled for {before}"
            if now is not None
            else f"{shown} is not {before}, which it was compiled for"
        )
        of_none = cause is GuardCause.CHOICE and before == "None"
        return GuardExplanation(guard.subject, words, before, now, cause=GuardCause.NONE if of_none else cause)

    return row


def _length(guard: Guard) -> GuardExplanation:
    (before, now), name = _values(guard), guard.subject
    has = "is empty" if now == "0" else f"has {items(now or 'another number of')}"
    now = "empty" if now == "0" else now  # as the guard of an empty one has it
    return GuardExplanation(name, f"{name} {has}, and was compiled for {before}", before, now, cause=GuardCause.LENGTH)


def _empty(guard: Guard) -> GuardExplanation:
    (before, now), name = _values(guard), guard.subject
    is_now = _is(items(now) if now and now.isdigit() else now)
    words = f"{name} is not empty{is_now}, and was compiled for an empty one"
    return GuardExplanation(name, words, before, now, cause=GuardCause.LENGTH)


def _attribute(guard: Guard) -> GuardExplanation:
    is_now, was = ("lacks", "had") if guard.holds else ("has", "lacked")
    name = f"{guard.subject}.{guard.detail}"
    words = f"{guard.subject} {is_now} the attribute {guard.detail}, which it {was} when this was compiled"
    return GuardExplanation(name, words, was, is_now, cause=GuardCause.MEMBERS)


def _contains(guard: Guard) -> GuardExplanation:
    is_now, was = ("lacks", "had") if guard.holds else ("has", "lacked")
    name = guard.subject[: -len(".__dict__")] if guard.subject.endswith(".__dict__") else guard.subject
    words = f"{name} {is_now} {as_written(guard.detail)}, which it {was} when this was compiled"
    return GuardExplanation(name, words, was, is_now, cause=GuardCause.MEMBERS)


def _nan(guard: Guard) -> GuardExplanation:
    name, now = guard.subject, guard.actual
    if guard.expected is not None:
        words = f"{name} is not nan{_is(now)}, and was compiled for nan"
    else:
        was = "was" if guard.holds else "was not"
        words = f"{name} is {'not nan' if guard.holds else 'nan'}, which it {was} when this was compiled"
    return GuardExplanation(name, words, guard.expected, now, cause=GuardCause.NUMBER)


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
        GuardCause.KEYS, "the keys of {name} (or their order) are others: {detail} was {before}{is_now}"
    ),
    GuardKind.NUMBER_OF_KEYS: _number_of_keys,
    GuardKind.CONTAINS: _contains,
    GuardKind.ATTRIBUTE: _attribute,
    GuardKind.MISSING: _missing,
    GuardKind.NAN: _nan,
    GuardKind.ITERATOR_LENGTH: _value(GuardCause.LENGTH),
    GuardKind.ITERATOR_STATE: _value(GuardCause.CHOICE),
    GuardKind.CLASS: _class,
    GuardKind.FAKE_SCRIPT_CLASS: _class,
    GuardKind.CLASS_OF_DICT: _row(GuardCause.CLASS, "{name} is of another class than it was compiled for"),
    GuardKind.IDENTITY: _identity,
    GuardKind.FUNCTION: _function,
    GuardKind.TENSOR_CLASS: _row(GuardCause.CLASS, "{name} is of class {now}, and was a tensor of another class"),
    GuardKind.SIZE: _row(GuardCause.SIZE, "{name} has size {now} in dimension {detail}, and was compiled for {before}"),
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
        "other torch function modes are active (torch.set_default_device is one) than when this was compiled",
    ),
    GuardKind.HOOKS: _row(
        GuardCause.HOOKS, "other saved-tensors hooks are active than when this was compiled", shows_values=False
    ),
    GuardKind.BACKEND: _row(GuardCause.BACKEND, "it was compiled with another backend callable"),
    GuardKind.NOT_COMPUTED: _not_computed,
    GuardKind.GONE: _gone,
}

WITHOUT_EXPLANATION = frozenset((GuardKind.UNKNOWN, GuardKind.ALIASING, GuardKind.TENSOR))
"""Kinds of which PyTorch's text is shown as it is. Of a tensor what differs is explained."""
