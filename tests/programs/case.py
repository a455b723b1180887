"""What a small test program is, how it is run, and when two runs are bit-identical."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Callable, Dict, List, Tuple

import torch


@dataclass(frozen=True)
class Case:
    """A function to compile, the calls to make, and the state that it may have changed beside its results."""

    function: Callable[..., Any]
    calls: List[Tuple[Any, ...]]
    state: Callable[[], Any] = lambda: None


def run(case: Case, compiled: Callable[..., Any], training: bool) -> Dict[str, Any]:
    """Everything that can be observed of the calls: results, exceptions, gradients, state, printed text."""
    results: List[Any] = []
    printed = io.StringIO()
    torch.manual_seed(0)
    with contextlib.redirect_stdout(printed):
        for arguments in case.calls:
            arguments = tuple(_leaf(argument, training) for argument in arguments)
            try:
                output = compiled(*arguments)
            except Exception as error:
                results.append((type(error).__name__, str(error)))
                continue
            results.append(detached(output))
            if training:
                results.append(_gradients(output, arguments))
    return {"results": results, "state": detached(case.state()), "printed": printed.getvalue()}


def _leaf(argument: Any, training: bool) -> Any:
    if isinstance(argument, torch.Tensor):
        copy = argument.detach().clone()
        return copy.requires_grad_() if training and copy.is_floating_point() else copy
    return argument


def _gradients(output: Any, arguments: Tuple[Any, ...]) -> List[Any]:
    losses = [tensor.sum() for tensor in tensors_in(output) if tensor.requires_grad]
    if losses:
        try:
            sum(losses).backward()
        except RuntimeError as error:
            return [str(error)]
    return [detached(argument.grad) for argument in arguments if isinstance(argument, torch.Tensor)]


def tensors_in(value: Any) -> List[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in tensors_in(item)]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def detached(value: Any) -> Any:
    """``value`` as plain data that ``==`` compares bit by bit."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach().contiguous()
        bits = tensor.reshape(-1).view(torch.uint8).tolist() if tensor.numel() else []
        return ("tensor", str(value.dtype), tuple(value.shape), value.requires_grad, bits)
    if isinstance(value, float):
        return ("float", value.hex())
    if isinstance(value, dict):
        return ("dict", [(detached(key), detached(item)) for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [detached(item) for item in value])
    if isinstance(value, set):
        return ("set", sorted(map(repr, value)))
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, [detached(getattr(value, field.name)) for field in fields(value)])
    if value is None or isinstance(value, (int, str, bytes)):
        return value
    return type(value).__name__
