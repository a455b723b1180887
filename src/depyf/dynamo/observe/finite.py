"""Find non-finite values in tensors, and compute statistics of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from depyf.answers.nonfinite import TensorFacts
from depyf.dynamo.hooks.pytree import leaves

if TYPE_CHECKING:
    import torch


class Bad(NamedTuple):
    """How many values of something are NaN, and how many are infinite."""

    nans: int = 0
    infs: int = 0

    @property
    def kind(self) -> str:
        return "NaN" if self.nans else "Inf"


def tensors_in(value: object) -> List[torch.Tensor]:
    """Return the tensors in a value, however they are nested, that can hold values that are not finite."""
    import torch

    flat: Sequence[object]
    if isinstance(value, (list, tuple)) and not any(isinstance(each, (list, tuple, dict)) for each in value):
        flat = value
    else:
        flat = leaves(value)
    return [each for each in flat if isinstance(each, torch.Tensor) and (each.is_floating_point() or each.is_complex())]


def all_finite(values: Iterable[torch.Tensor]) -> bool:
    """Return whether all values in these tensors are finite. This blocks until each device has answered once."""
    import torch

    by_device: Dict[torch.device, List[torch.Tensor]] = {}
    for each in values:
        if each.numel():
            by_device.setdefault(each.device, []).append(torch.isfinite(_plain(each)).all())
    return all(bool(torch.stack(flags).all()) for flags in by_device.values())


def count_bad(value: object) -> Bad:
    """Return how many values in it are not finite."""
    import torch

    nans = infs = 0
    for each in tensors_in(value):
        plain = _plain(each)
        if each.numel() and not bool(torch.isfinite(plain).all()):
            nans += int(torch.isnan(plain).sum())
            infs += int(torch.isinf(plain).sum())
    return Bad(nans, infs)


STAND_INS: Tuple[Optional[str], ...] = (None, "zero", "one", "max", "min")
"""The replacements of values that are not finite. One alone may have the same effect: the square root of a number below
zero is NaN, too, and a large number may overflow where the Inf was."""


def made_finite(value: object, stand_in: Optional[str] = None) -> object:
    """Return a copy of a tensor in which ``stand_in`` replaces values that are not finite; any other value unchanged.
    Without ``stand_in`` one of the tensor's finite values does, or 1."""
    import torch

    if not isinstance(value, torch.Tensor) or not tensors_in([value]):
        return value
    # By default one of the tensor's own numbers, which is in the domain of the operation (a probability, say): 0 or the
    # largest number may make an Inf or a NaN of their own.
    finite = torch.isfinite(_plain(value))
    if stand_in is not None:
        limits = torch.finfo(value.dtype)
        number = {"zero": 0.0, "one": 1.0, "max": limits.max, "min": limits.min}[stand_in]
        return torch.where(finite, value, torch.full_like(value, number))
    rest = value[finite]
    return torch.where(finite, value, rest[0] if rest.numel() else torch.ones_like(value))


def facts(name: str, tensor: torch.Tensor) -> TensorFacts:
    """Return the facts about the tensor in numbers."""
    import torch

    plain = _plain(tensor.detach())
    number = plain.abs() if plain.is_complex() else plain
    known = number[torch.isfinite(number)].double() if number.is_floating_point() else number.double()
    numbers = {}
    if known.numel():
        numbers = {"minimum": float(known.min()), "maximum": float(known.max()), "mean": float(known.mean())}
    return TensorFacts(
        name=name,
        dtype=str(tensor.dtype).replace("torch.", ""),
        shape=tuple(int(size) for size in tensor.shape),
        device=str(tensor.device),
        count=tensor.numel(),
        nans=int(torch.isnan(number).sum()) if number.is_floating_point() else 0,
        infs=int(torch.isinf(number).sum()) if number.is_floating_point() else 0,
        zeros=int((number == 0).sum()),
        **numbers,
    )


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor in a type that supports these checks; 8-bit types do not."""
    return tensor.float() if tensor.is_floating_point() and tensor.element_size() == 1 else tensor
