"""Open files that other users may have written: only regular files, and without waiting.

A pipe never ends, a device may be endless, and a symbolic link may lead anywhere. Contents are not interpreted here.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Callable, Iterable, List, cast

from depyf.base.asynchronous import synchronous
from depyf.base.own_builtins import keep_builtins

keep_builtins(globals())

_Open = Callable[[int, str], BinaryIO]

descriptor: Callable[[int], int] = int.__pos__
"""Returns what ``os.open`` has returned. Raises ``TypeError`` if that is no number, as where a test has replaced the
function: functions of ``os`` take a ``MagicMock`` for the number 1, and would close the output of the program. A C
function: no signal handler can raise in it, by which an open file would be lost."""


def open_regular(path: str, *, follow: bool = True) -> BinaryIO:
    """Open the regular file at ``path`` to read its bytes; with ``follow=False`` symbolic links are refused. Raises
    ``OSError`` if it is another kind of file, or can't be opened."""
    flags = os.O_RDONLY | no_wait() | getattr(os, "O_BINARY", 0)
    flags = flags if follow else flags | no_follow()
    opened: List[int] = []
    files: List[BinaryIO] = []
    try:
        # One C call each: between two calls a signal handler may raise, and the opened file would be lost.
        opened.extend(map(descriptor, map(os.open, (path,), (flags,))))
        if not stat.S_ISREG(os.fstat(opened[0]).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        files.extend(map(cast(_Open, open), map(opened.pop, (0,)), ("rb",)))
        return files.pop()
    except BaseException:
        for handle in opened:
            os.close(handle)
        raise


def read_text(path: str, *, follow: bool = True) -> str:
    """Return the text of a regular file as UTF-8, with undecodable bytes replaced. Raises ``OSError``."""
    with open_regular(path, follow=follow) as file:
        return file.read().decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def path_inside(directory: str, name: str, folder: str = "") -> str:
    """Return the path of the file ``name`` directly in ``directory``, or in its folder ``folder`` (``folder/name``).

    Raises ``OSError`` if ``name`` leads anywhere else, or a link is in the place of the folder: both may be of unknown
    origin.
    """
    if folder and name.startswith(f"{folder}/"):
        directory, name = os.path.join(directory, folder), name[len(folder) + 1 :]
        if os.path.islink(directory):
            raise OSError(errno.ELOOP, "a symbolic link is in the place of a folder of depyf's", directory)
    if name in ("", os.curdir, os.pardir) or "\0" in name or os.path.basename(name) != name or "\\" in name:
        raise OSError(errno.EINVAL, "not the name of a file in this directory", name.replace("\0", "\\0"))
    try:
        os.fsencode(name)
    except synchronous(UnicodeError):
        raise OSError(errno.EINVAL, "no file can have this name", ascii(name)) from None
    return os.path.join(directory, name)


def no_wait() -> int:
    """Return the flag for ``os.open`` without which opening a pipe waits for its other end; 0 where there is none."""
    return getattr(os, "O_NONBLOCK", 0)


def no_follow() -> int:
    """Return the flag for ``os.open`` that refuses a symbolic link; 0 where the system has none."""
    return getattr(os, "O_NOFOLLOW", 0)


def write_whole(path: str, parts: Iterable[str]) -> None:
    """Write a text, given in parts, to the file at ``path``, or leave the file unchanged. Raises ``OSError``, and what
    ``parts`` raises."""
    lines = (part.encode("utf-8", "backslashreplace") for part in parts)
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe: there is nothing to replace
        with open(path, "wb") as device:
            device.writelines(lines)
        return
    part = Path(f"{path}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.writelines(lines)
        os.replace(part, path)
    finally:
        if part.exists():
            part.unlink()
