"""Learn of calls of single functions without a change of them: no wrapper, no hook of PyTorch.

Dynamo traces wrappers like the user's code, and guards on hooks of modules and optimizers, so both would change what is
compiled. The interpreter's own events change nothing: ``sys.monitoring`` for the watched code objects from Python 3.12
on, and a profile function before. Only calls on the thread that began are reported.

A call that ends with an exception is not reported as ended (from 3.12 on), or as one that returns None (before). Each
call has its depth, so that a caller recognises calls that have ended unreported.
"""

from __future__ import annotations

import sys
from threading import get_ident
from types import CodeType, FrameType
from typing import Callable, Dict, Optional

from depyf.dynamo.hooks.patching import registered

OnStart = Callable[[str, FrameType, int], object]
"""Called with the kind of the code, the frame that starts, and its depth."""

OnReturn = Callable[[str, FrameType, int, object], object]
"""Called with the kind of the code, the frame that ends, its depth, and the result."""

_FREE_FOR_ALL = (4, 3, 5, 1)
"""Tool ids; those that Python does not reserve come first."""

_TOOL = "depyf.shadow.record"


class WatchedFrames:
    """Reports calls of the functions that ``watch`` was called for, from ``begin`` on."""

    def __init__(self, on_start: OnStart, on_return: OnReturn) -> None:
        self._on_start = on_start
        self._on_return = on_return
        self._kinds: Dict[int, str] = {}
        """By ``id`` of a code object: hashing one takes long."""
        self._codes: Dict[int, CodeType] = {}
        self._thread = get_ident()
        self._tool: Optional[int] = None
        self._profile: Optional[Callable[[FrameType, str, object], object]] = None

    def begin(self) -> bool:
        """Begin until what it registers (``patching.collecting``) is undone. Return False where a profiler of the
        program or other tools are in the way."""
        if not hasattr(sys, "monitoring"):
            return self._begin_profile()
        monitoring = sys.monitoring
        tool = next((each for each in _FREE_FOR_ALL if monitoring.get_tool(each) is None), None)
        if tool is None:
            return False
        events = monitoring.events
        registered(self._end_monitoring)
        self._tool = tool
        monitoring.use_tool_id(tool, _TOOL)
        monitoring.register_callback(tool, events.PY_START, self._started)
        monitoring.register_callback(tool, events.PY_RETURN, self._returned)
        return True

    def watch(self, code: CodeType, kind: str) -> None:
        """Report calls of this code object, as ``kind``."""
        self._codes[id(code)] = code
        self._kinds[id(code)] = kind
        if self._tool is not None:
            monitoring = sys.monitoring  # type: ignore[attr-defined]
            events = monitoring.events
            monitoring.set_local_events(self._tool, code, events.PY_START | events.PY_RETURN)

    def kind_of(self, code: CodeType) -> str:
        """Return as what calls of this code object are reported; empty if they are not."""
        return self._kinds.get(id(code), "")

    @property
    def was_ended(self) -> bool:
        """Whether something else has ended it: a profiler of the program, or an exception in the middle of it."""
        return self._profile is not None and sys.getprofile() is not self._profile

    def _begin_profile(self) -> bool:
        if sys.getprofile() is not None:
            return False
        kinds, thread = self._kinds, self._thread

        def note(frame: FrameType, event: str, value: object) -> None:
            # Called for each event of the program: the common case comes first.
            kind = kinds.get(id(frame.f_code))
            if kind is None or get_ident() != thread:
                return
            if event == "call":
                self._on_start(kind, frame, depth_of(frame))
            elif event == "return":
                self._on_return(kind, frame, depth_of(frame), value)

        def end() -> None:
            if sys.getprofile() is note:
                sys.setprofile(None)

        registered(end)
        self._profile = note
        sys.setprofile(note)
        return True

    def _end_monitoring(self) -> None:
        tool = self._tool
        monitoring = getattr(sys, "monitoring")  # noqa: B009
        if tool is None or monitoring.get_tool(tool) != _TOOL:
            return
        events = monitoring.events
        for code in list(self._codes.values()):
            monitoring.set_local_events(tool, code, events.NO_EVENTS)
        for event in (events.PY_START, events.PY_RETURN):
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
        self._tool = None

    def _started(self, code: CodeType, _: int) -> None:
        kind = self._kinds.get(id(code))
        if kind is not None and get_ident() == self._thread:
            frame = sys._getframe(1)
            self._on_start(kind, frame, depth_of(frame))

    def _returned(self, code: CodeType, _: int, value: object) -> None:
        kind = self._kinds.get(id(code))
        if kind is not None and get_ident() == self._thread:
            frame = sys._getframe(1)
            self._on_return(kind, frame, depth_of(frame), value)


def depth_of(frame: Optional[FrameType]) -> int:
    """Return the number of frames below and including this one."""
    count = 0
    while frame is not None:
        count += 1
        frame = frame.f_back
    return count


def inner_code(function: object, name: str) -> Optional[CodeType]:
    """Return the code of the function ``name`` that ``function`` defines."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    constants = () if code is None else code.co_consts
    return next((each for each in constants if isinstance(each, CodeType) and each.co_name == name), None)
