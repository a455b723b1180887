"""Show what is being compiled: on a terminal a line that is rewritten, in a log a line every ten seconds and one at the
end of a compilation that took longer. ``depyf run``, ``watch``, the callbacks and ``DEPYF_DUMP`` use it.

The line changes when torch reports something, and is removed when the program's own code continues. While torch reports
nothing for long, a thread says what the compiling thread's stack shows (``silence.py``), if the stream is a file.
``DEPYF_PROGRESS`` in the environment names a logger that gets the lines of a log instead; with 0 nothing is shown.
"""

from __future__ import annotations

import io
import logging
import os
import shutil
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Set, TextIO

from depyf.base.locks import Lock
from depyf.base.messages import log, takes_escapes, write
from depyf.dynamo.capture.silence import EarlierTimes, Silence
from depyf.dynamo.capture.steps import AFTER
from depyf.dynamo.hooks import torch_names
from depyf.dynamo.hooks.safely import safely, with_rank
from depyf.dynamo.hooks.structured_trace_listener import interned_strings
from depyf.torch_trace.events import FORWARD_METRICS, METRICS, START, Event, is_of_dynamo

if TYPE_CHECKING:
    from depyf.dynamo.capture.session import Session

VARIABLE = "DEPYF_PROGRESS"

_EVERY = 10.0
"""Seconds between two lines in a log."""

_WORTH_NAMING = 1.0
"""Seconds that an earlier compilation of the function took, from which on they are shown: a hint of what to expect."""

_QUIET = 5.0
"""Seconds without a report, from which on a line says so."""

_open: List[CompilationProgress] = []
"""Those that have begun and have not ended. The first one shows, so that each compilation is shown once."""


