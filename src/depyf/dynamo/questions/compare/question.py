"""``compare``: compare eager mode with compiled code on the same inputs, down to the first operation that differs."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Set, Tuple

from depyf.answers.bisected import Bisected
from depyf.answers.compared import (
    BACKEND,
    DYNAMO,
    Compared,
    Culprit,
    EntryRun,
    StageResult,
    StaleRead,
)
from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe
from depyf.base.quick_dataclass import replace
from depyf.dynamo.entries.call_target import CallTarget, resolve, target_entered
from depyf.dynamo.guards.entry_guards import EntryGuards
from depyf.dynamo.hooks import (
    backends,
    bisector,
    cache_entries,
    compiled_callables,
    frame_evaluation,
    private_names,
    torch_names,
    torch_settings,
)
from depyf.dynamo.hooks.debuggers import profiles_in_c
from depyf.dynamo.hooks.hooked_context import undone_afterwards
from depyf.dynamo.hooks.patching import collecting
from depyf.dynamo.questions.compare.confirm import Confirmation
from depyf.dynamo.questions.compare.culprit import Fault, FaultSearch
from depyf.dynamo.questions.compare.custom_operators import OperatorCheck, custom_operators, own_random_numbers
from depyf.dynamo.questions.compare.hit_entry import EntryValues, HitEntry, entry_hit, run_hit
from depyf.dynamo.questions.compare.hit_parts import HitParts, parts_hit
from depyf.dynamo.questions.compare.judging import Judge, is_little, measured_by_name
from depyf.dynamo.questions.compare.observed_run import NoGradientsError, random_numbers_kept, run
from depyf.dynamo.questions.compare.private_copy import Change, CompileWith, private_copy, unchanged
from depyf.dynamo.questions.compare.recorded import Backend, StageRecorder
from depyf.dynamo.questions.compare.stage_runs import (
    STAGES,
    CompiledCode,
    backend_itself,
    compiled_with,
    nothing_compiled,
    nothing_left_behind,
    same_random_numbers,
)
from depyf.dynamo.questions.compare.stale_reads import StaleSearch
from depyf.dynamo.questions.compare.state_snapshot import shared_with
from depyf.dynamo.questions.compare.wide import Widened, default_type_float64, in_float64
from depyf.dynamo.questions.unguarded import unguarded
from depyf.dynamo.scripts.backend import backend_in_script

if TYPE_CHECKING:
    import torch

_SEED = 0

_EXACT = 1e-8
"""How far apart two runs of the same computation in float64 may be."""


def compare(
    fn: object,
    *args: object,
    backend: object = None,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    backward: bool = True,
    directory: Optional[str] = None,
    bisect: bool = False,
    **kwargs: object,
) -> Compared:
    """Run ``fn(*args, **kwargs)`` eagerly and compiled, and report whether, where and by how much the results differ.

    ``fn``: a function, method or module; or what ``torch.compile`` returned for one, whose backend, mode and options
    are used then; or a plain wrapper of these that has ``functools.wraps``. ``backend``: as for ``torch.compile``
    (default: Inductor). ``rtol``, ``atol``: relative and absolute tolerance against eager mode, for each element;
    without them a value is wrong if its error against float64 is clearly larger than the error of eager mode.
    ``backward``: also compare the gradients of what ``fn`` returns, for everything that requires them. ``directory``:
    where a script that reproduces the difference is written (default: a new temporary directory). ``bisect``: where
    results differ, also let PyTorch's bisector find the part of the compiler that makes the difference. A keyword
    argument of ``fn`` that has the name of one of these is given with ``functools.partial``.

    The cache entry that the call hits runs, too, on copies, and is compared: it may be stale.

    The results, the gradients and what the call writes to are compared. The function, its arguments and the modules
    that it reaches are copied; lists, dicts, sets, objects and tensors that are globals are restored (docs/compare.md
    lists what is not). The returned ``Compared`` is false where there was nothing to compare, or the entry was not run.

    Raises ``ImportError`` without PyTorch, ``RuntimeError`` with one before 2.6, ``TypeError`` for what can't be called
    or copied, and what ``fn`` raises in eager mode.
    """
    torch_names.require_torch("compare")
    frame_evaluation.keep_dynamo_out("depyf")  # what records and copies runs while things are compiled
    if not frame_evaluation.has_stances():
        raise RuntimeError("depyf.compare needs PyTorch 2.6 or later: in older ones it would name wrong operations")
    if torch_settings.dynamo_setting("disable"):
        raise RuntimeError(
            "depyf.compare can't compile here: torch._dynamo.config.disable is set. Call it outside of that"
        )
    if profiles_in_c():
        raise RuntimeError("depyf.compare can't observe calls while cProfile runs, and would end it: end it first")
    comparison = _CompareRun(
        resolve(fn, "compare"), args, kwargs, backend, Judge(rtol, atol), backward=backward, directory=directory
    )
    return comparison.answer(bisect=bisect)


def compare_entered(call: compiled_callables.EnteredCall) -> Optional[Compared]:
    """Compare a call of a compiled function that is about to run, as ``compare`` does; None if it runs no Python
    function."""
    target = target_entered(call.entered, call.function)
    if target is None:
        return None
    comparison = _CompareRun(target, call.args, call.kwargs, None, Judge(None, None), backward=True, directory=None)
    return comparison.answer(bisect=False)


class _CompareRun:
    def __init__(
        self,
        target: CallTarget,
        args: Tuple[object, ...],
        kwargs: Dict[str, object],
        backend: object,
        judge: Judge,
        *,
        backward: bool,
        directory: Optional[str],
    ) -> None:
        self._target = target
        self._args = args
        self._kwargs = kwargs
        self._dynamic = private_names.DYNAMIC.of(target.entered)
        self._backend, self._name = backend_of(backend, target.entered or next(iter(target.parts.values()), None))
        self._judge = judge
        self._backward = backward
        self._directory = directory
        self._notes: List[str] = []
        self._why, self._hit = entry_hit(target, args, kwargs)
        if self._hit is not None:
            self._notes += unguarded(self._hit.target, self._hit.entry, self._hit.target.frame_locals(args, kwargs))
        if self._why is not None and self._why.left_alone:
            self._notes.append(f"in your program this call {self._why.outcome}")
        elif target.skip_reason and self._hit is None:
            self._notes.append(f"in your program it runs as plain Python: {target.skip_reason}")
        if target.parts:
            parts = ", ".join(target.parts)
            self._notes.append(
                f"in your program parts of it are compiled ({parts}); here all of it is, with {self._name}"
            )
        self._shared = shared_with(target, (*args, *kwargs.values()), self._notes)
        self._returned = ""
        self._entries = CompiledCode()
        self._results: Dict[str, object] = {}
        self._eager: Dict[str, object] = {}
        self._reference: Dict[str, object] = {}
        self._noise: Dict[str, float] = {}
        self._fresh_guards: Set[str] = set()
        self._hidden: Dict[str, str] = {}
        """What the schemas of custom operators do not say, by the operator's name."""

    def answer(self, *, bisect: bool) -> Compared:
        """Run everything that is needed and put the answer together."""
        # The entry first, under the settings and the stance of the program; then what is compiled anew.
        ran = None if self._hit is None else self._ran(self._hit)
        parts = parts_hit(self._target)
        of_parts = None if parts is None else self._ran_in_parts(parts)
        with contextlib.ExitStack() as stack:
            stack.enter_context(random_numbers_kept())
            self._entries = stack.enter_context(nothing_left_behind())
            own = stack.enter_context(same_random_numbers())
            stack.callback(frame_evaluation.set_stance("default"))
            self._eager = self._in_eager_mode()
            self._reference = self._in_float64()
            # The backend first: if it is right, no other stage is run. If it is wrong, eager mode may be noisy itself,
            # or the captured graph may be a computation that rounds otherwise. Else the stages before it are run in
            # order.
            result, recorder = self._stage(BACKEND, self._name, self._backend)
            self._check_what_is_drawn_and_hidden(recorder, draws_its_own=own)
            stages, stage, fault = [result], None, None
            if not result.right and (self._is_noisy() or self._rounds_otherwise()):
                result = self._judged(BACKEND, self._name, self._results)
                stages = [result]
            if not result.right:
                stage, more, fault = self._first_stage(recorder)
                stages += more
            culprit = None if fault is None else self._described(fault)
            bisected = self._bisected(stages) if bisect and stage is not None else None
        entry = None
        if self._hit is not None and ran is not None:
            entry = self._entry(self._hit, ran, fresh_is_right=stage is None and result.right)
        elif parts is not None and of_parts is not None:
            entry = self._entry_of_parts(parts, of_parts, fresh_is_right=stage is None and result.right)
        if not recorder.compilations and not result.error and not self._target.skip_reason:
            self._notes.append("nothing of it was compiled: Dynamo found no graph in it, and it runs as plain Python")
        if not result.values and not result.error:
            self._notes.append(_why_nothing(self._returned))
        return Compared(
            function=self._target.name,
            backend=self._name,
            stages=tuple(stages),
            stage=stage,
            culprit=culprit,
            notes=tuple(dict.fromkeys(self._notes)),
            bisected=bisected,
            entry=entry,
        )

    def _check_what_is_drawn_and_hidden(self, recorder: StageRecorder, *, draws_its_own: bool) -> None:
        """Note random numbers that the program's own settings make differ, and what custom operators do not say."""
        if draws_its_own and self._name == "inductor":
            note = own_random_numbers(recorder.compilations, self._name)
            self._notes += [] if note is None else [note]
        names = custom_operators(recorder.compilations)
        if not names:
            return
        check = OperatorCheck(names)
        try:
            with check.mode():
                self._run(None)
        except synchronous() as error:
            self._notes.append(f"the custom operators were not checked: {describe(error)[:200]}")
        self._hidden.update(check.hidden)
        self._notes += check.notes

    def _ran(self, hit: HitEntry, change: Change = unchanged) -> EntryValues:
        call = self._args, self._kwargs
        return run_hit(hit, *call, self._shared, backward=self._backward, seed=_SEED, change=change)

    def _entry(self, hit: HitEntry, ran: EntryValues, *, fresh_is_right: bool) -> EntryRun:
        """Return how the entry that the call hits compares with eager mode, and what explains a difference."""
        shown, name = hit.shown, hit.shown.name
        skipped = tuple(guard.explanation.words for guard in shown.failed)
        if not ran.values and not ran.error and ran.not_run:
            return EntryRun(name, None, ran.not_run, skipped)
        result = self._of_entry(name, ran)
        if not result.right and not result.error and not self._noise and self._is_noisy():
            result = self._of_entry(name, ran)
        if not result.right and not result.error and fresh_is_right and self._draws(result):
            result = self._of_entry(name, ran, self._anew_with_its_random_numbers())
        is_stale = fresh_is_right and not result.right
        reads: Tuple[StaleRead, ...] = ()
        if is_stale and not skipped:
            of_entry = functools.partial(self._ran, hit)
            search = StaleSearch(hit, self._args, self._kwargs, self._fresh_guards, self._eager_again, of_entry)
            reads = search.reads(self._is_as)
        return EntryRun(name, result, ran.not_run, skipped, reads, is_stale)

    def _ran_in_parts(self, parts: HitParts) -> EntryValues:
        return parts.run(self._args, self._kwargs, self._shared, backward=self._backward, seed=_SEED)

    def _entry_of_parts(self, parts: HitParts, ran: EntryValues, *, fresh_is_right: bool) -> Optional[EntryRun]:
        """Return how a call with the entries of its parts compares with eager mode; None if no part hits an entry."""
        if not ran.values and ran.not_run:
            return EntryRun(parts.name or "of a part", None, ran.not_run)
        if not parts.names:
            return None
        result = self._of_entry(parts.name, ran)
        if not result.right and not result.error and (self._noise or self._is_noisy()):
            result = self._of_entry(parts.name, ran)
        is_random = not result.right and not result.error and self._draws(result)
        if is_random:  # compiled as a whole, other random numbers are drawn than in parts
            return EntryRun(parts.name, None, "its random numbers are not those of eager mode")
        return EntryRun(parts.name, result, ran.not_run, is_stale=fresh_is_right and not result.right)

    def _of_entry(self, name: str, ran: EntryValues, anew: Optional[Mapping[str, object]] = None) -> StageResult:
        """Judge the values of an entry against eager mode; those that are drawn at random, against ``anew``."""
        stage = f"cache entry {name}"
        if ran.error:
            return StageResult(stage, self._name, (), ran.error)
        values = {key: each for key, each in ran.values.items() if key in self._eager or "gradient of" not in key}
        judged = self._judged(stage, self._name, values)
        if anew is None or not self._is_as(anew, values):
            return judged
        self._notes.append("random numbers of the compiled code are its own: it was compared with code compiled anew")
        return replace(judged, values=tuple(replace(each, reason="") for each in judged.values))

    def _is_as(self, one: Mapping[str, object], other: Mapping[str, object]) -> bool:
        """Return whether two runs gave the same values, up to rounding."""
        return one.keys() == other.keys() and all(
            self._judge.measure(key, other[key], one[key], None, self._noise.get(key, 0.0)).right for key in one
        )

    def _draws(self, result: StageResult) -> bool:
        """Return whether the values that differ depend on random numbers."""
        other = self._run(None, seed=_SEED + 1)
        return all(not Judge().measure(e.name, other.get(e.name), self._eager.get(e.name)).right for e in result.wrong)

    def _anew_with_its_random_numbers(self) -> Optional[Dict[str, object]]:
        """Return the values of a compilation under the program's own settings for random numbers."""
        with nothing_left_behind() as self._entries:
            try:
                return self._run(
                    lambda each: compiled_with(
                        each, StageRecorder(self._backend, self._name), dynamic=self._dynamic, isolate=False
                    )
                )
            except synchronous():  # it ran with other settings: then nothing is known of the random numbers
                return None

    def _eager_again(self, change: Change) -> Dict[str, object]:
        """Return the values of eager mode after ``change`` of the copied call."""
        return self._run(None, change=change)

    def _run(
        self,
        compile_with: Optional[CompileWith],
        *,
        wide: bool = False,
        seed: int = _SEED,
        change: Change = unchanged,
    ) -> Dict[str, object]:
        call = private_copy(self._target, self._args, self._kwargs, wide=wide)
        function = call.compiled(compile_with or (lambda each: each))
        with contextlib.ExitStack() as stack:
            if compile_with is None:
                stack.enter_context(nothing_compiled())
            stack.enter_context(random_numbers_kept(seed))
            stack.enter_context(self._shared.restored())
            stack.callback(self._entries.forget)  # while the copy is there that they are for
            stack.callback(self._note_guards)
            stack.enter_context(change(call))
            observed = run(call, function, backward=self._backward)
        self._returned = observed.returned
        return observed.values

    def _note_guards(self) -> None:
        """Keep what the guards check of code that is compiled anew: nothing has dropped one of these."""
        code = self._target.code
        for entry in self._entries.fresh_entries(code):
            self._fresh_guards.update(line.source for line in EntryGuards.of(entry.guard_manager, "guard").lines)

    def _in_eager_mode(self) -> Dict[str, object]:
        try:
            return self._run(None)
        except NoGradientsError as error:
            self._notes.append(f"gradients of what it returns are not compared: they can't be had ({str(error)[:100]})")
            self._backward = False
            return self._run(None)

    def _in_float64(self) -> Dict[str, object]:
        """Return the results of a run in float64, empty if it can't be made."""
        try:
            with in_float64(self._narrow()):
                return self._run(None, wide=True)
        except synchronous() as error:
            self._notes.append(
                f"the function does not run in float64 ({describe(error)[:200]}): errors are relative to eager mode"
            )
            return {}

    def _narrow(self) -> torch.dtype:
        """Return the floating point type of the computation."""
        import torch

        types = [v.dtype for v in self._eager.values() if isinstance(v, torch.Tensor) and v.dtype.is_floating_point]
        return types[0] if types else torch.float32

    def _stage(self, stage: str, name: str, backend: Backend) -> Tuple[StageResult, StageRecorder]:
        recorder = StageRecorder(backend, name)
        isolate = cache_entries.has_regions()
        try:
            with undone_afterwards("recording what is compiled") as undo:
                collecting(undo, recorder.install)
                results = self._run(
                    lambda function: compiled_with(function, recorder, dynamic=self._dynamic, isolate=isolate)
                )
        except synchronous() as error:
            return StageResult(stage, name, (), f"{describe(error)[:500]}"), recorder
        if stage == BACKEND:
            self._results = results
        return self._judged(stage, name, results), recorder

    def _judged(self, stage: str, name: str, results: Dict[str, object]) -> StageResult:
        values = measured_by_name(self._judge, results, self._eager, self._reference, self._noise)
        return StageResult(stage, name, values)

    def _is_noisy(self) -> bool:
        """Check whether eager mode itself is nondeterministic, and whether it draws random numbers."""
        # Equal seeds: what differs is nondeterministic (atomic additions). Another seed: what differs is random.
        again, other = self._run(None), self._run(None, seed=_SEED + 1)
        for key, value in self._eager.items():
            for results in (again, other):
                measured = Judge().measure(key, results.get(key), value)
                if measured.compiled is None or not measured.compiled.rms:
                    continue
                if results is again:
                    self._noise[key] = measured.compiled.rms
                    self._notes.append("eager mode itself gives something else in each run: its spread is allowed for")
                elif not self._noise and self._name != "inductor":
                    self._notes.append(
                        f"it draws random numbers: if {self._name} draws others, values differ, and nothing is wrong"
                    )
        return bool(self._noise)

    def _rounds_otherwise(self) -> bool:
        """Check whether the captured graph is the same computation in float64, up to rounding. Python code may check
        whether it is being compiled, and then compute with tensors instead of numbers: the steps of
        ``torch.optim.Adam``. A small difference of this kind is tolerated.
        """
        backend = backends.registered_backend("eager")
        if backend is None or not self._reference or self._judge != Judge():
            return False
        result, _ = self._stage(DYNAMO, "eager", backend)
        if result.error or result.right:
            return False
        try:
            with default_type_float64():
                wide = self._run(
                    lambda each: compiled_with(each, Widened(self._narrow()), dynamic=self._dynamic, isolate=False),
                    wide=True,
                )
        except synchronous():  # then rounding can't be recognized
            return False
        found: Dict[str, float] = {}
        for value in result.wrong:
            name, error = value.name, value.compiled
            exact = Judge(rtol=_EXACT, atol=_EXACT).measure(name, wide.get(name), self._reference.get(name))
            if error is None or not exact.right or not is_little(error.rms, self._eager[name]):
                return False
            found[name] = error.rms
        self._noise.update(found)
        self._notes.append(
            "what Dynamo captures computes the same in float64, and rounds otherwise (by "
            f"{max(found.values()):.2g} of the values): that is allowed for"
        )
        return True

    def _first_stage(self, last: StageRecorder) -> Tuple[str, List[StageResult], Optional[Fault]]:
        """Run the stages before the backend, up to the first that differs."""
        results: List[StageResult] = []
        search = FaultSearch(self._backend, self._name, self._judge)
        before: Optional[StageRecorder] = None
        for stage, name in STAGES:
            if name == self._name:
                return stage, results, search.in_stage(stage, last, before)
            backend = backends.registered_backend(name)
            if backend is None:
                continue
            result, recorder = self._stage(stage, name, backend)
            results.append(result)
            if not result.right:
                return stage, results, None if result.error else search.in_stage(stage, recorder, before)
            before = recorder
        return self._name, results, search.in_backend(last)

    def _bisected(self, results: List[StageResult]) -> Bisected:
        """Return what PyTorch's bisector finds. It does not run backends again whose results are known."""
        known = {result.backend: result.right for result in results}
        if all(known.get(name, True) for _, name in (*STAGES, (BACKEND, "inductor"))):
            return Bisected(message=f"not run: it knows no parts of the backend {self._name}")

        def is_right(name: str, disabled: Optional[str]) -> bool:
            if disabled is None and name in known:
                return known[name]
            backend = self._backend if name == self._name else backends.registered_backend(name, required=True)
            return self._stage("", name, backend)[0].right

        return bisector.bisect(is_right)

    def _described(self, fault: Fault) -> Culprit:
        directory = self._directory or tempfile.mkdtemp(prefix="depyf_compare_")
        named = backend_in_script(self._backend, self._name)
        confirmation = Confirmation(self._judge, self._backend, self._name, named, directory, self._hidden)
        search = FaultSearch(self._backend, self._name, self._judge)
        confirmed = confirmation.of(fault, search.compiler(fault.graph))
        self._notes += [f"not in the script: {gap}" for gap in confirmed.gaps]
        return confirmed.culprit


def _why_nothing(returned: str) -> str:
    """Return why there was nothing to compare after a call that returned an object of this class."""
    if "generator" in returned or returned == "coroutine":
        return f"it returns a {returned}, whose code runs when something goes through it: compare what does that"
    what = "it returns nothing" if returned == "NoneType" else f"it returns a {returned} without tensors or numbers"
    return f"{what}, and writes to no tensor that is known here"


def backend_of(backend: Any, entered: object) -> Tuple[Backend, str]:
    """Return the backend as a callable, and its name."""
    if backend is None:
        inner = (
            compiled_callables.innermost_backend(getattr(entered, "callback", None)) if entered is not None else None
        )
        own = backend_itself(inner)
        known = getattr(inner, "compiler_name", None) in backends.names_of_backends()
        backend = (inner if known else own) if callable(own) else "inductor"
    if isinstance(backend, str):
        return backends.registered_backend(backend, required=True), backend
    name = getattr(backend, "compiler_name", None) or getattr(backend, "__name__", type(backend).__name__)
    return backend, str(name)
