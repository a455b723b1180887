"""The dump directory: flat, atomic files, stable names, no errors for the user.

A file is written under a temporary name and then renamed. Several processes may write into one directory at once: a
file that another live process runs from, or that an ended process of the same launch has left, is never replaced by a
file with other content. Rank 0 of a distributed program then has the plain names, rank 1 has ``<name>.rank_1.py``, and
other processes (a forked child) have ``<name>.process_<n>.py`` where a name is taken. A failure is reported once and
the program goes on.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import Counter
from typing import AbstractSet, Callable, Container, Dict, Optional, Tuple, Union
from typing import Counter as CounterType

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.locks import Lock
from depyf.base.messages import describe, warn
from depyf.base.regular_files import open_regular
from depyf.base.write_signals import without_write_signals
from depyf.dynamo.hooks import torch_names
from depyf.dynamo.hooks.safely import Failure, dumping_into, note_failure, report_failure
from depyf.dynamo.store.file_locks import exclusive
from depyf.dynamo.store.plain_names import is_plain, with_plain_name
from depyf.dynamo.store.shared_directory import SharedDirectoryError, check_not_shared
from depyf.dynamo.store.writers import FOLDER, Claimed, Slot
from depyf.report.read.own_files import is_of_the_program
from depyf.torch_trace import file_names

_File = Tuple[int, int]

_registry: Dict[str, DumpDirectory] = {}
_registry_lock = Lock()


class DumpDirectory:
    """One dump directory of this process. Get it with ``DumpDirectory.at``.

    It stays the directory that its name pointed to when the session started, also if the name is a link that is
    changed.
    """

    def __init__(self, path: str, real: str) -> None:
        self._given = path
        self._real = real
        self._name = with_plain_name(path)
        self._names = {self._name}
        self._lock = Lock()
        self._next: CounterType[str] = Counter()
        self.failure = ""
        """Why a file could not be written; empty if all could."""
        self._slot: Optional[Slot] = None
        self._own: Dict[str, _File] = {}
        """The files that this process has written and runs from, by name, with their device and inode."""
        self._shared = False
        self._allow_shared = False
        self._kept_apart = False
        self.is_to_be_made = False
        """Whether the first file creates the directory, and it did not exist."""
        self._at_first: Optional[_File] = None
        """The directory itself, when the session began."""
        self.files_of_ended: Callable[[Container[str]], AbstractSet[str]] = lambda _: frozenset()
        """Given the files of this process, return the files that an ended process of the same launch has left."""

    @staticmethod
    def at(
        path: Union[str, os.PathLike[str]], *, allow_shared: bool = False, made_by_first_file: bool = False
    ) -> DumpDirectory:
        """Return the directory at ``path`` (created if needed), the same object for the same directory.

        Numbers continue when a process dumps into one directory repeatedly, as earlier functions still run from the
        earlier files. With ``allow_shared`` other users may write there. With ``made_by_first_file`` the directory is
        not created before a file is written.
        """
        path = absolute(path)
        real = _real(path)
        with _registry_lock:
            directory = _registry.get(real)
            if directory is None:
                directory = _registry[real] = DumpDirectory(path, real)
        directory._allow_shared = allow_shared
        directory.failure = ""  # once for each time that somebody wants to dump here
        directory._at_first = None  # it may have been made anew since the last session
        dumping_into(directory.path)
        directory.is_to_be_made = made_by_first_file
        if made_by_first_file:
            return directory
        try:
            directory._refuse_relative()
            os.makedirs(path, mode=0o700, exist_ok=True)  # it will hold sources and constants of the program
            with directory._lock:
                directory._my_slot()
        except synchronous(OSError) as error:
            directory._report(error)
        except synchronous() as error:  # a bug must not keep the program from entering prepare_debug
            report_failure("preparing the dump directory", error)
        return directory

    @property
    def path(self) -> str:
        """The directory's name in file names: the given one, as long as it points there."""
        if self._name == self._given != self._real and not _leads_to(self._name, self._real):
            warn(
                "%s does not lead to the dump directory %s any more: the session continues to dump into the directory "
                "with which it has begun",
                self._name,
                self._real,
            )
            self._name = with_plain_name(self._real)
            self._names.add(self._name)
        return self._name

    def is_in(self, path: str) -> bool:
        """Return whether ``path`` is in this directory, by any name that the directory had in this process."""
        return self._folder_in(path) is not None

    def name_of(self, path: str) -> str:
        """Return the name, relative to the directory, of a file that ``write`` has written at ``path``."""
        folder, name = self._folder_in(path), os.path.basename(path)
        return file_names.in_stages(name) if folder == file_names.STAGES else name

    def _folder_in(self, path: str) -> Optional[str]:
        """Return the folder in this directory in which the file is, empty for the directory itself; None if the file is
        elsewhere."""
        folder = os.path.dirname(path)
        if folder in self._names:
            return ""
        parent, last = os.path.split(folder)
        return last if last == file_names.STAGES and parent in self._names else None

    @property
    def may_run_code(self) -> bool:
        """Whether code may run from the files. Tracebacks of PyTorch fail at a name that is not UTF-8."""
        return is_plain(self._name)

    def exists(self) -> bool:
        """Return whether the directory is there."""
        return os.path.isdir(self._real)

    def take_number(self, kind: str) -> int:
        """Return the next number, from 0, for files of this ``kind`` (any text that names a series)."""
        with self._lock:
            number = self._next[kind]
            self._next[kind] += 1
            return number

    def process_number(self) -> int:
        """Return the number of this process among those that write to this directory."""
        with self._lock:
            return self._my_slot().number

    def file(self, name: str) -> str:
        """Return the path of a file called ``name`` in this directory."""
        return os.path.join(self.path, name)

    def write_note(self, note: file_names.Note, text: str) -> Optional[str]:
        """Write the next text of this name about the whole dump, as ``write`` does."""
        return self.write(file_names.note_file(note, self.take_number(note)), text)

    def write(self, name: str, content: Union[str, bytes]) -> Optional[str]:
        """Write ``content`` as the file ``name``; return the path, or ``None`` if it can't be written.

        ``name`` may be in the folder of stages (``file_names.in_stages``). The file is beside the others if the folder
        can't be made, because something else is in its place.
        A file of an earlier run is replaced. The path may have another name if other processes write here as well. A
        lone surrogate in a text is written escaped.
        """
        data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
        try:
            with self._lock:
                self._refuse_relative()
                if self.is_to_be_made:
                    os.makedirs(self._real, mode=0o700, exist_ok=True)
                    self.is_to_be_made = False
                return self._write_whole(self._with_folder(name), data)
        except synchronous(OSError) as error:
            note_failure(Failure(f"writing {name}", "", describe(error)))
            self._report(error)
            return None

    def remove(self, path: str) -> None:
        """Remove a file that ``write`` has written, if it is there."""
        with suppressed(OSError):
            os.unlink(os.path.join(self._real, self.name_of(path)))

    def remove_own(self, path: str) -> bool:
        """Remove a file of this process that nothing runs from; return False if other processes may have it, too."""
        with self._lock:
            name = self.name_of(path)
            with suppressed(OSError):
                slot = self._my_slot()
                # A process that comes now waits for the lock before it has a slot, and makes the folder afterwards.
                with exclusive(self._real) as alone:
                    self._shared = self._shared or not alone or slot.has_others()
                    if self._shared or name not in self._own or not self._is_still(name, self._own[name]):
                        return False
                    os.unlink(os.path.join(self._real, name))
                    with suppressed(OSError):  # other files are there
                        os.rmdir(os.path.join(self._real, file_names.STAGES))
                    return True
            return False

    def has(self, name: str) -> bool:
        """Return whether there is a file of that name, relative to the directory, by whomever."""
        return os.path.lexists(os.path.join(self._real, name))

    def _with_folder(self, name: str) -> str:
        """Return the name, without its folder where there can be none."""
        folder, _, plain = name.rpartition("/")
        if folder:
            path = os.path.join(self._real, folder)
            with suppressed(OSError):
                self._my_slot().make_folder(folder)
            if os.path.islink(path) or not (os.path.isdir(path) and os.access(path, os.W_OK)):
                return plain
        return name

    def _write_whole(self, name: str, data: bytes) -> str:
        # 1. The content goes into a temporary file, of which this process has one: no reader finds a part of it.
        slot = self._my_slot()
        try:
            slot.write_temporary(data)
            # 2. A name that this process has claimed needs no lock: a process that comes now finds it in the list of
            #    claims, and takes another one.
            if name in self._own and not self._shared:
                return self.file(self._put(slot, name))
            # 3. A new name is chosen and claimed under the lock of the directory. Where locks do not work, or the lock
            #    could not be had in time, the claim comes first and the check once more after it: of two processes at
            #    least one sees the other.
            with exclusive(self._real) as alone:
                self._shared = self._shared or slot.has_others()  # a process may have come while the text was written
                name = self._name_for(name, data, slot)
                if name not in self._own:
                    slot.claim(name)
                    if self._shared and not alone:
                        name = self._not_claimed_meanwhile(name, data, slot)
                name = self._put(slot, name)
        except BaseException:
            with suppressed(OSError):
                os.unlink(slot.temporary)
            raise
        return self.file(name)

    def _put(self, slot: Slot, name: str) -> str:
        """Rename the temporary file to its name; return another name if the existing file can't be replaced."""
        # In a directory with the sticky bit (/tmp) another user's file can't be replaced, although new files can be
        # made.
        written = _file_of(os.lstat(slot.temporary))
        try:
            os.replace(slot.temporary, os.path.join(self._real, name))
        except synchronous(PermissionError) as error:
            marked = file_names.marked(name, file_names.process_mark(slot.number))
            if marked == name:
                raise
            slot.claim(marked)
            os.replace(slot.temporary, os.path.join(self._real, marked))
            self._keep_apart(marked, describe(error))
            name = marked
        self._own[name] = written
        return name

    def _my_slot(self) -> Slot:
        # The slot is lost in a forked child, and where somebody has removed the directory or its hidden folder. A new
        # one takes over the claims of this process, for files that are still what it has written.
        if self._slot is None or not self._slot.holds():
            kept: Dict[str, _File] = {}
            if self._slot is not None and self._slot.process == os.getpid():  # else they are the parent's
                kept = {name: file for name, file in self._own.items() if self._is_still(name, file)}
            check_not_shared(self._real, os.path.join(self._real, FOLDER), allowed=self._allow_shared)
            slot = Slot(self._real)
            try:
                if kept:
                    slot.claim(*kept)
            except BaseException:
                slot.give_back()
                raise
            self._slot, self._own, self._shared = slot, kept, False
            self._say_if_another()
        elif self._at_first is None:
            self._at_first = _file_of(os.stat(self._real))
        return self._slot

    def _refuse_relative(self) -> None:
        """Raise ``OSError`` if the directory has a relative name, which would change with the current directory."""
        if not os.path.isabs(self._real):
            raise FileNotFoundError(errno.ENOENT, "the current directory was deleted", self._real)

    def _is_still(self, name: str, file: _File) -> bool:
        with suppressed(OSError):
            return _file_of(os.lstat(os.path.join(self._real, name))) == file
        return False

    def _say_if_another(self) -> None:
        """Report it when the directory is not the one from the start of the session."""
        now = _file_of(os.stat(self._real))
        if self._at_first is not None and self._at_first != now:
            warn(
                "the dump directory %s was moved or removed, and created again, after the session had begun: "
                "what was dumped before is not in it",
                self.path,
            )
        self._at_first = now

    def _name_for(self, name: str, data: bytes, slot: Slot) -> str:
        """Return ``name``, or another name if a live process runs from a file of this name with other content, or an
        ended process of the same launch has left it. Rank 0 of a distributed program has the plain names if they are
        free.
        """
        if name in self._own:
            return name
        ended = self.files_of_ended(self._own)
        self._shared = self._shared or bool(ended)
        mine = file_names.marked(name, file_names.process_mark(slot.number))
        if self._is_of_the_program(name, data):
            self._keep_apart(mine, f"depyf did not write {name}")
            if self._is_of_the_program(mine, data):
                raise FileExistsError(errno.EEXIST, "depyf did not write it, so it is not replaced", mine)
            return mine
        if not self._shared:
            return name
        # Candidates, in this order:  rank 0: x.py, x.rank_0.py   rank 1: x.rank_1.py, x.py   no rank: x.py
        # and at last x.process_<n>.py, which is this process's alone.
        if slot.is_apart:  # this process and the others can't read each other's claims
            self._keep_apart(mine, f"PermissionError: {FOLDER} in it is closed to this user")
            return mine
        rank = torch_names.distributed_rank()
        claimed = slot.claimed_by_others()
        claimed = Claimed(claimed.names | ended, claimed.complete)
        by_rank = [] if rank is None else [file_names.marked(name, file_names.rank_mark(rank))]
        candidates = [*by_rank, name] if rank else [name, *by_rank]
        for candidate in candidates:
            if candidate in self._own or not self._is_others(candidate, claimed) or self._holds(candidate, data):
                return candidate
        if name not in claimed.names:
            self._keep_apart(mine, f"what other processes run from, as {FOLDER} in it lists it, can't be read")
        return mine

    def _is_of_the_program(self, name: str, data: bytes) -> bool:
        """Return whether there is a file of that name that depyf did not write; the page and the manifest have names
        that are free (``report.read.own_files``)."""
        path = os.path.join(self._real, name)
        return bool(file_names.kinds_of(name)) and is_of_the_program(path) and not _holds(path, data)

    def _is_others(self, name: str, claimed: Claimed) -> bool:
        """Return whether another process runs from the file, or may do so."""
        if name in claimed.names:
            return True
        return not claimed.complete and os.path.lexists(os.path.join(self._real, name))

    def _not_claimed_meanwhile(self, name: str, data: bytes, slot: Slot) -> str:
        """Return ``name``, or another name if a process has claimed it since the check: the directory is not locked.

        Each process checks again after its claim, so at least one of two processes sees the other.
        """
        if name not in slot.claimed_by_others().names or self._holds(name, data):
            return name
        name = file_names.marked(name, file_names.process_mark(slot.number))
        slot.claim(name)
        return name

    def _holds(self, name: str, data: bytes) -> bool:
        return _holds(os.path.join(self._real, name), data)

    def _keep_apart(self, name: str, why: str) -> None:
        """Report once that files of others are not touched unless requested."""
        if not self._kept_apart:
            self._kept_apart = True
            warn(
                "the dump directory %s has files that this process may not read or replace (%s). They are not changed, "
                "and files that would have the same names get others, such as %s. The dump is complete nevertheless",
                self.path,
                why,
                name,
            )

    def _report(self, error: OSError) -> None:
        if self.failure:
            return
        if isinstance(error, SharedDirectoryError):
            self.failure = error.in_words()
        else:
            self.failure = (
                f"can't write to the dump directory {self.path} ({describe(error)}). Your program continues; its dump "
                "will be incomplete. Make that directory writable, make room there or name another one, and run again"
            )
        warn("%s", self.failure)


def absolute(path: Union[str, os.PathLike[str]]) -> str:
    """Return ``os.path.abspath``, or the relative path if the current directory was deleted: writing then fails."""
    path = os.fspath(path)
    try:
        return os.path.abspath(path)
    except synchronous(OSError):
        return path


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except synchronous(OSError):
        return path


def _leads_to(name: str, directory: str) -> bool:
    """Return whether ``name`` leads to ``directory``; true as well when the directory is gone."""
    try:
        there = os.stat(directory)
    except synchronous(OSError):
        return True
    with suppressed(OSError):
        return os.path.samestat(os.stat(name), there)
    return False


def _file_of(status: os.stat_result) -> _File:
    return status.st_dev, status.st_ino


def write_atomically(path: str, data: bytes) -> None:
    """Write a file atomically. Raises ``OSError``."""
    temporary = f"{path}.{os.getpid()}_{threading.get_ident()}"
    try:
        with without_write_signals(), open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppressed(OSError):
            os.unlink(temporary)
        raise


def _holds(path: str, data: bytes) -> bool:
    try:
        with open_regular(path, follow=False) as file:
            return file.read() == data
    except synchronous(OSError):
        return False
