"""Inputs of a graph as expressions of a script: tensors by shape, strides, type and device, values made up or saved.

Inputs may be real or fake; symbolic sizes are given the values that they were compiled for. Tensors that share their
memory share it in the script, too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.dynamo.hooks import private_names, torch_names

if TYPE_CHECKING:
    import torch
    from typing_extensions import TypeGuard, TypeIs

_UNKNOWN_SIZE = 4
"""The value of a size that depends on data and has no known value."""

_LITERAL = 8
"""Constants of up to this many elements are written into the script."""


class Tensors:
    """Writes expressions for values. With ``values``, tensors are kept in ``saved``, for a file beside the script.
    ``gradients`` is whether those that require gradients do so in the script."""

    def __init__(self, *, values: bool, gradients: bool = True) -> None:
        self._values = values
        self._gradients = gradients
        self.saved: Dict[str, object] = {}
        self.bases: List[str] = []
        self.notes: List[str] = []
        self._shared: Dict[int, str] = {}

    def inputs(self, names: Sequence[str], values: Sequence[object]) -> List[str]:
        """Return expressions for all inputs. Those that share memory are views of variables that ``bases`` make."""
        storages: Dict[int, List[int]] = {}
        for index, value in enumerate(values):
            if is_tensor(value) and not _is_odd(value):
                storages.setdefault(_storage(value), []).append(index)
        shared = {index for indices in storages.values() if len(indices) > 1 for index in indices}
        return [
            self._view(value) if index in shared and is_tensor(value) else self.expression(name, value)
            for index, (name, value) in enumerate(zip(names, values))
        ]

    def expression(self, name: str, value: object, *, constant: bool = False) -> str:
        """Return an expression for one value; ``constant`` means that the graph was specialized on its contents."""
        if not is_tensor(value):
            return self._scalar(name, value)
        if _is_odd(value):
            return self._odd(name, value)
        if constant and is_real(value) and value.numel() <= _LITERAL and not value.requires_grad:
            return _literal(value)
        if self._values and is_real(value):
            self.saved[name] = compact(value).requires_grad_(self._wants_gradient(value))
            return f"{'load()' if constant else 'saved'}[{name!r}]"
        return made_up(value, requires_grad=self._wants_gradient(value))

    def _wants_gradient(self, value: torch.Tensor) -> bool:
        return self._gradients and bool(value.requires_grad)

    def _scalar(self, name: str, value: object) -> str:
        import torch

        for symbolic, plain in ((torch.SymInt, int), (torch.SymFloat, float), (torch.SymBool, bool)):
            if isinstance(value, symbolic):
                return self._symbol(name, value, plain)
        if isinstance(value, float) and not math.isfinite(value):
            return f"float({str(value)!r})"
        if value is None or isinstance(value, (bool, int, float, str)):
            return repr(value)
        generator = torch_names.find("torch", "Generator")
        if generator is not None and isinstance(value, generator):
            return f"torch.Generator({str(value.device)!r})"
        self.notes.append(f"the input {name} is a {type(value).__name__}, which this script can't make")
        return "None"

    def _symbol(self, name: str, value: object, plain: type) -> str:
        try:
            return repr(plain(hint(value)))
        except synchronous():  # the size of a nested tensor has no number
            self.notes.append(f"the input {name} is {value}, which has no value as a number")
            return "None"

    def _odd(self, name: str, value: torch.Tensor) -> str:
        import torch

        dense = type(value) in (torch.Tensor, torch.nn.Parameter)
        kind = str(value.layout).replace("torch.", "") if dense else type(value).__name__
        try:
            text = made_up(value, requires_grad=self._wants_gradient(value))
        except synchronous():  # its sizes are symbolic
            self.notes.append(f"the input {name} is a tensor of the kind {kind}, which this script can't make")
            return "None"
        self.notes.append(f"the input {name} is a tensor of the kind {kind}; here it is an ordinary one")
        return text

    def _view(self, value: torch.Tensor) -> str:
        """Return a tensor that shares its memory with another input."""
        # The memory is a flat tensor of its own, ``memory_0``, and each input that shares it an ``as_strided`` of that.
        storage = _storage(value)
        if storage not in self._shared:
            self._shared[storage] = base = f"memory_{len(self._shared)}"
            size = hint(value.untyped_storage().nbytes()) // value.element_size()
            if self._values and is_real(value):
                self.saved[base] = value.detach().as_strided((size,), (1,), 0).clone()
                self.bases.append(f"{base} = saved[{base!r}]")
            else:
                whole = f"tensor(({size},), (1,), {value.dtype}, {str(value.device)!r}{_bounds(value)})"
                self.bases.append(f"{base} = {whole}")
        base = self._shared[storage]
        shape, strides, offset = sizes(value), tuple(map(hint, value.stride())), hint(value.storage_offset())
        view = f"{base}.as_strided({shape}, {strides}, {offset})"
        return f"{view}.detach().requires_grad_()" if self._wants_gradient(value) else view


def is_tensor(value: object) -> TypeIs[torch.Tensor]:
    return isinstance(value, torch_names.module("torch").Tensor)


def is_real(value: object) -> TypeGuard[torch.Tensor]:
    """Return whether a tensor has values: it is neither fake nor on the meta device."""
    fake = private_names.FAKE_TENSOR.find() or ()
    return is_tensor(value) and not isinstance(value, fake) and value.device.type != "meta" and not _is_odd(value)


def _is_odd(value: torch.Tensor) -> bool:
    """Return whether it is sparse or wrapped: such tensors have no storage of their own."""
    import torch

    fake = private_names.FAKE_TENSOR.find() or torch.Tensor
    return value.layout != torch.strided or type(value) not in (torch.Tensor, torch.nn.Parameter, fake)


def _storage(value: torch.Tensor) -> int:
    return int(private_names.STORAGE_ADDRESS.of(value.untyped_storage()))


def hint(value: object) -> Any:
    """Return the number that a symbolic size was compiled for."""
    node = getattr(value, "node", None)
    if node is None:
        return value
    try:
        found = node.hint
    except synchronous():  # a symbol that depends on data has none
        found = None
    return _UNKNOWN_SIZE if found is None else found


def sizes(value: torch.Tensor) -> Tuple[int, ...]:
    """Return the shape of a tensor in numbers."""
    return tuple(int(hint(size)) for size in value.shape)


def made_up(value: torch.Tensor, *, requires_grad: bool = False) -> str:
    """Return ``tensor(shape, strides, dtype, ...)`` with values of the kind that ``value`` has, if that is known."""
    odd = _is_odd(value)
    strides = contiguous_strides(sizes(value)) if odd else tuple(int(hint(stride)) for stride in value.stride())
    arguments = [repr(sizes(value)), repr(strides), str(value.dtype)]
    if value.device.type != "cpu":
        arguments.append(repr(str(value.device)))
    text = ", ".join(arguments) + _bounds(value) + (", requires_grad=True" if requires_grad else "")
    return f"tensor({text})"


def contiguous_strides(shape: Sequence[int]) -> Tuple[int, ...]:
    """Return the strides of a contiguous tensor, in elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _bounds(value: torch.Tensor) -> str:
    """Return the range of the values of a real tensor: random ones in it keep indices valid, and roots real."""
    import torch

    if not is_real(value) or value.numel() == 0 or value.is_complex() or value.dtype == torch.bool:
        return ""
    data = value.detach()
    if data.dtype.is_floating_point:
        data = data.double()[torch.isfinite(data.double())]
        if data.numel() == 0:
            return ""
        low, high = float(data.min()), float(data.max())
        return f", low={low:.4g}, high={high:.4g}"
    return f", low={int(data.min())}, high={int(data.max()) + 1}"


def _literal(value: torch.Tensor) -> str:
    import torch

    listed = value.detach().tolist()
    text = repr(listed)
    if "inf" in text or "nan" in text:
        text = text.replace("inf", "float('inf')").replace("nan", "float('nan')")
    device = "" if value.device.type == "cpu" else f", device={str(value.device)!r}"
    made = f"torch.tensor({text}, dtype={value.dtype}{device})"
    return f"torch.nn.Parameter({made})" if isinstance(value, torch.nn.Parameter) else made


def compact(value: torch.Tensor, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    """Return a copy, of type ``dtype`` if that is given, with the same strides. The copy keeps only the memory alive
    that it spans, and requires no gradient.
    """
    data = value.detach()
    if _is_odd(value) or not data.numel():
        return data.clone() if dtype is None else data.to(dtype, copy=True)
    # ``clone`` keeps the strides only of dense tensors. So clone the memory from the first to the last element, flat,
    # and take the same view of it.
    span = 1 + sum((size - 1) * stride for size, stride in zip(data.shape, data.stride()))
    flat = data.as_strided((span,), (1,), data.storage_offset())
    memory = flat.clone() if dtype is None else flat.to(dtype, copy=True)
    return memory.as_strided(data.shape, data.stride())
