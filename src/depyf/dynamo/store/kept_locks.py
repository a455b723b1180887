"""The files that this process keeps open and locked while it lives, and their names in the folders of its slots.

The program may close a descriptor that it did not open, or fork, or become another user. So a descriptor is used and
closed only while it still belongs to the file that was locked.
"""

from __future__ import annotations

import errno
import os
from typing import Dict, List, Optional

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.locks import Lock
from depyf.dynamo.store.access import Access
from depyf.dynamo.store.file_locks import Identity, close_all, identity, is_at, is_same, locked, made_locked


class KeptLock:
    """A file that this process keeps open and locked, with its names: one in each of several directories. ``known``
    distinguishes it from a file of the program that reused its descriptor.
    """

    def __init__(self, access: Access) -> None:
        self.access = access
        self.handles: List[int] = []
        self.known: Optional[Identity] = None
        self.paths: List[str] = []

    def is_ours(self) -> bool:
        """Return whether it is still open."""
        return bool(self.handles) and is_same(self.handles[0], self.known)

    def is_at(self, path: str) -> bool:
        return self.is_ours() and is_at(self.handles[0], path)

    def path(self) -> Optional[str]:
        """Return a name of the file; None if no known name is left."""
        while self.paths and not self.is_at(self.paths[-1]):
            self.paths.pop()
        return self.paths[-1] if self.paths else None

    def has_gone(self) -> bool:
        """Return whether all names of the file were removed, or it was closed. If a directory was moved, names are
        left.
        """
        return not self.is_ours() or os.fstat(self.handles[0]).st_nlink == 0

    def close(self) -> None:
        """Close it, if it is still open."""
        if self.is_ours():
            close_all(self.handles)
        self.handles.clear()


_locks: Dict[int, List[KeptLock]] = {}
"""The open locks, by file system."""


_guard = Lock()
"""Without it, threads that enter sessions at the same time would treat each other's names as gone."""


def lock_at(path: str, access: Access) -> Optional[KeptLock]:
    """Make ``path`` a name of one of this process's locks; None if another live process has it."""
    with _guard:
        return _lock_at(path, access)


def _lock_at(path: str, access: Access) -> Optional[KeptLock]:
    known = _locks.setdefault(os.stat(os.path.dirname(path)).st_dev, [])
    _remove_dead(path)
    # 1. Another name for a file that is locked already: no further descriptor. It must be on the same file system and
    #    for the same users; otherwise, or if links fail, a new file is made.
    for lock in list(known):
        name = lock.path()
        if name is not None:
            if lock.access != access:  # those who may write there could not open it
                continue
            lock.paths.append(path)
            try:
                os.link(name, path, follow_symlinks=False)
                return lock
            except FileExistsError:
                return None
            except synchronous(OSError, NotImplementedError) as error:  # no links here, or too many
                if getattr(error, "errno", None) != errno.EXDEV:  # else a mount of the same file system
                    break
        elif lock.has_gone():
            known.remove(lock)
            lock.close()
    # 2. A new file. ``opened`` lists and the ``except`` clause close it if an exception comes at any line.
    lock = KeptLock(access)
    try:
        if made_locked(path, lock.handles) is None:
            return None
        access.give_file(lock.handles[0], path)
        lock.known = identity(lock.handles[0])
        lock.paths.append(path)
        known.append(lock)
        return lock
    except BaseException:
        known[:] = [each for each in known if each is not lock]
        close_all(lock.handles)
        raise


def _remove_dead(path: str) -> None:
    """Remove the slot of a process that has ended."""
    opened: List[int] = []
    try:
        if locked(path, opened) is not None:
            with suppressed(OSError):  # another user's
                os.unlink(path)
    finally:
        close_all(opened)


def close_locks() -> None:
    """Close all locks that still belong to this process."""
    while _locks:
        for lock in _locks.popitem()[1]:
            with suppressed(OSError):
                lock.close()
