"""PyTorch's callback before each run of transformed code, which all listeners share. It is called from C++, and an
exception in it ends the process. A signal handler may raise one wherever Python code runs, so listeners are C functions
(``in_c``), and so is their caller.
"""

from __future__ import annotations

from typing import List, Optional, Tuple

from depyf.dynamo.hooks import frame_evaluation, private_names
from depyf.dynamo.hooks.in_c import Call, InTurn, without_result
from depyf.dynamo.hooks.locks import Lock
from depyf.dynamo.hooks.patching import Undo, registered


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
        # Each nested function needs stack, of which there may be little left.
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
