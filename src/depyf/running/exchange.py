"""Exchange one request and one answer with another process of the same user, as files in a private directory.

The directory is made with mode 0700 in ``/tmp``; its name has the number of the process that is asked. Each side checks
owner, mode and kind of what it reads: a directory or file of another user counts as absent.
Little is imported: a process that listens for requests (``attached``) imports this at its start.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from typing import Dict, Iterator, Mapping, Optional

from depyf.base.asynchronous import synchronous

PLACE = "/tmp"
REQUEST, TAKEN, ANSWER = "request.json", "taken.json", "answer.json"

_MOST_BYTES = 256 << 20


def _prefix(process: int) -> str:
    return f"depyf_attach_{process}_"


def new_folder(process: int, request: Mapping[str, object]) -> str:
    """Make a private directory with a request to a process; return its path. Raises ``OSError``."""
    folder = tempfile.mkdtemp(prefix=_prefix(process), dir=PLACE)  # mode 0700
    write_json(os.path.join(folder, REQUEST), request)
    return folder


def folders_for(process: int) -> Iterator[str]:
    """Yield the private directories of this user with requests to a process."""
    with os.scandir(PLACE) as entries:
        names = [each.name for each in entries if each.name.startswith(_prefix(process))]
    for name in names:
        folder = os.path.join(PLACE, name)
        if is_private(folder):
            yield folder


def is_private(folder: str) -> bool:
    """Return whether this is a directory, and no link, that belongs to this user and that no other user may read."""
    try:
        status = os.lstat(folder)
    except synchronous(OSError):
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def take_request(folder: str) -> Optional[Dict[str, object]]:
    """Claim the request in a private directory; None if it was withdrawn, taken before, or is not this user's."""
    if not is_private(folder):
        return None
    try:
        os.rename(os.path.join(folder, REQUEST), os.path.join(folder, TAKEN))
    except synchronous(OSError):
        return None
    return read_json(os.path.join(folder, TAKEN))


def withdraw_request(folder: str) -> bool:
    """Remove the request; return False if the process has taken it already."""
    try:
        os.unlink(os.path.join(folder, REQUEST))
    except synchronous(OSError):
        return False
    return True


def write_json(path: str, data: Mapping[str, object]) -> None:
    """Write a file that appears whole, with mode 0600. Raises ``OSError``."""
    temporary = f"{path}.new"
    number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(number, "w", encoding="utf-8", errors="backslashreplace") as file:
        json.dump(data, file)
    os.replace(temporary, path)


def read_json(path: str) -> Optional[Dict[str, object]]:
    """Return the object in a file of this user; None if there is no such file, or it is of another kind."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except synchronous(OSError):
        return None
    with open(number, encoding="utf-8", errors="replace") as file:
        status = os.fstat(number)
        plain = stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_BYTES
        if not plain or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            return None
        try:
            found = json.load(file)
        except synchronous(ValueError):
            return None
    return found if isinstance(found, dict) else None


def remove_folder(folder: str) -> None:
    """Remove a private directory with what is in it."""
    if is_private(folder):
        shutil.rmtree(folder, ignore_errors=True)
