"""The values in nested containers, as PyTorch defines them (``torch.utils._pytree``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List

from depyf.dynamo.hooks import private_names

if TYPE_CHECKING:
    import torch


def leaves(value: object) -> List[object]:
    """Return the leaves of ``value`` in order; ``value`` itself if it is not a container."""
    found: List[object] = private_names.TREE_FLATTEN.require()(value)[0]
    return found


def tensors(value: object) -> List[torch.Tensor]:
    """Return the tensors in ``value``, in order."""
    import torch

    return [each for each in leaves(value) if isinstance(each, torch.Tensor)]


def mapped(function: Callable[[object], object], value: object) -> Any:
    """Return ``value`` with ``function`` applied to each leaf."""
    return private_names.TREE_MAP.require()(function, value)
