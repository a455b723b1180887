"""Report the progress of a sweep on the error stream: a line that is rewritten, or one every half minute."""

from __future__ import annotations

import time
from typing import TextIO

from depyf.messages import takes_escapes
from depyf.sweep.judge import Result
from depyf.sweep.pool import Message


class Progress:
    """Called with each message of a sweep, and closed at the end."""

    def __init__(self, stream: TextIO, files: int) -> None:
        self._stream = stream
        self._terminal = takes_escapes(stream)
        self._files = files
        self._files_done = 0
        self._objects = 0
        self._proved = 0
        self._start = self._shown = time.monotonic()

    def __call__(self, message: Message) -> None:
        if isinstance(message, Result):
            self._objects += 1
            self._proved += message.outcome.proved
        else:
            self._files_done += 1
        now = time.monotonic()
        if now - self._shown >= (0.2 if self._terminal else 30.0):
            self._shown = now
            self._write()

    def close(self) -> None:
        if self._terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _write(self) -> None:
        share = 100 * self._proved / self._objects if self._objects else 0.0
        text = (
            f"{self._files_done}/{self._files} files, {self._objects} code objects, {share:.2f}% proved, "
            f"{time.monotonic() - self._start:.0f} s"
        )
        self._stream.write(f"\r{text}\x1b[K" if self._terminal else f"{text}\n")
        self._stream.flush()
