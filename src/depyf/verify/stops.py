"""The stops of a side that runs alone: at what others can observe, or where it must know more to continue."""

from __future__ import annotations

from typing import Hashable, Literal, NamedTuple, Tuple, Union

from depyf.verify.values import Value

Outcome = Literal["next", "raise", "for", "bound", "safe"]
Ending = Literal["return", "raise", "diverge"]


class Event(NamedTuple):
    """Something that can raise, run foreign code or be observed; both sides must do the same.

    ``kind`` and ``arg`` say what it does, ``operands`` to which values. What the side does once the event has happened:
    take ``pops`` values from its stack, push one result for each letter of ``results`` ("v" a value, "u" a value that
    others keep alive anyway, "b" a truth; negated if ``negated``), and go on behind it if ``advance``.
    ``outcome``: "next", "raise" (it always raises), "for" (it may be exhausted), "bound" (the local ``arg`` is bound),
    "safe" (it can't raise: it counts because of what others see, wherever its handler is).
    """

    kind: str
    arg: Hashable
    operands: Tuple[Value, ...]
    results: str
    pops: int
    advance: bool = True
    negated: bool = False
    outcome: Outcome = "next"

    def describe(self) -> str:
        arg = "" if self.arg is None else f" {self.arg!r}"
        operands = ", ".join(repr(value) for value in self.operands)
        return f"{self.kind}{arg} ({operands})"


class Split(NamedTuple):
    """A branch on a truth that is not known, and that can be tested silently."""

    truth: Value

    def describe(self) -> str:
        return f"a test of {self.truth!r}"


class Exit(NamedTuple):
    """The end: "return", "raise" (an exception leaves the function) or "diverge" (it runs silently for ever)."""

    kind: Ending
    value: Value

    def describe(self) -> str:
        return f"{self.kind} {self.value!r}"


Stop = Union[Event, Split, Exit]
