"""Run one sampled call on copies: the cache entry that it hits, and eager mode; and say whether both agree.

Values that are not bitwise equal are judged as ``compare`` judges them, against a run in float64. What differs counts
only if the entry differs from eager mode again in a second run, if each agrees with itself, and if the values do not
depend on random numbers.
"""

from __future__ import annotations

import contextlib
from time import monotonic
from types import FunctionType
from typing import TYPE_CHECKING, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.compared import Measured
from depyf.base.asynchronous import is_of_called, synchronous
from depyf.base.messages import describe, listed
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.compiled_callables import EnteredCall
from depyf.dynamo.questions.compare.hit_entry import EntryValues, HitEntry, noting_resumed, run_hit
from depyf.dynamo.questions.compare.judging import Judge, measured_by_name
from depyf.dynamo.questions.compare.observed_reads import ReadObserver
from depyf.dynamo.questions.compare.observed_run import NoGradientsError, random_numbers_kept, run
from depyf.dynamo.questions.compare.private_copy import (
    Change,
    PrivateCopy,
    private_copy,
    tensors_in,
    unchanged,
    variables_of,
)
from depyf.dynamo.questions.compare.stage_runs import nothing_compiled
from depyf.dynamo.questions.compare.wide import in_float64
from depyf.dynamo.questions.shadow.protected import Protection, StoppedError, others_that_run
from depyf.dynamo.questions.shadow.reachable import ReachableState
from depyf.dynamo.questions.shadow.sampling import COMPILED_ONLY, PLAIN_PYTHON, Sampler

if TYPE_CHECKING:
    import torch

_CLEARLY = 0.01
"""How far a value has to be from eager mode's, relative to its size, where no run in float64 is possible."""

Values = Mapping[str, object]


class NotCheckedError(Exception):
    """A sampled call can't be checked; the message says why. ``lasting``: neither can later calls of the same entry."""

    def __init__(self, why: str, *, lasting: bool = False) -> None:
        super().__init__(why)
        self.lasting = lasting


@dataclass(frozen=True)
class Limits:
    """What a check may take: bytes of memory, and seconds for each run in eager mode."""

    memory: int
    seconds: float


