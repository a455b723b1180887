"""Run a program once for ``depyf fix``: its outermost calls recorded, and what it compiles dumped, in one process.

The words of the command are ``FOLDER [--eager] [-m] PROGRAM [ARGS...]``. A module of its own: it is the main program of
a process that ``depyf fix`` starts.
"""

from __future__ import annotations

import atexit
import logging
import os
from typing import List

from depyf.base.messages import LOGGER, error_line
from depyf.base.visible import visible
from depyf.running.program import NoProgramError, ProgramEnd, UserProgram, run
from depyf.running.runner import CannotRunError, SessionOptions, run_dumped
from depyf.running.shadowing import Watcher, command_of
from depyf.running.torch_import import when_compiler_is_imported, when_torch_is_imported

DUMP, CALLS = "dump", "calls"
"""The folders of a run: what it compiled, and what its outermost calls computed."""

NOTHING_RAN = 97
"""The exit status where the program could not be started."""


def main(words: List[str]) -> int:
    """Run the program; return its exit status."""
    # Handlers of the program would write messages of depyf in a format of theirs, to stdout or a file of theirs, too,
    # and one run has messages that another one has not. Other lines of depyf begin with its name.
    logging.getLogger(LOGGER).setLevel(logging.CRITICAL + 1)
    folder, words = os.path.abspath(words[0]), words[1:]
    eager = words[0] == "--eager"
    words = words[eager:]
    is_module = words[0] == "-m"
    words = words[is_module:]
    program = UserProgram(words[0], words[1:], is_module)
    os.makedirs(os.path.join(folder, CALLS))
    from depyf.dynamo.questions.shadow.outer_calls import RecordedCalls

    _watch(RecordedCalls(os.path.join(folder, CALLS), command_of(program), eager=eager))
    try:
        end = _run(program, folder, eager=eager)
    except (CannotRunError, NoProgramError) as error:
        error_line(visible(f"depyf: {error}"))
        return NOTHING_RAN
    return end.status


def _run(program: UserProgram, folder: str, *, eager: bool) -> ProgramEnd:
    if eager:
        return run(program)
    chosen = SessionOptions(stepping=False, values="all")
    return run_dumped(program, os.path.join(folder, DUMP), quiet=True, session=chosen)


def _watch(watcher: Watcher) -> None:
    stops = [when_torch_is_imported(watcher.begin), when_compiler_is_imported(watcher.begin_compiler)]
    process = os.getpid()

    def at_exit() -> None:
        if os.getpid() == process:
            for stop in stops:
                stop()
            watcher.end()

    atexit.register(at_exit)
