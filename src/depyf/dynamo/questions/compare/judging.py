"""Judge whether a value of a compiled run is right: its error against float64 must not be clearly larger than eager's.

Compiled code adds in another order and keeps more or fewer digits in between. That is not a fault as long as its error
against float64 is of the size of eager's. PyTorch's own compiler tests use this idea.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Optional, Tuple

from depyf.answers.compared import Errors, Measured
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import torch_names

if TYPE_CHECKING:
    import torch

_FACTOR = 8.0
"""How many times eager's error a compiled value may have."""

_MANY = 64
"""Errors of fewer elements scatter more."""

_NOTHING_LEFT = 2000.0
"""The number of roundings of numbers around one that is allowed where only rounding is left: a sum that should be
zero.
"""

_ROUNDINGS = 32.0
"""An error of this many roundings of the type is always allowed: eager's own may be zero by chance."""

_LITTLE = 4000.0
"""More roundings than this mean another computation, even if it is the same in float64: one in a narrower type."""

_FLIPPED = 0.002
"""The share of elements of integers and booleans that may differ: a comparison of two numbers that are nearly equal."""


@dataclass(frozen=True)
class Judge:
    """Compares values. With ``rtol`` or ``atol``, against eager and by these alone."""

    rtol: Optional[float] = None
    atol: Optional[float] = None

    def measure(
        self, name: str, compiled: object, eager: object, reference: object = None, noise: float = 0.0
    ) -> Measured:
        """Return how ``compiled`` compares with ``eager``; ``reference`` is the value in float64, ``None`` if there is
        none. ``noise`` is the difference of two eager runs, relative to the size of the values."""
        import torch

        if type(eager) is float and type(compiled) is float and compiled != eager:
            # Mostly read from a tensor, with its number of digits.
            exact = torch.tensor(reference, dtype=torch.float64) if isinstance(reference, float) else None
            one, other = (torch.tensor(each, dtype=torch.float32) for each in (compiled, eager))
            return self.measure(name, one, other, exact, noise)
        if not isinstance(eager, torch.Tensor) or not isinstance(compiled, torch.Tensor):
            right = type(compiled) is type(eager) and bool(compiled == eager)
            reason = "" if right else f"{compiled!r} where eager has {eager!r}"
            return Measured(name, type(eager).__name__, None, None, reason)
        kind = f"{str(eager.dtype).replace('torch.', '')}{list(eager.shape)}"
        if compiled.shape != eager.shape or compiled.dtype != eager.dtype:
            found = f"{str(compiled.dtype).replace('torch.', '')}{list(compiled.shape)}"
            return Measured(name, kind, None, None, f"is {found}")
        # The run in float64 may have taken another branch: what has another shape says nothing.
        if reference is not None and (not isinstance(reference, torch.Tensor) or reference.shape != eager.shape):
            reference = None
        given = compiled.detach(), eager.detach(), None if reference is None else reference.detach()
        if not eager.dtype.is_floating_point and not eager.dtype.is_complex:
            return self._discrete(name, kind, *given)
        return self._continuous(name, kind, *given, noise)

    def _discrete(
        self, name: str, kind: str, compiled: torch.Tensor, eager: torch.Tensor, reference: Optional[torch.Tensor]
    ) -> Measured:
        # An index or a comparison of two numbers that are nearly equal may flip. What float64 has as well is right.
        wrong = compiled != eager
        if reference is not None:
            wrong = wrong & (compiled != reference)
        count = int(wrong.sum())
        allowed = 0 if self.rtol is not None or self.atol is not None else int(_FLIPPED * eager.numel())
        return Measured(name, kind, None, None, f"{count} elements differ" if count > allowed else "")

    def _continuous(
        self,
        name: str,
        kind: str,
        compiled: torch.Tensor,
        eager: torch.Tensor,
        reference: Optional[torch.Tensor],
        noise: float,
    ) -> Measured:
        actual, plain = _wide(compiled), _wide(eager)
        # Case 1: the user's tolerance, element by element, like torch.allclose with equal_nan.
        if self.rtol is not None or self.atol is not None:
            limit = (self.atol or 0.0) + (self.rtol or 0.0) * plain.abs()
            errors = errors_of(actual, plain)
            good = ((actual - plain).abs() <= limit) | (actual == plain) | (actual.isnan() & plain.isnan())
            reason = "" if bool(good.all()) else "beyond the tolerance given"
            return Measured(name, kind, None, errors, reason, reference=False)
        # Case 2: NaN or Inf. Only in the compiled run it is wrong; only in eager mode it is right where float64 is
        # finite: the compiled code has avoided an overflow.
        exact = plain if reference is None else _wide(reference)
        broken = (~actual.isfinite() & plain.isfinite()) | (actual.isfinite() & ~plain.isfinite() & ~exact.isfinite())
        ours = errors_of(actual, exact)
        theirs = None if reference is None else errors_of(plain, exact)
        if bool(broken.any()):
            return Measured(
                name, kind, theirs, ours, f"NaN or Inf in {int(broken.sum())} other places", theirs is not None
            )
        import torch

        # Case 3: errors against float64, or against eager mode without a reference. Allowed is a multiple of eager's
        # own error, plus a floor of some roundings, because eager's own error may be zero by chance.
        floor = (_ROUNDINGS if theirs is not None else 4 * _ROUNDINGS) * torch.finfo(eager.dtype).eps + 4 * noise
        size = _largest(exact)
        own = theirs or Errors(0.0, 0.0, 0.0)
        factor = _FACTOR if eager.numel() >= _MANY else 3 * _FACTOR
        limits = (factor * own.rms + floor, factor * own.largest + floor * size)
        reason = ""
        if min(own.rms, ours.rms) > _useless(eager.dtype) and not _is_rounding(actual, plain, eager.dtype):
            # Both runs are so far from float64 that eager mode is either only rounding, or float64 took another branch.
            # The reference is useless: compare the two runs with each other.
            theirs, ours = None, errors_of(actual, plain)
            limits = (4 * floor, 4 * floor * _largest(plain))
        if ours.rms > limits[0] or ours.largest > limits[1]:
            than = "eager's own" if theirs is not None else f"{limits[0]:.1g} of the largest value"
            reason = f"its error is clearly larger than {than}"
        return Measured(name, kind, theirs, ours, reason, theirs is not None)


