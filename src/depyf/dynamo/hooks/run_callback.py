"""Being told before each run of transformed code: torch has one callback for that, which all that want to know share.

It is called from C++ each time that Dynamo's code runs, so nothing here does more than it must. An exception in it ends
the process, and a signal handler of the program's may raise one wherever Python code runs. So a listener that is a
function in C is called without any Python of ours, as long as it is the only one.
"""

from __future__ import annotations

from types import BuiltinFunctionType, CodeType
from typing import Callable, List, Optional, Tuple

from depyf.dynamo.hooks import frame_evaluation, private_names
from depyf.dynamo.hooks.locks import Lock
from depyf.dynamo.hooks.patching import Undo, registered

Note = Callable[[CodeType], object]


class _Callback:
    """Our callback, from the first listener to the last. One that somebody else had set before is called as well."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.notes: Tuple[Note, ...] = ()
        self.installed: List[Tuple[Note, Optional[Note]]] = []
        """What torch calls, and what it called before."""

    def refresh(self) -> None:
        """Let torch call what the listeners need."""
        if not self.notes or (self.installed and self._is_safe() != self._may_be_safe()):
            self.uninstall()
        if self.notes and not self.installed:
            self.install()

    def _is_safe(self) -> bool:
        return isinstance(self.installed[-1][0], BuiltinFunctionType)

    def _may_be_safe(self) -> bool:
        """Whether there is one listener only, and it is in C."""
        alone = not self.installed or self.installed[-1][1] is None
        return alone and len(self.notes) == 1 and isinstance(self.notes[0], BuiltinFunctionType)

    def install(self) -> None:
        previous = _read()
        if previous is None and self._may_be_safe():
            self.installed.append((self.notes[0], None))
            _write(self.notes[0])
            return

        def about_to_run(code: CodeType) -> None:
            for note in self.notes:
                note(code)
            if previous is not None:
                previous(code)

        frame_evaluation.skip_code(about_to_run.__code__)  # Dynamo is on when it is called
        self.installed.append((about_to_run, previous))
        _write(about_to_run)

    def uninstall(self) -> None:
        while self.installed:
            ours, previous = self.installed[-1]
            if _read() is ours:  # else somebody's debugger has come after us, and calls ours
                _write(previous)
            self.installed.pop()


_callback = _Callback()


def watch_runs(note: Note) -> Optional[Undo]:
    """Call ``note`` with each transformed code object before it runs; return the function that ends it.

    ``note`` must not raise; best it is a function in C. ``None`` where this torch (before 2.13) does not tell.
    """
    if not frame_evaluation.tells_runs():
        return None
    code = getattr(note, "__code__", None)
    if code is not None:
        frame_evaluation.skip_code(code)
    done = False

    def undo() -> None:
        nonlocal done
        with _callback.lock:
            if not done and note in _callback.notes:
                at = _callback.notes.index(note)
                done, _callback.notes = True, _callback.notes[:at] + _callback.notes[at + 1 :]
            _callback.refresh()

    with _callback.lock:
        registered(undo)
        _callback.notes = (*_callback.notes, note)
        _callback.refresh()
    return undo


def _read() -> Optional[Note]:
    callback: Optional[Note] = private_names.GET_RUN_CALLBACK.require()()
    return callback


def _write(callback: Optional[Note]) -> None:
    private_names.SET_RUN_CALLBACK.require()(callback)
