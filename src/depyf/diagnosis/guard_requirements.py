"""What a guard requires of a value, in a few words, for lists of guards: ``float32[4, 8] on CPU``, ``3 items``.

Sentences about guards that failed are made in ``guard_explanations``.
"""

from __future__ import annotations

from typing import Callable, Mapping, Optional, Sequence

from depyf.diagnosis.guard import Guard, GuardKind, TensorProperties, items
from depyf.diagnosis.guard_sources import as_written
from depyf.diagnosis.guard_text import read


def required(text: str) -> str:
    """Return what the guard with this text requires; empty if its form is unknown."""
    guard = read(text)
    words = _REQUIREMENTS.get(guard.kind)
    return "" if words is None else words(guard)


def _tensor(guard: Guard) -> str:
    properties = guard.tensor
    if properties is None:
        return ""
    name = "" if properties.class_name == "Tensor" else f"{properties.class_name} "
    device = properties.dispatch_keys.partition(",")[0].strip()
    where = f" on {device}" if device else ""
    grad = ", requires grad" if properties.requires_grad == "True" else ""
    return f"{name}{properties.dtype.replace('torch.', '')}{_sizes(properties)}{where}{grad}"


def _sizes(properties: TensorProperties) -> str:
    """Return the sizes, and the strides unless they are those of a contiguous tensor."""
    sizes, strides = properties.sizes, properties.strides
    if sizes is None:
        return " of any size"
    shown = f"[{', '.join(_any(each) for each in sizes)}]"
    usual = strides is None or _is_contiguous(sizes, strides)
    return shown if usual or strides is None else f"{shown} with strides [{', '.join(_any(each) for each in strides)}]"


def _any(size: str) -> str:
    return "any" if size == "None" else size


def _is_contiguous(sizes: Sequence[str], strides: Sequence[str]) -> bool:
    """Return whether these may be the strides of a contiguous tensor.

    Unknown sizes and strides fit, and the stride of a dimension of size 1 does not matter.
    """
    wanted: Optional[int] = 1
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if stride.isdigit() and wanted is not None and int(stride) != wanted and size != "1":
            return False
        wanted = wanted * int(size) if wanted is not None and size.isdigit() else None
    return True


def _value(guard: Guard) -> str:
    return "" if guard.expected is None else as_written(guard.expected)


def _items(guard: Guard) -> str:
    return "" if guard.expected is None else items(guard.expected)


def _marks(guard: Guard) -> str:
    return "no marked dimension" if guard.expected is None else f"marked at most in {guard.expected}"


def _keys(guard: Guard) -> str:
    """PyTorch compares all keys, or each with its position: ``list(dict.keys(...))[2] == 'b'``."""
    value = _value(guard)
    return f"the keys {value}, in this order" if guard.position is None else f"key {guard.position} is {value}"


def _aliasing(guard: Guard) -> str:
    return "no tensor twice" if guard.detail == "no_aliasing" else "overlap in memory as when it was compiled"


def _same_object(guard: Guard) -> str:
    if len(guard.operands) != 2:
        return ""
    return f"{'the same object as' if guard.holds else 'another object than'} {as_written(guard.operands[1])}"


def _same(what: str) -> Callable[[Guard], str]:
    return lambda guard: f"the same {guard.detail or what}"


_REQUIREMENTS: Mapping[GuardKind, Callable[[Guard], str]] = {
    GuardKind.TENSOR: _tensor,
    GuardKind.CLASS: lambda guard: f"of class {guard.expected}" if guard.expected else "",
    GuardKind.IDENTITY: _same("object"),
    GuardKind.FUNCTION: lambda guard: "the same function",
    GuardKind.NUMBER: _value,
    GuardKind.CHOICE: _value,
    GuardKind.TRAINING: _value,
    GuardKind.NONE: _value,
    GuardKind.ITERATOR_LENGTH: _items,
    GuardKind.ITERATOR_STATE: _value,
    GuardKind.LENGTH: _items,
    GuardKind.EMPTY: lambda guard: "empty",
    GuardKind.NUMBER_OF_KEYS: _items,
    GuardKind.KEYS: _keys,
    GuardKind.CONTAINS: lambda guard: f"{'has' if guard.holds else 'lacks'} {as_written(guard.detail)}",
    GuardKind.ATTRIBUTE: lambda guard: f"{'has' if guard.holds else 'lacks'} the attribute {guard.detail}",
    GuardKind.NAN: lambda guard: "nan" if guard.holds else "not nan",
    GuardKind.RELATION: lambda guard: as_written(guard.detail),
    GuardKind.ALIASING: _aliasing,
    GuardKind.MARKS: _marks,
    GuardKind.SAME_OBJECT: _same_object,
    GuardKind.GLOBAL_STATE: lambda guard: "as when it was compiled",
    GuardKind.MODES: lambda guard: "as when it was compiled",
    GuardKind.HOOKS: lambda guard: f"{'no' if guard.expected in (None, 'None') else 'the same'} saved-tensors hooks",
}
