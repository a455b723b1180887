"""``shadow``: is what runs now still what the program says? Sampled calls of compiled functions are checked while the
program runs (``sampling.py`` says how calls are sampled, and what that costs).

The entry that a sampled call hits and eager mode both run on copies (``runs.py``), protected (``protected.py``), and
are compared. Of an entry that is wrong, ``causes.py`` finds the reason. Guards that a filter has dropped are evaluated,
too; with ``run=False`` only these, and nothing runs twice.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, TextIO, Tuple

from depyf.answers.shadowed import ShadowCounts, Shadowed, ShadowFinding, summary
from depyf.answers.why import WhyEntry
from depyf.base.locks import Lock
from depyf.base.plain_data import HasAnswer
from depyf.base.without_collector import without_collector
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.capture.records import ShadowFound
from depyf.dynamo.entries.call_target import CallTarget, target_entered
from depyf.dynamo.entries.called_entries import entries_of
from depyf.dynamo.hooks import frame_evaluation, torch_names
from depyf.dynamo.hooks.compiled_callables import EnteredCall
from depyf.dynamo.hooks.dropped_guards import UnfilteredGuards
from depyf.dynamo.hooks.hooked_context import CallbackContext, install, uninstall
from depyf.dynamo.hooks.patching import Undo
from depyf.dynamo.hooks.safely import safely, say, users
from depyf.dynamo.questions.compare.hit_entry import HitEntry
from depyf.dynamo.questions.compare.observed_reads import ReadObserver
from depyf.dynamo.questions.shadow.causes import CauseSearch, FailingGuard, failing_guard
from depyf.dynamo.questions.shadow.earlier import EarlierValues
from depyf.dynamo.questions.shadow.protected import StoppedError, handlers_called_later, what_sees_operations
from depyf.dynamo.questions.shadow.runs import Limits, NotCheckedError, ShadowRuns
from depyf.dynamo.questions.shadow.sampling import Sampler
from depyf.dynamo.questions.why import Lookup

Callback = Callable[[ShadowFinding], object]

_MEMORY = 2 * 2**30

_NO_ENTRY = "no compiled code fits: it is compiled now, or runs as plain Python"


class Shadow(CallbackContext, HasAnswer):
    """The context manager that ``shadow`` returns. ``findings`` lists what it has found, in order, ``not_checked`` why
    sampled calls were not checked, with their numbers. It can be given to a training framework as a callback, as
    ``watch`` can."""

    _name = "shadow()"

    def __init__(
        self, every: int, limits: Limits, *, run: bool, callback: Optional[Callback], stream: Optional[TextIO]
    ) -> None:
        torch_names.require_torch("shadow")
        super().__init__()
        self.findings: List[ShadowFinding] = []
        self.not_checked: Dict[str, int] = {}
        self._checked = 0
        self._runs = run
        self._limits = limits
        self._callback = callback
        self._stream = stream
        self._sampler = Sampler(every, self._check)
        self._unfiltered = UnfilteredGuards()
        self._earlier = EarlierValues()
        self._lock = Lock()
        self._busy = False
        self._known: Dict[Tuple[object, ...], ShadowFinding] = {}
        """What was found, by the guard, or by the entry."""
        self._not_again: Dict[Tuple[object, ...], str] = {}
        """Entries that are not run again, with the reason: a run was stopped, or their results are random."""
        self._undo: List[Undo] = []

    def _start(self, entry: object) -> None:
        frame_evaluation.keep_dynamo_out("depyf")  # what records and copies runs inside of calls of compiled code
        for hook in (
            self._unfiltered.install,
            self._earlier.install if self._runs else lambda: None,
            self._sampler.install,
        ):
            install(self._undo, "starting to shadow", hook)
        capture.begin_shadow(self._count)

    def _drop(self, entry: object) -> None:
        uninstall(self._undo, "ending to shadow")
        capture.end_shadow(self._count)

    def _stopped(self, *, failed: bool) -> None:
        if self._callback is None:
            say(self._stream, summary(self.findings, self.counts))

    @property
    def counts(self) -> ShadowCounts:
        """How far it has looked."""
        return self._count()

    def _count(self) -> ShadowCounts:
        sampler = self._sampler
        return ShadowCounts(sampler.calls, sampler.sampled, self._checked, dict(self.not_checked))

    @property
    def answer(self) -> Shadowed:
        """The findings, and how far it has looked."""
        return Shadowed(tuple(self.findings), self.counts)

    def __str__(self) -> str:
        """Return the findings, and the summary."""
        return str(self.answer)

    __repr__ = __str__

    @safely("checking a call of a compiled function")
    def _check(self, call: EnteredCall) -> None:
        """Check a sampled call before it runs."""
        with self._lock:
            was_busy, self._busy = self._busy, True
        if was_busy:  # another thread, or a finalizer that runs in a check
            self._not_checked(call, "another call was being checked")
            return
        try:
            # Neither handlers nor finalizers of the program run inside of a check.
            with handlers_called_later(), without_collector():
                self._checked += self._is_checked(call)
        except (NotCheckedError, StoppedError) as error:
            self._not_checked(call, str(error))
        finally:
            self._busy = False

    def _is_checked(self, call: EnteredCall) -> bool:
        """Check a call, and report what is found; return whether anything was checked. Raises ``NotCheckedError``."""
        reason = what_sees_operations() if self._runs else ""
        if reason:
            raise NotCheckedError(reason)
        target = target_entered(call.entered, call.function)
        if target is None:
            raise NotCheckedError("it is no Python function")
        try:
            values = target.frame_locals(call.args, call.kwargs)
        except TypeError:  # the call raises it, too
            return False
        with target.surroundings():
            lookup = Lookup(entries_of(target), values, target.entered)
            entry = lookup.hit
            if entry is None:
                raise NotCheckedError(_NO_ENTRY)
            guard = failing_guard(target, entry, values, self._unfiltered)
        if not self._runs:
            if guard is not None:
                self._report(guard.finding(()), guard.key)
            elif frame_evaluation.filters_guards(getattr(target.entered, "callback", None)):
                self._check_known(entry.guard_manager)
            return True
        hit = HitEntry(target, entry, WhyEntry(entry.compile_id, True, ()))
        try:
            return self._is_compared(target, hit, call, guard)
        except (NotCheckedError, StoppedError) as error:
            if isinstance(error, StoppedError) or error.lasting:
                self._not_again[_key(hit)] = str(error)
            if guard is not None:
                self._report(guard.finding((), str(error)), guard.key)
            raise

    def _check_known(self, guards: object) -> None:
        if self._unfiltered.of(guards) is None:
            raise NotCheckedError("it was compiled before shadow() began, so that dropped guards are not known")

    def _is_compared(self, target: CallTarget, hit: HitEntry, call: EnteredCall, guard: Optional[FailingGuard]) -> bool:
        """Run the entry and eager mode on copies, and report what differs."""
        key = _key(hit)
        known = self._not_again.get(key)
        if known is not None:
            raise NotCheckedError(known)
        compile_id = hit.entry.compile_id or ""
        runs = ShadowRuns(self._sampler, hit, call, self._limits)
        observer = None if self._earlier.knows(target.code, compile_id) else ReadObserver(target.code)
        wrong = runs.difference(observer)
        if not wrong:
            if observer is not None:
                self._earlier.note(target.code, compile_id, observer.reads, runs.original_of)
            return True
        if guard is not None:
            self._report(guard.finding(wrong), guard.key)
        else:
            known_one = self._known.get(key)  # the search takes many runs: once for each entry
            self._report(known_one or CauseSearch(runs, self._earlier, self._unfiltered).finding(wrong), key)
        return True

    def _not_checked(self, call: EnteredCall, reason: str) -> None:
        """Count a sampled call that is not checked, and say why: once for each reason."""
        with self._lock:
            count = self.not_checked.get(reason, 0)
            self.not_checked[reason] = count + 1
        if not count and reason != _NO_ENTRY and self._callback is None:
            target = target_entered(call.entered, call.function)
            name = "a call" if target is None else f"a call of {target.shown[0]}"
            say(self._stream, [f"depyf shadow: {name} is not checked: {reason}"])

    def _report(self, found: ShadowFinding, key: Tuple[object, ...]) -> None:
        """Report what is found: once for each guard, and once for each entry that is wrong without one."""
        with self._lock:
            is_new = key not in self._known
            first = self._known.setdefault(key, found)
            # A session may have begun since it was found first.
            for session in capture.receivers(found.entry):
                if not any(each.found is first for each in session.records(ShadowFound)):
                    session.add(ShadowFound(found.entry or None, first))
            if not is_new:
                return
            self.findings.append(found)
        if self._callback is None:
            say(self._stream, [f"depyf shadow: {found}"])
        else:
            users("the callback of depyf.shadow", self._callback)(found)


def _key(hit: HitEntry) -> Tuple[object, ...]:
    """Return what identifies an entry; after ``torch.compiler.reset()`` the same compile id comes again."""
    return hit.target.shown[1], hit.entry.compile_id, id(hit.entry.guard_manager)


def shadow(
    every: int = 1000,
    *,
    run: bool = True,
    memory: int = _MEMORY,
    seconds: float = 60.0,
    callback: Optional[Callback] = None,
    stream: Optional[TextIO] = None,
) -> Shadow:
    """Return a context manager that checks sampled calls of compiled functions against eager mode while they run.

    About one in ``every`` calls of what ``torch.compile`` returned is sampled. Before it runs, the cache entry that it
    hits and eager mode both run on copies of the arguments, parameters, buffers and whatever else the call writes to,
    with the same random numbers; outputs, writes and, where gradients are enabled, gradients are compared as
    ``depyf.compare`` does. ``with depyf.shadow() as seen:`` makes ``seen.findings`` the list of what is wrong: stale
    entries, guards that were dropped and fail, wrong graphs. Each is printed on ``stream`` (default: the error stream)
    once, with a summary at the end; ``callback``, if given, is called with a ``ShadowFinding`` instead.

    ``run=False``: nothing runs twice; only the guards are evaluated that a ``guard_filter_fn`` has dropped, of code
    that is compiled after this, and those that the stance skips. ``memory``: the most bytes that copies may take.
    ``seconds``: the time limit of each run in eager mode. The results, side effects, random numbers and exceptions of
    the program stay those of the plain run; docs/shadow.md has the limits.

    Raises ``ImportError`` without PyTorch, ``RuntimeError`` with one before 2.6, ``TypeError`` and ``ValueError`` for
    numbers that make no sense.
    """
    torch_names.require_torch("shadow")
    if not frame_evaluation.has_stances():
        raise RuntimeError("depyf.shadow needs PyTorch 2.6 or later: older ones do not show the calls")
    for name, number, kinds in (
        ("every", every, (int,)),
        ("memory", memory, (int,)),
        ("seconds", seconds, (int, float)),
    ):
        if isinstance(number, bool) or not isinstance(number, kinds):
            raise TypeError(f"depyf.shadow: {name} is a number, and not {type(number).__name__}")
        if number <= 0:
            raise ValueError(f"depyf.shadow: {name}={number!r} must be positive")
    return Shadow(every, Limits(memory, seconds), run=run, callback=callback, stream=stream)
