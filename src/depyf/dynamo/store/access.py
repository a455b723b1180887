"""Permissions of depyf's own files in a dump directory: everyone who may write into it may use them, whatever the
umask. Otherwise the user who creates the first file, or root, would lock out the others.
"""

from __future__ import annotations

import os
import stat

from depyf.base.asynchronous import suppressed
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.base.regular_files import descriptor, no_follow

_WRITERS_FILE = regex(r"[0-9]+(\.files|\.files\.new|\.writing)?")


@dataclass(frozen=True)
class Access:
    """The owner and group that files get (-1: as they are), and the modes that files and folders get at least."""

    user: int = -1
    group: int = -1
    file_mode: int = 0
    folder_mode: int = 0

    def give_file(self, handle: int, path: str) -> None:
        """Give the file that was just created at ``path`` to these users, as far as the system allows."""
        # A file with two names is also in a folder that somebody else has chosen.
        if os.fstat(handle).st_nlink == 1 and self._lies_in_their_folder(handle, path):
            self._give(handle, self.file_mode)

    def give_folder(self, folder: str) -> None:
        """Give a folder to these users, if it belongs to this user and contains only what depyf writes there: others
        who may write into the directory could move another folder of this user to the name.
        """
        if not self.folder_mode:
            return
        with suppressed(OSError):
            handle = descriptor(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | no_follow()))
            try:
                only_ours = all(map(_WRITERS_FILE.fullmatch, os.listdir(handle)))
                is_ours = os.fstat(handle).st_uid == current_user()
                if only_ours and is_ours and self._lies_in_their_folder(handle, folder):
                    self._give(handle, self.folder_mode)
            finally:
                os.close(handle)

    def _lies_in_their_folder(self, handle: int, path: str) -> bool:
        """Return whether the open file is in a folder of the user who is to get it.

        That user might have replaced a folder of ``path`` by a link before root created the file. In their own folder
        they could have created the file themselves, so they gain nothing.
        """
        if self.user == -1:  # it keeps its owner
            return True
        folder, name = os.path.split(path)
        with suppressed(OSError):
            opened = descriptor(os.open(folder or os.curdir, os.O_RDONLY | os.O_DIRECTORY))
            try:
                there = os.stat(name, dir_fd=opened, follow_symlinks=False)
                return os.fstat(opened).st_uid == self.user and os.path.samestat(there, os.fstat(handle))
            finally:
                os.close(opened)
        return False

    def _give(self, handle: int, mode: int) -> None:
        with suppressed(OSError):
            if (self.user, self.group) != (-1, -1):
                os.fchown(handle, self.user, self.group)
        with suppressed(OSError):
            has = stat.S_IMODE(os.fstat(handle).st_mode)
            if mode & ~has:
                os.fchmod(handle, has | mode)


def access_like(directory: str) -> Access:
    """Return who may write into ``directory``. Raises ``OSError``."""
    if not hasattr(os, "fchown"):  # Windows
        return Access()
    status = os.stat(directory)
    user = status.st_uid if current_user() == 0 and status.st_uid != 0 else -1
    group_writes, others_write = bool(status.st_mode & stat.S_IWGRP), bool(status.st_mode & stat.S_IWOTH)
    if user == -1 and not group_writes and not others_write:
        return Access()
    group = status.st_gid if group_writes or user != -1 else -1
    file_mode = (0o040 if group_writes else 0) | (0o004 if others_write else 0)
    return Access(user, group, file_mode, stat.S_IMODE(status.st_mode))


def current_user() -> int:
    """Return the number of the user whose rights this process has; 0 where users have none."""
    return os.geteuid() if hasattr(os, "geteuid") else 0
