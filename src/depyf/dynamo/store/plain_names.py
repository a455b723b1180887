"""A printable name for a directory, used as the file name of code that runs from it. PyTorch's own traceback printer
fails on file names that are not UTF-8, and loses the program's exception. The name is a link; without a link no code
runs from the directory. A forked child runs from its parent's files, and may live longer: each process that uses the
link records its pid beside it, and the last one to end removes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import List, Optional

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.messages import warn
from depyf.base.regular_files import descriptor
from depyf.dynamo.store.process_end import at_process_end

_folders: List[str] = []
"""Where this process, or one that it was forked from, has created links."""


def with_plain_name(path: str) -> str:
    """Return ``path``; if it can't be written in UTF-8, a link to it that is removed when the process ends.

    Where no link can be made, the result is ``path``, which is not plain: no code may run from there.
    """
    if is_plain(path):
        return path
    link = _new_link(path)
    if link is None:
        warn(
            "PyTorch can't print the name of the dump directory, which is not UTF-8, and no link to it can be made in "
            "a directory for temporary files. The files are written, and no code runs from them, as with "
            "stepping=False. Name a directory in UTF-8, or set TMPDIR to a directory that can be written"
        )
        return path
    warn(
        "PyTorch can't print the name of the dump directory, which is not UTF-8: code runs through the link %s",
        link,
    )
    return link


def _new_link(path: str) -> Optional[str]:
    try:
        folder = tempfile.mkdtemp(prefix="depyf-")
        _folders.append(folder)
        _note_process(folder)
        link = os.path.join(folder, "dump")
        os.symlink(path, link)
    except synchronous(OSError, NotImplementedError):
        return None
    return link if is_plain(link) else None


def is_plain(path: str) -> bool:
    """Return whether the path can be written in UTF-8, which PyTorch needs of file names in tracebacks."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _note_process(folder: str) -> None:
    with suppressed(OSError):
        made = os.open(os.path.join(folder, str(os.getpid())), os.O_WRONLY | os.O_CREAT, 0o600)
        os.close(descriptor(made))


def _leave() -> None:
    """Remove the links that no other process runs from."""
    while _folders:
        folder = _folders.pop()
        with suppressed(OSError):
            os.unlink(os.path.join(folder, str(os.getpid())))
        with suppressed(OSError):
            if not any(_lives(name) for name in os.listdir(folder)):
                shutil.rmtree(folder, ignore_errors=True)


def _lives(name: str) -> bool:
    """Return whether a process with this pid is alive; false for anything that is not a number."""
    if not name.isdigit() or not hasattr(os, "fork"):
        return False
    try:
        os.kill(int(name), 0)
    except synchronous(ProcessLookupError, OverflowError):
        return False
    except synchronous(OSError):  # another user's by now
        return True
    with suppressed(OSError), open(f"/proc/{name}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[:1] != [b"Z"]  # it has ended, and is a zombie
    return True


def _after_fork_in_child() -> None:
    for folder in _folders:
        _note_process(folder)


at_process_end(_leave, priority=-2)  # after the slots, and what is still written
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
