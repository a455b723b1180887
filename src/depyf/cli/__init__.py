"""The command line: arguments to calls, results to text and an exit status.

A file for each group of commands. May import everything. Start reading at ``main`` below.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import platform
import sys
import warnings
from typing import Optional, Sequence

from depyf import __version__
from depyf.base.messages import error_line
from depyf.base.visible import visible
from depyf.cli import (
    attaching,
    bug_reporting,
    completing,
    decompiling,
    documents,
    fixing,
    reporting,
    running,
    serving,
    shadowing,
)
from depyf.cli.parsing import Parser
from depyf.report.model.manifest import ManifestError
from depyf.report.read.reading import NothingToRead
from depyf.sweep.unreadable import UnreadableError


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run one command; return the exit status: 0, 1 when not all could be proved, 2 when the command failed.
    ``depyf diff`` returns 1 when the runs differ, ``depyf fix`` when no edit was kept, ``depyf run`` and ``depyf
    shadow`` the exit status of the program; ``depyf verify`` returns 1 when something differs, and 3 when something
    could not be proved."""
    own, program = running.split(sys.argv[1:] if arguments is None else arguments)
    if own and own[0] in running.COMMANDS:
        options = _parser().parse_args(own)
        status: int = options.run_program(options, program)  # a program's streams and signals are its own
        return status
    _prepare_streams()
    # What the compiler warns of in decompiled source was in the original.
    warnings.simplefilter("ignore", SyntaxWarning)
    try:
        try:
            return _run(own)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed it
        _discard_output()
        return 1
    except (OSError, UnreadableError, NothingToRead, ManifestError, NotImplementedError) as error:
        error_line(visible(f"depyf: {_in_words(error)}"))
        _discard_output()
        return 2
    except KeyboardInterrupt:
        return 130


def _run(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def _discard_output() -> None:
    """Discard the output that could not be written: the interpreter would report it at exit."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _prepare_streams() -> None:
    """Make printing safe. A process may be started with its output closed; ``print`` would then write one stream into
    the other. File names that can't be encoded are printed with escapes."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # It stays open as long as the process lives.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


class _Version(argparse.Action):
    """Prints the versions, which are looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib import metadata

        try:
            torch = f"PyTorch {metadata.version('torch')}"
        except metadata.PackageNotFoundError:
            torch = "no PyTorch"
        print(f"depyf {__version__}, Python {platform.python_version()}, {torch}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = Parser(
        prog="depyf",
        description="Opens up torch.compile; decompiles CPython bytecode, verified.",
        epilog="Exit status: 0; 1 where not all could be proved, or runs or files differ; 2 where a command can't be "
        "done; 3 where `depyf verify` has no proof; 130 after Ctrl-C. That of `depyf run` and `depyf shadow` is the "
        "program's. `depyf COMMAND --help` says more, `depyf docs` has the tutorial and all pages, `depyf example` "
        "programs to try.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the versions of depyf, Python and PyTorch")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    running.add_command(commands)
    running.add_worth_command(commands)
    shadowing.add_command(commands)
    fixing.add_command(commands)
    reporting.add_commands(commands)
    bug_reporting.add_extract_command(commands)
    reporting.add_memory_command(commands)
    decompiling.add_commands(commands)
    attaching.add_command(commands)
    serving.add_command(commands)
    running.add_hook_commands(commands)
    bug_reporting.add_command(commands)
    documents.add_commands(commands)
    completing.add_command(commands, lambda: parser)
    return parser
