"""Replacing an attribute of someone else's module or class and putting it back."""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Tuple

from depyf.dynamo.loaded_modules import loaded_namespaces

Undo = Callable[[], None]

_covered: List[Tuple[Any, str, Any, Undo]] = []
"""Replacements that were undone while another one was on top: owner, name, what was installed, how to put back."""


_covered_everywhere: List[Tuple[str, Any, Any]] = []
"""Of ``replace_everywhere``: name, what was installed, what was there before."""


def replace_attribute(owner: Any, name: str, replacement: Any) -> Undo:
    """Set ``owner.name`` and return the function that puts the old value back.

    When somebody else has replaced the attribute in between, theirs is left alone: it may call ours, which therefore
    has to keep working (as a mere pass-through) after the undo. Ours goes when theirs is put back.
    """
    own, previous = _own_value(owner, name)
    setattr(owner, name, replacement)
    installed = _own_value(owner, name)[1]

    def put_back() -> None:
        if own:
            setattr(owner, name, previous)
        else:
            delattr(owner, name)
        for each in list(_covered):
            if each[0] is owner and each[1] == name and each[2] is previous:
                _covered.remove(each)
                each[3]()

    def undo() -> None:
        if _own_value(owner, name)[1] is installed:
            put_back()
        else:
            _covered.append((owner, name, installed, put_back))

    return undo


def replace_everywhere(name: str, present: Any, replacement: Any, package: str = "") -> Undo:
    """Bind ``name`` to ``replacement`` in all modules (of a package) where it is ``present``; returns how to undo it.

    The undo finds modules that were loaded meanwhile, too: these took the replacement from where it is defined. What
    somebody else has bound in between is left alone, as ``replace_attribute`` does.
    """
    _rebind(name, present, replacement, package)

    def undo() -> None:
        if not _rebind(name, replacement, present, package):
            _covered_everywhere.append((name, replacement, present))
        for each in [each for each in _covered_everywhere if each[0] == name]:
            if _rebind(*each):
                _covered_everywhere.remove(each)

    return undo


def _rebind(name: str, present: Any, replacement: Any, package: str = "") -> bool:
    found = False
    for module, namespace in loaded_namespaces():
        if namespace.get(name) is present and (not package or f"{module}.".startswith(f"{package}.")):
            namespace[name] = replacement
            found = True
    return found


def call_before(owner: Any, name: str, note: Callable[..., object]) -> Undo:
    """Call ``note`` with the arguments of each call of the function ``owner.name``, before that runs, until undone."""
    original = getattr(owner, name)
    active = True

    @functools.wraps(original)
    def and_note(*args: Any, **kwargs: Any) -> Any:
        if active:
            note(*args, **kwargs)
        return original(*args, **kwargs)

    undo = replace_attribute(owner, name, and_note)

    def end() -> None:
        nonlocal active
        active = False
        undo()

    return end


def _own_value(owner: Any, name: str) -> Tuple[bool, Any]:
    """Whether ``owner`` itself (not a base class) has the attribute, and its value before descriptors act."""
    namespace = vars(owner)
    return (True, namespace[name]) if name in namespace else (False, None)
