"""A line on the error stream that says what takes long; on terminals only."""

from __future__ import annotations

import shutil
import time
from typing import TextIO

from depyf.messages import takes_escapes, write
from depyf.visible import visible

_SECONDS = 0.2
"""Between two changes of the line."""


class ProgressLine:
    """Called with what is being done; a context manager, which removes the line at its end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = takes_escapes(stream)
        self._shown = 0.0

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if self._terminal and now - self._shown >= _SECONDS:
            self._shown = now
            width = shutil.get_terminal_size().columns - 1
            write(self._stream, f"\r{visible(text)[:width]}\x1b[K")

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            write(self._stream, "\r\x1b[K")