def measured_by_name(
    judge: Judge,
    results: Mapping[str, object],
    eager: Mapping[str, object],
    reference: Mapping[str, object],
    noise: Mapping[str, float],
) -> Tuple[Measured, ...]:
    """Return how each value of a compiled run compares with that of eager mode, in eager mode's order."""
    values = []
    for key, plain in eager.items():
        if key in results:
            values.append(judge.measure(key, results[key], plain, reference.get(key), noise.get(key, 0.0)))
        else:
            values.append(Measured(key, "", None, None, "is missing in the compiled run"))
    more = [key for key in results if key not in eager]
    return (*values, *(Measured(key, "", None, None, "is not there in eager mode") for key in more))


def is_little(error: float, eager: object) -> bool:
    """Return whether an error, relative to the values, may come from unlucky rounding in the type of ``eager``."""
    import torch

    return (
        isinstance(eager, torch.Tensor)
        and eager.is_floating_point()
        and (error <= _LITTLE * torch.finfo(eager.dtype).eps)
    )


def _useless(dtype: torch.dtype) -> float:
    """Return the relative error of both runs above which a reference is not used."""
    bits = int(torch_names.module("torch").finfo(dtype).bits)
    return 0.05 if bits >= 32 else 0.5


def _is_rounding(actual: torch.Tensor, plain: torch.Tensor, dtype: torch.dtype) -> bool:
    """Return whether two values differ by no more than the rounding of small numbers that should be zero."""
    limit = _NOTHING_LEFT * torch_names.module("torch").finfo(dtype).eps
    return bool(errors_of(actual, plain).largest <= limit)


def errors_of(actual: torch.Tensor, exact: torch.Tensor) -> Errors:
    """Return the errors of a tensor against another, where both are finite."""
    import torch

    # NaN and Inf are judged apart (``broken`` above); they would make each of the three numbers useless.
    where = actual.isfinite() & exact.isfinite()
    if not bool(where.any()):
        return Errors(0.0, 0.0, 0.0)
    actual, exact = _wide(actual)[where], _wide(exact)[where]
    error = (actual - exact).abs()
    # 0/0 is no error; an error of something that should be 0 is infinite.
    relative = (error / exact.abs()).nan_to_num(0.0, float("inf"))
    size = float(exact.abs().square().mean().sqrt())
    rms = float(error.square().mean().sqrt())
    rms = rms / size if size else (0.0 if not rms else float("inf"))
    return Errors(float(error.max()), float(torch.max(relative)), rms)


def _wide(value: torch.Tensor) -> torch.Tensor:
    import torch

    return value.detach().to(torch.complex128 if value.dtype.is_complex else torch.float64)


def _largest(value: torch.Tensor) -> float:
    finite = value[value.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0
