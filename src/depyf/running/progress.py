"""Show what is being compiled on the error stream: a line that is rewritten, or one every half minute in a log.

No thread updates the line: it would change the behaviour of a program that forks. So the line changes when torch
reports something, and is removed when the program's own code continues.
"""

from __future__ import annotations

import os
import shutil
import time
from typing import Any, Callable, Dict, Mapping, Optional, TextIO

from depyf.base.messages import takes_escapes, write
from depyf.dynamo.hooks.safely import with_rank
from depyf.torch_trace.events import GRAPH_BREAK, KERNELS, METRICS, START, Event
from depyf.torch_trace.stages import Stage

_NEXT = {
    START: "Dynamo traces",
    GRAPH_BREAK: "graph break, Dynamo traces again",
    **{name: phrase for stage in Stage for name, phrase in stage.facts.records.items() if phrase},
    KERNELS: "kernels are built",
    "dynamo_cpp_guards_str": "guards are built",
}
"""The step of torch that follows each of its reports."""


class CompilationProgress:
    """Called with every event of a session, in order; closed at the end."""

    def __init__(self, stream: TextIO) -> None:
        self.numbers: Callable[[], Mapping[str, int]] = dict
        """The numbers that represent files in events, so far."""
        self._stream = stream
        self._terminal = takes_escapes(stream)
        self._process = os.getpid()
        self._begun: Dict[str, float] = {}
        self._names: Dict[str, str] = {}
        self._shown = time.monotonic()
        self._visible = False

    def __call__(self, event: Event) -> None:
        if event.compile_id is None or os.getpid() != self._process:
            return
        if event.name in METRICS:
            self._begun.pop(event.compile_id, None)
            self.close()
            return
        stage = _NEXT.get(event.name)
        if stage is None:
            return
        now = time.monotonic()
        begun = self._begun.setdefault(event.compile_id, now)
        name = self._function(event)
        if name is not None:
            self._names[event.compile_id] = name
        if self._terminal or now - self._shown >= 30.0:
            self._shown = now
            what = " ".join(["compiling", event.compile_id, self._names.get(event.compile_id, "")]).strip()
            self._write(f"{what}: {stage}, {now - begun:.1f} s")

    def close(self) -> None:
        """Remove the line."""
        if self._visible:
            self._visible = False
            self._put("\r\x1b[K")

    def _write(self, text: str) -> None:
        if self._terminal:
            self._visible = True
            width = shutil.get_terminal_size().columns - 1
            self._put(f"\r{text[:width]}\x1b[K")
        else:
            self._put(f"{with_rank(f'depyf: {text}')}\n")

    def _put(self, text: str) -> None:
        if not write(self._stream, text):  # the stream is closed
            self._terminal = self._visible = False
            self._shown = float("inf")

    def _function(self, event: Event) -> Optional[str]:
        """Return ``name (file.py:12)`` of the frame, from the first event of a compilation; ``None`` for other
        events."""
        stack: Any = event.meta.get("stack") if isinstance(event.meta, dict) else None
        if event.name != START or not stack:
            return None
        frame = stack[-1]
        path = frame.get("filename")
        if not isinstance(path, str):
            path = next((name for name, number in list(self.numbers().items()) if number == path), "?")
        return f"{frame.get('name')} ({os.path.basename(path)}:{frame.get('line')})"
