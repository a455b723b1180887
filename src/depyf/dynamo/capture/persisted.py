"""What PyTorch persists beyond the process (``torch._dynamo.config.caching_precompile``) is Dynamo's own code.

Code that runs from the dump names files of it. Saved like this, tracebacks of a later process without depyf would name
files that may not exist any more, and hide the user's frames.
A module of its own: ``transformed`` notes code here, and the hub installs the hook.
"""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Dict, Optional, Tuple

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.patching import Undo, replace_attribute

keep_builtins(globals())

_replaced: Dict[int, Tuple[weakref.ref[CodeType], CodeType]] = {}
"""By the id of code that runs from a file: a weak reference to it, and the code that Dynamo made."""


def note_replaced(running: CodeType, transformed: CodeType) -> None:
    """Note that ``running`` runs in the place of the code that Dynamo made."""
    key = id(running)
    _replaced[key] = weakref.ref(running, lambda _: _replaced.pop(key, None)), transformed


def made_by_dynamo(code: CodeType) -> CodeType:
    """Return the code in whose place this code runs, or the code itself."""
    reference, transformed = _replaced.get(id(code), (None, code))
    return transformed if reference is not None and reference() is code else code


def watch_persisting() -> Optional[Undo]:
    """Start to let PyTorch serialise the code that Dynamo made; return the function that stops it, None for a PyTorch
    that saves no code (before 2.8)."""
    owner = private_names.SERIALIZED_CODE.owner()
    name = private_names.SERIALIZED_CODE.name
    original = None if owner is None else vars(owner).get(name)
    if original is None:
        return None

    def from_code_object(cls: type, code: CodeType) -> object:
        return original.__get__(None, cls)(made_by_dynamo(code))

    return replace_attribute(owner, name, classmethod(from_code_object))
