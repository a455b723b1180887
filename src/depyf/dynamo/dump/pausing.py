"""``debug``: pause the program, and compile nothing new meanwhile."""

from __future__ import annotations

import ast
import contextlib
import sys
from types import CodeType, FrameType
from typing import List, Optional

from depyf.base.messages import show
from depyf.base.own_package import is_own
from depyf.decompiler.syntax import parse
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.hooks import frame_evaluation, private_names, torch_names
from depyf.dynamo.hooks.debuggers import end_tracing_at_exit, watch_autograd_threads
from depyf.dynamo.hooks.hooked_context import HookedContext, uninstall
from depyf.dynamo.hooks.patching import Undo, collecting, registered, replace_attribute


class Debug(HookedContext[object]):
    """The context manager that ``debug`` returns. Entering it stops in the debugger, once."""

    _name = "debug()"

    def __init__(self) -> None:
        torch_names.require_torch("debug")
        super().__init__()
        self._undo: List[Undo] = []

    def _entry(self) -> object:
        if capture.current() is not None:
            raise RuntimeError("depyf.debug() can't be used inside depyf.prepare_debug(): leave that first")
        return super()._entry()

    def _start(self, entry: object) -> None:
        collecting(self._undo, self._install)

    def _install(self) -> None:
        registered(self._not_open)
        _debugs.append(self)
        let_nothing_compile()
        watch_autograd_threads()
        end_tracing_at_exit()

    def _not_open(self) -> None:
        _debugs[:] = [each for each in _debugs if each is not self]

    def _drop(self, entry: object) -> None:
        uninstall(self._undo, "leaving depyf.debug()")

    def _started(self) -> None:
        dumped = capture.last_directory
        pauses = "depyf pauses the program here"
        show(
            f"{pauses}; the dump is in {dumped}. Set breakpoints in the files of the dump, then continue."
            if dumped
            else f"{pauses}, but nothing was dumped, and no code runs from files: use depyf.prepare_debug first."
        )
        from depyf.dynamo.dump.in_pdb import asking_for_commands  # with pdb and readers of dumps: sessions need neither

        with asking_for_commands():
            # First in the list, so that it is undone last: the other undos are no place for ``step`` to go.
            self._undo[:0] = _pause_in(_user_frame(sys._getframe(1)))

    def __repr__(self) -> str:
        return f"depyf.debug(): {'open: nothing new is compiled' if self._open else 'not open'}"


_debugs: List[Debug] = []
"""The contexts that have been entered and not left."""


def compiles_nothing() -> bool:
    """Return whether the program is inside ``debug()``."""
    return bool(_debugs)


_PAUSE = "__import__('builtins').breakpoint()\n__builtins__\n"
"""The debugger stops at what comes after the call: the second line does nothing, and is there to be stopped at."""


def _user_frame(frame: FrameType) -> FrameType:
    """Return the frame of the ``with`` statement: the first that is neither depyf's nor ``contextlib``'s (an
    ``ExitStack``)."""
    caller: Optional[FrameType] = frame
    while caller is not None and (
        caller.f_code.co_filename == contextlib.__file__ or is_own(caller.f_code.co_filename)
    ):
        caller = caller.f_back
    return caller or frame


def _pause_in(frame: FrameType) -> List[Undo]:
    """Stop in the debugger at the current line of ``frame``, with its variables in scope. Return what is to be undone
    when ``debug()`` is left.

    pdb stops in ``frame`` itself, as soon as depyf's frames have returned. Of any other debugger only ``breakpoint()``
    is known, which stops where it is called. Called from this file, the debugger would stop in depyf, which helps
    nobody; and editors would not stop at all, since debugpy skips the files of installed packages.
    """
    from depyf.dynamo.dump.in_pdb import is_pdb, stop_in_pdb

    nobody = _nobody_would_stop()
    if is_pdb(default_hook=nobody):
        return stop_in_pdb(frame, capture.last_directory)
    undo = replace_attribute(sys, "breakpointhook", sys.__breakpointhook__) if nobody else None
    try:
        exec(_pause_at(frame.f_code.co_filename, frame.f_lineno), frame.f_globals, frame.f_locals)
    finally:
        if undo is not None:
            undo()
    return []


def _nobody_would_stop() -> bool:
    """Return whether this is a Jupyter kernel whose visual debugger is off: ``breakpoint()`` has no effect there.
    Python's own hook opens pdb, which IPython has taught to ask for its commands in the notebook."""
    debugpy = sys.modules.get("debugpy")
    if debugpy is None or "ipykernel" not in sys.modules:
        return False
    of_debugpy = str(getattr(sys.breakpointhook, "__module__", "")).startswith(("debugpy", "pydevd"))
    return of_debugpy and not debugpy.is_client_connected()


def _pause_at(filename: str, line: int) -> CodeType:
    tree = parse(_PAUSE)
    for statement, number in zip(tree.body, (2 if line == 1 else 1, line)):
        ast.increment_lineno(statement, number - statement.lineno)
    code = compile(tree, filename, "exec", dont_inherit=True)
    return code.replace(co_name="depyf.debug()")


def debug() -> Debug:
    """Return a context manager that pauses at entry, to set breakpoints in the files that ``prepare_debug`` dumped.

    On entry it prints where the dump is and calls ``breakpoint()``. Inside, compiled code runs where there is some, and
    Dynamo compiles nothing new.

    Raises ``ImportError`` without PyTorch, and ``RuntimeError`` on entering inside ``prepare_debug``.
    """
    return Debug()


def let_nothing_compile() -> None:
    """Have Dynamo run what it has compiled, and the rest as plain Python, until what this registers is undone."""
    if torch_names.find("torch.compiler", "set_stance") is None:
        _run_only()
    else:
        frame_evaluation.set_stance("eager_on_recompile")


def _run_only() -> None:
    """Do the same in a torch without stances: every callback that Dynamo would set means "run only"."""
    eval_frame = private_names.SET_EVAL_FRAME.holder()
    original = eval_frame.set_eval_frame

    def set_eval_frame(callback: object) -> object:
        return original(False if callable(callback) else callback)

    for name in [name for name, value in vars(eval_frame).items() if value is original]:  # some versions have an alias
        replace_attribute(eval_frame, name, set_eval_frame)
