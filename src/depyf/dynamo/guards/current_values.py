"""The value that a guard looks at, now, in a few words: what ``why`` shows beside the value that was compiled for."""

from __future__ import annotations

import ast
import re
from typing import Any, Iterator, Mapping, Match, Optional

from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.diagnosis.guard_explanations import as_written
from depyf.dynamo.guards import runtime as guard_runtime
from depyf.dynamo.guards.tensor_words import shown
from depyf.dynamo.hooks import torch_names
from depyf.dynamo.hooks.safely import describe
from depyf.source.printing.unparsing import unparse

_OF_SHAPES = ("size", "stride", "storage_offset")


def value_of(code: str, frame_locals: Mapping[str, object], frame_globals: Mapping[str, object]) -> Optional[str]:
    """The left side of a comparison (``L['n'] == 2``), evaluated; None where the guard is no comparison of values.

    For relations of sizes it is all values in it: ``x.size()[0] = 5``.
    """
    try:
        tree = parse(code, mode="eval").body
    except synchronous(SyntaxError, ValueError, RecursionError):
        return None
    if not isinstance(tree, ast.Compare):
        return None
    scope = {"L": frame_locals, "G": frame_globals}
    if any(f".{name}()" in code for name in _OF_SHAPES):
        return _sizes(tree, scope)
    if isinstance(tree.ops[0], (ast.Is, ast.IsNot)) and not isinstance(tree.comparators[0], ast.Constant):
        return None
    return _evaluated(tree.left, scope)


_OBJECT_ID = re.compile(r"___check_obj_id\(([^()]*), (\d+)\)(?:, type=[^#]*)?")


def as_known_here(text: str) -> str:
    """A guard's text with what only this process knows written into it.

    Those are the ids of ``None``, ``True`` and ``False`` (PyTorch up to 2.8 compares booleans by their ids), and the
    state of what has changed globally.
    """
    changed = _STATE_CHANGED.match(text)
    if changed is not None:
        return changed.group(1) + " ".join(map(_with_state, changed.group(2).split()))
    names = {id(value): repr(value) for value in (None, True, False)}

    def written(match: Match[str]) -> str:
        name = names.get(int(match.group(2)))
        return match.group() if name is None else f"{match.group(1)} == {name}"

    return _OBJECT_ID.sub(written, text)


_STATE_CHANGED = re.compile(r"((?:\S+: )?GLOBAL_STATE changed: )(.*)\Z", re.S)
_AUTOCAST = re.compile(r"autocast\((\w+)\)_(enabled|dtype)\Z")
_STATES = {
    "grad_mode": "is_grad_enabled",
    "deterministic_algorithms": "are_deterministic_algorithms_enabled",
    "default_dtype": "get_default_dtype",
    "num_threads": "get_num_threads",
}


def _with_state(key: str) -> str:
    """PyTorch's name of a setting, with what it is now where that can be asked for."""
    autocast = _AUTOCAST.match(key)
    try:
        if autocast is None:
            asked = torch_names.find("torch", _STATES.get(key, ""))
            return key if asked is None else f"{key}={asked()}"
        asked = torch_names.find("torch", "is_autocast_enabled" if autocast[2] == "enabled" else "get_autocast_dtype")
        return key if asked is None else f"{key}={asked(autocast[1])}"
    except TypeError:  # before 2.4 it takes no device
        return key


_CHECK_TENSOR = re.compile(
    r"check_tensor\((?P<source>.*), (?P<class>\w+), DispatchKeySet\((?P<keys>.*?)\), torch\.(?P<dtype>\w+), "
    r"device=(?P<device>\w+), requires_grad=(?P<grad>\w+), size=\[(?P<size>.*?)\], stride=\[(?P<stride>.*?)\]\)\Z",
    re.S,
)


def tensor_mismatch(
    code: str, frame_locals: Mapping[str, object], frame_globals: Mapping[str, object]
) -> Optional[str]:
    """How a tensor differs from what ``check_tensor(...)`` demands, in PyTorch's words; None where it does not say.

    PyTorch finds the words for the first guard that fails only.
    """
    match = _CHECK_TENSOR.match(code)
    if match is None:
        return None
    scope = {"L": frame_locals, "G": frame_globals}
    try:
        value = eval(compile(match["source"], "<guard>", "eval"), {**guard_runtime.torch_guard_names(), **scope})
        return next(_mismatches(match, value), None)
    except synchronous() as error:  # the guard fails for that reason
        return f"expected type of '{match['source']}' to be a tensor type, ' but found nothing ({describe(error)})"


def _mismatches(match: Match[str], value: Any) -> Iterator[str]:
    tensor = f"tensor '{match['source']}'"
    if type(value).__qualname__ != match["class"]:
        yield f"expected type of '{match['source']}' to be a tensor type, ' but found {type(value)}"
        return
    keys = guard_runtime._dispatch_keys(value)
    if keys != match["keys"]:
        sets = f"expected DispatchKeySet({match['keys']}), actual DispatchKeySet({keys})"
        yield f"{tensor} dispatch key set mismatch. {sets}"
    dtype = str(value.dtype).replace("torch.", "")
    if dtype != match["dtype"]:
        yield f"{tensor} dtype mismatch. expected {match['dtype']}, actual {dtype}"
    if str(value.requires_grad) != match["grad"]:
        yield f"{tensor} requires_grad mismatch. expected requires_grad={int(match['grad'] == 'True')}"
    sizes = match["size"].split(", ") if match["size"] else []
    if len(sizes) != value.dim():
        yield f"{tensor} rank mismatch. expected {len(sizes)}, actual {value.dim()}"
        return
    for what, expected, actual in (
        ("size", sizes, value.size()),
        ("stride", match["stride"].split(", "), guard_runtime._strides(value)),
    ):
        for index, (demanded, now) in enumerate(zip(expected, actual)):
            if demanded not in ("None", "", str(now)):
                yield f"{tensor} {what} mismatch at index {index}. expected {demanded}, actual {now}"


def _sizes(tree: ast.expr, scope: Mapping[str, object]) -> Optional[str]:
    told = {}
    for node in ast.walk(tree):
        is_offset = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "storage_offset"
        is_item = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call)
        if isinstance(node, ast.expr) and (is_offset or is_item):
            value = _evaluated(node, scope)
            if value is not None:
                told[as_written(unparse(node))] = value
    return ", ".join(f"{name} is {value}" for name, value in told.items()) or None


def _evaluated(tree: ast.expr, scope: Mapping[str, object]) -> Optional[str]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"L", "G"}
    helpers = {name: getattr(guard_runtime, name) for name in names if hasattr(guard_runtime, name)}
    try:
        return shown(eval(compile(ast.Expression(tree), "<guard>", "eval"), {**helpers, **scope}))
    except synchronous() as error:  # the guard fails for that reason: the value is not there
        return f"not there ({describe(error)})"
