"""Run the cache entry that a call hits, on a private copy of the call.

The transformed code of the entry runs as a function of its own, on the copied arguments, modules and variables. So its
guards, which may require the very objects of the program, are not evaluated again, and no entry is moved or counted.
Code that it calls (resume functions, parts that are compiled separately) runs from its own entries where these match
the copies, and as plain Python elsewhere; nothing is compiled.
"""

from __future__ import annotations

import contextlib
import sys
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Callable, ContextManager, Dict, Iterator, List, Mapping, Optional, Tuple

from depyf.answers.why import Why, WhyEntry
from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe, listed
from depyf.base.quick_dataclass import dataclass, replace
from depyf.dynamo.entries.call_target import CallTarget
from depyf.dynamo.entries.callables import is_inner_code, module_classes, plain_function, static_attribute
from depyf.dynamo.entries.entry_check import would_hit
from depyf.dynamo.entries.hints import RESUMED
from depyf.dynamo.hooks import cache_entries, compiled_callables, frame_evaluation, known_code, torch_settings
from depyf.dynamo.hooks.hooked_context import undone_afterwards
from depyf.dynamo.hooks.nested_code import closure_of
from depyf.dynamo.hooks.patching import collecting
from depyf.dynamo.questions.compare.observed_run import NoGradientsError, random_numbers_kept, run
from depyf.dynamo.questions.compare.private_copy import (
    Change,
    PrivateCopy,
    name_of_wrapped,
    private_copy,
    unchanged,
    with_own_code,
)
from depyf.dynamo.questions.compare.state_snapshot import StateSnapshot
from depyf.dynamo.questions.why import of_call


class NotRunError(Exception):
    """The entry can't be run on a copy; the message says why."""


@dataclass(frozen=True)
class HitEntry:
    """The cache entry that a call hits, with what ``why`` says of it."""

    target: CallTarget
    entry: cache_entries.CacheEntry
    shown: WhyEntry

    @property
    def backend(self) -> object:
        """The backend by which Dynamo looks up entries for this call."""
        return compiled_callables.innermost_backend(getattr(self.target.entered, "callback", None))

    def replacing(self, function: Callable[..., object]) -> Callable[..., object]:
        """Return ``function`` (the copy of what was compiled) with the entry's code in place of its own.

        Raises ``NotRunError`` where that is not possible.
        """
        return _only_compiled(self.with_entry_code(function))

    def with_entry_code(self, function: Callable[..., object]) -> Callable[..., object]:
        """Return ``function`` with the entry's code; code that it calls may be compiled."""
        code = self.entry.code
        if code is None:
            raise NotRunError("PyTorch has discarded its code")
        if uses_cuda_graphs(self.target):
            raise NotRunError("it runs CUDA graphs, whose memory holds the results of your program's last call")
        return _with_code(function, self.target, code)


def entry_hit(
    target: CallTarget, args: Tuple[object, ...], kwargs: Mapping[str, object]
) -> Tuple[Optional[Why], Optional[HitEntry]]:
    """Return what ``why`` says of a call, and the entry that the call hits, if any; (None, None) if nothing is compiled
    as a whole, or if the arguments do not fit.
    """
    if target.entered is None:
        return None, None
    try:
        answer, entry = of_call(target, args, kwargs)
    except TypeError:  # a call raises it, too
        return None, None
    shown = answer.hit
    return answer, None if entry is None or shown is None else HitEntry(target, entry, shown)


def uses_cuda_graphs(target: CallTarget) -> bool:
    """Return whether the compiled code may run CUDA graphs: by its mode or options, or by Inductor's settings."""
    backend = compiled_callables.innermost_backend(getattr(target.entered, "callback", None))
    own = getattr(backend, "config", None)
    given = own.get("triton.cudagraphs") if isinstance(own, dict) else None
    return bool(torch_settings.cuda_graphs_are_on() if given is None else given)


def _with_code(function: Callable[..., object], target: CallTarget, code: CodeType) -> Callable[..., object]:
    """Return a copied callable, in which the function that Dynamo compiled has the code of an entry."""
    # Case 1: torch's function ``inner(*args, **kwargs)`` calls the compiled callable, and has entries of its own.
    frame = plain_function(target.frame)
    if is_inner_code(frame.__code__):
        # ``Module.compile()`` (PyTorch 2.14 and later) wraps ``module._call_impl``; the code reads its ``__self__``.
        wrapped = dict(closure_of(frame)).get("fn")
        if isinstance(wrapped, MethodType) and isinstance(function, module_classes()):
            function = MethodType(wrapped.__func__, function)
        return with_own_code(frame, {"fn": function}, {}, code)
    # Case 2: a module, whose ``forward`` is the function, or is around it.
    if isinstance(function, module_classes()):
        own = static_attribute(type(function), "__call__")
        if isinstance(own, FunctionType) and own.__code__ == frame.__code__:  # its class has a call of its own
            return MethodType(with_own_code(own, {}, {}, code), function)
        forward = vars(function).get("forward") or type(function).forward
        made = _around(plain_function(compiled_callables.unwrapped(forward) or forward), frame.__code__, code)
        vars(function)["forward"] = MethodType(made, function)
        return function
    if isinstance(function, MethodType):
        owner = function.__self__
        if isinstance(owner, module_classes()) and known_code.is_of_torch(function.__func__.__code__):
            return _with_code(owner, target, code)  # its class is compiled: called as the class calls it
        return MethodType(_around(function.__func__, frame.__code__, code), owner)
    return _around(function, frame.__code__, code)


