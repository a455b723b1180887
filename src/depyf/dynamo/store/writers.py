"""Which processes write into one directory at the same time, and which files each of them runs from.

Every process has a place: a file in a hidden folder that it keeps locked while it lives, and beside it a list of what
it has written. The kernel gives the lock back when the process ends, however it ends, so nothing stays locked. Where
files can't be locked (some network file systems, Windows), a place that was not given back counts as living: that costs
names, and never a file.

A process runs from what it has written as long as it lives, but does not keep a descriptor for each directory: its
places are hard links to one file, as far as they are on one file system that has links.
"""

from __future__ import annotations

import atexit
import errno
import os
import re
import stat
import time
from typing import Dict, Iterator, List, Optional, Set, Tuple

from depyf.asynchronous import suppressed, synchronous
from depyf.dynamo.store.file_locks import close_all, exclusive, is_at, locked
from depyf.regular_files import no_follow, open_regular

FOLDER = ".depyf_writers"

_NUMBER = re.compile("0|[1-9][0-9]{0,8}")

_places: List[Place] = []


class Place:
    """The place of this process among those that write into ``directory``."""

    def __init__(self, directory: str) -> None:
        """Take the lowest free place; raises ``OSError`` when the directory can't be written."""
        self.process = os.getpid()
        self._directory = directory
        self._folder = os.path.join(directory, FOLDER)
        self._claims: Dict[int, _Claims] = {}
        with exclusive(directory):
            with suppressed(FileExistsError):
                os.mkdir(self._folder, stat.S_IMODE(os.stat(directory).st_mode))  # for those who may write
            if os.path.islink(self._folder):  # it leads to where somebody else wants us to write
                raise OSError(errno.ELOOP, "a symbolic link is in the place of a folder of depyf's", self._folder)
            self.number, self._lock = self._take()
        _places.append(self)

    @property
    def temporary(self) -> str:
        """Where this process writes a file before it gets its name."""
        return self._path(self.number) + ".writing"

    def open_temporary(self) -> int:
        """Return a handle of ``temporary``, new and empty: a killed process left what lies there, or it is a link."""
        with suppressed(FileNotFoundError):
            os.unlink(self.temporary)
        return os.open(self.temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | no_follow(), 0o666)

    def holds(self) -> bool:
        """Whether this is the running process's, and still there: a forked child has its parent's in its memory."""
        return self.process == os.getpid() and self._lock.is_at(self._path(self.number))

    def claim(self, name: str) -> None:
        """Note that this process runs from the file ``name``."""
        handle = os.open(self._list(self.number), os.O_WRONLY | os.O_APPEND | no_follow())
        try:
            os.write(handle, os.fsencode(name) + b"\n")
        finally:
            os.close(handle)

    def others(self) -> List[int]:
        """The places of other processes that live; what dead ones left is cleared away."""
        living = []
        opened: List[int] = []
        try:
            for number in self._numbers():
                if locked(self._path(number), create=False, opened=opened) is None:
                    living.append(number)
                else:
                    self._clear(number)
                    close_all(opened)
            return living
        except BaseException:
            close_all(opened)
            raise

    def claimed_by_others(self) -> Set[str]:
        """The names of the files that other living processes run from."""
        names: Set[str] = set()
        living = self.others()
        self._claims = {number: self._claims.get(number, _Claims()) for number in living}
        for number in living:
            with suppressed(OSError):
                self._claims[number].read(self._list(number))
            names |= self._claims[number].names
        return names

    def give_back(self) -> None:
        """Leave the directory; nobody keeps the files of this process any more."""
        with exclusive(self._directory):
            if self.holds():
                self._clear(self.number)
                with suppressed(OSError):  # others are there
                    os.rmdir(self._folder)

    def _take(self) -> Tuple[int, _Lock]:
        """Take the lowest free place; its list of files begins with what tells it from that of any other process."""
        number = 0
        while True:
            lock = _lock_at(self._path(number))
            if lock is not None:
                with suppressed(FileNotFoundError):
                    os.unlink(self._list(number))
                handle = os.open(self._list(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL | no_follow(), 0o666)
                try:
                    os.write(handle, f"{self.process} {time.time_ns()}\n".encode())
                finally:
                    os.close(handle)
                return number, lock
            number += 1

    def _numbers(self) -> Iterator[int]:
        """The places of others: files whose name is a number, as we write one."""
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if _NUMBER.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    if int(entry.name) != self.number:
                        yield int(entry.name)

    def _clear(self, number: int) -> None:
        for path in (self._path(number) + ".writing", self._list(number), self._path(number)):  # which ends the place
            with suppressed(OSError):
                os.unlink(path)

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, str(number))

    def _list(self, number: int) -> str:
        """What lists the files that the process at that place runs from."""
        return self._path(number) + ".files"


class _Claims:
    """The files that another process runs from, read as they are added."""

    def __init__(self) -> None:
        self.names: Set[str] = set()
        self._head = b""
        self._end = 0

    def read(self, path: str) -> None:
        """Read what has been added; raises ``OSError``."""
        with open_regular(path, follow=False) as file:
            head = file.readline()
            if head != self._head:  # another process has the place
                self.names, self._head, self._end = set(), head, len(head)
            file.seek(self._end)
            added = file.read()
            whole = added[: added.rfind(b"\n") + 1]
            self.names.update(os.fsdecode(line) for line in whole.split(b"\n"))
            self._end += len(whole)


class _Lock:
    """A file that this process keeps open and locked, with its names: one in each of several directories."""

    def __init__(self) -> None:
        self.handles: List[int] = []
        self.paths: List[str] = []

    def is_at(self, path: str) -> bool:
        return bool(self.handles) and is_at(self.handles[0], path)

    def path(self) -> Optional[str]:
        """Return one of its names; None where it has none any more, or none that is known."""
        while self.paths and not self.is_at(self.paths[-1]):
            self.paths.pop()
        return self.paths[-1] if self.paths else None

    def has_gone(self) -> bool:
        """Return whether all its names were removed: a directory may also have been moved."""
        return not self.handles or os.fstat(self.handles[0]).st_nlink == 0


_locks: Dict[int, List[_Lock]] = {}
"""Those that are open, by file system."""


def _lock_at(path: str) -> Optional[_Lock]:
    """Make ``path`` a name of a lock of this process's; None where another process that lives has it."""
    known = _locks.setdefault(os.stat(os.path.dirname(path)).st_dev, [])
    for lock in list(known):
        name = lock.path()
        if name is not None:
            _remove_dead(path)
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
            close_all(lock.handles)
    lock = _Lock()
    known.append(lock)
    lock.paths.append(path)
    if locked(path, create=True, opened=lock.handles) is not None:
        return lock
    known.remove(lock)
    return None


def _remove_dead(path: str) -> None:
    """Remove the place of a process that has ended."""
    opened: List[int] = []
    try:
        if locked(path, create=False, opened=opened) is not None:
            os.unlink(path)
    finally:
        close_all(opened)


def _close_locks() -> None:
    while _locks:
        for lock in _locks.popitem()[1]:
            with suppressed(OSError):
                close_all(lock.handles)


def _give_all_back() -> None:
    while _places:
        with suppressed(OSError):  # somebody has put something else in the place of the directory
            _places.pop().give_back()
    _close_locks()


def _after_fork_in_child() -> None:
    """Do not keep the parent's places locked when the parent is gone."""
    _places.clear()
    _close_locks()


atexit.register(_give_all_back)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
