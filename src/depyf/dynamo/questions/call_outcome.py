"""Determine what a call does that hits no cache entry: it compiles, runs as plain Python, or raises an exception.

The order is that of PyTorch: the stance decides before Dynamo looks at the frame, then a frame that Dynamo has given up
runs as Python, then the limits apply, then Dynamo compiles. ``trial`` finds out whether that raises.
"""

from __future__ import annotations

import contextlib
from types import CodeType
from typing import Callable, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.entries.call_target import CallTarget
from depyf.dynamo.hooks import cache_entries, compiled_callables, frame_evaluation, private_names, torch_settings
from depyf.dynamo.hooks.last_attempts import Attempt, first_line, last_attempt
from depyf.dynamo.questions.compare.observed_run import random_numbers_kept
from depyf.dynamo.questions.compare.private_copy import private_copy
from depyf.dynamo.questions.compare.stage_runs import nothing_left_behind
from depyf.dynamo.questions.compare.state_snapshot import StateSnapshot

_SOFT = ("Unsupported", "UserError")
"""Exceptions after which Dynamo runs the frame as plain Python, now and later, unless graph breaks are errors."""

LIMIT_GIVEN = "recompile_limit="
"""The name of a limit that ``torch.compile`` was given."""

_BACKEND = "BackendCompilerFailed"


class Outcome(NamedTuple):
    """What the call does, in words; the exception that it raises, if any; whether Dynamo compiles something."""

    words: str
    raises: str = ""
    compiles: bool = False


@dataclass(frozen=True)
class Missed:
    """A call that hits no entry: its target (None for a frame), code, arguments, and whether there are entries."""

    target: Optional[CallTarget]
    code: CodeType
    args: Tuple[object, ...]
    kwargs: Mapping[str, object]
    has_entries: bool
    limit: Optional[Tuple[str, int]] = None

    @property
    def one_graph(self) -> bool:
        """Whether the call is compiled with ``fullgraph=True``."""
        callback = None if self.target is None else getattr(self.target.entered, "callback", None)
        return any(private_names.ONE_GRAPH.of(each) for each in _layers(callback))

    @property
    def breaks_raise(self) -> bool:
        """Whether a graph break raises an exception."""
        entered = None if self.target is None else self.target.entered
        return self.one_graph or bool(private_names.BREAKS_RAISE.of(entered))


def _layers(callback: object) -> Iterator[object]:
    """Yield a callback of Dynamo's and those inside of it."""
    while callback is not None:
        yield callback
        callback = compiled_callables.inside_of_callback(callback)


def limit_of_callback(entered: object) -> Optional[int]:
    """Return the limit that ``torch.compile(recompile_limit=...)`` was given; None without one."""
    found = (private_names.LIMIT_OF_CALLBACK.of(each) for each in _layers(getattr(entered, "callback", None)))
    return next((each for each in found if isinstance(each, int)), None)


def outcome_of(call: Missed) -> Outcome:
    """Return what a call does that hits no cache entry."""
    for rule in (_by_stance, _by_frame, _by_limit, _by_attempt):
        outcome = rule(call)
        if outcome is not None:
            return outcome
    words = "would be compiled once more" if call.has_entries else "would be compiled for the first time"
    may_raise = ", or raises Unsupported if there is a graph break (fullgraph=True)" if call.one_graph else ""
    return Outcome(f"{words}{may_raise}", compiles=True)


def _by_stance(call: Missed) -> Optional[Outcome]:
    stance = frame_evaluation.stance()
    given = f"torch.compiler.set_stance({stance!r}) is in force"
    if stance == "eager_on_recompile" and not (frame_evaluation.skips_guards() and call.has_entries):
        # Dynamo keeps a state for code that it has met, which torch._dynamo.reset() leaves and nothing shows. With it,
        # a call without a matching entry raises an exception where guards are skipped.
        may_raise = ", or may raise RuntimeError if Dynamo has met this code before (skip_guard_eval_unsafe=True)"
        return Outcome(
            f"runs as plain Python{may_raise if frame_evaluation.skips_guards() else ''}: {given}, and no entry matches"
        )
    # A frame that Dynamo has given up is run without asking the stance.
    if (stance != "default" or frame_evaluation.skips_guards()) and _given_up(call) is None:
        if stance == "fail_on_recompile":
            return Outcome(f"raises an error (RuntimeError): {given}, and no entry matches", "RuntimeError")
        if frame_evaluation.skips_guards():
            what = "no entry passes the guards that the stance leaves (skip_guard_eval_unsafe=True)"
            return Outcome(f"raises an error (RuntimeError): {what}, and nothing may be recompiled", "RuntimeError")
        key = f"{call.code.co_filename}{call.code.co_firstlineno}"
        was_called = bool((private_names.EXAMPLE_INPUTS.find() or {}).get(key))
        if stance in ("eager_then_compile", "aot_eager_then_compile") and not was_called:
            if stance == "eager_then_compile":
                return Outcome(f"runs as plain Python: {given}, and the code was not called under it before")
            return Outcome(
                f"would be compiled with the backend aot_eager: {given}, and the code was not called under it before",
                compiles=True,
            )
    return None


