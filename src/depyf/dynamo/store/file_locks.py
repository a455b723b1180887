"""Locks on files and directories; no-ops where the system or the file system has none.

The library ``filelock`` (tried: 4.3.1) does not do what is needed here. It locks no directory (``IsADirectoryError``),
so a lock would leave a file in the dump directory. It opens lock files for writing, so a process can't test the lock of
another user's file, which ``flock`` allows for a file that may be read. It keeps a descriptor for each lock, where
``kept_locks`` has one for many directories. And after the program has closed such a descriptor (``os.closerange``) and
its number belongs to a file of the program, releasing the lock closes that file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import time
from typing import Dict, Hashable, Iterator, List, Optional, Sequence, Set, Tuple

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.regular_files import descriptor, no_follow, no_wait
from depyf.base.restoring import restoring

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]


Identity = Tuple[int, int, int]


def identity(handle: int) -> Identity:
    """Return what distinguishes the file of a descriptor from every other file. Raises ``OSError``.

    Inode numbers of removed files are reused, so the time of the last change is included.
    """
    status = os.fstat(handle)
    return status.st_dev, status.st_ino, status.st_mtime_ns


def is_same(handle: int, known: Optional[Identity]) -> bool:
    """Return whether the descriptor still belongs to the file ``known``. The program may have closed the descriptor
    (``os.closerange`` in a daemon), and reused its number.
    """
    with suppressed(OSError):
        return known is not None and identity(handle) == known
    return False


def close_all(handles: List[int]) -> None:
    """Close descriptors that were opened in the same call. (An older number may belong to the program by now.)"""
    while handles:
        os.close(handles.pop())


_NOT_OURS = {errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENXIO}


def made_locked(path: str, opened: List[int]) -> Optional[int]:
    """Create the file and return its handle, locked where locks work; None if it exists, or another process has locked
    it at once. ``opened`` has the handle if the caller is interrupted.
    """
    try:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | no_follow()
        opened.append(descriptor(os.open(path, flags, 0o666)))
    except synchronous(FileExistsError):
        return None
    return _locked(path, opened, new=True)


def locked(path: str, opened: List[int]) -> Optional[int]:
    """Return a handle of the file, locked; None if another process may have locked it. Links are not followed.
    ``opened`` is as for ``made_locked``.
    """
    flags = os.O_APPEND | no_wait() | no_follow()
    try:
        try:
            opened.append(descriptor(os.open(path, flags | os.O_RDWR)))
        except synchronous(PermissionError):  # another user's, which anyone who may read it can lock
            opened.append(descriptor(os.open(path, flags | os.O_RDONLY)))
    except synchronous(OSError) as error:
        if error.errno in _NOT_OURS:
            return None
        raise
    return _locked(path, opened, new=False)


def _locked(path: str, opened: List[int], *, new: bool) -> Optional[int]:
    handle = opened[-1]
    # Between opening and locking another process may have removed the file, and made another one at this path: a lock
    # on the old file would exclude nobody.
    try:
        _flock(handle, wait=False)
        same = is_at(handle, path) and stat.S_ISREG(os.fstat(handle).st_mode)
    except BlockingIOError:
        same = False
    except synchronous(OSError):  # locks do not work here: a file that we have just made is ours
        same = new
    if same:
        return handle
    os.close(opened.pop())
    return None


def is_at(handle: int, path: str) -> bool:
    """Return whether the open file is the one at ``path``."""
    with suppressed(OSError):  # gone, or in a directory that can't be looked into
        return os.path.samestat(os.fstat(handle), os.stat(path))
    return False


@contextlib.contextmanager
def exclusive(directory: str) -> Iterator[bool]:
    """Enter with an exclusive lock on the directory, or without the lock if it can't be taken soon. Gives whether the
    directory is locked. A thread that is already inside (in a signal handler) continues at once.
    """
    handles: List[int] = []
    held = threading.get_ident(), os.getpid(), _which(directory)
    if held in _held:
        yield _held[held]
        return
    alone = False

    def leave() -> None:
        _held.pop(held, None)
        _directories.pop(id(handles), None)
        _release(handles)

    with restoring(leave) as again, again:
        _held[held] = False
        with suppressed(OSError):
            handles.append(descriptor(os.open(directory, os.O_RDONLY | no_wait())))
            _directories[id(handles)] = handles, identity(handles[0])[:2]
            _flock_soon(handles[0], held[2])
            alone = _held[held] = True
        # Not read from ``_held``: a signal handler may have forked meanwhile, and a child holds nothing.
        yield alone


def _which(directory: str) -> Hashable:
    """Return the same for all names of a directory."""
    with suppressed(OSError):
        status = os.stat(directory)
        return status.st_dev, status.st_ino
    return directory


_held: Dict[Tuple[int, int, Hashable], bool] = {}
"""The threads inside ``exclusive``: thread, process and directory; and whether they have its lock."""

_directories: Dict[int, Tuple[List[int], Tuple[int, int]]] = {}
"""The descriptors of directories that threads have open in ``exclusive``, and which directories these are."""

_PATIENCE, _PATIENCE_AGAIN, _PAUSE = 10.0, 0.05, 0.005
"""Seconds to wait for the lock of a directory, which any program may hold for ever (``flock DIR command``). After a
failed wait the time is shorter, as otherwise each file of the dump would wait as long.
"""

_in_vain: Set[Hashable] = set()
"""The directories whose lock could not be taken the last time."""


def _flock_soon(handle: int, directory: Hashable) -> None:
    """Lock the file. Raises ``OSError`` if another process holds the lock for long."""
    end = time.monotonic() + (_PATIENCE_AGAIN if directory in _in_vain else _PATIENCE)
    while True:
        try:
            _flock(handle, wait=False)
            return _in_vain.discard(directory)
        except BlockingIOError:
            if time.monotonic() > end:
                _in_vain.add(directory)
                raise
        time.sleep(_PAUSE)


@contextlib.contextmanager
def locked_file(path: str) -> Iterator[None]:
    """Hold the lock of the file at ``path``, which is created if needed. Raises ``OSError`` if that fails."""
    handles: List[int] = []
    known: List[Tuple[int, int]] = []
    with restoring(lambda: _release(handles, known)) as again, again:
        handles.append(descriptor(os.open(path, os.O_RDWR | os.O_CREAT | no_wait() | no_follow(), 0o666)))
        known.append(identity(handles[0])[:2])
        with suppressed(OSError):  # a system without locks
            _flock(handles[0], wait=True)
        yield


def _release(handles: List[int], known: Sequence[Tuple[int, int]] = ()) -> None:
    """Unlock the files and close them. Closing alone would not unlock: a child forked meanwhile has the same open file.

    ``known`` are the files, if code of the program ran meanwhile and may have closed them.
    """
    while handles:
        if not known or _is_one_of(handles[-1], known):
            with suppressed(OSError):
                _flock(handles[-1], wait=False, release=True)
            os.close(handles.pop())
        else:
            handles.pop()


def _is_one_of(handle: int, known: Sequence[Tuple[int, int]]) -> bool:
    with suppressed(OSError):
        return identity(handle)[:2] in known
    return False


def _after_fork_in_child() -> None:
    """Close the directories that threads of the parent have locked: a killed parent would leave them locked as long as
    the child lives.
    """
    for handles, known in list(_directories.values()):
        if handles and _is_one_of(handles[0], [known]):
            os.close(handles[0])
        handles.clear()
    _directories.clear()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _flock(handle: int, *, wait: bool, release: bool = False) -> None:
    if fcntl is None:
        raise OSError("no file locks on this system")
    fcntl.flock(handle, fcntl.LOCK_UN if release else fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
