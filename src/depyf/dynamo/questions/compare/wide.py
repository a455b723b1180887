"""Run PyTorch code in float64: requests for a narrower type get float64, and random numbers stay the same."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Iterator

from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.hooked_context import undone_afterwards
from depyf.dynamo.hooks.pytree import mapped

if TYPE_CHECKING:
    import torch


@contextlib.contextmanager
def in_float64(narrow: torch.dtype) -> Iterator[None]:
    """Make operations compute in float64, whatever type they request. Inputs must be float64. ``narrow`` is the
    original type of the values: random numbers are drawn in it, because other types draw others.
    """
    with default_type_float64(), _mode(narrow):
        yield


@contextlib.contextmanager
def default_type_float64() -> Iterator[None]:
    """Create new tensors in float64 by default."""
    import torch

    with undone_afterwards("restoring the default type") as undo:
        undo.append(functools.partial(torch.set_default_dtype, torch.get_default_dtype()))
        torch.set_default_dtype(torch.float64)
        yield


class Widened:
    """A backend that runs the graphs of Dynamo as they are, in float64."""

    def __init__(self, narrow: torch.dtype) -> None:
        self._narrow = narrow
        self.__name__ = "float64"

    def __call__(self, module: torch.fx.GraphModule, inputs: object) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            with in_float64(self._narrow):
                return module(*arguments)

        return call


_COMPUTE_IN_WHAT_GOES_IN = ("flex_attention", "flex_attention_backward")
"""Higher-order operators whose functions compute in the type of what goes in, if they do not convert it."""


def _mode(narrow: torch.dtype) -> ContextManager[object]:
    import torch

    base = private_names.DISPATCH_MODE.require()
    higher_order = private_names.OPERATORS.holder().HigherOrderOperator
    wider = dict.fromkeys((torch.float32, torch.float16, torch.bfloat16), torch.float64)
    wider[torch.complex64] = torch.complex128
    seeded = getattr(getattr(torch, "Tag", None), "nondeterministic_seeded", None)

    def widened(value: object) -> object:
        if isinstance(value, torch.dtype):
            return wider.get(value, value)
        return value.to(wider[value.dtype]) if isinstance(value, torch.Tensor) and value.dtype in wider else value

    def narrowed(value: object) -> object:
        if isinstance(value, torch.dtype) and value is torch.float64:
            return narrow
        return value.to(narrow) if isinstance(value, torch.Tensor) and value.dtype is torch.float64 else value

    class Wide(base):  # type: ignore[misc, valid-type]
        supports_higher_order_operators = True
        """Such as flex_attention, which raises otherwise."""

        def __torch_dispatch__(
            self, func: Callable[..., Any], types: object, args: Any = (), kwargs: object = None
        ) -> object:
            kwargs = kwargs or {}
            if isinstance(func, higher_order) and func.__name__ not in _COMPUTE_IN_WHAT_GOES_IN:
                raise NotImplementedError(f"what {func} calls may compute in other types")
            # A generator draws other numbers for float64 than for float32. So what draws runs in the original type, and
            # its result is widened. In-place ones (``uniform_``) have written to a narrow copy: copy the result back.
            if seeded is not None and seeded in getattr(func, "tags", ()):
                torch.set_default_dtype(narrow)
                try:
                    answer = func(*mapped(narrowed, args), **mapped(narrowed, kwargs))
                finally:
                    torch.set_default_dtype(torch.float64)
                if str(func).split(".")[1].endswith("_") and args and isinstance(args[0], torch.Tensor):
                    return args[0].copy_(answer)
                return mapped(widened, answer)
            return func(*mapped(widened, args), **mapped(widened, kwargs))

    return Wide()
