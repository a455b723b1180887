"""Decompile one code object and record the outcome: never raises for a failure of the decompiler."""

from __future__ import annotations

import enum
import os
import time
import traceback
from typing import Callable, Optional, Tuple

from depyf.base.late_regex import regex
from depyf.base.own_package import FOLDER, is_own
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler import (
    Decompilation,
    DecompilationError,
    Verdict,
    decompile_code,
    flags_like,
    is_of_another_version,
)
from depyf.decompiler.syntax import parse
from depyf.sweep.limits import TimeLimit
from depyf.sweep.targets import Target


class Outcome(enum.Enum):
    """The outcome for one code object, best first."""

    EXACT = "exact"
    EQUIVALENT = "equivalent"
    PLACEHOLDERS = "placeholders"
    UNVERIFIED = "unverified"
    REFUSED = "refused"
    DIFFERENT = "different"
    """Source was returned that is wrong, whatever its verdict: found by the check below."""
    CRASHED = "crashed"
    """Another exception than ``DecompilationError``, a time or memory limit, a dead worker: always a bug of depyf."""

    @property
    def proved(self) -> bool:
        return self in (Outcome.EXACT, Outcome.EQUIVALENT)


@dataclass(frozen=True)
class Result:
    """One row of a sweep. ``size`` is in instructions, ``reason`` is empty if it was proved."""

    path: str
    ordinal: int
    qualname: str
    kind: str
    line: int
    size: int
    outcome: Outcome
    reason: str
    seconds: float

    @property
    def label(self) -> str:
        return f"{self.path}:{self.line} {self.qualname}"


_OF_VERDICT = {
    Verdict.EXACT: Outcome.EXACT,
    Verdict.EQUIVALENT: Outcome.EQUIVALENT,
    Verdict.PLACEHOLDERS: Outcome.PLACEHOLDERS,
    Verdict.UNVERIFIED: Outcome.UNVERIFIED,
}


Keep = Callable[[Target, Decompilation], None]
"""An additional consumer of results; its ``OSError`` is reported as the reason."""


def judge(target: Target, keep: Optional[Keep] = None, python: Optional[str] = None) -> Result:
    """Decompile ``target`` and check the result. ``python``: see ``decompile_code``. The time covers decompiling and
    verifying alone."""
    start = time.perf_counter()
    outcome, reason = Outcome.CRASHED, ""
    answer: Optional[Decompilation] = None
    try:
        answer = decompile_code(target.code, python=python)
        outcome, reason = _OF_VERDICT[answer.verdict], answer.reason
    except DecompilationError as error:
        outcome, reason = Outcome.REFUSED, str(error)
    except TimeLimit:
        reason = "time limit"
    except Exception as error:
        reason = f"{type(error).__name__}: {error} [{_place(error)}]"
    seconds = time.perf_counter() - start
    if answer is not None:
        objection = _objection(answer)
        if objection is not None:
            outcome, reason = objection
        elif keep is not None:
            try:
                keep(target, answer)
            except OSError as error:
                outcome, reason = Outcome.CRASHED, f"the source can't be written: {error}"
    return result_for(target, outcome, "" if outcome.proved else reason, seconds)


def result_for(target: Target, outcome: Outcome, reason: str, seconds: float) -> Result:
    """Return the row of ``target``."""
    return Result(
        target.path, target.ordinal, target.qualname, target.kind, target.line, target.size, outcome, reason,
        round(seconds, 5),
    )  # fmt: skip


_CALLING = ("co_name", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_freevars")


_EMPTY = (Outcome.DIFFERENT, "the source is empty")


def _objection(answer: Decompilation) -> Optional[Tuple[Outcome, str]]:
    """Return the outcome and the reason if a result is unusable, whatever its verdict; ``None`` if it is usable."""
    if is_of_another_version(answer.code):  # its Python parses and compiles the text
        return None if answer.source.strip() or answer.code.co_name == "<module>" else _EMPTY
    try:
        tree = parse(answer.source)
    except (SyntaxError, ValueError) as error:
        return Outcome.DIFFERENT, f"the source does not parse: {error}"
    if not tree.body and answer.code.co_name != "<module>":
        return _EMPTY
    try:
        again = answer.compile_like()
    except DecompilationError as error:
        return Outcome.REFUSED, f"the source does not compile to a replacement: {error}"
    for fact in _CALLING:
        before, after = getattr(answer.code, fact), getattr(again, fact)
        if fact == "co_flags":
            before = flags_like(answer.code, again)
        if before != after:
            return Outcome.DIFFERENT, f"compiled again, {fact} is {after!r} and was {before!r}"
    return None


def _place(error: BaseException) -> str:
    """Return the innermost frame of ``error`` in code of depyf, as file:line and function."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if is_own(frame.filename)] or frames
    if not ours:
        return "?"
    path = ours[-1].filename[len(FOLDER) :].replace(os.sep, "/")
    return f"{path}:{ours[-1].lineno} {ours[-1].name}"


_VARYING = regex(r"0x[0-9a-fA-F]+|\d+|'[^']*'|\"[^\"]*\"|`[^`]*`")


def reason_group(result: Result) -> str:
    """Return the reason without the parts that vary between code objects: names, numbers, quoted text."""
    reason = result.reason.split("\n", 1)[0]
    for name in (result.qualname, result.qualname.rpartition(".")[2]):
        if reason.startswith(name):
            reason = reason[len(name) :].lstrip(": ")
    message, bracket, location = reason.rpartition(" [")
    if result.outcome is Outcome.CRASHED and bracket:
        return _VARYING.sub("_", message) + bracket + location
    return _VARYING.sub("_", reason)