class ShadowRuns:
    """The runs of one sampled call. Each is made on new copies, with the same random numbers."""

    def __init__(self, sampler: Sampler, hit: HitEntry, call: EnteredCall, limits: Limits) -> None:
        import torch

        self.hit = hit
        self.args, self.kwargs = call.args, call.kwargs
        self._sampler = sampler
        self._observed: Optional[PrivateCopy] = None
        self._ends: Optional[float] = None
        # Compiled autograd would compile a backward of ours.
        self._backward = torch.is_grad_enabled() and not private_names.COMPILED_AUTOGRAD.find()
        others = others_that_run()
        if others:
            raise NotCheckedError(f"other threads of the program may use what it changes: {listed(others, 3)}")
        self._size = self._checked_size(limits)
        self._limits = limits
        self._shared = ReachableState(hit.target, (*call.args, *call.kwargs.values()), limits.memory - self._size)
        reason = self._shared.why_not_twice()
        if reason:
            raise NotCheckedError(reason)
        self._protection = Protection(self._shared, limits.seconds)

    def _checked_size(self, limits: Limits) -> int:
        """Return the bytes of all tensors that are copied. Raises ``NotCheckedError`` where that is too much."""
        inner = self.hit.target.inner
        variables = variables_of(inner) if isinstance(inner, FunctionType) else {}
        roots = (inner, getattr(inner, "__self__", None), variables, self.args, self.kwargs)
        found: Dict[int, torch.Tensor] = {}
        for root in roots:
            found.update((id(each), each) for _, each in tensors_in(root, ""))
        for each in found.values():
            reason = _why_not_copied(each)
            if reason:
                raise NotCheckedError(reason)
        size = sum(each.numel() * each.element_size() for each in found.values())
        # One copy at a time, and where gradients are compared, those of two runs.
        needed = size * (3 if self._backward else 1)
        if needed > limits.memory:
            raise NotCheckedError(f"copies take {_mebibytes(needed)}, and memory= allows {_mebibytes(limits.memory)}")
        storages = [each.untyped_storage().data_ptr() for each in found.values() if each.numel()]
        self.overlaps = len(set(storages)) < len(storages)
        return size

    def of_entry(self, change: Change = unchanged) -> EntryValues:
        """Run the entry on a copy. Raises ``NotCheckedError`` where it can't be run as in the program."""

        @contextlib.contextmanager
        def only_compiled(copied: PrivateCopy, backend: object, skipped: List[str]) -> Iterator[None]:
            names: Dict[str, None] = {}
            resumed = noting_resumed(copied, backend, names)
            with self._sampler.answering(COMPILED_ONLY), self._protection.installed([resumed], limited=False):
                yield
            skipped += names

        call = self.args, self.kwargs
        with _contained("its entry on copies"):
            found = run_hit(
                self.hit,
                *call,
                self._shared,
                backward=self._backward,
                seed=None,
                change=change,
                only_compiled=only_compiled,
            )
        if found.error:
            raise NotCheckedError(f"its entry on copies: {found.error}")
        if found.not_run:
            raise NotCheckedError(found.not_run)
        return found

    def of_eager(
        self,
        *,
        wide: bool = False,
        seed: Optional[int] = None,
        change: Change = unchanged,
        observer: Optional[ReadObserver] = None,
    ) -> Dict[str, object]:
        """Run eager mode on a copy, in float64 if ``wide``; ``observer`` sees what the run reads. Raises
        ``NotCheckedError`` where that is not possible.
        """
        if self._ends is not None and monotonic() > self._ends:
            raise NotCheckedError("the search for the cause takes too long")
        listeners = [] if observer is None else [observer.enter]
        try:
            with _contained("eager mode on copies"), contextlib.ExitStack() as stack:
                call = private_copy(self.hit.target, self.args, self.kwargs, wide=wide)
                self._observed = call if observer is not None else self._observed
                function = call.compiled(lambda each: each)
                stack.enter_context(capture.apart())  # what sessions record is about the program's own calls
                stack.enter_context(random_numbers_kept(seed))
                stack.enter_context(self._shared.restored())
                stack.enter_context(self._sampler.answering(PLAIN_PYTHON))
                stack.enter_context(nothing_compiled())  # for code that is compiled with fullgraph=True
                stack.enter_context(self._protection.installed(listeners, limited=True))
                stack.enter_context(change(call))  # one that observes has a profile function of its own
                return run(call, function, backward=self._backward).values
        except NoGradientsError:
            self._backward = False
        return self.of_eager(wide=wide, seed=seed, change=change, observer=observer)

    def original_of(self, value: object) -> object:
        """Return the program's object of which a value that was observed is a copy."""
        return value if self._observed is None else self._observed.original_of(value)

    def difference(self, observer: Optional[ReadObserver]) -> Tuple[Measured, ...]:
        """Return the values of the entry that are wrong; none if it is right. Raises ``NotCheckedError`` where that
        can't be decided."""
        eager = self.of_eager(observer=observer)
        try:
            ran = self.of_entry()
        except (NotCheckedError, StoppedError) as error:
            if self.overlaps:  # its code may have been compiled for that
                raise NotCheckedError(_SHARED_MEMORY) from error
            raise
        entry = ran.values
        if ran.no_gradients:  # a backward of the program raises the same: that is not silent
            self._backward = False
            eager = {name: value for name, value in eager.items() if "gradient of" not in name}
        if not eager:
            raise NotCheckedError("it returns nothing that can be compared, and writes to no tensor that is known")
        if _bitwise_equal(entry, eager):
            return ()
        wrong = self._wrong(entry, eager, {})
        if not wrong and _is_wide(eager):
            return ()
        reference = self._in_float64(eager)
        wrong = self._wrong(entry, eager, reference)
        if not wrong:
            return ()
        if self.overlaps:
            raise NotCheckedError(_SHARED_MEMORY)
        is_clear = all(each.compiled is None or each.compiled.rms > _CLEARLY for each in wrong)
        if not reference and not is_clear:
            raise NotCheckedError("it can't be run in float64, which would tell rounding from an error")
        self._check_that_it_repeats(entry, eager, wrong)
        return wrong

    def limit_search(self) -> None:
        """Let all further runs together take as long as one run may."""
        self._ends = monotonic() + self._limits.seconds

    def agree(self, one: Values, other: Values) -> bool:
        """Return whether two runs gave the same values, up to rounding."""
        return one.keys() == other.keys() and not self._wrong(other, one, {})

    def _wrong(self, entry: Values, eager: Values, reference: Values) -> Tuple[Measured, ...]:
        known = {key: each for key, each in entry.items() if key in eager or "gradient of" not in key}
        found = measured_by_name(Judge(), known, eager, reference, {})
        return tuple(each for each in found if not each.right)

    def _in_float64(self, eager: Values) -> Dict[str, object]:
        """Return the values of a run in float64, empty if it can't be made."""
        import torch

        if self._size * 3 > self._limits.memory:
            return {}
        kinds = [v.dtype for v in eager.values() if isinstance(v, torch.Tensor) and v.dtype.is_floating_point]
        try:
            with in_float64(kinds[0] if kinds else torch.float32):
                return self.of_eager(wide=True)
        except synchronous():
            return {}

    def _check_that_it_repeats(self, entry: Values, eager: Values, wrong: Sequence[Measured]) -> None:
        """Raise ``NotCheckedError`` where a value that is wrong is another one in each run, or drawn at random."""
        names = [each.name for each in wrong]
        for before, again, what in (
            (eager, self.of_eager(), "eager mode"),
            (entry, self.of_entry().values, "its entry"),
        ):
            if self._differ(before, again, names):
                raise NotCheckedError(f"{what} gives something else in each run", lasting=True)
        if self._differ(eager, self.of_eager(seed=_OTHER_SEED), names):
            raise NotCheckedError(_RANDOM, lasting=True)

    def _differ(self, one: Values, other: Values, names: Sequence[str]) -> bool:
        return any(not Judge().measure(name, other.get(name), one.get(name)).right for name in names)


