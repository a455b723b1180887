"""What is known of a compilation between two reports of PyTorch: the step that its stack shows, and how long the
function took in an earlier run.

The thread exists only while something is compiled. Before the process forks it ends: a child would not have it, and
Python warns of a fork with threads (3.12).
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from types import FrameType
from typing import Callable, Dict, List, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.capture.steps import modules_of, step_of
from depyf.report.read.own_files import manifest_name
from depyf.report.read.reading import load_manifest

keep_builtins(globals())

_MOST_BYTES = 5_000_000
"""A larger manifest is not read: ten million bytes take a second of the program's time."""

_DEBUGGERS = frozenset({"bdb", "cmd", "code"})
"""Modules that ask the user something: a line would be written over the prompt."""


class Silence:
    """Calls ``tell`` from a thread every ``seconds`` while the thread that called ``begin`` compiles, with the step
    that its stack shows; None where it compiles nothing."""

    def __init__(self, tell: Callable[[Optional[str]], object], seconds: float) -> None:
        self._tell = tell
        self._seconds = seconds
        self._compiling = 0
        self._thread: Optional[threading.Thread] = None
        self._over = threading.Event()
        _all.add(self)

    def begin(self) -> None:
        """Let the thread run, for a compilation of this thread."""
        if "t" in getattr(sys, "abiflags", ""):  # a Python without the GIL: frames of a thread that runs can't be read
            return
        self._compiling = threading.get_ident()
        if self._thread is not None and self._thread.is_alive() and not self._over.is_set():
            return
        self._over = threading.Event()
        thread = threading.Thread(target=self._run, args=(self._over,), name="depyf: progress", daemon=True)
        try:
            thread.start()
        except synchronous(RuntimeError):  # no thread is left, or Python ends
            return
        self._thread = thread

    def end(self, wait: float = 0.0) -> None:
        """Let the thread end; wait for that so many seconds at most."""
        self._over.set()
        thread = self._thread
        if wait and thread is not None and thread is not threading.current_thread():
            thread.join(wait)

    def _run(self, over: threading.Event) -> None:
        while not over.wait(self._seconds):
            stack = _stack(sys._current_frames().get(self._compiling))
            asked = not _DEBUGGERS.isdisjoint(modules_of(stack))
            self._tell(None if asked else step_of(stack))


def _stack(frame: Optional[FrameType]) -> List[FrameType]:
    found: List[FrameType] = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


_all: weakref.WeakSet[Silence] = weakref.WeakSet()


def end_all() -> None:
    """Let all threads end, and wait for that: the process forks."""
    for each in list(_all):
        each.end(wait=1.0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=end_all)


class EarlierTimes:
    """How long functions took to compile in the run that has dumped into ``directory`` before, read when asked for."""

    def __init__(self, directory: str = "") -> None:
        self._directory = directory
        self._known: Optional[Dict[str, float]] = None if directory else {}

    def seconds(self, name: str) -> float:
        """Return the longest compilation of ``function (file.py:12)``; 0 where none is known."""
        if self._known is None:
            self._known = {}
            self._known = self._read()
        return self._known.get(name, 0.0)

    def _read(self) -> Dict[str, float]:
        path = os.path.join(self._directory, manifest_name(self._directory))
        try:
            if os.path.getsize(path) > _MOST_BYTES:
                return {}
            run = load_manifest(path).run
        except synchronous(OSError, ValueError):  # there is none, or it is damaged
            return {}
        found: Dict[str, float] = {}
        for each in run.compilations:
            if each.function is not None and each.seconds is not None:
                function = run.functions[each.function]
                place: Tuple[str, int] = os.path.basename(run.sources[function.source].path), function.first_line
                name = f"{function.name} ({place[0]}:{place[1]})"
                found[name] = max(found.get(name, 0.0), each.seconds)
        return found
