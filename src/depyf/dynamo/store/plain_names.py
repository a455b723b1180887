"""A name for a directory that every reader of tracebacks can print: code runs from files by that name.

PyTorch's own printer of tracebacks fails on file names that are no UTF-8, and the program's exception with it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

from depyf.asynchronous import synchronous
from depyf.messages import warn


def with_plain_name(path: str) -> str:
    """Return ``path``; if it can't be written in UTF-8, a link to it that is removed when the process ends."""
    if _is_plain(path):
        return path
    try:
        folder = tempfile.mkdtemp(prefix="depyf-")
        link = os.path.join(folder, "dump")
        os.symlink(path, link)
    except synchronous(OSError, NotImplementedError):
        return path
    atexit.register(_remove, folder, os.getpid())
    if not _is_plain(link):
        return path
    warn("the name of the dump directory is no UTF-8, which PyTorch can't print: code runs from its files as %s", link)
    return link


def _is_plain(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # a forked child leaves it to its parent
        shutil.rmtree(folder, ignore_errors=True)
