"""Keep what was read of the guards of a cache entry, as long as these guards are alive and as they were.

A module of its own: what is kept must never be shown for other guards, and must keep nothing alive. Guards are found by
their id and compared by identity, as the guards of a new entry may get the id of dead ones; they are referenced weakly.
"""

from __future__ import annotations

import functools
import weakref
from types import CodeType
from typing import Dict, Generic, Optional, Tuple, TypeVar

from depyf.dynamo.hooks.torch_types import Guards

T = TypeVar("T")


@functools.lru_cache(maxsize=4096)  # a call that misses ten entries reads the same few values for each of them
def code_of(source: str) -> CodeType:
    """Return an expression of a guard, compiled. Raises what ``compile`` raises."""
    return compile(source, "<guard>", "eval")


class OfGuards(Generic[T]):
    """One value for each guard manager that is alive. No value may refer to its guards, or to objects of the program.

    Threads need no lock: each method uses the table once, and a value that is lost is read again.
    """

    def __init__(self) -> None:
        self._known: Dict[int, Tuple[weakref.ref[Guards], object, T]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, manager: Guards, form: object) -> Optional[T]:
        """Return the value that was kept for these guards while they had this form, None if there is no such value."""
        reference, known_form, value = self._known.get(id(manager), (None, None, None))
        return value if reference is not None and reference() is manager and known_form == form else None

    def keep(self, manager: Guards, form: object, value: T) -> None:
        """Keep a value for these guards, which had the ``form`` before the value was read; None: no value is kept."""
        if form is None:
            return
        key, known = id(manager), self._known
        # The function must not refer to this object's users: it runs when the guards die, on any thread.
        known[key] = weakref.ref(manager, lambda _: known.pop(key, None)), form, value