_SHARED_MEMORY = "tensors that it is given share memory, and copies do not"


@contextlib.contextmanager
def _contained(what: str) -> Iterator[None]:
    """Let no exception of the code that runs reach the program: raise ``NotCheckedError`` instead."""
    try:
        yield
    except (NotCheckedError, NoGradientsError, StoppedError):
        raise
    except BaseException as error:
        if not is_of_called(error):  # a signal handler has raised it, say
            raise
        raise NotCheckedError(f"{what}: {describe(error)[:200]}") from error


_OTHER_SEED = 4711
_RANDOM = (
    "its results depend on random numbers, which compiled code draws in its own way (if "
    "torch._inductor.config.fallback_random is set before it is compiled, it draws those of eager mode)"
)


def _why_not_copied(tensor: torch.Tensor) -> str:
    import torch

    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        return f"it is given a {type(tensor).__name__}"
    # Of other devices the random numbers are not restored.
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type not in ("cpu", "cuda"):
        return f"it is given a tensor with the layout {tensor.layout} on {tensor.device.type}"
    return ""


def _is_wide(values: Values) -> bool:
    """Return whether rounding in the types of the values is small enough to judge them without a run in float64."""
    import torch

    tensors = [each for each in values.values() if isinstance(each, torch.Tensor)]
    return not any(each.is_floating_point() and each.dtype.itemsize < 4 for each in tensors)


def _bitwise_equal(one: Values, other: Values) -> bool:
    import torch

    def same(ours: object, theirs: object) -> bool:
        if type(ours) is not type(theirs):
            return False
        if isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor):
            return ours.dtype == theirs.dtype and ours.shape == theirs.shape and torch.equal(ours, theirs)
        return bool(ours == theirs)

    return one.keys() == other.keys() and all(same(each, other[key]) for key, each in one.items())


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"
