"""The values inside of nested containers, as PyTorch counts them (``torch.utils._pytree``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List

from depyf.dynamo.hooks import private_names

if TYPE_CHECKING:
    import torch


def leaves(value: object) -> List[object]:
    """Return the values in ``value`` that are no containers, in order; ``value`` itself where it is none."""
    found: List[object] = private_names.TREE_FLATTEN.require()(value)[0]
    return found


def tensors(value: object) -> List[torch.Tensor]:
    """Return the tensors in ``value``, in order."""
    import torch

    return [each for each in leaves(value) if isinstance(each, torch.Tensor)]


def mapped(function: Callable[[object], object], value: object) -> Any:
    """Return ``value`` with each leaf replaced by what ``function`` makes of it."""
    return private_names.TREE_MAP.require()(function, value)
