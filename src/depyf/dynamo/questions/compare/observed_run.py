"""One run of a private copy: what it returns, the gradients of that, and what it writes to, by name."""

from __future__ import annotations

import contextlib
import functools
import random
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks.hooked_context import undone_afterwards
from depyf.dynamo.questions.compare.private_copy import DEEPEST, PrivateCopy, tensors_in

if TYPE_CHECKING:
    import torch


@contextlib.contextmanager
def random_numbers_kept(seed: Optional[int] = None) -> Iterator[None]:
    """Run the block with the current random state, or with ``seed``, and restore the state afterwards."""
    import torch

    python = random.getstate()
    numpy: Any = sys.modules.get("numpy")
    numbers = numpy.random.get_state() if numpy is not None else None
    devices = (
        list(range(torch.cuda.device_count())) if torch.cuda.is_available() and torch.cuda.is_initialized() else []
    )
    with undone_afterwards("restoring random numbers") as undo, torch.random.fork_rng(devices=devices):
        undo.append(functools.partial(random.setstate, python))
        if numpy is not None:
            undo.append(functools.partial(numpy.random.set_state, numbers))
        if seed is not None:
            torch.manual_seed(seed)
        yield


@dataclass
class Observed:
    """The results of a call, by name, and the class of its return value."""

    values: Dict[str, object]
    returned: str


class NoGradientsError(RuntimeError):
    """The results of a call can't be differentiated: for example, it has run the backward itself."""


def run(call: PrivateCopy, function: Callable[..., object], *, backward: bool) -> Observed:
    """Call ``function`` (the copy, or that compiled) with the copied arguments; return its results by name.

    Those are ``output...``, ``gradient of ...`` for everything that requires one, and ``... afterwards`` for what the
    call has written to. Raises ``NoGradientsError`` where ``backward`` asks for what can't be had.
    """
    import torch

    # ``.grad`` of a leaf is an effect of the call if it was replaced: the call has run a backward itself.
    before = {name: tensor.grad for name, tensor in call.tensors.items() if tensor.is_leaf}
    returned = function(*call.args, **call.kwargs)
    outputs = list(_outputs(returned, "output"))
    results: Dict[str, object] = dict(outputs)
    if backward:
        results.update(_gradients(call, outputs))
    for name, tensor in call.tensors.items():
        if tensor.is_leaf and tensor.grad is not None and tensor.grad is not before.get(name):
            results.update(_plain_tensors(tensor.grad, f"{name}.grad afterwards"))
        if not _same(tensor, call.originals[name]):
            results.update(_plain_tensors(tensor, f"{name} afterwards"))
    detached = {key: each.detach() if isinstance(each, torch.Tensor) else each for key, each in results.items()}
    return Observed(detached, type(returned).__name__)


def _outputs(value: object, name: str, depth: int = 0) -> Iterator[Tuple[str, object]]:
    """Yield the parts of the result of a call: tensors, arrays, numbers and texts at any depth."""
    import torch

    numpy: Any = sys.modules.get("numpy")
    if isinstance(value, (bool, int, float, complex, str, bytes, torch.dtype, torch.device)):
        yield name, value
    elif numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        if value.dtype.kind in "biufc" and value.dtype.name not in ("float128", "complex256"):
            yield name, torch.from_numpy(numpy.array(value))
    elif isinstance(value, dict) and depth <= DEEPEST:
        for key, each in value.items():
            yield from _outputs(each, f"{name}[{key!r}]", depth + 1)
    elif isinstance(value, (list, tuple)) and depth <= DEEPEST:
        for number, each in enumerate(value):
            yield from _outputs(each, f"{name}[{number}]", depth + 1)
    elif isinstance(value, torch.Tensor):
        yield from _plain_tensors(value, name)
    elif isinstance(value, torch.nn.Module):
        yield from tensors_in(value, name)
    elif depth <= DEEPEST and not isinstance(value, (type, ModuleType, FunctionType)):
        for key, each in getattr(value, "__dict__", {}).items():
            yield from _outputs(each, f"{name}.{key}", depth + 1)


def _plain_tensors(value: torch.Tensor, name: str) -> Iterator[Tuple[str, torch.Tensor]]:
    """Yield the tensors that a sparse, nested or subclass tensor consists of; a plain tensor itself."""
    import torch

    flatten = getattr(value, "__tensor_flatten__", None)
    if flatten is not None:
        for inner in flatten()[0]:
            yield from _plain_tensors(getattr(value, inner), f"{name}.{inner}")
    elif value.layout != torch.strided:
        yield name, value.to_dense()
    elif value.device.type != "meta":
        yield name, value


def _same(copied: torch.Tensor, original: torch.Tensor) -> bool:
    """Return whether a copy still has the values of its original. Version counters do not show it: batch norms bypass
    them.
    """
    ours, theirs = (dict(_plain_tensors(each.detach(), "")) for each in (copied, original))
    return ours.keys() == theirs.keys() and all(_same_values(ours[name], theirs[name]) for name in ours)


def _same_values(copied: torch.Tensor, original: torch.Tensor) -> bool:
    import torch

    if copied.dtype != original.dtype:
        original = original.to(copied.dtype)
    if copied.shape != original.shape or torch.equal(copied, original):
        return bool(copied.shape == original.shape)
    if not copied.dtype.is_floating_point:
        return False
    return bool(((copied == original) | (copied.isnan() & original.isnan())).all())


def _gradients(call: PrivateCopy, outputs: List[Tuple[str, object]]) -> Iterator[Tuple[str, torch.Tensor]]:
    import torch

    # Not ``backward``: it adds to ``.grad``, where the caller looks for the effects of the call itself.
    ends = [(name, value) for name, value in outputs if isinstance(value, torch.Tensor) and value.requires_grad]
    starts = [(name, value) for name, value in call.tensors.items() if value.requires_grad and value.is_leaf]
    starts = [(name, value) for name, value in starts if value.layout == torch.strided]
    if not ends or not starts:
        return
    tangents = [_tangent(value, number) for number, (_, value) in enumerate(ends)]
    try:
        found = torch.autograd.grad(
            [value for _, value in ends], [value for _, value in starts], tangents, allow_unused=True
        )
    except synchronous(RuntimeError) as error:
        raise NoGradientsError(str(error)) from error
    for (name, _), gradient in zip(starts, found):
        if gradient is not None:
            yield from _plain_tensors(gradient, f"gradient of {name}")


def _tangent(value: torch.Tensor, number: int) -> torch.Tensor:
    """Return gradients of the outputs: random numbers (the gradient of a softmax's sum is zero), equal in each run."""
    import torch

    generator = torch.Generator().manual_seed(number)
    made = torch.randn(value.shape, generator=generator, dtype=torch.float32)
    return made.to(device=value.device, dtype=value.dtype)
