"""Locks on files: of another process's, of a directory, of a file; none where a system or a file system has none."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import time
from typing import Iterator, List, Optional, Set, Tuple

from depyf.asynchronous import suppressed, synchronous
from depyf.regular_files import no_follow

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]


def close_all(handles: List[int]) -> None:
    while handles:
        os.close(handles.pop())


def locked(path: str, create: bool, opened: List[int]) -> Optional[int]:
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
        same = is_at(handle, path) and stat.S_ISREG(os.fstat(handle).st_mode)  # not cleared away meanwhile
    except BlockingIOError:
        same = False
    except synchronous(OSError):  # locks do not work here: a file that we have just made is ours
        same = new
    if same:
        return handle
    os.close(opened.pop())
    return None


def is_at(handle: int, path: str) -> bool:
    """Whether the open file is the one at ``path``."""
    with suppressed(OSError):  # gone, or in a directory that can't be looked into
        return os.path.samestat(os.fstat(handle), os.stat(path))
    return False


@contextlib.contextmanager
def exclusive(directory: str) -> Iterator[None]:
    """No other process is inside of this for the same directory; where that can't be had soon, go on without.

    A thread that is inside already, as a signal handler may find it, goes on at once.
    """
    handles: List[int] = []
    held = threading.get_ident(), os.getpid(), directory
    again = held in _held
    try:
        try:
            if not again:
                _held.add(held)
                with suppressed(OSError):
                    handles.append(os.open(directory, os.O_RDONLY))
                    _flock_soon(handles[0])
            yield
        finally:
            if not again:
                _held.discard(held)
            _release(handles)
    except BaseException:
        if not again:
            _held.discard(held)
        _release(handles)  # the lines above may have been interrupted
        raise


_held: Set[Tuple[int, int, str]] = set()
"""Who is inside of ``exclusive``: thread, process and directory."""

_PATIENCE, _PAUSE = 10.0, 0.005
"""Seconds to wait for the lock of a directory, which anybody may hold for ever (``flock DIR command``)."""


def _flock_soon(handle: int) -> None:
    """Lock the file; raise ``OSError`` where somebody else holds it for long."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return _flock(handle, wait=False)
        except BlockingIOError:
            if time.monotonic() > end:
                raise
        time.sleep(_PAUSE)


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
