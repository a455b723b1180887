"""The guards of a compilation before ``guard_filter_fn`` has dropped some of them.

Dynamo builds all guards, asks the filter, and builds those that are left. Both are built by one function of the object
that makes the guards of a compilation, so what that function builds first has all guards.
"""

from __future__ import annotations

import functools
import weakref
from typing import Optional, cast

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.patching import Undo, replace_attribute
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.torch_types import Guards

keep_builtins(globals())


_OF_ENTRY = ("global_scope", "closure_vars")


class UnfilteredGuards:
    """Has, for the entries that are compiled while it is installed, all guards that Dynamo has built."""

    def __init__(self) -> None:
        self._first: weakref.WeakKeyDictionary[object, Guards] = weakref.WeakKeyDictionary()
        """What the object that builds the guards of a compilation has built first."""
        self._all: weakref.WeakKeyDictionary[object, Guards] = weakref.WeakKeyDictionary()
        """All guards, by those that are left."""

    def install(self) -> Optional[Undo]:
        """Install until the returned function is called; None if this PyTorch builds guards otherwise."""
        name = private_names.BUILD_GUARDS
        original = name.find_or_report()
        owner = name.owner()
        if original is None or owner is None:
            return None

        @functools.wraps(original)
        def build(builder: object, *args: object, **kwargs: object) -> object:
            answer = original(builder, *args, **kwargs)
            self._note(builder, answer)
            return answer

        return replace_attribute(owner, name.name, build)

    @safely("noting the guards that a filter drops")
    def _note(self, builder: object, answer: object) -> None:
        guards = cast(Guards, answer[1] if isinstance(answer, tuple) else answer)
        first = self._first.setdefault(builder, guards)
        if first is not guards:
            self._all[guards] = first

    def of(self, guards: object) -> Optional[Guards]:
        """Return all guards of the entry with these ``guards``; None where they are not known."""
        found = self._all.get(guards)
        for name in _OF_ENTRY if found is not None else ():  # Dynamo sets these when the guards are complete
            if not getattr(found, name, None):
                setattr(found, name, getattr(guards, name, None))
        return found
