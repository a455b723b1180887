"""The helpers that the guard functions in ``full_code_*.py`` call. Each helper checks what the guard of PyTorch checks.

Names that PyTorch's own guard text uses (``___dict_contains``, ``___tuple_iterator_len``, ``__math_isnan`` ...) can be
imported from this module too: ``from depyf.dynamo.guards.runtime import ___dict_contains`` is PyTorch's function.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from depyf.base.asynchronous import synchronous
from depyf.dynamo.guards.live_values import LiveId, NotLiveError, live_table
from depyf.dynamo.hooks import private_names, torch_names

if TYPE_CHECKING:
    import torch

__all__ = ["NotLiveError", "live_table"]

_MARKS = (
    private_names.DYNAMIC_MARK.name,
    private_names.WEAK_DYNAMIC_MARK.name,
    private_names.UNBACKED_MARK.name,
    private_names.STRICT_UNBACKED_MARK.name,
    private_names.STATIC_MARK.name,
)
"""The attributes by which a user marks dimensions of a tensor; a guard that names none of them forbids all."""

_COMPRESSED_LAYOUTS = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")

Expected = Union[LiveId, int]


def ___guard(function: Callable[..., bool]) -> Callable[..., bool]:
    """Decorate a guard: it fails if its value can't be read or can't be compared."""

    @functools.wraps(function)
    def check(*args: object, **kwargs: object) -> bool:
        try:
            return bool(function(*args, **kwargs))
        except NotLiveError:
            raise
        except synchronous():
            # PyTorch's guards clear the exception and fail, whatever its type.
            return False

    return check


def ___reads(*values: object) -> bool:
    """Return True: the guard only requires that its arguments can be computed."""
    return True


def ___equals(value: object, expected: object) -> bool:
    """Return whether both are equal and of exactly the same type, or identical: ``1``, ``True`` and ``1.0`` differ."""
    return value is expected or (type(value) is type(expected) and bool(value == expected))


def ___check_obj_id(value: object, expected: Expected) -> bool:
    """Return whether it is the same object as at compile time."""
    return expected == id(value)


def ___check_type_id(value: object, expected: Expected) -> bool:
    """Return whether it is an instance of exactly that class, compared by name where ids are not valid."""
    if isinstance(expected, LiveId) and expected.value is None:
        return _class_name(type(value)) == expected.name.partition("#")[0]
    return expected == id(type(value))


def ___check_fake_script_type(value: object, expected: Expected) -> bool:
    """Do what ``___check_type_id`` does, looking through the fake that tracing uses for script objects."""
    stand_in = private_names.FAKE_SCRIPT_OBJECT.find()
    if stand_in is not None and isinstance(value, stand_in):
        value = value.real_obj
    return ___check_type_id(value, expected)


def ___check_dict(value: Any, expected_type: Expected, size: int) -> bool:
    """Return whether it is a dict of exactly that class with that many keys."""
    return ___check_type_id(value, expected_type) and dict.__len__(value) == size


def ___set_contains(values: object, item: object) -> bool:
    """Return whether the set or frozenset has the item."""
    return isinstance(values, (set, frozenset)) and item in values


def ___check_tensor(
    value: Any,
    class_name: str,
    keys: str,
    dtype: object,
    *,
    device: Optional[int],
    requires_grad: bool,
    size: Optional[Sequence[Optional[int]]],
    stride: Optional[Sequence[Optional[int]]],
) -> bool:
    """Return whether the tensor is like the one at compile time. ``class_name`` is the name of its exact class,
    ``keys`` are its dispatch keys (under the current thread's), a ``None`` in ``size`` (elements) or ``stride``
    (elements) is a dimension that may have any value."""
    return (
        type(value).__qualname__ == class_name
        and _dispatch_keys(value) == keys
        and value.dtype == dtype
        and value.device.index == device
        and value.requires_grad == requires_grad
        and _fits(size, value.size())
        and _fits(stride, _strides(value))
    )


def ___check_dimension_marks(value: Any, **expected: object) -> bool:
    """Return whether no dimension is marked (``mark_dynamic`` ...) beyond the marks of compile time. Every keyword is a
    kind of mark without its prefix ``_dynamo_``: the dimensions that may have it."""
    for attribute in _MARKS:
        if not hasattr(value, attribute):
            continue
        allowed = expected.get(attribute[len("_dynamo_") :])
        if allowed is None or not getattr(value, attribute).issubset(allowed):
            return False
    return True


def ___check_no_aliasing(*values: object) -> bool:
    """Return whether all objects are different."""
    return len({id(value) for value in values}) == len(values)


def ___check_overlapping(*, overlapping: List[torch.Tensor], non_overlapping: List[torch.Tensor]) -> bool:
    """Return whether exactly the ``overlapping`` tensors share memory with another one."""
    compute = private_names.OVERLAPPING.find()
    if compute is None:
        raise NotLiveError("this PyTorch does not report which tensors share memory")
    shared = compute([*overlapping, *non_overlapping], symbolic=False)
    return set(shared) == set(range(len(overlapping)))


def ___check_global_state(**expected: object) -> bool:
    """Return whether grad mode, autocast, determinism, default dtype and the other global settings are unchanged."""
    return {key: value for key, value in ___global_state().items() if key in expected} == expected


def ___global_state() -> Dict[str, object]:
    """Return the current global settings, as ``___check_global_state`` takes them."""
    guard = private_names.GLOBAL_STATE.find()
    if guard is None or not hasattr(guard, "__getstate__"):
        raise NotLiveError("this PyTorch does not show the global state that it guards")
    return flat_global_state(json.loads(guard().__getstate__()))


def flat_global_state(state: Mapping[str, object]) -> Dict[str, object]:
    """Return PyTorch's description of its global state with a short form of the part on autocast. ``autocast`` maps the
    number of each device type with autocast to the number of its dtype: what the other device types would use is not
    compared."""
    flat = {key: value for key, value in state.items() if key != "autocast_state"}
    autocast = state.get("autocast_state")
    if isinstance(autocast, dict):
        enabled, dtypes = autocast.get("enabled", ()), autocast.get("dtype", ())
        flat["autocast"] = {index: dtypes[index] for index, on in enumerate(enabled) if on}
        flat["autocast_cache"] = autocast.get("cached_enabled")
    return flat


def ___check_torch_function_modes(*expected: Expected) -> bool:
    """Return whether the active ``TorchFunctionMode`` objects, outermost first, are of exactly these classes."""
    stack_now = private_names.FUNCTION_MODES.find()
    if stack_now is None:
        raise NotLiveError("this PyTorch does not report its stack of torch function modes")
    modes = stack_now()
    return len(modes) == len(expected) and all(map(___check_type_id, modes, expected))


def ___inlined_saved_tensors_hooks() -> Optional[Tuple[int, ...]]:
    """Return the ids of the saved-tensors hooks that would be compiled in, ``None`` when there are none."""
    top = private_names.SAVED_TENSORS_HOOKS.find()
    inlineable = private_names.SAVED_TENSORS_HOOKS_INLINED.find()
    if top is None or inlineable is None:
        raise NotLiveError("this PyTorch has no saved-tensors hooks that can be compiled")
    hooks = top()
    return tuple(map(id, hooks)) if inlineable(hooks) else None


def _class_name(cls: type) -> str:
    """Return the name that ``type.__repr__`` shows."""
    shown = type.__repr__(cls)
    return shown[len("<class '") : -len("'>")]


def _dispatch_keys(value: torch.Tensor) -> str:
    """Return the dispatch keys of a tensor, with those that this thread includes, without those it excludes."""
    keys_of = private_names.DISPATCH_KEYS.find()
    included = private_names.INCLUDED_KEYS.find()
    excluded = private_names.EXCLUDED_KEYS.find()
    if keys_of is None or included is None or excluded is None:
        raise NotLiveError("this PyTorch does not report the dispatch keys of a tensor")
    text = str((keys_of(value) | included()) - excluded())
    return text[len("DispatchKeySet(") : -1]


def _strides(value: torch.Tensor) -> Sequence[int]:
    if str(value.layout).rpartition(".")[2] in _COMPRESSED_LAYOUTS:
        return [-1] * value.dim()
    strides: Sequence[int] = value.stride()
    return strides


def _fits(expected: Optional[Sequence[Optional[int]]], actual: Sequence[int]) -> bool:
    if expected is None:
        return True
    return len(expected) == len(actual) and all(e is None or e == a for e, a in zip(expected, actual))


def torch_guard_names() -> Dict[str, object]:
    """Return the names that PyTorch's own guard text may use."""
    names: Dict[str, object] = dict(torch_names.find("torch.fx.experimental.symbolic_shapes", "SYMPY_INTERP") or {})
    closure_vars = private_names.NAMES_IN_GUARDS.find()
    constants = private_names.NAMES_IN_GUARDS_BEFORE.find()
    names.update(closure_vars() if closure_vars is not None else constants or {})
    return names


def __getattr__(name: str) -> Any:
    names = {} if name.startswith("__") and name.endswith("__") else torch_guard_names()
    if name in names:
        return names[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
