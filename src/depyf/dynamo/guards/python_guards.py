"""Evaluate the guards of PyTorch before 2.4: one Python function, with the text of each condition beside it.

``code_parts`` are the conditions (``___check_type_id(L['x'], 94)``), ``verbose_code_parts`` have the user's line as a
comment, ``closure_vars`` the helpers that they call, and ``global_scope`` has ``G``. PyTorch 2.4 made a tree of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, AbstractSet, Dict, Iterator, List, Mapping, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.dynamo.hooks.torch_types import GuardFunction, Guards

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
    seen = set()  # a condition may be listed several times
    for code, with_comment in zip(manager.code_parts, verbose):
        if code not in seen and not any(each in code for each in _ABOUT_THE_CALL):
            seen.add(code)
            yield code, with_comment


def holds(
    manager: GuardFunction, frame_locals: Mapping[str, object], wanted: Optional[AbstractSet[str]] = None
) -> bool:
    """Return whether all conditions, or all ``wanted`` conditions, pass; a condition that raises fails."""
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
        # The verbose twin takes the same arguments and returns True, or a message about the first tensor that differs.
        words = eval(code, {**scope, "___check_tensors": scope["___check_tensors_verbose"]})
    except synchronous():
        return None
    return words if isinstance(words, str) else None


def _scope(manager: GuardFunction, frame_locals: Mapping[str, object]) -> Dict[str, object]:
    return {**manager.closure_vars, **manager.global_scope, "L": frame_locals}
