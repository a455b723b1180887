"""``profile``: measure what each line of a compiled function costs, and whether compiling it pays.

``profile(fn, ...)`` copies the function with its arguments, as ``compare`` does. One copy is compiled anew in a session
of its own, which knows what each kernel computes; the other runs eagerly. Of both, one call is listed, some are
profiled, and more are timed in turns without a profiler. What is decided goes by the last.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from types import FunctionType
from typing import Callable, Dict, List, Optional, Tuple, Union, overload

from depyf.answers.profiled import Profiled, eager_times
from depyf.answers.worth import beside
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.capture.records import KernelFile
from depyf.dynamo.capture.session import Session
from depyf.dynamo.dump.manifest import run_of
from depyf.dynamo.entries.call_target import CallTarget, resolve
from depyf.dynamo.hooks import cache_entries, frame_evaluation, private_names, torch_names
from depyf.dynamo.hooks.nested_code import closure_of, names_in
from depyf.dynamo.questions.compare.observed_run import random_numbers_kept
from depyf.dynamo.questions.compare.private_copy import PrivateCopy, private_copy
from depyf.dynamo.questions.compare.question import backend_of
from depyf.dynamo.questions.compare.stage_runs import compiled_with, nothing_compiled, nothing_left_behind
from depyf.dynamo.questions.compare.state_snapshot import shared_with
from depyf.dynamo.questions.profile.align import align
from depyf.dynamo.questions.profile.attribution import Attribution
from depyf.dynamo.questions.profile.block import Profile
from depyf.dynamo.questions.profile.listing import Listing, require_listing
from depyf.dynamo.questions.profile.marks import Marks
from depyf.dynamo.questions.profile.measuring import (
    is_profiling,
    profiled_calls,
    timed_pairs,
    undone,
)
from depyf.dynamo.questions.profile.owners import KnownOwners, is_torch_file
from depyf.dynamo.questions.profile.sessions import own_session
from depyf.dynamo.questions.profile.units import divide
from depyf.report.analysis.costs import Costs
from depyf.report.model.run import Run
from depyf.torch_trace.events import METRICS

_MOST_WARM_UPS = 8
_STEPS = 10
_ALL = 0.99
"""With this share of the time on known lines, nothing of a line is missing."""


@overload
def profile(*, steps: Optional[int] = None) -> Profile: ...
@overload
def profile(
    fn: Callable[..., object],
    /,
    *args: object,
    backend: object = None,
    steps: Optional[int] = None,
    pairs: Optional[int] = None,
    directory: Optional[str] = None,
    **kwargs: object,
) -> Profiled: ...
def profile(
    fn: Optional[Callable[..., object]] = None,
    /,
    *args: object,
    backend: object = None,
    steps: Optional[int] = None,
    pairs: Optional[int] = None,
    directory: Optional[str] = None,
    **kwargs: object,
) -> Union[Profile, Profiled]:
    """Measure what each line of ``fn(*args, **kwargs)`` costs when it is compiled, and beside that in eager mode.

    Without ``fn`` it returns a context manager that measures what runs in its block: ``with depyf.profile(steps=5) as
    p: for batch in data: train(batch); p.step()`` leaves out the steps that compile, and measures ``steps`` of the
    others; without ``steps`` the block is measured as a whole.

    ``fn``: a function, method or module; or what ``torch.compile`` returned for one, whose backend, mode and options
    are used then. A training step has its ``backward()`` in the function. ``backend``: as for ``torch.compile``
    (default: Inductor). ``steps``: how many calls run under the profiler (10). ``pairs``: how many times a compiled and
    an eager call are timed beside each other, without the profiler; with fewer than 6 nothing is decided (default: at
    least 15, for 4 seconds).
    ``directory``: where a dump is written, whose page has a view of what was measured. A keyword argument of ``fn``
    that has the name of one of these is given with ``functools.partial``.

    The function, its arguments and the modules that it reaches are copied, and globals are restored, as ``compare``
    does it. The copy is compiled anew, without caches; compiling is not in what is measured.

    Raises ``ImportError`` without PyTorch, ``RuntimeError`` with one before 2.13, ``TypeError`` for what can't be
    called or copied, and what ``fn`` raises.
    """
    torch_names.require_torch("profile")
    if fn is None:
        return Profile(steps)
    if is_profiling():
        raise RuntimeError("depyf.profile: a profiler of PyTorch's is running, and would lose its events: end it first")
    for name, number in (("steps", steps), ("pairs", pairs)):
        if number is not None and number < 1:
            raise ValueError(f"depyf.profile: {name}={number!r} must be positive")
    frame_evaluation.keep_dynamo_out("depyf")
    require_listing()
    return _ProfileRun(resolve(fn, "profile"), args, kwargs, backend).answer(
        steps=steps or _STEPS, pairs=pairs, directory=directory
    )


class _ProfileRun:
    def __init__(
        self, target: CallTarget, args: Tuple[object, ...], kwargs: Dict[str, object], backend: object
    ) -> None:
        self._target = target
        self._args = args
        self._kwargs = kwargs
        self._dynamic = private_names.DYNAMIC.of(target.entered)
        self._backend, self._name = backend_of(backend, target.entered or next(iter(target.parts.values()), None))
        self._notes: List[str] = []
        self._shared = shared_with(target, (*args, *kwargs.values()), self._notes)

    def answer(self, *, steps: int, pairs: Optional[int], directory: Optional[str]) -> Profiled:
        with contextlib.ExitStack() as stack:
            stack.enter_context(random_numbers_kept())
            stack.enter_context(self._shared.restored())
            session = stack.enter_context(own_session(directory))
            stack.enter_context(capture.apart(session))
            entries = stack.enter_context(nothing_left_behind())
            stack.callback(entries.forget)
            compiled, eager = self._copies()
            if self._name == "inductor":
                # Dynamo would load it within the first compilation, whose time that is not: torch.compile loads it.
                private_names.COMPILE_FX.find()
            marks = Marks()
            marked = stack.enter_context(contextlib.ExitStack())
            marked.enter_context(undone(marks.watch()))
            self._warm_up(compiled.call, session)
            if not session.records(KernelFile) and self._name == "inductor":
                self._notes.append("Inductor generated no kernels")
            run = run_of(session)
            of_compiled = self._measured(compiled, session, marks, steps)
            # The functions that ``fn`` calls may be compiled themselves: in eager mode they are not.
            with nothing_compiled():
                eager.call()
                of_eager = self._measured(eager, session, marks, steps)
            # Marks and the session's hooks take a third of the time of a small compiled call.
            marked.close()
            with capture.set_aside(session):
                if capture.current() is not None:
                    self._notes.append("a session is open around the profile: its hooks are in the times of the calls")
                times = timed_pairs(compiled.call, eager.call, pairs, nothing_compiled)
            found = self._result(steps, of_compiled, of_eager, times, run)
            session.profiled.append(found)
            return found

    def _result(
        self,
        steps: int,
        of_compiled: Attribution,
        of_eager: Attribution,
        times: Tuple[List[float], List[float]],
        run: Run,
    ) -> Profiled:
        took = eager_times(of_eager.lines(), of_eager.modules())
        # A line without operations in eager mode takes no time, unless there are operations without a line.
        none = 0.0 if of_eager.attributed > _ALL else None
        seconds = Costs(run).take([each.compile_id for each in run.compilations])
        found = of_compiled.profiled(self._target.name, steps, took, none)
        return dataclasses.replace(
            found,
            compile_seconds=seconds,
            eager=beside(*times, compile_seconds=seconds, overhead=found.parts.guards + found.parts.calling),
            notes=(*dict.fromkeys(self._notes), *found.notes),
        )

    def _copies(self) -> Tuple[_Side, _Side]:
        sides = []
        isolate = cache_entries.has_regions()
        for eager in (False, True):
            copy = private_copy(self._target, self._args, self._kwargs)
            function = copy.compiled(
                (lambda each: each)
                if eager
                else lambda each: compiled_with(each, self._backend, dynamic=self._dynamic, isolate=isolate)
            )
            sides.append(_Side(functools.partial(function, *copy.args, **copy.kwargs), copy))
        return sides[0], sides[1]

    def _warm_up(self, call: Callable[[], object], session: Session) -> None:
        """Call until nothing is compiled any more."""
        for _ in range(_MOST_WARM_UPS):
            before = _compilations(session)
            call()
            if _compilations(session) == before:
                return
        self._notes.append(f"the function is still compiled in call {_MOST_WARM_UPS}: its times include that")

    def _measured(self, side: _Side, session: Session, marks: Marks, steps: int) -> Attribution:
        listing = Listing(marks.paths.__contains__, lambda _: contextlib.nullcontext())
        side.name_modules(listing)
        marks.listing = listing
        with undone([listing.open()]):
            for _ in range(_MOST_WARM_UPS):
                before = _compilations(session)
                listing.clear()
                side.call()
                if _compilations(session) == before:
                    break
                self._notes.append("it was compiled anew while its operations were listed: that code was measured")
        marks.listing = None
        owners = KnownOwners(run_of(session), session.all_records(), is_torch_file, side.root())
        division = divide(profiled_calls(side.call, steps))
        listed = align(division, listing, threading.get_ident())
        return Attribution(division, listed, marks.kernels, owners)


@dataclass
class _Side:
    """A copy of the call, compiled or eager."""

    call: Callable[[], object]
    copy: PrivateCopy

    def root(self) -> Optional[str]:
        """Return the class of the module that is called, None for a function."""
        import torch

        owner = getattr(self.copy.function, "__self__", self.copy.function)
        return type(owner).__name__ if isinstance(owner, torch.nn.Module) else None

    def name_modules(self, listing: Listing) -> None:
        """Tell the listing how the program calls its modules."""
        import torch

        owner = getattr(self.copy.function, "__self__", self.copy.function)
        if isinstance(owner, torch.nn.Module):
            listing.name_modules(owner)
        plain = getattr(self.copy.function, "__func__", self.copy.function)
        named: Dict[str, object] = {}
        if isinstance(plain, FunctionType):
            named.update(closure_of(plain))
            named.update((name, plain.__globals__.get(name)) for name in names_in(plain.__code__))
            named.update(zip(plain.__code__.co_varnames, self.copy.args))
        for name, value in named.items():
            if isinstance(value, torch.nn.Module):
                listing.name_modules(value, name)


def _compilations(session: Session) -> int:
    return sum(len(session.events(name)) for name in METRICS)
