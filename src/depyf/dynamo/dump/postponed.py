"""Postpone writing the page, the index and the manifest: for how long, and the notes that say so."""

from __future__ import annotations

import contextlib
import time
from typing import Iterator

_AT_ONCE, _SHARE = 2.0, 0.1
"""So many CPU seconds, and this share of the time that has passed, writing them for one directory may take."""

BEHIND = "index_is_not_up_to_date.txt"

BEHIND_TEXT = """\
index.html, index.md and manifest.json do not show the last sessions of depyf.prepare_debug that dumped into this
directory: many followed each other quickly, and these files are not rewritten for each of them. They are when the
process ends, or when a session ends a little later; this file is removed then. Where it is still here and the process
is not, that was killed: all other files are complete, and `depyf report` reads them when manifest.json is deleted.
"""

MISSED_TEXT = """\
%s could not be written when a session of depyf.prepare_debug ended. What is there of them is of an earlier session.
They are written when the next one ends, or when the process does, as soon as that can be done; this file is removed
then. All other files are complete, and `depyf report` reads them when manifest.json is deleted.
"""


class Budget:
    """How much of a process's time may be spent on rewriting: a fixed amount, and a share of the rest."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._spent = 0.0
        self._last = 0.0

    def allows(self) -> bool:
        """Return whether it may be written again, assuming the cost of the last time."""
        return self._spent + self._last <= _AT_ONCE + _SHARE * (time.monotonic() - self._begun)

    @contextlib.contextmanager
    def spending(self) -> Iterator[None]:
        """Note what is spent inside, in CPU seconds of this thread."""
        begun = time.thread_time()
        try:
            yield
        finally:
            self._last = time.thread_time() - begun
            self._spent += self._last
