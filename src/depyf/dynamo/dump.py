"""The dump directory: flat, files whole or absent, stable names, never in the user's way.

Several processes may write into one directory at once, a process may die in the middle, the disk may be full. A file
is written under a temporary name and renamed; a failure is reported once and the program goes on.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from typing import Counter as CounterType
from typing import Dict, Optional, Union

from depyf.dynamo.safely import describe

logger = logging.getLogger("depyf")

_registry: Dict[str, DumpDirectory] = {}
_registry_lock = threading.Lock()


class DumpDirectory:
    """One dump directory of this process. Get it with ``DumpDirectory.at``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._next: CounterType[str] = Counter()
        self._failed = False

    @staticmethod
    def at(path: Union[str, os.PathLike[str]]) -> DumpDirectory:
        """The directory at ``path`` (created if need be), the same object for the same place.

        Numbers go on counting when a process dumps into one directory repeatedly: the earlier files are those that
        earlier functions still run.
        """
        absolute = os.path.abspath(os.fspath(path))
        with _registry_lock:
            directory = _registry.setdefault(absolute, DumpDirectory(absolute))
        directory._create()
        return directory

    def _create(self) -> None:
        try:
            os.makedirs(self.path, exist_ok=True)
        except OSError as error:
            self._report(error)

    def take_number(self, kind: str) -> int:
        """The next number, from 0, for files of this ``kind`` (any text that names a series)."""
        with self._lock:
            number = self._next[kind]
            self._next[kind] += 1
            return number

    def write(self, name: str, content: Union[str, bytes]) -> Optional[str]:
        """Write ``content`` as the file ``name``, replacing an older one; the path, or ``None`` when it can't be.

        A lone surrogate in the text is written escaped; line ends are written as they are.
        """
        data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
        path = os.path.join(self.path, name)
        try:
            self._write_whole(path, data)
        except OSError as error:
            self._report(error)
            return None
        return path

    def _write_whole(self, path: str, data: bytes) -> None:
        temporary = os.path.join(self.path, f".depyf_{os.getpid()}_{threading.get_ident()}")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    def _report(self, error: OSError) -> None:
        if not self._failed:
            self._failed = True
            logger.warning(
                "can't write to the dump directory %s (%s); your program goes on, its dump will be incomplete",
                self.path,
                describe(error),
            )
