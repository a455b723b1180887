"""Starts and returns of single functions, reported by ``sys.monitoring`` (from Python 3.12 on). Only the requested code
objects are watched; everything else runs unchanged. Exits by an exception are not reported.
"""

from __future__ import annotations

import sys
import weakref
from types import CodeType
from typing import Any, Callable, Dict, Optional

from depyf.dynamo.hooks import frame_evaluation
from depyf.dynamo.hooks.patching import Undo, registered

_FREE_FOR_ALL = (4, 3)
"""The tool ids that Python does not reserve."""

_NAME = "depyf.trace"

OnStart = Callable[[CodeType, int], object]
OnReturn = Callable[[CodeType, int, object], object]


class Monitoring:
    """What watches code objects, from ``begin`` to ``end``."""

    def __init__(self) -> None:
        self._monitoring: Any = getattr(sys, "monitoring", None)
        self._tool: Optional[int] = None
        self._watched: Dict[int, weakref.ref[CodeType]] = {}

    def begin(self, on_start: OnStart, on_return: OnReturn) -> Optional[Undo]:
        """Claim a tool id; return the function that releases it, None if Python has no monitoring or all ids are
        taken.
        """
        if self._monitoring is None:
            return None
        tool = next((each for each in _FREE_FOR_ALL if self._monitoring.get_tool(each) is None), None)
        if tool is None:
            return None
        events = self._monitoring.events
        self._tool = tool
        registered(self._end)
        self._monitoring.use_tool_id(tool, _NAME)
        self._monitoring.register_callback(tool, events.PY_START, on_start)
        self._monitoring.register_callback(tool, events.PY_RETURN, on_return)
        for called in (on_start, on_return):
            frame_evaluation.skip_code(called.__code__)
        return self._end

    def watch(self, code: CodeType, *, starts: bool) -> None:
        """Start to report returns of this code object, and its starts, if ``starts``."""
        if self._tool is None:
            return
        events = self._monitoring.events
        self._monitoring.set_local_events(
            self._tool, code, events.PY_RETURN | (events.PY_START if starts else events.NO_EVENTS)
        )
        self._watched[id(code)] = weakref.ref(code)

    def _end(self) -> None:
        tool = self._tool
        if tool is None or self._monitoring.get_tool(tool) != _NAME:
            self._tool = None
            return
        for each in list(self._watched.values()):
            code = each()
            if code is not None:
                self._monitoring.set_local_events(tool, code, self._monitoring.events.NO_EVENTS)
        self._watched.clear()
        self._monitoring.register_callback(tool, self._monitoring.events.PY_START, None)
        self._monitoring.register_callback(tool, self._monitoring.events.PY_RETURN, None)
        self._monitoring.free_tool_id(tool)
        self._tool = None
