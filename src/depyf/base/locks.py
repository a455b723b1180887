"""A lock that is never left locked in a forked child by a thread that it does not have."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Callable

from depyf.base.own_builtins import keep_builtins

keep_builtins(globals())


class Lock:
    """A reentrant lock for ``with``.

    ``with`` calls C functions, which it looks up before it takes the lock: an asynchronous exception (a signal
    handler's) can't be raised between taking the lock and the body, or prevent its release.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    @property
    def __enter__(self) -> Callable[[], bool]:
        return self._lock.__enter__

    @property
    def __exit__(self) -> Callable[..., None]:
        return self._lock.__exit__

    def _after_fork_in_child(self) -> None:
        if self._lock.acquire(blocking=False):  # free, or held by the thread that forked, which continues in the child
            self._lock.release()
        else:
            self._lock = threading.RLock()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for lock in list(_locks):
        lock._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
