"""Which processes write into one directory at the same time, and which files each of them runs from.

Every process has a place: a file in a hidden folder that it keeps locked while it lives and that lists what it has
written. The kernel gives the lock back when the process ends, however it ends, so nothing stays locked. Where files
can't be locked (some network file systems, Windows), a place that was not given back counts as living: that costs
names, and never a file.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import re
import stat
from typing import Iterator, List, Optional, Set

from depyf.asynchronous import suppressed, synchronous
from depyf.regular_files import no_follow, open_regular

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

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
        opened: List[int] = []
        try:
            with exclusive(directory):
                with suppressed(FileExistsError):
                    os.mkdir(self._folder, stat.S_IMODE(os.stat(directory).st_mode))  # for those who may write
                if os.path.islink(self._folder):  # it leads to where somebody else wants us to write
                    raise OSError(errno.ELOOP, "a symbolic link is in the place of a folder of depyf's", self._folder)
                self.number, self._handle = self._take(opened)
            _places.append(self)
        except BaseException:
            _close(opened)
            raise

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
        return self._handle >= 0 and self.process == os.getpid() and _is_at(self._handle, self._path(self.number))

    def claim(self, name: str) -> None:
        """Note that this process runs from the file ``name``."""
        os.write(self._handle, os.fsencode(name) + b"\n")

    def others(self) -> List[int]:
        """The places of other processes that live; what dead ones left is cleared away."""
        living = []
        opened: List[int] = []
        try:
            for number in self._numbers():
                if _locked(self._path(number), create=False, opened=opened) is None:
                    living.append(number)
                else:
                    self._clear(number)
                    _close(opened)
            return living
        except BaseException:
            _close(opened)
            raise

    def claimed_by_others(self) -> Set[str]:
        """The names of the files that other living processes run from."""
        names: Set[str] = set()
        for number in self.others():
            with suppressed(OSError), open_regular(self._path(number), follow=False) as file:
                names.update(os.fsdecode(line) for line in file.read().split(b"\n"))
        return names

    def give_back(self) -> None:
        """Leave the directory; nobody keeps the files of this process any more."""
        with exclusive(self._directory):
            if self.holds():
                self._clear(self.number)
                with suppressed(OSError):  # others are there
                    os.rmdir(self._folder)
        self._close()

    def close_inherited(self) -> None:
        """In a forked child: do not keep the parent's place locked when the parent is gone."""
        with suppressed(OSError):
            self._close()

    def _close(self) -> None:
        handle, self._handle = self._handle, -1  # the number may be that of another file from now on
        if handle >= 0:
            os.close(handle)

    def _take(self, opened: List[int]) -> tuple[int, int]:
        number = 0
        while True:
            handle = _locked(self._path(number), create=True, opened=opened)
            if handle is not None:
                os.ftruncate(handle, 0)
                return number, handle
            number += 1

    def _numbers(self) -> Iterator[int]:
        """The places of others: files whose name is a number, as we write one."""
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if _NUMBER.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    if int(entry.name) != self.number:
                        yield int(entry.name)

    def _clear(self, number: int) -> None:
        for path in (self._path(number) + ".writing", self._path(number)):
            with suppressed(OSError):
                os.unlink(path)

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, str(number))


def _close(handles: List[int]) -> None:
    while handles:
        os.close(handles.pop())


def _locked(path: str, create: bool, opened: List[int]) -> Optional[int]:
    """A handle of the file, locked; None when somebody else has it, or it can't be known that nobody has.

    With ``create`` the file is made if need be. A link is nobody's place, and is not followed. ``opened`` holds the
    handle for a caller who is interrupted.
    """
    flags = os.O_RDWR | os.O_APPEND | no_follow()
    new = False
    if create:
        with suppressed(FileExistsError):
            opened.append(os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666))
            new = True
    try:
        if not new:
            opened.append(os.open(path, flags))
        handle = opened[-1]
    except synchronous(OSError) as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.EISDIR):
            return None
        raise
    try:
        _flock(handle, wait=False)
        same = _is_at(handle, path) and stat.S_ISREG(os.fstat(handle).st_mode)  # not cleared away meanwhile
    except BlockingIOError:
        same = False
    except synchronous(OSError):  # locks do not work here: a file that we have just made is ours
        same = new
    if same:
        return handle
    os.close(opened.pop())
    return None


def _is_at(handle: int, path: str) -> bool:
    """Whether the open file is the one at ``path``."""
    with suppressed(FileNotFoundError, NotADirectoryError):
        return os.path.samestat(os.fstat(handle), os.stat(path))
    return False


@contextlib.contextmanager
def exclusive(directory: str) -> Iterator[None]:
    """No other process is inside of this for the same directory; where that can't be had, go on without."""
    handles: List[int] = []
    try:
        try:
            with suppressed(OSError):
                handles.append(os.open(directory, os.O_RDONLY))
                _flock(handles[0], wait=True)
            yield
        finally:
            _release(handles)
    except BaseException:
        _release(handles)  # the line above may have been interrupted
        raise


@contextlib.contextmanager
def locked_file(path: str) -> Iterator[None]:
    """Hold the lock of the file at ``path``, which is made if need be; raises ``OSError`` when it can't be."""
    handles: List[int] = []
    try:
        try:
            handles.append(os.open(path, os.O_RDWR | os.O_CREAT | no_follow(), 0o666))
            with suppressed(OSError):  # a system without locks
                _flock(handles[0], wait=True)
            yield
        finally:
            _release(handles)
    except BaseException:
        _release(handles)  # the line above may have been interrupted
        raise


def _release(handles: List[int]) -> None:
    """Release the locks of the files and close them: not only closed, as a child forked meanwhile has them as well."""
    while handles:
        with suppressed(OSError):
            _flock(handles[-1], wait=False, release=True)
        os.close(handles.pop())


def _flock(handle: int, wait: bool, release: bool = False) -> None:
    if fcntl is None:
        raise OSError("no file locks on this system")
    fcntl.flock(handle, fcntl.LOCK_UN if release else fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def _give_all_back() -> None:
    while _places:
        with suppressed(OSError):  # somebody has put something else in the place of the directory
            _places.pop().give_back()


def _after_fork_in_child() -> None:
    while _places:
        _places.pop().close_inherited()


atexit.register(_give_all_back)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
