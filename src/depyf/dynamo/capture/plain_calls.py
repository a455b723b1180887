"""Record calls of compiled functions that the program runs eagerly, while a session is open.

These are calls under ``torch.compiler.set_stance("force_eager")`` and the like, and calls of functions under
``torch.compiler.disable``. In each such call Dynamo asks ``_callback_from_stance`` for its callback, which is hooked
here. A dump in which nothing was compiled gives the reason.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import weakref
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.watch import counted
from depyf.base.messages import listed
from depyf.base.own_builtins import keep_builtins
from depyf.diagnosis.break_advice import described_error_in_line
from depyf.dynamo.capture.fallbacks import fallbacks, is_users, is_users_file
from depyf.dynamo.capture.records import Cause, EarlierFunction, GraphFile, Incomplete, KernelFile, TransformedCode
from depyf.dynamo.capture.session import Receivers, Session
from depyf.dynamo.hooks import frame_evaluation, frames, private_names, torch_settings
from depyf.dynamo.hooks.compiled_callables import caller_of_hook
from depyf.dynamo.hooks.patching import Undo, registered
from depyf.dynamo.hooks.safely import has_failed, safely
from depyf.report.model.run import STALE

keep_builtins(globals())

_NAMED = 3
"""Name at most this many functions with the reason why they are not compiled."""

_DISABLED = "torch._dynamo.config.disable was set"
_VARIABLES = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")
_UNSAFE = "torch.compiler.set_stance(skip_guard_eval_unsafe=True) skipped guards in"
_FILTERED = "a guard_filter_fn, which may drop guards, was set in"
_COMPILES_NOTHING = ("force_eager", "eager_on_recompile")


def watch_plain_calls(receivers: Receivers) -> Optional[Undo]:
    """Start to record in each session which calls run eagerly, and why; None if that can't be observed."""
    original = private_names.CALLBACK_FROM_STANCE.find()
    if original is None:
        return None
    config: object = private_names.DYNAMO_CONFIG.find()
    open_, calls = True, itertools.count()
    counts = _Counts(receivers)
    others: Dict[int, weakref.ref[CodeType]] = {}
    """The functions that are not the program's, by the ids of their code: each call of a graph comes here."""

    @safely("noting that a call runs as plain Python")
    def note(callback: object, frame: FrameType) -> None:
        function = frame.f_locals.get("fn")
        code = frames.code_of_function(function)
        name = _name_of(function)
        if callable(callback):
            why = f"torch.compiler.set_stance({frame_evaluation.stance()!r}) was in force"
        elif code is not None and _is_the_programs(code, receivers()):
            why = "torch.compiler.disable keeps Dynamo out"
        else:
            if type(code) is CodeType and len(others) < _MOST_OTHERS:
                others[id(code)] = weakref.ref(code)
            return
        for session in receivers():
            session.plain_calls.setdefault(why, {}).setdefault(name)

    @functools.wraps(original)
    def callback_from_stance(callback: object) -> object:
        answer = original(callback)
        if open_ and (Session.reached_limits or callable(callback)):
            counts.note(callback, caller_of_hook(sys._getframe(1)).f_locals.get("fn"))
        if open_ and (callback is None or callable(callback)):
            if not callable(answer):
                frame = caller_of_hook(sys._getframe(1))
                if callback is not None or not _is_of_others(frame.f_locals.get("fn"), others):
                    note(callback, frame)
            # It matters where nothing is compiled, and reading the setting takes as long as all the rest.
            elif _is_a_sample(next(calls)):
                _note_disabled(config, receivers())
        return answer

    def end() -> None:
        nonlocal open_
        open_ = False
        undo()

    undo = private_names.CALLBACK_FROM_STANCE.replace(callback_from_stance)
    return registered(end)


@safely("noting whether Dynamo is disabled")
def _note_disabled(config: object, sessions: Sequence[Session]) -> None:
    if getattr(config, "disable", False):  # PyTorch's code looks the setting up
        for session in sessions:
            session.plain_calls.setdefault(_DISABLED, {})


def _name_of(function: object) -> str:
    """Return the display name of what is called: of a module its class, as PyTorch calls a method of ``Module``."""
    if isinstance(function, MethodType) and function.__func__.__qualname__.startswith("Module."):
        return type(function.__self__).__qualname__
    return str(getattr(function, "__qualname__", type(function).__qualname__))


