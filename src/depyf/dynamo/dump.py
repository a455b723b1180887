"""The dump directory: flat, files whole or absent, stable names, never in the user's way.

A file is written under a temporary name and then appears under its own. Several processes may write into one directory
at once: a file that another living process may be running from is never replaced by one that says something else. A
failure is reported once and the program goes on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import Counter
from typing import Counter as CounterType
from typing import Dict, Optional, Set, Union

from depyf.dynamo.safely import describe
from depyf.dynamo.writers import Place

logger = logging.getLogger("depyf")

_registry: Dict[str, DumpDirectory] = {}
_registry_lock = threading.Lock()


class DumpDirectory:
    """One dump directory of this process. Get it with ``DumpDirectory.at``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._next: CounterType[str] = Counter()
        self._failed = False
        self._place: Optional[Place] = None
        self._own: Set[str] = set()

    @staticmethod
    def at(path: Union[str, os.PathLike[str]]) -> DumpDirectory:
        """The directory at ``path`` (created if need be), the same object for the same place.

        Numbers go on counting when a process dumps into one directory repeatedly: the earlier files are those that
        earlier functions still run.
        """
        absolute = os.path.abspath(os.fspath(path))
        with _registry_lock:
            directory = _registry.setdefault(absolute, DumpDirectory(absolute))
        directory._failed = False  # once for each time that somebody wants to dump here
        try:
            os.makedirs(absolute, exist_ok=True)
        except OSError as error:
            directory._report(error)
        return directory

    def take_number(self, kind: str) -> int:
        """The next number, from 0, for files of this ``kind`` (any text that names a series)."""
        with self._lock:
            number = self._next[kind]
            self._next[kind] += 1
            return number

    def file(self, name: str) -> str:
        """The path that a file called ``name`` has here."""
        return os.path.join(self.path, name)

    def write(self, name: str, content: Union[str, bytes]) -> Optional[str]:
        """Write ``content`` as the file ``name``; the path, or ``None`` when it can't be written.

        A file of an earlier run is replaced. Where another living process has written something else under this name,
        the file gets another name, which the path says. A lone surrogate in a text is written escaped.
        """
        data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
        try:
            with self._lock:
                return self._write_whole(name, data)
        except OSError as error:
            self._report(error)
            return None

    def _write_whole(self, name: str, data: bytes) -> str:
        place = self._my_place()
        temporary = self.file(f".depyf_writing_{place.process}")
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            if name not in self._own and not place.alone():
                name = self._name_not_taken(name, temporary, data, place)
            os.replace(temporary, self.file(name))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self._own.add(name)
        return self.file(name)

    def _my_place(self) -> Place:
        if self._place is None or self._place.process != os.getpid():  # a fork is another process
            self._own = set()
            self._place = Place(self.path)
        return self._place

    def _name_not_taken(self, name: str, temporary: str, data: bytes, place: Place) -> str:
        """``name``, or another one when a file of this name is there and says something else."""
        try:
            os.link(temporary, self.file(name))  # unlike a rename, it fails when the name is taken in this moment
        except FileExistsError:
            if not _holds(self.file(name), data):
                stem, suffix = os.path.splitext(name)
                return f"{stem}.process_{place.number}{suffix}"
        return name

    def _report(self, error: OSError) -> None:
        if not self._failed:
            self._failed = True
            logger.warning(
                "can't write to the dump directory %s (%s). Your program goes on; its dump will be incomplete. "
                "Make that directory writable, make room there or name another one, and run again",
                self.path,
                describe(error),
            )


def write_atomically(path: str, data: bytes) -> None:
    """Write a file that readers see whole or not at all; raises ``OSError``."""
    temporary = f"{path}.{os.getpid()}_{threading.get_ident()}"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _holds(path: str, data: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read() == data
    except OSError:
        return False
