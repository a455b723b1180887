"""A tensor in a few numbers: statistics, a hash of its bits, and a sketch by which two tensors can be compared later.

The sketch has eight sums of all values, each value with a sign that depends on its position. For two tensors a and b,
the mean square of the differences of their sums estimates ``|a - b|**2`` (the sums of a - b have random signs, and the
mixed terms cancel on average). So rounding is told from an error without either tensor, with 70 bytes. The signs are a
table for 2,048 positions, times one sign for each block of so many, so that each sum is a product of matrices.

The hash is exact integer arithmetic modulo 2**64, so it does not depend on the device or the order of additions.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Dict, Optional, Tuple

from depyf.answers.recorded import PROJECTIONS, Digest
from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass

if TYPE_CHECKING:
    import torch

_BLOCK = 2048
_PART = 512 * _BLOCK
"""So many values are converted at once."""

_FEW = 8
"""So many blocks are added one by one: PyTorch uses one thread for each, as starting others would take longer."""

_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""The constants of splitmix64."""


def digest(name: str, tensor: torch.Tensor, weights: Optional[Weights] = None) -> Digest:
    """Return the digest of a strided tensor. Call it without gradients, and outside of modes of the program.

    ``weights``, for a parameter: norm and sketch are those of the weighted values.
    """
    import torch

    flat = _flat(tensor)
    hashed, square, kinds = 0, 0.0, [0, 0, 0]
    least, most = math.inf, -math.inf
    sketch = torch.zeros(PROJECTIONS, dtype=torch.float64)
    for start in range(0, flat.numel(), _PART):
        part = flat[start : start + _PART]
        hashed += _hash(part, start)
        wide = part.to("cpu" if part.device.type == "mps" else part.device, torch.float64)
        if part.is_floating_point():
            finite = torch.isfinite(wide)
            if not finite.all():
                of_kinds = wide.isnan(), wide.isposinf(), wide.isneginf()
                kinds = [known + int(each.sum()) for known, each in zip(kinds, of_kinds)]
                wide = torch.where(finite, wide, torch.zeros_like(wide))
        least, most = min(least, float(wide.min())), max(most, float(wide.max()))
        if weights is not None:
            wide = weights.weighted(wide, start)
        square += float((wide * wide).sum())
        sketch += _sums(wide, start // _BLOCK).cpu()
    if not flat.numel():
        least = most = 0.0
    sums: Tuple[float, ...] = tuple(sketch.tolist())
    dtype = str(tensor.dtype).replace("torch.", "")
    bits = hashed % 2**64
    missing = sum(kinds)
    known = tuple(kinds) if missing else ()
    return Digest(name, dtype, tuple(tensor.shape), bits, math.sqrt(square), least, most, missing, sums, known)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    value = torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach()
    if not _has_numbers(tensor.dtype):
        value = value.view(_integers()[tensor.element_size()])
    return value.resolve_neg().reshape(-1)


@functools.lru_cache(maxsize=None)
def _has_numbers(dtype: torch.dtype) -> bool:
    """Return whether PyTorch can convert values of this type: not those of less than a byte."""
    import torch

    try:
        torch.empty(1, dtype=dtype).to(torch.float64)
    except synchronous(RuntimeError):
        return False
    return True


@dataclass(frozen=True)
class Weights:
    """Weights of the values of a parameter: near 1 where its gradient is clearly larger than ``border``, near 0 where
    it is clearly smaller."""

    gradient: torch.Tensor
    border: float

    def weighted(self, wide: torch.Tensor, start: int) -> torch.Tensor:
        """Return the values from ``start`` on, weighted."""
        import torch

        part = _flat(self.gradient)[start : start + _PART]
        if part.shape != wide.shape or not self.border:
            return wide
        square = part.to(wide.device, torch.float64) ** 2
        return wide * torch.where(torch.isfinite(square), square / (square + self.border**2), torch.ones_like(square))


def bits_of(tensor: torch.Tensor) -> str:
    """Return the hash of a tensor alone."""
    return f"{_hash(tensor.reshape(-1), 0) % 2**64:016x}"


def _hash(part: torch.Tensor, start: int) -> int:
    import torch

    raw = part.contiguous().view(_integers()[part.element_size()]).to(torch.int64)
    mixed = (raw + 1) * _odd_numbers(_BLOCK if raw.numel() <= _BLOCK else _PART, str(raw.device))[: raw.numel()]
    # What is multiplied by another odd number at each position would not see a change that is divisible by 2**63.
    mixed = mixed ^ (mixed >> 29)
    return int(mixed.sum()) * _signed(_MULTIPLIERS[1] + 2 * start) + start


def _integers() -> Dict[int, torch.dtype]:
    """Return a type of integers for each size of an element in bytes."""
    import torch

    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _positions(count: int, device: str) -> torch.Tensor:
    import torch

    number = torch.arange(count, dtype=torch.int64, device=device)
    for multiplier in _MULTIPLIERS:
        number = (number ^ (number >> 30)) * _signed(multiplier) + _signed(_MULTIPLIERS[0])
    return number ^ (number >> 31)


@functools.lru_cache(maxsize=4)
def _odd_numbers(count: int, device: str) -> torch.Tensor:
    return _positions(count, device) | 1


@functools.lru_cache(maxsize=4)
def _signs(device: str) -> torch.Tensor:
    """Return a table of 1 and -1: a column for each position in a block, a row for each sum."""
    import torch

    numbers = _positions(_BLOCK, device)
    bits = torch.stack([(numbers >> (8 + bit)) & 1 for bit in range(PROJECTIONS)])
    return (2 * bits - 1).to(torch.float64)


def _sums(wide: torch.Tensor, first_block: int) -> torch.Tensor:
    import torch

    if torch.are_deterministic_algorithms_enabled():
        wide = wide.cpu()  # a product of matrices on a GPU may raise then
    device = str(wide.device)
    signs = _signs(device)
    whole = wide.numel() // _BLOCK
    if whole <= _FEW:
        parts = (wide[start : start + _BLOCK] for start in range(0, wide.numel(), _BLOCK))
        found = [(each * signs[:, : each.numel()]).sum(dim=1) for each in parts]
        rows = torch.stack(found) if found else signs.new_zeros(0, PROJECTIONS)
    else:
        rows = wide[: whole * _BLOCK].reshape(whole, _BLOCK) @ signs.t()
        rest = wide[whole * _BLOCK :]
        if rest.numel():
            rows = torch.cat([rows, (rest * signs[:, : rest.numel()]).sum(dim=1).reshape(1, -1)])
    return (rows * _block_signs(first_block, rows.shape[0], device)).sum(dim=0)


def _block_signs(first: int, count: int, device: str) -> torch.Tensor:
    import torch

    numbers = torch.arange(first, first + count, dtype=torch.int64, device=device)
    mixed = (numbers + 7) * _signed(_MULTIPLIERS[2])
    mixed = (mixed ^ (mixed >> 32)) * _signed(_MULTIPLIERS[0])
    bits = torch.stack([(mixed >> (40 + bit)) & 1 for bit in range(PROJECTIONS)], dim=1)
    return (2 * bits - 1).to(torch.float64)


def _signed(number: int) -> int:
    """Return an integer modulo 2**64 as PyTorch's ``int64`` has it."""
    number %= 2**64
    return number - 2**64 if number >= 2**63 else number
