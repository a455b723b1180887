"""Check who else may write into a dump directory: Inductor's modules are run from it, and scripts in it are run later.
A directory that belongs to another user, or that everybody may write, is refused. A writable group only gives a
warning: where each user has their own group, new directories are writable for it, and shared projects do so on purpose.
Access control lists are not checked.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from typing import Optional, Set

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.messages import warn

try:
    import grp
    import pwd
except ImportError:  # not on Windows
    grp = pwd = None  # type: ignore[assignment]

VARIABLE = "DEPYF_ALLOW_SHARED"

NOBODY = 65534
"""The owner of files whose owner has no id here: in containers, and on some network file systems."""

_warned: Set[str] = set()


class SharedDirectoryError(PermissionError):
    """Another user may write into the dump directory."""

    def in_words(self) -> str:
        """Return the message: what is wrong, and how to mend it."""
        return (
            f"nothing is dumped into {self.filename}: {self.strerror}, and code is run from there. Your program goes "
            "on without. Name a new directory, which depyf makes for you alone, or take the right away (chmod go-w). "
            f"prepare_debug(..., allow_shared=True), or {VARIABLE}=1 in the environment, dumps nevertheless"
        )


def check_not_shared(directory: str, folder: str, *, allowed: bool) -> None:
    """Raise ``SharedDirectoryError`` when another user may write into ``directory``, or ``folder`` in it.

    With ``allowed``, or DEPYF_ALLOW_SHARED=1 in the environment, nothing is checked. Raises ``OSError`` if the
    directory does not exist.
    """
    if allowed or os.environ.get(VARIABLE, "0") not in ("", "0") or not hasattr(os, "geteuid"):
        return
    found = _who_else(os.stat(directory))
    if found is None and os.path.isdir(folder) and not os.path.islink(folder):  # links are refused anyway
        found = _who_else(os.lstat(folder))
    if found is None:
        _warn_of_group(directory)
    elif _keeps_owners(directory):
        raise SharedDirectoryError(errno.EPERM, found, directory)


def _who_else(status: os.stat_result) -> Optional[str]:
    """Return a description of who else may write there; None if at most a group may."""
    mode, own = status.st_mode, os.geteuid()
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return "every user may write there"
    if own != 0 and status.st_uid not in (own, 0, NOBODY):  # root works in directories of others all the time
        return f"it belongs to another user ({_name_of(status.st_uid)})"
    return None


def _name_of(user: int) -> str:
    with suppressed(KeyError):
        return pwd.getpwuid(user).pw_name
    return str(user)


def _keeps_owners(directory: str) -> bool:
    """Return whether owners and modes are real there: some network file systems and mounted disks make them up."""
    try:
        probe = tempfile.mkdtemp(prefix=".depyf_", dir=directory)  # mode 0700
    except synchronous(OSError):
        return True
    try:
        status = os.lstat(probe)
        return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    finally:
        with suppressed(OSError):
            os.rmdir(probe)


def _warn_of_group(directory: str) -> None:
    status = os.stat(directory)
    if not status.st_mode & stat.S_IWGRP or directory in _warned or _is_own_group(status.st_gid):
        return
    if _keeps_owners(directory):
        _warned.add(directory)
        warn(
            "members of the group %s may write to the dump directory %s. Code is run from there: if you don't trust "
            "all of them, take their right away (chmod g-w). %s=1 in the environment says that you do",
            _group(status.st_gid),
            directory,
            VARIABLE,
        )


def _is_own_group(number: int) -> bool:
    """Return whether this is the user's private group, as Debian, Fedora and others create, or root's."""
    if number == 0:
        return True
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
    except synchronous(KeyError):  # users of containers need not have names
        return number == os.getegid()
    return group.gr_name == user.pw_name or (number == user.pw_gid and set(group.gr_mem) <= {user.pw_name})


def _group(number: int) -> str:
    with suppressed(KeyError):
        return grp.getgrgid(number).gr_name
    return str(number)
