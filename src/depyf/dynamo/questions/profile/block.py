"""Profile what runs in a block of the program: ``with depyf.profile() as p:``.

The program runs once, so that nothing is run beside it in eager mode. With steps, the first are left out until one
compiles nothing, the next is listed, and the following are profiled. Without steps all is listed and profiled at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import threading
from time import perf_counter
from typing import TYPE_CHECKING, Iterator, List, Optional, Set, Tuple

from depyf.answers.profiled import KernelTime, LineTime, ModuleTime, Outside, Parts, Profiled
from depyf.answers.watch import counted
from depyf.answers.worth import Beside
from depyf.base.plain_data import HasAnswer
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.capture.session import Session
from depyf.dynamo.dump.manifest import run_of
from depyf.dynamo.hooks import frame_evaluation, torch_names
from depyf.dynamo.hooks.hooked_context import HookedContext, uninstall
from depyf.dynamo.hooks.patching import Undo, collecting, replace_attribute
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.questions.profile.align import align
from depyf.dynamo.questions.profile.attribution import Attribution
from depyf.dynamo.questions.profile.listing import Listing, require_listing
from depyf.dynamo.questions.profile.marks import COMPILED, STEP, Marks
from depyf.dynamo.questions.profile.measuring import (
    is_profiling,
    mark,
    new_profiler,
    wait_for_device,
)
from depyf.dynamo.questions.profile.owners import KnownOwners, is_torch_file
from depyf.dynamo.questions.profile.sessions import own_session
from depyf.dynamo.questions.profile.spans import Span, spans_of
from depyf.dynamo.questions.profile.units import divide
from depyf.report.analysis.costs import Costs
from depyf.torch_trace.events import METRICS, Event
from depyf.torch_trace.metrics import seconds_of

if TYPE_CHECKING:
    import torch

WARMING, LISTING, PROFILING, DONE = "warming up", "listing", "profiling", "done"

_IN_ONE_PASS = (
    "operations were listed while they were profiled: the times of Python and of calling graphs include that. With "
    "depyf.profile(steps=5) and p.step() after each step they do not"
)


_MOST_TIMES = 200
"""How many steps are timed after the profiled ones."""


class Profile(HookedContext[object], HasAnswer):
    """The context manager that ``profile`` returns without a function; after the block, what it has measured."""

    _name = "profile()"

    def __init__(self, steps: Optional[int] = None) -> None:
        torch_names.require_torch("profile")
        super().__init__()
        if steps is not None and steps < 1:
            raise ValueError("depyf.profile measures at least one step")
        self._steps = steps
        self._answer: Optional[Profiled] = None
        self._reset()

    def _reset(self) -> None:
        """Forget an earlier block."""
        self._state = WARMING
        self._undo: List[Undo] = []
        self._sessions = contextlib.ExitStack()
        self._session: Optional[Session] = None
        self._marks = Marks()
        self._listing = Listing(self._marks.paths.__contains__, self._marks.numbered)
        self._stop_listing: List[Undo] = []
        self._profiler: Optional[torch.profiler.profile] = None
        self._numbers = itertools.count()
        self._thread = 0
        self._spans: List[Span] = []
        self._compiled: Set[str] = set()
        self._compilations = 0
        self._at_last_step = 0
        self._numbers_of_steps = 0
        self._began = 0.0
        self._times: List[float] = []
        self._lost = ""
        """Why nothing was profiled, if another profiler is the reason."""

    def _start(self, entry: object) -> None:
        require_listing()
        frame_evaluation.keep_dynamo_out("depyf")
        self._reset()
        self._thread = threading.get_ident()
        self._session = capture.current() or self._sessions.enter_context(own_session())
        self._session.watch(self._note)
        collecting(self._undo, self._marks.watch)
        if self._steps is None:
            self._begin_listing()
            self._begin_profiling()

    def _drop(self, entry: object) -> None:
        self._state = DONE
        uninstall(self._stop_listing, "ending a listing")
        self._marks.listing = None
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.stop()
        uninstall(self._undo, "ending to profile")
        self._sessions.close()

    def _stop(self, entry: object) -> None:
        if self._state == PROFILING:
            self._end_profiling()
        if self._session is not None:
            self._answer = self._made(self._session)
            self._session.profiled.append(self._answer)
        self._drop(entry)

    def step(self, *_: object, **__: object) -> None:
        """Say that a step of the program has ended; the next one begins."""
        if self._open and self._steps is not None and threading.get_ident() == self._thread:
            self._numbers_of_steps += 1
            safely("beginning a step of a profile")(self._step)()

    def step_at_each_backward(self) -> None:
        """Take the end of each backward as the end of a step, until the block ends: a program is run as it is."""
        autograd = torch_names.module("torch.autograd")
        original = autograd.backward

        def backward(*args: object, **kwargs: object) -> object:
            try:
                return original(*args, **kwargs)
            finally:
                self.step()

        frame_evaluation.skip_code(backward.__code__)
        wrapped = functools.wraps(original)(backward)
        collecting(self._undo, lambda: [replace_attribute(autograd, "backward", wrapped)])

    def _step(self) -> None:
        if self._state == WARMING:
            if self._compilations == self._at_last_step:
                self._begin_listing()
            self._at_last_step = self._compilations
        elif self._state == LISTING and self._compilations != self._at_last_step:
            self._listing.clear()
            self._at_last_step = self._compilations
        elif self._state == LISTING:
            uninstall(self._stop_listing, "ending a listing")
            self._marks.listing = None
            self._begin_profiling()
        elif self._state == PROFILING:
            wait_for_device()
            number = next(self._numbers)
            mark(f"{STEP}{number}")
            if number == self._steps:
                self._end_profiling(marked=True)
                self._began = perf_counter()
        elif self._state == DONE and len(self._times) < _MOST_TIMES:
            wait_for_device()
            now = perf_counter()
            if self._compilations == self._at_last_step:
                self._times.append(now - self._began)
            self._began, self._at_last_step = now, self._compilations

    def _begin_listing(self) -> None:
        self._state = LISTING
        self._marks.listing = self._listing
        collecting(self._stop_listing, lambda: self._listing.open())

    def _begin_profiling(self) -> None:
        self._state = DONE
        if is_profiling():  # starting a second one would end the program's, and take its events
            self._lost = "another profiler of PyTorch's was running, and there can be one only: nothing was measured"
            return
        profiler = new_profiler()
        profiler.start()
        self._profiler, self._state = profiler, PROFILING
        mark(f"{STEP}{next(self._numbers)}")

    def _end_profiling(self, *, marked: bool = False) -> None:
        self._state = DONE
        wait_for_device()
        if not marked and self._steps is None:
            mark(f"{STEP}{next(self._numbers)}")
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            if not is_profiling():
                self._lost = "a profiler of the program's has ended this one: what ran since then was not measured"
            profiler.stop()
            self._spans = spans_of(profiler.events())

    def _note(self, event: Event) -> None:
        """Note the end of a compilation: what it took is not what the program takes."""
        if not self._open or event.name not in METRICS:
            return
        self._compilations += 1
        if event.compile_id is not None:
            self._compiled.add(event.compile_id)
        if self._profiler is not None:
            seconds = seconds_of(event.meta) if isinstance(event.meta, dict) else None
            mark(f"{COMPILED}{seconds or 0.0:.6f}")

    def _made(self, session: Session) -> Profiled:
        run = run_of(session)
        owners = KnownOwners(run, session.all_records(), is_torch_file)
        division = divide(self._spans)
        listed = align(division, self._listing, self._thread)
        found = Attribution(division, listed, self._marks.kernels, owners)
        made = found.profiled("the block", len(division.lengths))
        return dataclasses.replace(
            made,
            compile_seconds=Costs(run).take(sorted(self._compiled)),
            notes=(*self._why(found), *made.notes),
            times=tuple(self._times),
        )

    def _why(self, found: Attribution) -> Iterator[str]:
        """Yield what the result lacks, and why."""
        if self._lost:
            yield self._lost
        elif self._steps is None:
            yield _IN_ONE_PASS
        elif not self._spans:
            yield (
                f"no step was profiled: {self._numbers_of_steps} ended. Steps are left out until one compiles nothing, "
                "and the one after that is only listed. p.step() says where a step ends; depyf run --profile takes the "
                "calls of backward() as such"
            )
        if found.unknown:
            yield (
                f"{counted(len(found.unknown), 'kernel')} of graphs that were compiled before: what these compute is "
                "not known, and their time is on the line that calls them. Enter depyf.profile before the first call"
            )

    @property
    def answer(self) -> Profiled:
        """What was measured, as data. Raises ``RuntimeError`` before the end of the block."""
        if self._answer is None:
            raise RuntimeError("depyf.profile() has measured nothing yet: it does when its block ends")
        return self._answer

    @property
    def lines(self) -> Tuple[LineTime, ...]:
        """The lines, the slowest first."""
        return self.answer.lines

    @property
    def modules(self) -> Tuple[ModuleTime, ...]:
        """The modules, the slowest first."""
        return self.answer.modules

    @property
    def kernels(self) -> Tuple[KernelTime, ...]:
        """Kernels, library calls and operations, the slowest first."""
        return self.answer.kernels

    @property
    def outside(self) -> Tuple[Outside, ...]:
        """What ran in no compiled graph."""
        return self.answer.outside

    @property
    def parts(self) -> Parts:
        """One step, divided."""
        return self.answer.parts

    @property
    def attributed(self) -> float:
        """The share of the measured time that belongs to a known line."""
        return self.answer.attributed

    @property
    def eager(self) -> Optional[Beside]:
        """None: a block is not run in eager mode as well."""
        return self.answer.eager

    def __str__(self) -> str:
        return "depyf.profile(): the block has not ended" if self._answer is None else str(self._answer)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.answer._repr_html_()