class CompilationProgress:
    """Called with every event of a session, in order, from ``begin`` to ``end``."""

    def __init__(self, stream: TextIO) -> None:
        self.numbers: Callable[[], Mapping[str, int]] = interned_strings
        """The numbers that represent files in events, so far."""
        self._stream = stream
        chosen = os.environ.get(VARIABLE, "")
        self._off, self._logger = chosen == "0", "" if chosen == "0" else chosen
        self._terminal = takes_escapes(stream) and not self._logger
        self._process = os.getpid()
        self._begun: Dict[str, float] = {}
        self._names: Dict[str, str] = {}
        self._ended = 0
        self._took: Dict[str, float] = {}
        """How long the last compilation of each function took."""
        self._told: Set[str] = set()
        """The compilations that a log has lines about."""
        self._shown = self._heard = time.monotonic()
        """When a line was shown, and when torch reported something."""
        self._latest = ""
        """The compilation that torch reported a step of."""
        self._visible = False
        self._earlier = EarlierTimes()
        self._lock = Lock()
        """Held while a line is written: the thread of ``_silence`` writes lines, too."""
        self._silence = Silence(self._silent, 1.0 if self._terminal else 2.0)
        buffer = stream.buffer if type(stream) is io.TextIOWrapper else None
        self._is_plain_file = type(buffer) is io.BufferedWriter and not self._logger
        """Whether a write takes no lock of the program's. A thread that waits for one, while the program holds it and
        compiles, would hold ``_lock``, for which the program waits."""

    def begin(self) -> None:
        """Show from now on, unless another one of this process does: after a fork, those of the parent are left."""
        _open[:] = [*(each for each in _open if each._process == os.getpid()), self]

    def follow(self, session: Session) -> None:
        """Begin, and show what a session records."""
        self.begin()
        self._earlier = EarlierTimes(session.directory.path)
        session.watch(self)

    def end(self) -> None:
        """Remove the line, and show nothing more."""
        self._silence.end()
        self.close()
        if self in _open:
            _open.remove(self)

    @safely("showing what is compiled")
    def __call__(self, event: Event) -> None:
        compile_id = event.compile_id
        if compile_id is None or self._off or os.getpid() != self._process:
            return
        now = self._heard = time.monotonic()
        if event.name in METRICS:
            with self._lock:
                self._end(compile_id, now, is_forward=event.name == FORWARD_METRICS)
            if not self._begun:
                self._silence.end()
            return
        stage = AFTER.get(event.name)
        if stage is None:
            return
        self._begun.setdefault(compile_id, now)
        name = self._function(event)
        if name is not None:
            self._names[compile_id] = name
        self._latest = compile_id
        with self._lock:
            self._say(compile_id, stage, now, "")
        if _open[:1] == [self] and self._is_plain_file:
            self._silence.begin()

    def _say(self, compile_id: str, stage: str, now: float, silent: str) -> None:
        """Show a line, if it is time for one."""
        begun = self._begun[compile_id]
        # Several ranks on one terminal would overwrite each other's line.
        rewritten = self._terminal and torch_names.distributed_rank() in (None, 0)
        if rewritten or now - max(begun, self._shown) >= _EVERY:
            self._shown = now
            if not rewritten:
                self._told.add(compile_id)
            spent = f"{now - begun:.1f} s{silent}"
            self._write(
                f"compiling {self._what(compile_id)}: {stage}, {spent}{self._before(compile_id, now)}",
                rewritten=rewritten,
            )

    @safely("showing what is compiled")
    def _silent(self, step: Optional[str]) -> None:
        """Show a line between two reports; ``step`` is the one that the stack shows, None if nothing compiles."""
        now = time.monotonic()
        with self._lock:
            silent = now - self._heard
            if step is not None and self._latest in self._begun and os.getpid() == self._process:
                told = f", no news of PyTorch for {silent:.0f} s" if silent >= _QUIET else ""
                self._say(self._latest, step, now, told)

    def close(self) -> None:
        """Remove the line."""
        with self._lock:
            if self._visible:
                self._visible = False
                self._put("\r\x1b[K")

    def _end(self, compile_id: str, now: float, *, is_forward: bool) -> None:
        begun = self._begun.pop(compile_id, None)
        self.close()
        if begun is None:
            return
        self._ended += 1
        if is_forward and compile_id in self._names:
            self._took[self._names[compile_id]] = now - begun
        if compile_id in self._told:
            self._told.discard(compile_id)
            self._write(f"compiled {self._what(compile_id)} in {now - begun:.1f} s", rewritten=False)

    def _what(self, compile_id: str) -> str:
        return f"{compile_id} {self._names.get(compile_id, '')}".strip()

    def _before(self, compile_id: str, now: float) -> str:
        """Return how many compilations have ended, and how long the last one of this function took, here or in an
        earlier run that has dumped into this directory."""
        name = self._names.get(compile_id, "")
        took, when = self._took.get(name, 0.0), "last time"
        if not took and now - self._begun[compile_id] >= _WORTH_NAMING:
            took, when = self._earlier.seconds(name), "in an earlier run"
        last = f" ({when} {took:.1f} s)" if took >= _WORTH_NAMING else ""
        return f"{last}, {self._ended} before" if self._ended else last  # the end is cut off in a narrow terminal

    def _write(self, text: str, *, rewritten: bool) -> None:
        if _open and _open[0] is not self:
            return
        if rewritten:
            self._visible = True
            width = shutil.get_terminal_size().columns - 1
            self._put(f"\r{text[:width]}\x1b[K")
        elif self._logger:
            log(logging.INFO, "%s", with_rank(f"depyf: {text}"), logger=self._logger)
        else:
            self._put(f"{with_rank(f'depyf: {text}')}\n")

    def _put(self, text: str) -> None:
        if not write(self._stream, text):  # the stream is closed
            self._terminal = self._visible = False
            self._shown = float("inf")

    def _function(self, event: Event) -> Optional[str]:
        """Return ``name (file.py:12)`` of the frame, from the first event of a compilation. ``None`` for other events,
        and where the stack ends in Dynamo (PyTorch 2.4)."""
        stack: Any = event.meta.get("stack") if isinstance(event.meta, dict) else None
        if event.name != START or not stack:
            return None
        frame = stack[-1]
        path = frame.get("filename")
        if not isinstance(path, str):
            path = next((name for name, number in list(self.numbers().items()) if number == path), "?")
        if is_of_dynamo({"filename": path}):
            return None
        return f"{frame.get('name')} ({os.path.basename(path)}:{frame.get('line')})"


def remove_line() -> None:
    """Remove the line that is shown, before something else is written to the terminal."""
    for each in _open[:1]:
        each.close()
