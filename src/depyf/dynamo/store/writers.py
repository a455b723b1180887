"""Record which processes write into one directory at the same time, and which files each process runs from.

Every process has a slot: a file in a hidden folder that it keeps locked while it lives, and beside it a list of what
it has written. The kernel releases the lock when the process ends, however it ends. Where files can't be locked (some
network file systems, Windows), a slot that was not released is treated as in use: this costs names, but never a file.
The same applies to slots that can't be read. A process does not keep a descriptor for each directory: its slots are
hard links to one file, if they are on one file system that has links, and for the same users. That descriptor is used
and closed only while it is that file's: the program may close descriptors that it did not open.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from dataclasses import field
from typing import Dict, Iterator, List, Optional, Set, Tuple

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.base.regular_files import descriptor, no_follow, no_wait, open_regular
from depyf.base.write_signals import without_write_signals
from depyf.dynamo.store.access import Access, access_like, current_user
from depyf.dynamo.store.file_locks import close_all, exclusive, locked
from depyf.dynamo.store.kept_locks import KeptLock, close_locks, lock_at
from depyf.dynamo.store.process_end import at_process_end
from depyf.dynamo.store.shared_directory import NOBODY

FOLDER = ".depyf_writers"

_NUMBER = regex("0|[1-9][0-9]{0,8}")

_ENDINGS = (".writing", ".files.new", ".files", "")
"""The endings of a slot's files, after its number; the last is the locked file itself."""

_MOST_SLOTS, _MOST_LOST, _PATIENCE = 10_000, 8, 10.0
"""The limits of taking a slot: slots that are tried, tries that another process's lock or removal may spoil,
seconds.
"""

_slots: List[Slot] = []


@dataclass
class Claimed:
    """The names of the files that other processes run from; ``complete`` is False if a list can't be read."""

    names: Set[str] = field(default_factory=set)
    complete: bool = True


