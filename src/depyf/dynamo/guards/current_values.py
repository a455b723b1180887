"""A short text for the current value that a guard reads: ``why`` shows it beside the value that was compiled for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Iterator, Mapping, Optional

from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.diagnosis.guard import COMPARISONS, Guard, GuardKind, TensorProperties
from depyf.diagnosis.guard_expressions import of_constant
from depyf.diagnosis.guard_sources import as_written
from depyf.diagnosis.guard_text import autocast_setting
from depyf.dynamo.guards import runtime as guard_runtime
from depyf.dynamo.guards.tensor_words import shown
from depyf.dynamo.hooks import torch_names
from depyf.messages import describe
from depyf.quick_dataclass import replace
from depyf.source.printing.unparsing import unparse

if TYPE_CHECKING:
    import torch


def value_of(guard: Guard, frame_locals: Mapping[str, object], frame_globals: Mapping[str, object]) -> Optional[str]:
    """Return the value that the guard compares with a constant; None if it does not compare values. For relations of
    sizes it is all values in it: ``x.size()[0] is 5``.
    """
    scope = {"L": frame_locals, "G": frame_globals}
    if guard.kind is GuardKind.RELATION:
        return _values_in(guard, scope)
    if guard.kind in COMPARISONS and not guard.operands[1].startswith("<"):  # a class or an object
        return _evaluated(guard.operands[0], scope)
    if guard.kind is GuardKind.MARKS and guard.source:
        return _evaluated(f"getattr({guard.source}, '_dynamo_{guard.detail}', None)", scope)
    return None


def as_known_here(guard: Guard) -> Guard:
    """Return the guard with the names that only this process can resolve: the ids of ``None``, ``True`` and ``False``
    (PyTorch up to 2.8 compares booleans by their ids), and the state of what has changed globally.
    """
    if guard.kind is GuardKind.GLOBAL_STATE and guard.operands:
        changed = tuple(map(_with_state, guard.operands))
        return replace(guard, operands=changed, code=f"GLOBAL_STATE changed: {' '.join(changed)}")
    name = {id(value): repr(value) for value in (None, True, False)}.get(guard.identity or 0)
    return guard if name is None or guard.kind is not GuardKind.IDENTITY else of_constant(guard, name)


_STATES = {
    "grad_mode": "is_grad_enabled",
    "deterministic_algorithms": "are_deterministic_algorithms_enabled",
    "default_dtype": "get_default_dtype",
    "num_threads": "get_num_threads",
}


def _with_state(key: str) -> str:
    """Return PyTorch's name of a setting, with its current value where that can be read."""
    autocast = autocast_setting(key)
    try:
        if autocast is None:
            asked = torch_names.find("torch", _STATES.get(key, ""))
            return key if asked is None else f"{key}={asked()}"
        asked = torch_names.find("torch", "is_autocast_enabled" if autocast[1] == "enabled" else "get_autocast_dtype")
        return key if asked is None else f"{key}={asked(autocast[0])}"
    except TypeError:  # before 2.4 it takes no device
        return key


def tensor_mismatch(
    guard: Guard, frame_locals: Mapping[str, object], frame_globals: Mapping[str, object]
) -> Optional[Guard]:
    """Return how a tensor differs from what a TENSOR_MATCH guard requires; None if no difference is known. PyTorch
    reports this only for the first guard that fails.
    """
    demanded = guard.tensor
    if demanded is None:
        return None
    scope = {"L": frame_locals, "G": frame_globals}
    try:
        value = eval(compile(guard.source, "<guard>", "eval"), {**guard_runtime.torch_guard_names(), **scope})
        return next(_mismatches(guard, demanded, value), None)
    except synchronous() as error:  # the guard fails for that reason
        return replace(guard, kind=GuardKind.TENSOR_CLASS, actual=f"nothing ({describe(error)})")


def _mismatches(guard: Guard, demanded: TensorProperties, value: torch.Tensor) -> Iterator[Guard]:
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


def _values_in(guard: Guard, scope: Mapping[str, object]) -> Optional[str]:
    values = {}
    for node in ast.walk(parse(guard.code, mode="eval")):
        is_offset = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "storage_offset"
        is_item = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call)
        if isinstance(node, ast.expr) and (is_offset or is_item):
            values[as_written(unparse(node))] = _evaluated(unparse(node), scope)
    if not values and guard.source:  # of integers
        values[guard.subject] = _evaluated(guard.source, scope)
    return ", ".join(f"{name} is {value}" for name, value in values.items()) or None


def _evaluated(code: str, scope: Mapping[str, object]) -> str:
    try:
        tree = parse(code, mode="eval")
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"L", "G"}
        helpers = {name: getattr(guard_runtime, name) for name in names if hasattr(guard_runtime, name)}
        return shown(eval(compile(tree, "<guard>", "eval"), {**helpers, **scope}))
    except synchronous() as error:  # the guard fails for that reason: the value is not there
        return f"not there ({describe(error)})"
