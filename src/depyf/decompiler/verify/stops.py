"""The stops of a side that runs alone: observable events, unknown branches, and the exits of the function."""

from __future__ import annotations

from typing import Hashable, Literal, NamedTuple, Tuple, Union

from depyf.decompiler.verify.values import Value

Outcome = Literal["next", "raise", "for", "bound", "safe", "cells", "handles"]
Ending = Literal["return", "raise", "diverge"]


class Event(NamedTuple):
    """An operation that can raise, run foreign code or be observed; both sides must do the same.

    ``kind`` and ``arg`` say what it does, ``operands`` to which values. After the event the side pops ``pops`` values,
    pushes one result for each letter of ``results`` ("v" a value, "u" a value that others keep alive anyway, "b" a
    truth; negated if ``negated``), and continues at the next operation if ``advance``.
    ``outcome``: "next", "raise" (it always raises), "for" (it may be exhausted), "bound" (the local ``arg`` is bound),
    "safe" (it can't raise, but is observable, wherever its handler is), "cells" (the operands fit closures from now
    on), "handles" (another exception may be the one being handled from now on).
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
    """A branch on an unknown truth that can be tested silently."""

    truth: Value

    def describe(self) -> str:
        return f"a test of {self.truth!r}"


class Exit(NamedTuple):
    """The exit: "return", "raise" (an exception leaves the function) or "diverge" (a silent endless loop)."""

    kind: Ending
    value: Value

    def describe(self) -> str:
        return f"{self.kind} {self.value!r}"


Stop = Union[Event, Split, Exit]
