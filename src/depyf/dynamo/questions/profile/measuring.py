"""Run calls under ``torch.profiler``, and without it, in turns."""

from __future__ import annotations

import contextlib
import math
from time import perf_counter
from typing import TYPE_CHECKING, Callable, ContextManager, Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.answers.profiled import MachineLimits
from depyf.base.asynchronous import synchronous
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.questions.profile.marks import STEP
from depyf.dynamo.questions.profile.spans import Span, spans_of

if TYPE_CHECKING:
    import torch

Call = Callable[[], object]

_FEWEST_PAIRS, _MOST_PAIRS, _LONG_ENOUGH = 15, 400, 4.0

_COPIED, _ROWS, _TRIES = 2**24, 1024, 5
"""Of the measurement of the machine: the numbers that are copied, the rows of a matrix, how often."""

_SHORTEST = 2e-3
"""A measurement is at least this long, so that the clock and the loop do not count: short calls are repeated in it."""


def new_profiler() -> torch.profiler.profile:
    """Return a profiler of the processor, and of the GPU where there is one."""
    from torch import profiler

    kinds = [profiler.ProfilerActivity.CPU]
    if torch_names.module("torch").cuda.is_available():
        kinds.append(profiler.ProfilerActivity.CUDA)
    return profiler.profile(activities=kinds)


def is_profiling() -> bool:
    """Return whether a profiler of PyTorch's runs in this process: there can be one only."""
    return bool(private_names.PROFILER_IS_ON.find())


def mark(name: str) -> None:
    """Let the profiler have a span of this name, in which nothing runs."""
    from torch import profiler

    with profiler.record_function(name):
        pass


def profiled_calls(call: Call, steps: int) -> List[Span]:
    """Return the spans of so many calls."""
    profiler = new_profiler()
    with profiler:
        for number in range(steps):
            mark(f"{STEP}{number}")
            call()
            wait_for_device()
        mark(f"{STEP}{steps}")
    return spans_of(profiler.events())


def wait_for_device() -> None:
    """Wait until a GPU has done what was launched, if the program uses one."""
    cuda = torch_names.module("torch").cuda
    if cuda.is_available() and cuda.is_initialized():
        cuda.synchronize()


_known_limits: Dict[Tuple[object, ...], MachineLimits] = {}
"""By what they depend on: the measurement takes longer than all else at the end of a profile."""


def machine_limits(device: str) -> Optional[MachineLimits]:
    """Measure how fast this machine copies, and multiplies matrices, once in a process for each device, number of
    threads and precision of products; None if that fails, as without memory for it."""
    torch = torch_names.module("torch")
    # get_float32_matmul_precision raises where a program sets one precision for each backend.
    precisions = [
        getattr(getattr(backend, "matmul", None), "fp32_precision", "")
        for backend in (torch.backends.cuda, torch.backends.mkldnn)
    ]
    key = device, torch.cuda.current_device() if device == "cuda" else 0, torch.get_num_threads(), *precisions
    if key not in _known_limits:
        measured = _measure_limits(device)
        if measured is None:
            return None
        _known_limits[key] = measured
    return _known_limits[key]


def _measure_limits(device: str) -> Optional[MachineLimits]:
    torch = torch_names.module("torch")
    with contextlib.ExitStack() as stack:
        # What the program looks at with modes is its own operations.
        for name in (private_names.DISABLE_MODES, private_names.DISABLE_TORCH_FUNCTION):
            stack.enter_context((name.find() or contextlib.nullcontext)())
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch.autocast(device, enabled=False))
        try:
            one = torch.ones(_COPIED, dtype=torch.float32, device=device)
            other = torch.empty_like(one)
            copying = _fastest(lambda: other.copy_(one))
            matrix = one[: _ROWS * _ROWS].view(_ROWS, _ROWS)
            product = other[: _ROWS * _ROWS].view(_ROWS, _ROWS)
            multiplying = _fastest(lambda: torch.mm(matrix, matrix, out=product))
        except synchronous(RuntimeError):
            return None
    return MachineLimits(2 * _COPIED * 4 / copying, 2 * _ROWS**3 / multiplying)


def _fastest(call: Call) -> float:
    """Return the seconds of the fastest of some calls: what else runs on the machine makes the others slower."""
    return max(1e-9, min(_timed(call, 1, contextlib.nullcontext) for _ in range(_TRIES)))


def timed_pairs(
    compiled: Call, eager: Call, pairs: Optional[int], around_eager: Callable[[], ContextManager[object]]
) -> Tuple[List[float], List[float]]:
    """Return the seconds of compiled and of eager calls, made in turns; each turn begins with the other kind.

    Without a number of pairs there are at least 15, and as many more as 4 seconds have room for: what else runs on the
    machine comes and goes.
    """
    times: Tuple[List[float], List[float]] = ([], [])
    repeats = [_repeats(compiled, contextlib.nullcontext), _repeats(eager, around_eager)]
    begun = perf_counter()
    for number in range(_MOST_PAIRS if pairs is None else pairs):
        if pairs is None and number >= _FEWEST_PAIRS and perf_counter() - begun > _LONG_ENOUGH:
            break
        for which in (0, 1) if number % 2 else (1, 0):
            around = around_eager if which else contextlib.nullcontext
            times[which].append(_timed(eager if which else compiled, repeats[which], around))
    return times


def _repeats(call: Call, around: Callable[[], ContextManager[object]]) -> int:
    _timed(call, 1, around)
    return max(1, math.ceil(_SHORTEST / max(1e-9, min(_timed(call, 1, around) for _ in range(2)))))


def _timed(call: Call, repeats: int, around: Callable[[], ContextManager[object]]) -> float:
    with around():
        wait_for_device()
        start = perf_counter()
        for _ in range(repeats):
            call()
        wait_for_device()
        return (perf_counter() - start) / repeats


@contextlib.contextmanager
def undone(undo: Sequence[Callable[[], object]]) -> Iterator[None]:
    """Undo what the list holds after the block, the last first."""
    with contextlib.ExitStack() as stack:
        for each in undo:
            stack.callback(each)
        yield