def _around(function: object, original: CodeType, code: CodeType) -> FunctionType:
    """Return a function, or the plain wrapper around it, with ``code`` in place of ``original``."""
    if isinstance(function, FunctionType) and function.__code__ == original:
        return with_own_code(function, {}, {}, code)
    wrapped = getattr(function, "__wrapped__", None)
    name = name_of_wrapped(function) if isinstance(function, FunctionType) and wrapped is not None else ""
    if not name or not isinstance(function, FunctionType):
        raise NotRunError("its function is called by code that can't be copied with another function in it")
    inner = _around(plain_function(wrapped), original, code)
    return with_own_code(function, {name: inner}, {})


def _only_compiled(function: Callable[..., object]) -> Callable[..., object]:
    """Return a function that runs code that is compiled, and compiles nothing."""

    def call(*args: object, **kwargs: object) -> object:
        before = frame_evaluation.set_eval_frame(False)
        try:
            return function(*args, **kwargs)
        finally:
            frame_evaluation.set_eval_frame(before)

    return call


def noting_resumed(call: PrivateCopy, backend: object, names: Dict[str, None]) -> Callable[[FrameType], None]:
    """Return what to call with each frame that starts: it adds to ``names`` the resume functions that run as plain
    Python although the program's own objects hit an entry."""

    def enter(frame: FrameType) -> None:
        code = frame.f_code
        if code.co_name.startswith(RESUMED) and known_code.original_of(code) is None:
            # For the program's own objects it may hit. If it does not, the call of the program compiles it anew, too.
            values = {name: call.original_of(value) for name, value in frame.f_locals.items()}
            if would_hit(code, values, backend):
                names.setdefault(code.co_name)

    return enter


@contextlib.contextmanager
def nothing_new_compiled(call: PrivateCopy, backend: object, skipped: List[str]) -> Iterator[None]:
    """Run what is compiled, under the guards that the stance evaluates, and compile nothing. ``skipped`` receives the
    names of resume functions that ran as plain Python because their guards are for the originals of copied objects.
    """
    names: Dict[str, None] = {}
    enter = noting_resumed(call, backend, names)

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            enter(frame)

    before = sys.getprofile()
    with undone_afterwards("restoring the stance") as undo:
        collecting(
            undo,
            lambda: frame_evaluation.set_stance("eager_on_recompile", skip_guards=frame_evaluation.skips_guards()),
        )
        undo.append(lambda: sys.setprofile(before))
        sys.setprofile(note)
        yield
    skipped += names


OnlyCompiled = Callable[[PrivateCopy, object, List[str]], ContextManager[None]]
"""Like ``nothing_new_compiled``."""


@dataclass(frozen=True)
class EntryValues:
    """What a run of an entry gave: values by name, as ``observed_run`` names them; or the exception, in words; or why
    the entry, or a part of what follows it, was not run.
    """

    values: Mapping[str, object]
    error: str = ""
    not_run: str = ""
    no_gradients: str = ""
    """Why its results can't be differentiated, as PyTorch says it; empty if they can, or were not to be."""


def run_hit(
    hit: HitEntry,
    args: Tuple[object, ...],
    kwargs: Mapping[str, object],
    shared: StateSnapshot,
    *,
    backward: bool,
    seed: Optional[int],
    change: Change = unchanged,
    only_compiled: OnlyCompiled = nothing_new_compiled,
) -> EntryValues:
    """Run an entry on a copy of the call. What it shares with the program is restored, random numbers too.

    ``seed``: None for the random state of now. ``only_compiled`` keeps new code from being compiled.
    """
    skipped: List[str] = []
    try:
        call = private_copy(hit.target, args, kwargs)
        function = call.compiled(hit.replacing)
        with contextlib.ExitStack() as stack:
            stack.enter_context(random_numbers_kept(seed))
            stack.enter_context(shared.restored())
            stack.enter_context(change(call))
            stack.enter_context(only_compiled(call, hit.backend, skipped))
            values = run(call, function, backward=backward).values
    except NotRunError as error:
        return EntryValues({}, not_run=str(error))
    except NoGradientsError as error:
        given = args, kwargs, shared
        again = run_hit(hit, *given, backward=False, seed=seed, change=change, only_compiled=only_compiled)
        return replace(again, no_gradients=str(error))
    except synchronous() as error:
        return EntryValues({}, f"{describe(error)[:500]}")
    after = f"{listed(skipped, 3)} ran as plain Python: no cache entry matches the copies" if skipped else ""
    return EntryValues(values, not_run=after and f"after a graph break {after}")
