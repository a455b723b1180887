"""How depyf learns which code runs: PyTorch calls a callback before each run of transformed code, which all listeners
share, and ``sys.monitoring`` (from Python 3.12 on) reports starts and returns of single functions.

PyTorch's callback is called from C++, and an exception in it ends the process. A signal handler may raise one wherever
Python code runs, so listeners are C functions (``in_c``), and so is their caller. ``sys.monitoring`` watches only the
requested code objects; everything else runs unchanged. Exits by an exception are not reported.
"""

from __future__ import annotations

import sys
import weakref
from types import CodeType
from typing import Any, Callable, Dict, List, Optional, Tuple

from depyf.base.locks import Lock
from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import frame_evaluation, private_names
from depyf.dynamo.hooks.in_c import Call, InTurn, without_result
from depyf.dynamo.hooks.patching import Undo, registered

keep_builtins(globals())


class _Callback:
    """depyf's callback, while there are listeners. A callback that was set before is called as well."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.notes: Tuple[Call, ...] = ()
        self.installed: List[Tuple[Call, Optional[Call]]] = []
        """What PyTorch calls, and what it called before."""
        self._in_turn = InTurn()

    def refresh(self) -> None:
        """Let PyTorch call what the listeners need."""
        previous = self.installed[-1][1] if self.installed else _read()
        functions = self.notes if previous is None else (*self.notes, *without_result(previous))
        self._in_turn.set(functions)
        if not self.notes:
            self.uninstall()
            return
        # Each nested call needs stack, and little may be left: a single listener is called directly.
        wanted = functions[0] if len(functions) == 1 else self._in_turn.call
        if not self.installed:
            self.installed.append((wanted, previous))
            _write(wanted)
        elif wanted is not self.installed[-1][0] and _read() is self.installed[-1][0]:
            self.installed.append((wanted, previous))
            _write(wanted)
            del self.installed[:-1]

    def uninstall(self) -> None:
        while self.installed:
            ours, previous = self.installed[-1]
            if _read() is ours:  # else a debugger has replaced it since, and calls ours
                _write(previous)
            self.installed.pop()


_callback = _Callback()


def watch_runs(*notes: Call) -> Optional[Undo]:
    """Call each of ``notes`` with each transformed code object before it runs; return the function that ends that.

    They must be C functions that raise nothing and return something false. ``None`` if this PyTorch (before 2.13)
    reports no runs.
    """
    if not frame_evaluation.reports_runs():
        return None

    def undo() -> None:
        with _callback.lock:
            _callback.notes = tuple(each for each in _callback.notes if not any(each is note for note in notes))
            _callback.refresh()

    with _callback.lock:
        registered(undo)
        _callback.notes = (*_callback.notes, *notes)
        _callback.refresh()
    return undo


def _read() -> Optional[Call]:
    callback: Optional[Call] = private_names.GET_RUN_CALLBACK.require()()
    return callback


def _write(callback: Optional[Call]) -> None:
    private_names.SET_RUN_CALLBACK.require()(callback)


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