def _by_frame(call: Missed) -> Optional[Outcome]:
    """Return what happens where Dynamo compiles nothing of this frame."""
    reason = _given_up(call)
    if reason is None and torch_settings.dynamo_setting("disable"):
        reason = "torch._dynamo.config.disable is set"
        if call.has_entries:
            reason += ", and no entry matches"
    if reason is None:
        return None
    raises = call.one_graph and frame_evaluation.stance() == "default" and private_names.FULLGRAPH_COUNT.find()
    if raises and not call.has_entries:
        return Outcome(f"raises RuntimeError, as fullgraph=True finds no compiled frame: {reason}", "RuntimeError")
    if raises:
        return Outcome(f"raises RuntimeError, as fullgraph=True runs no compiled frame: {reason}", "RuntimeError")
    return Outcome(f"runs as plain Python: {reason}")


def _given_up(call: Missed) -> Optional[str]:
    """Return why Dynamo runs the frame as plain Python, whatever the arguments; None if it may compile it."""
    if call.target is not None and call.target.library_reason:
        return call.target.library_reason
    attempt = last_attempt(call.code)
    if not cache_entries.looked_at_in_vain(call.code):
        return None
    if attempt is None:
        return None if call.breaks_raise else _TRACED_IN_VAIN
    if not attempt.error:
        return (
            None if call.one_graph else "Dynamo has traced it before and compiled nothing: there was nothing to compile"
        )
    if call.breaks_raise:
        return None
    if attempt.error in _SOFT or torch_settings.dynamo_setting("suppress_errors"):
        return f"Dynamo has tried to compile it, and has given up: {_text(attempt)}"
    return None


_TRACED_IN_VAIN = (
    "Dynamo has traced it before and compiled nothing: there was nothing to compile, or Dynamo could not continue "
    "after a graph break, or the compiler raised an exception (then Dynamo tries again)"
)


def _by_limit(call: Missed) -> Optional[Outcome]:
    if call.limit is None:
        return None
    name, value = call.limit
    given = name == LIMIT_GIVEN
    reached = f"{'torch.compile(' if given else 'torch._dynamo.config.'}{name}"
    reached += f"{value}) is reached" if given else f" = {value} is reached"
    setting = next(
        (
            each
            for each in ("fail_on_recompile_limit_hit", "fail_on_cache_limit_hit")
            if torch_settings.dynamo_setting(each)
        ),
        "",
    )
    if not (setting or call.one_graph):
        return Outcome(f"runs as plain Python: {reached}")
    error = "an error" if private_names.LIMIT_RAISED.find() is None else private_names.LIMIT_RAISED.name
    cause = f"torch._dynamo.config.{setting} is set" if setting else "fullgraph=True"
    return Outcome(f"raises {error}: {reached}, and {cause}", error)


def _by_attempt(call: Missed) -> Optional[Outcome]:
    """Return what happens where the last compilation of this code raised an exception, and Dynamo tries again."""
    attempt = last_attempt(call.code)
    if attempt is None or not attempt.error or call.target is None:
        return None
    if attempt.error in _SOFT and not call.breaks_raise:  # a graph break: the rest was compiled
        return None
    found = None if attempt.error == _BACKEND else trial(call)
    if found is None:
        words = f"would be compiled again, and may raise what the last attempt raised: {_text(attempt)}"
        return Outcome(words, compiles=True)
    if found.error:
        return Outcome(f"raises {_text(found)}", found.error)
    return None


def _text(attempt: Attempt) -> str:
    where = "" if attempt.location is None else " ({}:{})".format(*attempt.location)
    return f"{attempt.error}: {attempt.reason}{where}"


class _Traced(BaseException):
    """Raised in place of a run of the compiled code. Nothing that handles exceptions handles it."""


def trial(call: Missed) -> Optional[Attempt]:
    """Trace the call once more, on copies and with a backend that compiles nothing; return how that ended. Nothing of
    the program is run. None where the call can't be copied.
    """
    assert call.target is not None
    target = call.target
    try:
        copied = private_copy(target, call.args, call.kwargs)
        shared = StateSnapshot(target, (*call.args, *call.kwargs.values()))
    except synchronous(TypeError):
        return None
    with contextlib.ExitStack() as stack:
        stack.enter_context(random_numbers_kept())
        stack.enter_context(nothing_left_behind())
        stack.enter_context(shared.restored())
        stack.callback(frame_evaluation.set_stance("default"))
        only_traced = _traced_only(dynamic=private_names.DYNAMIC.of(target.entered))
        try:
            copied.compiled(only_traced)(*copied.args, **copied.kwargs)
        except _Traced:
            return Attempt("", "", None)
        except synchronous() as error:
            if type(error).__name__ in _SOFT and not call.breaks_raise:
                return Attempt("", "", None)  # the trial has fullgraph=True, so that it never runs the frame
            known = last_attempt(call.code)
            where = known.location if known is not None else None
            return Attempt(type(error).__name__, first_line(str(error)) or describe(error), where)
    return Attempt("", "", None)


def _traced_only(*, dynamic: Optional[bool]) -> Callable[[Callable[..., object]], Callable[..., object]]:
    def run_nothing(*args: object) -> object:
        raise _Traced

    def backend(module: object, inputs: Sequence[object]) -> Callable[..., object]:
        return run_nothing

    def compile_with(function: Callable[..., object]) -> Callable[..., object]:
        import torch

        compiled: Callable[..., object] = torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=True)
        return compiled

    return compile_with
