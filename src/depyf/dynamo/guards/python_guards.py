"""The guards of PyTorch before 2.4: one Python function, with the text of each of its conditions beside it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, AbstractSet, Dict, Iterator, List, Mapping, Optional, Tuple

from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.dynamo.hooks.torch_types import GuardFunction, Guards
from depyf.source.printing.unparsing import unparse

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_ABOUT_THE_CALL = (
    "___skip_backend_check(",
    "___current_backend(",
    "___compile_config_hash(",
    "___needs_nopython(",
)
"""Conditions on how ``torch.compile`` was called (backend, options). They pass for calls of the same compiled function
and mean nothing elsewhere. Later versions compare this outside of the guards.
"""

TENSORS = "___check_tensors("
"""The start of the condition on all tensors."""


def is_function(manager: object) -> TypeIs[GuardFunction]:
    """Return whether these are Python guards."""
    return not hasattr(manager, "root") and hasattr(manager, "code_parts")


def conditions(manager: GuardFunction) -> Iterator[Tuple[str, str]]:
    """Yield each condition as Python, and again with the user's line that caused it as a comment."""
    verbose = getattr(manager, "verbose_code_parts", None) or manager.code_parts
    seen = set()
    for code, with_comment in zip(manager.code_parts, verbose):
        if code not in seen and not any(each in code for each in _ABOUT_THE_CALL):
            seen.add(code)
            yield code, with_comment


def source_of(code: str) -> str:
    """Return the source that a condition checks, in PyTorch's terms; empty if it checks several values or none.

    ``___check_obj_id(L['x'].y, 7)`` is about ``L['x'].y``, ``set(L['d'].keys()) == {'a'}`` about ``L['d']``.
    """
    try:
        tree: ast.expr = parse(code, mode="eval").body
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    while not isinstance(tree, (ast.Attribute, ast.Subscript)) or _is_method(tree):
        if isinstance(tree, ast.UnaryOp):
            tree = tree.operand
        elif isinstance(tree, ast.Compare) and len(tree.ops) == 1:
            tree = tree.comparators[0] if isinstance(tree.ops[0], (ast.In, ast.NotIn)) else tree.left
        elif isinstance(tree, ast.Call):
            tree = next(filter(reads_values, [*reversed(tree.args), tree.func]), ast.Constant(None))
        elif isinstance(tree, ast.Attribute):
            tree = tree.value
        else:
            return ""
    return unparse(tree) if reads_values(tree) and not code.startswith(TENSORS) else ""


def _is_method(tree: ast.expr) -> bool:
    return isinstance(tree, ast.Attribute) and tree.attr == "keys"


def reads_values(tree: ast.AST) -> bool:
    """Return whether an expression reads a local or global variable of the compiled frame."""
    return any(isinstance(each, ast.Name) and each.id in ("L", "G") for each in ast.walk(tree))


def holds(
    manager: GuardFunction, frame_locals: Mapping[str, object], wanted: Optional[AbstractSet[str]] = None
) -> bool:
    """Return whether all conditions, or all of those ``wanted``, pass; one that can't be evaluated fails."""
    chosen: List[str] = [code for code, _ in conditions(manager) if wanted is None or code in wanted]
    scope = _scope(manager, frame_locals)
    try:
        return all(eval(code, scope) for code in chosen)
    except synchronous():
        # PyTorch's guards clear the exception and fail, whatever its type.
        return False


def first_failure(manager: GuardFunction, frame_locals: Mapping[str, object]) -> List[str]:
    """Return PyTorch's message about the first condition that fails; empty if all pass."""
    for code, with_comment in conditions(manager):
        words = mismatch(manager, code, frame_locals)
        if words is not None:
            return [words]
        if not holds(manager, frame_locals, {code}):
            return [with_comment]
    return []


def mismatch(manager: Guards, code: str, frame_locals: Mapping[str, object]) -> Optional[str]:
    """Return how tensors differ from what the condition ``code`` requires, in PyTorch's text; None for other
    conditions.
    """
    if not is_function(manager) or not code.startswith(TENSORS):
        return None
    scope = _scope(manager, frame_locals)
    try:
        words = eval(code, {**scope, "___check_tensors": scope["___check_tensors_verbose"]})
    except synchronous():
        return None
    return words if isinstance(words, str) else None


def _scope(manager: GuardFunction, frame_locals: Mapping[str, object]) -> Dict[str, object]:
    return {**manager.closure_vars, **manager.global_scope, "L": frame_locals}
