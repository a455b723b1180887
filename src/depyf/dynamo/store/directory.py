"""The dump directory: flat, files whole or absent, stable names, never in the user's way.

A file is written under a temporary name and then appears under its own. Several processes may write into one directory
at once: a file that another living process runs from is never replaced by one that says something else. Then rank 0 of
a distributed program has the plain names, rank 1 has ``<name>.rank_1.py``, and other processes (a forked child) have
``<name>.process_<n>.py`` where a name is taken. A failure is reported once and the program goes on.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import Counter as CounterType
from typing import Dict, Optional, Set, Union

from depyf.asynchronous import suppressed, synchronous
from depyf.dynamo.hooks import torch_names
from depyf.dynamo.hooks.locks import Lock
from depyf.dynamo.hooks.safely import Failure, describe, dumping_into, note_failure, report_failure
from depyf.dynamo.store.file_locks import exclusive
from depyf.dynamo.store.plain_names import with_plain_name
from depyf.dynamo.store.shared_directory import SharedDirectoryError, check_not_shared
from depyf.dynamo.store.writers import FOLDER, Place
from depyf.messages import warn
from depyf.regular_files import open_regular

_ENDINGS = (".json", ".md", ".html")

_registry: Dict[str, DumpDirectory] = {}
_registry_lock = Lock()


class DumpDirectory:
    """One dump directory of this process. Get it with ``DumpDirectory.at``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = Lock()
        self._next: CounterType[str] = Counter()
        self._failed = False
        self._place: Optional[Place] = None
        self._own: Set[str] = set()
        self._shared = False
        self._allow_shared = False

    @staticmethod
    def at(path: Union[str, os.PathLike[str]], *, allow_shared: bool = False) -> DumpDirectory:
        """The directory at ``path`` (created if need be), the same object for the same place.

        Numbers go on counting when a process dumps into one directory repeatedly: the earlier files are those that
        earlier functions still run. With ``allow_shared`` other users may write there.
        """
        path = absolute(path)
        with _registry_lock:
            directory = _registry.get(_real(path))
            if directory is None:
                directory = _registry[_real(path)] = DumpDirectory(with_plain_name(path))
        directory._allow_shared = allow_shared
        directory._failed = False  # once for each time that somebody wants to dump here
        dumping_into(directory.path)
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)  # sources and constants of the program are in it
            with directory._lock:
                directory._my_place()
        except synchronous(OSError) as error:
            directory._report(error)
        except synchronous() as error:  # a bug must not keep the program from entering prepare_debug
            report_failure("preparing the dump directory", error)
        return directory

    def take_number(self, kind: str) -> int:
        """The next number, from 0, for files of this ``kind`` (any text that names a series)."""
        with self._lock:
            number = self._next[kind]
            self._next[kind] += 1
            return number

    def process_number(self) -> int:
        """The number of this process among those that write here."""
        with self._lock:
            return self._my_place().number

    def file(self, name: str) -> str:
        """The path that a file called ``name`` has here."""
        return os.path.join(self.path, name)

    def write(self, name: str, content: Union[str, bytes]) -> Optional[str]:
        """Write ``content`` as the file ``name``; the path, or ``None`` when it can't be written.

        A file of an earlier run is replaced. The path has another name where other processes write here as well. A
        lone surrogate in a text is written escaped.
        """
        data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
        try:
            with self._lock:
                return self._write_whole(name, data)
        except synchronous(OSError) as error:
            note_failure(Failure(f"writing {name}", "", describe(error)))
            self._report(error)
            return None

    def remove(self, path: str) -> None:
        """Remove a file that ``write`` has written, if it is there."""
        with suppressed(OSError):
            os.unlink(path)

    def _write_whole(self, name: str, data: bytes) -> str:
        place = self._my_place()
        try:
            with os.fdopen(place.open_temporary(), "wb") as file:
                file.write(data)
            with exclusive(self.path):
                self._shared = self._shared or bool(place.others())  # one may have come while the text was written
                name = self._name_for(name, data, place)
                if name not in self._own:
                    place.claim(name)
                os.replace(place.temporary, self.file(name))
        except BaseException:
            with suppressed(OSError):
                os.unlink(place.temporary)
            raise
        self._own.add(name)
        return self.file(name)

    def _my_place(self) -> Place:
        if self._place is None or not self._place.holds():
            self._own, self._shared = set(), False
            check_not_shared(self.path, os.path.join(self.path, FOLDER), self._allow_shared)
            self._place = Place(self.path)
        self._shared = self._shared or bool(self._place.others())
        return self._place

    def _name_for(self, name: str, data: bytes, place: Place) -> str:
        """``name``, or another one when a living process runs from a file of this name that says something else.

        Among the ranks of a distributed program the first has the plain names, whoever comes first.
        """
        if name in self._own or not self._shared:
            return name
        rank = torch_names.distributed_rank()
        claimed = place.claimed_by_others()
        by_rank = [] if rank is None else [_marked(name, f"rank_{rank}")]
        candidates = [*by_rank, name] if rank else [name, *by_rank]
        for candidate in candidates:
            if candidate in self._own or candidate not in claimed or _holds(self.file(candidate), data):
                return candidate
        return _marked(name, f"process_{place.number}")

    def _report(self, error: OSError) -> None:
        if not self._failed:
            self._failed = True
            if isinstance(error, SharedDirectoryError):
                warn("%s", error.in_words())
                return
            warn(
                "can't write to the dump directory %s (%s). Your program goes on; its dump will be incomplete. "
                "Make that directory writable, make room there or name another one, and run again",
                self.path,
                describe(error),
            )


def absolute(path: Union[str, os.PathLike[str]]) -> str:
    """``os.path.abspath``, which fails when the current directory is gone; that is then found out by writing."""
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


def _marked(name: str, mark: str) -> str:
    """``name`` with ``mark`` before what says its type: what belongs together sorts together."""
    stem, python, rest = name.rpartition(".py")
    if python:
        return f"{stem}.{mark}{python}{rest}"
    stem, ending = os.path.splitext(name)
    return f"{stem}.{mark}{ending}" if ending in _ENDINGS else f"{name}.{mark}"


def write_atomically(path: str, data: bytes) -> None:
    """Write a file that readers see whole or not at all; raises ``OSError``."""
    temporary = f"{path}.{os.getpid()}_{threading.get_ident()}"
    try:
        with open(temporary, "wb") as file:
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
