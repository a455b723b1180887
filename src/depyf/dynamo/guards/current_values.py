"""A short text for the current value that a guard reads: ``why`` shows it beside the value that was compiled for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator, List, Mapping, Optional

from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe
from depyf.base.quick_dataclass import replace
from depyf.diagnosis.guard import COMPARISONS, Guard, GuardKind, StateChange
from depyf.diagnosis.guard_expressions import of_constant
from depyf.diagnosis.guard_sources import as_written
from depyf.dynamo.guards import runtime as guard_runtime
from depyf.dynamo.guards.kept_readings import code_of
from depyf.dynamo.hooks import torch_names

if TYPE_CHECKING:
    import torch

_LONGEST = 80


def value_of(guard: Guard, frame_locals: Mapping[str, object], frame_globals: Mapping[str, object]) -> Optional[str]:
    """Return the value that the guard compares with a constant; None if it does not compare values. For relations of
    sizes it is all values in it: ``x.size()[0] is 5``.
    """
    scope = {"L": frame_locals, "G": frame_globals}
    if guard.kind is GuardKind.RELATION:
        values = (f"{as_written(each)} is {_evaluated(each, scope)}" for each in guard.sizes)
        return ", ".join(values) or None
    if guard.kind in COMPARISONS and not guard.operands[1].startswith("<"):  # a class or an object
        return _evaluated(guard.operands[0], scope)
    if guard.kind is GuardKind.MARKS and guard.source:
        return _evaluated(f"getattr({guard.source}, '_dynamo_{guard.detail}', None)", scope)
    return None


def as_known_here(guard: Guard) -> Guard:
    """Return the guard with the names that only this process can resolve: the ids of ``None``, ``True`` and ``False``
    (PyTorch up to 2.8 compares booleans by their ids), and the state of what has changed globally.
    """
    if guard.kind is GuardKind.GLOBAL_STATE and guard.changed:
        changed = tuple(map(_with_state, guard.changed))
        return replace(guard, changed=changed, code=f"GLOBAL_STATE changed: {' '.join(map(str, changed))}")
    name = {id(value): repr(value) for value in (None, True, False)}.get(guard.identity or 0)
    return guard if name is None or guard.kind is not GuardKind.IDENTITY else of_constant(guard, name)


_STATES = {
    "grad_mode": "is_grad_enabled",
    "deterministic_algorithms": "are_deterministic_algorithms_enabled",
    "default_dtype": "get_default_dtype",
    "num_threads": "get_num_threads",
}


def _with_state(change: StateChange) -> StateChange:
    """Return the change with the value of the setting now, where that can be read."""
    name, arguments = _STATES.get(change.name, ""), change.autocast[:1] if change.autocast else ()
    if change.autocast is not None:
        name = "is_autocast_enabled" if change.autocast[1] == "enabled" else "get_autocast_dtype"
    asked = torch_names.find("torch", name)
    try:
        return change if asked is None else change.with_value(str(asked(*arguments)))
    except TypeError:  # before 2.4 is_autocast_enabled takes no device
        return change


def tensor_mismatches_by_kind(
    guard: Guard, frame_locals: Mapping[str, object], frame_globals: Mapping[str, object]
) -> List[Guard]:
    """Return how a tensor differs from what a TENSOR_MATCH guard requires, the first difference of each kind. PyTorch
    reports one difference, and only for the first guard that fails.
    """
    if guard.tensor is None:
        return []
    scope = {"L": frame_locals, "G": frame_globals}
    try:
        value = eval(code_of(guard.source), {**guard_runtime.torch_guard_names(), **scope})
        found = {each.kind: each for each in reversed(list(tensor_mismatches(guard, value)))}
        if GuardKind.SIZE in found or GuardKind.DISPATCH_KEYS in found:  # of other sizes, or of another layout
            found.pop(GuardKind.STRIDE, None)
        return list(found.values())[::-1]
    except synchronous() as error:  # the guard fails for that reason
        return [replace(guard, kind=GuardKind.TENSOR_CLASS, actual=f"nothing ({describe(error)})")]


def tensor_mismatches(guard: Guard, value: torch.Tensor) -> Iterator[Guard]:
    """Yield how a tensor differs from what a TENSOR_MATCH guard requires, the first difference first."""
    demanded = guard.tensor
    if demanded is None:
        return
    if type(value).__qualname__ != demanded.class_name:
        yield replace(guard, kind=GuardKind.TENSOR_CLASS, actual=guard_runtime._class_name(type(value)))
        return
    for kind, expected, actual in (
        (GuardKind.DISPATCH_KEYS, demanded.dispatch_keys, guard_runtime._dispatch_keys(value)),
        (GuardKind.DTYPE, demanded.dtype.replace("torch.", ""), str(value.dtype).replace("torch.", "")),
        (GuardKind.REQUIRES_GRAD, demanded.requires_grad, str(value.requires_grad)),
    ):
        if expected != actual:
            yield replace(guard, kind=kind, expected=expected, actual=actual, holds=expected == "True")
    if demanded.sizes is not None and len(demanded.sizes) != value.dim():
        yield replace(guard, kind=GuardKind.RANK, expected=str(len(demanded.sizes)), actual=str(value.dim()))
        return
    for kind, each_expected, each_actual in (
        (GuardKind.SIZE, demanded.sizes, value.size()),
        (GuardKind.STRIDE, demanded.strides, guard_runtime._strides(value)),
    ):
        for index, (expected, now) in enumerate(zip(each_expected or (), each_actual)):
            if expected not in ("None", str(now)):
                yield replace(guard, kind=kind, expected=expected, actual=str(now), detail=str(index))


def _evaluated(code: str, scope: Mapping[str, object]) -> str:
    try:
        return shown(eval(code_of(code), {**guard_runtime.torch_guard_names(), **scope}))
    except synchronous() as error:  # the guard fails for that reason: the value is not there
        return f"not there ({describe(error)})"


def shown(value: object) -> str:
    """Return ``value`` on one line of at most 80 characters; never raises, as its ``repr`` may."""
    try:
        tensor = torch_names.find("torch", "Tensor")
        if tensor is not None and isinstance(value, tensor):
            return f"{value.dtype}".replace("torch.", "") + f"{list(value.shape)} on {value.device}"
        text = " ".join(repr(value).split())
    except synchronous() as error:
        return f"a {type(value).__name__} ({describe(error)})"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