class Slot:
    """The slot of this process among those that write into ``directory``."""

    def __init__(self, directory: str) -> None:
        """Take the lowest free slot. Raises ``OSError`` if the directory can't be written.

        If another user's permissions deny access to the folder of the slots, the slot is in a separate folder of this
        user. Others do not see it then (``is_apart``), and its number is unique.
        """
        self.process = os.getpid()
        self.is_apart = False
        self._directory = directory
        self._read: Dict[int, _Claims] = {}
        self._claimed: List[str] = []
        self._torn = False
        self._list_file, self._list_size = (0, 0), 0
        self._access = access_like(directory)
        with exclusive(directory):
            try:
                self._folder = self._enter(FOLDER)
                self.number, self._lock = self._take(0)
            except synchronous(PermissionError):
                self.is_apart = True
                self._access = Access()
                self._folder = self._enter(f"{FOLDER}.{current_user()}")
                self.number, self._lock = self._take(_MOST_SLOTS + current_user() % 900_000 * 100)
        _slots.append(self)

    @property
    def temporary(self) -> str:
        """The path at which this process writes a file before the file gets its name."""
        return self._path(self.number) + ".writing"

    def write_temporary(self, data: bytes) -> None:
        """Make ``temporary``, with this content. Raises ``OSError``."""
        handle = self._open_temporary()
        try:
            write_all(handle, data)
        finally:
            os.close(handle)

    def _open_temporary(self) -> int:
        """Return a handle of ``temporary``, new and empty: an existing file is from a killed process, or a link."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | no_follow() | getattr(os, "O_BINARY", 0)
        try:
            return descriptor(os.open(self.temporary, flags, 0o666))
        except synchronous(FileExistsError):
            os.unlink(self.temporary)
        return descriptor(os.open(self.temporary, flags, 0o666))

    def holds(self) -> bool:
        """Return whether the slot belongs to the running process and still exists. A forked child has its parent's slot
        in memory.
        """
        return self.process == os.getpid() and self._lock.is_at(self._path(self.number))

    def claim(self, *names: str) -> None:
        """Record that this process runs from these files: all, or none if it raises ``OSError``."""
        # A list that somebody has removed or replaced is made again with all claims so far.
        handle = self._open_list()
        if handle is None:
            self._make_list(self.number, (*self._claimed, *names))
        else:
            self._append(handle, b"".join(os.fsencode(name) + b"\n" for name in names))
        self._claimed += names

    def _open_list(self) -> Optional[int]:
        """Open the list to append to it; None if it was removed, truncated or replaced."""
        try:
            flags = os.O_WRONLY | os.O_APPEND | no_wait() | no_follow()
            handle = descriptor(os.open(self._list(self.number), flags))
        except synchronous(FileNotFoundError):
            return None
        status = os.fstat(handle)
        if (status.st_dev, status.st_ino) == self._list_file and status.st_size >= self._list_size:
            return handle
        os.close(handle)
        return None

    def _append(self, handle: int, lines: bytes) -> None:
        """Append to the list and close it; on a full disk all lines or none."""
        # A part of a line that could not be cut off would run into the next line: a newline separates them.
        torn, self._torn = self._torn, True
        try:
            end = os.fstat(handle).st_size
            try:
                write_all(handle, b"\n" + lines if torn else lines)
            except BaseException:
                with suppressed(OSError):
                    os.ftruncate(handle, end)
                    self._torn = torn
                raise
        finally:
            os.close(handle)  # a network file system may only now report that the disk is full
        self._torn, self._list_size = False, end + len(lines)

    def others(self) -> List[int]:
        """Return the slots of other live processes, and remove the slots of dead ones. Raises ``OSError`` if the folder
        can't be read.
        """
        _refuse_link(self._folder)
        living: List[int] = []
        # Most directories have one process: nothing is locked or opened then.
        if self.holds() and self._own.issuperset(os.listdir(self._folder)):
            return living
        opened: List[int] = []
        try:
            # A slot whose lock can be taken has no process any more: the kernel releases locks when a process ends.
            for number in self._numbers():
                if locked(self._path(number), opened) is None:
                    living.append(number)
                else:
                    self._clear(number)
                    close_all(opened)
            return living
        except BaseException:
            close_all(opened)
            raise

    @property
    def _own(self) -> Set[str]:
        """The names of the files of this process's slot."""
        return {f"{self.number}{ending}" for ending in _ENDINGS}

    def has_others(self) -> bool:
        """Return whether other processes write here, or may do so."""
        try:
            return self.is_apart or bool(self.others())
        except synchronous(PermissionError):
            return True

    def claimed_by_others(self) -> Claimed:
        """Return the files that other living processes run from."""
        found = Claimed()
        try:
            living = self.others()
        except synchronous(PermissionError):
            return Claimed(complete=False)
        self._read = {number: self._read.get(number, _Claims()) for number in living}
        for number in living:
            try:
                self._read[number].read(self._list(number))
            except synchronous(OSError):  # or the process has left the directory meanwhile
                found.complete = found.complete and not os.path.lexists(self._path(number))
            found.names |= self._read[number].names
        return found

    def give_back(self) -> None:
        """Leave the directory; the files of this process are no longer kept."""
        if self.process != os.getpid():
            return
        with exclusive(self._directory):
            with suppressed(OSError):
                self.others()
            if self.holds():
                self._clear(self.number)
            with suppressed(OSError):  # others are there
                os.rmdir(self._folder)

    def _enter(self, name: str) -> str:
        """Make the folder of the slots, for those who may write into the directory; return its path."""
        folder = os.path.join(self._directory, name)
        self._make(folder)
        if self.is_apart and os.lstat(folder).st_uid not in (current_user(), 0, NOBODY):
            raise PermissionError(errno.EPERM, "another user has made a folder of this one's", folder)
        self._access.give_folder(folder)
        return folder

    def make_folder(self, name: str) -> None:
        """Make the folder ``name`` in the directory, unless it exists, for everybody who may write into the directory.
        Raises ``OSError``, also for a link of that name."""
        folder = os.path.join(self._directory, name)
        if self._make(folder):
            self._access.give_folder(folder)

    def _make(self, folder: str) -> bool:
        """Return whether the folder is new. Raises ``OSError``, also for a link in its place."""
        is_new = False
        with suppressed(FileExistsError):
            os.mkdir(folder, 0o700 if self.is_apart else stat.S_IMODE(os.stat(self._directory).st_mode))
            is_new = True
        _refuse_link(folder)
        return is_new

    def _take(self, first: int) -> Tuple[int, KeptLock]:
        """Take the lowest free slot; its list of files starts with a unique identity."""
        # Trying ends when a slot that looked free can't be had several times (somebody removes or locks what is made),
        # and after some seconds: the program must not wait for ever.
        end, lost = time.monotonic() + _PATIENCE, 0
        for number in range(first, first + _MOST_SLOTS):
            path = self._path(number)
            was_free = not os.path.lexists(path)
            lock = lock_at(path, self._access)
            if lock is not None:
                if self._begin_list(number):
                    return number, lock
            elif was_free or not os.path.lexists(path):
                lost += 1
            if lost >= _MOST_LOST or time.monotonic() > end:
                break
        raise OSError(errno.EAGAIN, "others hold or remove every slot among the writers", self._folder)

    def _begin_list(self, number: int) -> bool:
        """Start the list of a slot that was taken. False if an earlier slot has left files of another user, which can't
        be removed. Then, and if it raises ``OSError``, the slot is free again.
        """
        try:
            with suppressed(FileNotFoundError):
                os.unlink(self._path(number) + ".writing")
            self._make_list(number, ())
            return True
        except BaseException as error:
            for ending in (".files", ""):
                with suppressed(OSError):
                    os.unlink(self._path(number) + ending)
            if isinstance(error, (PermissionError, IsADirectoryError)):
                return False
            raise

    def _make_list(self, number: int, names: Tuple[str, ...]) -> None:
        path = self._list(number) + ".new"
        with suppressed(FileNotFoundError):
            os.unlink(path)
        handle = descriptor(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | no_follow(), 0o666))
        try:
            try:
                self._access.give_file(handle, path)
                head = f"{self.process} {time.time_ns()}\n".encode()
                write_all(handle, head + b"".join(os.fsencode(name) + b"\n" for name in names))
                status = os.fstat(handle)
            finally:
                os.close(handle)
            os.replace(path, self._list(number))  # no reader finds a part of the list
        except BaseException:
            with suppressed(OSError):
                os.unlink(path)
            raise
        self._torn, self._list_file, self._list_size = False, (status.st_dev, status.st_ino), status.st_size

    def _numbers(self) -> Iterator[int]:
        """Yield the slots of others: files whose name is a number in depyf's format. Also this process's, if it was
        lost."""
        own = self.number if self.holds() else None
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if _NUMBER.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    if int(entry.name) != own:
                        yield int(entry.name)

    def _clear(self, number: int) -> None:
        for ending in _ENDINGS:
            with suppressed(OSError):
                os.unlink(self._path(number) + ending)

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, str(number))

    def _list(self, number: int) -> str:
        """Return the path of the list of files that the process with that number runs from."""
        return self._path(number) + ".files"


def _refuse_link(folder: str) -> None:
    """Raise ``OSError`` for a link: another user could redirect writes or removals with it."""
    if os.path.islink(folder):
        raise OSError(errno.ELOOP, "a symbolic link is in the place of a folder of depyf's", folder)


def write_all(handle: int, data: bytes) -> None:
    """Write all of ``data``: a full disk takes a part, and reports the error only at the next write."""
    with without_write_signals():
        while data:
            written = os.write(handle, data)
            if not written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = data[written:]


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
            if head != self._head:  # another process has the slot now: its list is read from the start
                self.names, self._head, self._end = set(), head, len(head)
            file.seek(self._end)
            added = file.read()
            whole = added[: added.rfind(b"\n") + 1]
            self.names.update(os.fsdecode(line) for line in whole.split(b"\n"))
            self._end += len(whole)


def _give_all_back() -> None:
    while _slots:
        with suppressed(OSError):  # somebody has put something else in the place of the directory
            _slots.pop().give_back()
    close_locks()


def _after_fork_in_child() -> None:
    """Release the parent's slots, so that they are not locked after it ends."""
    _slots.clear()
    close_locks()


at_process_end(_give_all_back, priority=-1)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
