"""Replacing an attribute of someone else's module or class and putting it back."""

from __future__ import annotations

from typing import Any, Callable, Tuple

Undo = Callable[[], None]


def replace_attribute(owner: Any, name: str, replacement: Any) -> Undo:
    """Set ``owner.name`` and return the function that puts the old value back.

    When somebody else has replaced the attribute in between, theirs is left alone: it may call ours, which therefore
    has to keep working (as a mere pass-through) after the undo.
    """
    own, previous = _own_value(owner, name)
    setattr(owner, name, replacement)
    installed = _own_value(owner, name)[1]

    def undo() -> None:
        if _own_value(owner, name)[1] is not installed:
            return
        if own:
            setattr(owner, name, previous)
        else:
            delattr(owner, name)

    return undo


def _own_value(owner: Any, name: str) -> Tuple[bool, Any]:
    """Whether ``owner`` itself (not a base class) has the attribute, and its value before descriptors act."""
    namespace = vars(owner)
    return (True, namespace[name]) if name in namespace else (False, None)