class _Counts:
    """Counts calls of compiled functions: after a recompile limit, and with guards that are not checked."""

    def __init__(self, receivers: Receivers) -> None:
        self._receivers = receivers
        self._filters: Dict[int, Tuple[Callable[[], object], bool]] = {}
        """Whether each callback of Dynamo's has a filter of guards, by its id, with a weak reference to it."""

    @safely("counting calls after a limit, and of unchecked guards")
    def note(self, callback: object, function: object) -> None:
        """Count a call. The function is the program's: reading an attribute of it may raise anything."""
        if Session.reached_limits:
            code = frames.code_that_runs(function)
            for session in self._receivers():
                session.count_call(code)
        for why in self._unchecked(callback) if callable(callback) else ():
            name = _name_of(function)
            for session in self._receivers():
                calls_of = session.unguarded_calls.setdefault(why, {})
                calls_of[name] = calls_of.get(name, 0) + 1

    def _unchecked(self, callback: object) -> Iterator[str]:
        """Yield what leaves out guards of the function that this callback compiles."""
        known = self._filters.get(id(callback))
        if known is None or known[0]() is not callback:
            known = weakref.ref(callback), frame_evaluation.filters_guards(callback)
            self._filters[id(callback)] = known
        if known[1]:
            yield _FILTERED
        if frame_evaluation.skips_guards():
            yield _UNSAFE


_AT_FIRST, _EACH = 100, 16
"""The setting is read in the first 100 calls, and later in every 16th."""

_MOST_OTHERS = 10_000


def _is_a_sample(number: int) -> bool:
    return number < _AT_FIRST or number % _EACH == 0


def _is_of_others(function: object, others: Mapping[int, weakref.ref[CodeType]]) -> bool:
    """Return whether the function is clearly a library's, or is in ``others``.

    This is so for nearly all of the thousands of calls with Dynamo disabled. The check can't fail, and runs no code of
    the program.
    """
    if type(function) is MethodType:
        function = function.__func__
    if type(function) is not FunctionType:
        return False
    code = function.__code__
    known = others.get(id(code))
    return (known is not None and known() is code) or not is_users_file(code.co_filename)


def _is_the_programs(code: CodeType, sessions: Sequence[Session]) -> bool:
    """Return whether code belongs to the program and was not generated: backends disable Dynamo in their graphs."""
    made = any(session.directory.is_in(code.co_filename) for session in sessions)
    return is_users(code) and not made and not code.co_filename.startswith("<")


def note_settings(session: Session) -> None:
    """Record what disables Dynamo at the moment."""
    for name in _VARIABLES:
        if os.environ.get(name, "") == "1":
            session.plain_calls.setdefault(f"{name}=1 is set in the environment", {})
    if torch_settings.dynamo_setting("disable"):
        session.plain_calls.setdefault(_DISABLED, {})
    if frame_evaluation.stance() in _COMPILES_NOTHING:
        session.plain_calls.setdefault(f"torch.compiler.set_stance({frame_evaluation.stance()!r}) was in force", {})


def plain_calls_text(session: Session) -> List[str]:
    """Return what the program ran eagerly, a line each."""
    return [
        f"{why}: {listed(names, _NAMED)} ran as plain Python" for why, names in session.plain_calls.items() if names
    ]


def unguarded_text(session: Session) -> List[str]:
    """Return the calls with guards that were not checked, a line for each reason."""
    return [
        f"{STALE} {why} {counted(sum(calls.values()), 'call')} of {listed(calls, _NAMED)}; depyf.compare checks a call"
        for why, calls in session.unguarded_calls.items()
    ]


def why_empty(session: Session) -> str:
    """Return why nothing was compiled in this session; empty if something was, or if it is unknown."""
    made = (TransformedCode, GraphFile, KernelFile, EarlierFunction, Incomplete)
    if any(session.records(kind) for kind in made) or session.ran or has_failed(session.directory.path):
        return ""
    reasons = [f"{why}{f' ({listed(names, _NAMED)})' if names else ''}" for why, names in session.plain_calls.items()]
    found = fallbacks(session)
    for frame in found:
        if frame.cause is Cause.RAISED:
            reasons.append(f"compiling {frame.qualified_name} raised {described_error_in_line(frame.reason)}")
    skipped = dict.fromkeys(frame.qualified_name for frame in found if frame.cause is not Cause.RAISED)
    if skipped:
        reasons.append(f"Dynamo looked at {listed(skipped, _NAMED)} and compiled nothing of it (eager_fallbacks_*.txt)")
    return f"{NOTHING}: " + ("; ".join(reasons) or _NOT_CALLED)


NOTHING = "nothing was compiled"

_NOT_CALLED = (
    "no function that torch.compile has made was called, or none that Dynamo was let into (torch.compile(disable=True) "
    "compiles nothing, and a frame in which Dynamo found nothing is not tried again)"
)
