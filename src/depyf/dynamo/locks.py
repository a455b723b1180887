"""A lock that a forked child never finds locked by a thread that it does not have."""

from __future__ import annotations

import os
import threading
import weakref


class Lock:
    """A reentrant lock for ``with``."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def _after_fork_in_child(self) -> None:
        if self._lock.acquire(blocking=False):  # free, or held by the thread that forked, which goes on in the child
            self._lock.release()
        else:
            self._lock = threading.RLock()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for lock in list(_locks):
        lock._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
