"""``depyf fix``: a diff of edits that a trial has proved to help, and a table of what was tried.

A module of its own: it is a command that runs a program in other processes.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from typing import Sequence

from depyf.base.messages import error_line
from depyf.base.visible import visible
from depyf.running.documents import write_answer
from depyf.running.program import UserProgram

USAGE = (
    "depyf fix [--write [--force]] [--json FILE] [-q] SCRIPT [ARGS...]\n       "
    "depyf fix [--write [--force]] [--json FILE] [-q] -m MODULE [ARGS...]"
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``fix`` to the subparsers of the command line."""
    parser = commands.add_parser(
        "fix",
        usage=USAGE,
        help="edit a program so that it breaks and recompiles less, and prove by running it that it does the same",
        description="Runs SCRIPT or MODULE in copies of the current directory: twice as it is, then once for each edit "
        "that may remove a graph break or a recompilation, and with all edits together. An edit is kept only if its "
        "finding is gone, no other is new, outputs, gradients, changed arguments and printed text are the same, and "
        "calls do not take longer. Prints a unified diff, and to the error stream a table of what was kept or refused, "
        "and why. The program's files are not changed without --write. Exit status 0 if an edit was kept, 1 if none "
        "was, 2 when nothing could be tried or written. Needs libcst (pip install 'depyf[fix]').",
    )
    parser.set_defaults(run_program=_run)
    parser.add_argument("--write", action="store_true", help="apply the diff to the program's files")
    parser.add_argument(
        "--force", action="store_true", help="with --write: also to files that are not committed in git as they are"
    )
    parser.add_argument("--json", metavar="FILE", help="write the table and the diff as JSON (depyf docs json)")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress and no table")
    parser.add_argument("-m", action="store_true", dest="module", help="run a module, as python -m does")


def _run(options: argparse.Namespace, words: Sequence[str]) -> int:
    if not words:
        error_line(f"usage: {USAGE}\ndepyf fix: name a script, or a module with -m")
        return 2
    if not options.module and os.path.isdir(words[0]) and not os.path.exists(os.path.join(words[0], "__main__.py")):
        error_line(
            visible(
                f"depyf: {words[0]} is a folder, maybe a dump. depyf fix runs a program to try edits, and what a dump "
                "names may come from elsewhere: name the program itself, as in `depyf fix train.py --epochs 1`. `depyf "
                f"report {words[0]}` shows with which command the dump was made"
            )
        )
        return 2
    # Other commands do not wait for these.
    from depyf.fixing.edits import MissingLibcst
    from depyf.fixing.question import fix
    from depyf.fixing.trials import CannotTryError
    from depyf.fixing.writing import NotWrittenError, write_files

    _end_by_signals()
    program, root = UserProgram(words[0], words[1:], options.module), os.getcwd()
    try:
        found = fix(program, root, str if options.quiet else lambda text: error_line(visible(f"depyf fix: {text}")))
        if options.json:
            write_answer(options.json, found)
        sys.stdout.write(found.diff)
        sys.stdout.flush()
        if not options.quiet or found.refused:
            error_line(visible("\n".join(f"depyf fix: {line}" for line in found.lines())))
        if options.write and found.files:
            write_files(root, found.originals, found.files, force=options.force)
            error_line(visible(f"depyf fix: written: {', '.join(sorted(found.files))}"))
    except (MissingLibcst, CannotTryError, NotWrittenError, OSError) as error:
        error_line(visible(f"depyf: {error}"))
        return 2
    except KeyboardInterrupt:
        return 130
    return 2 if found.refused else 0 if found.files else 1


def _end_by_signals() -> None:
    """Let the signals that end a process end it as Ctrl-C does: trials and their folders are removed then."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, interrupt)
