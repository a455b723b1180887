"""``depyf shadow``: run a program once, recorded (``--record``), or with one of its steps compared (``--at``).

The program runs as the interpreter would run it. Recording begins when it has imported torch, and not earlier, so that
its own setup of torch takes effect.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
from typing import List, Protocol

from depyf.base.asynchronous import synchronous
from depyf.running.program import NoProgramError, ProgramEnd, UserProgram, run
from depyf.running.runner import CannotRunError
from depyf.running.torch_import import when_compiler_is_imported, when_torch_is_imported


class Watcher(Protocol):
    """What looks at a program that runs."""

    def begin(self) -> None:
        """Begin when torch has been imported."""

    def begin_compiler(self) -> None:
        """Go on when torch's compiler has been imported."""

    def end(self) -> None:
        """End when the process ends."""


def command_of(program: UserProgram) -> List[str]:
    """Return the words that name the program in a command line of depyf."""
    return [*(["-m"] if program.is_module else []), program.name, *program.arguments]


def run_recorded(program: UserProgram, folder: str, *, eager: bool) -> ProgramEnd:
    """Run a program, and write what it computes, as digests, into the folder. Raises ``CannotRunError``."""
    _require_torch()
    try:
        os.makedirs(folder, exist_ok=True)
    except synchronous(OSError) as error:
        raise CannotRunError(f"{folder}: no directory can be made there ({error.strerror})") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CannotRunError(f"{folder}: this directory can't be written")
    from depyf.dynamo.questions.shadow.record_file import RecordedRun

    return _watched(program, RecordedRun(os.path.abspath(folder), command_of(program), eager=eager))


def run_compared_at(program: UserProgram, step: int, *, by_calls: bool) -> ProgramEnd:
    """Run a program, and compare the compiled calls of one step with eager mode. Raises ``CannotRunError``."""
    _require_torch()
    from depyf.dynamo.questions.shadow.at_step import StepComparison

    return _watched(program, StepComparison(step, by_calls=by_calls))


def _require_torch() -> None:
    if importlib.util.find_spec("torch") is None:
        raise CannotRunError("depyf shadow needs PyTorch: install it with `pip install torch`")


def _watched(program: UserProgram, watcher: Watcher) -> ProgramEnd:
    stops = [when_torch_is_imported(watcher.begin), when_compiler_is_imported(watcher.begin_compiler)]
    process = os.getpid()

    def at_exit() -> None:
        if os.getpid() != process:
            return
        for stop in stops:
            stop()
        watcher.end()

    atexit.register(at_exit)
    try:
        return run(program)
    except NoProgramError as error:
        atexit.unregister(at_exit)
        for stop in stops:
            stop()
        raise CannotRunError(str(error)) from error
