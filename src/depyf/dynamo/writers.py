"""Which processes write into one directory at the same time.

Each takes the lowest free place, a small file that names its process id, and gives it back when it ends. A place whose
process has died is free.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from typing import Iterator, Optional, Tuple

_PREFIX, _SUFFIX = ".depyf_writer_", ".pid"


class Place:
    """The place of this process among those that write into ``directory``."""

    def __init__(self, directory: str) -> None:
        """Take a place; raises ``OSError`` when the directory can't be written."""
        self.process = os.getpid()
        self._directory = directory
        self.number = self._take()
        atexit.register(self._give_back)

    def alone(self) -> bool:
        """Whether no other living process has a place here."""
        return all(process == self.process for _, process in self._taken())

    def _take(self) -> int:
        taken = {number for number, _ in self._taken()}
        number = 0
        while True:
            if number not in taken:
                with contextlib.suppress(FileExistsError):
                    handle = os.open(self._path(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
                    with os.fdopen(handle, "w") as file:
                        file.write(str(self.process))
                    return number
            number += 1

    def _taken(self) -> Iterator[Tuple[int, int]]:
        """Number and process id of every place whose process lives; those of dead ones are cleared away."""
        for name in os.listdir(self._directory):
            number = name[len(_PREFIX) : -len(_SUFFIX)]
            if not (name.startswith(_PREFIX) and name.endswith(_SUFFIX) and number.isdigit()):
                continue
            process = _process_in(self._path(int(number)))
            if process is None or _lives(process):
                yield int(number), process or 0
            else:
                with contextlib.suppress(OSError):
                    os.unlink(self._path(int(number)))

    def _path(self, number: int) -> str:
        return os.path.join(self._directory, f"{_PREFIX}{number}{_SUFFIX}")

    def _give_back(self) -> None:
        if os.getpid() == self.process:  # a forked child has inherited this object, but not the place
            with contextlib.suppress(OSError):
                os.unlink(self._path(self.number))


def _process_in(path: str) -> Optional[int]:
    """The process id in the file; None while it is being written."""
    try:
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives and belongs to somebody else
        return True
    return True
