"""``depyf run``, whose arguments after the name of the program are never interpreted, and the hook that replaces it."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from typing import Callable, List, NoReturn, Sequence, Tuple

from depyf.base.messages import error_line
from depyf.cli.defaults import DefaultsError, apply_defaults
from depyf.cli.parsing import JSON_HELP
from depyf.running.documents import as_json
from depyf.running.program import UserProgram
from depyf.running.runner import CannotRunError, SessionOptions, run_dumped
from depyf.running.start_hook import HookError, install_hook, uninstall_hook
from depyf.running.worth import NothingMeasuredError, worth

_OPTIONS = (
    "[-o DIR] [--open] [--story] [--trace] [--profile] [--json FILE] [-q] [--follow] [--find-nonfinite] [--shadow[=N]] "
    "[--values WHICH] [--files WHICH] [--no-stepping] [--no-config]"
)
USAGE = f"depyf run {_OPTIONS} SCRIPT [ARGS...]\n       depyf run {_OPTIONS} -m MODULE [ARGS...]"

_WITH_VALUE = ("-o", "--output", "--json", "--values", "--files", "--record", "--at", "--at-call")

COMMANDS = ("run", "worth", "shadow", "fix")
"""The commands with a program, whose arguments are its own."""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``run`` to the subparsers of the command line."""
    parser = commands.add_parser(
        "run",
        usage=USAGE,
        help="run a program as it is, and explain what torch.compile did",
        description="Runs SCRIPT (a file, a folder or archive with a __main__, or a command on PATH that is written in "
        "Python) or MODULE as the interpreter does, and dumps what torch.compile makes into DIR. The output and the "
        "exit status are the program's. Progress and a summary go to the error stream. Processes that the program "
        "starts run as they do without depyf; with --follow each is dumped, too. For each rank of a distributed "
        "program: torchrun --no-python ... depyf run -o DIR SCRIPT. Defaults for these options may be in the "
        "table [tool.depyf] of pyproject.toml. The exit status is 2 when there is nothing to run.",
    )
    parser.set_defaults(run_program=run)
    parser.add_argument("-o", "--output", metavar="DIR", help="where to dump (depyf_NAME)")
    parser.add_argument("--open", action="store_true", help="open the page in a browser when the program has ended")
    parser.add_argument(
        "--story",
        action="store_true",
        help="open the page at its Story: what became of your function, in ten steps with questions",
    )
    parser.add_argument("--trace", action="store_true", help="time the graphs, and print what ran in which order")
    _add_profile(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress and no summary")
    parser.add_argument(
        "--follow",
        action="store_true",
        help="dump the processes that the program starts, too, each into its own folder in DIR, with one page of all",
    )
    parser.add_argument(
        "--find-nonfinite",
        action="store_true",
        help="find the first operation of compiled code that makes a NaN or an Inf (the program runs slower)",
    )
    parser.add_argument(
        "--shadow",
        nargs="?",
        const=1000,
        type=_number_of_calls,
        metavar="N",
        help="check one in N calls of compiled code (1000) against eager mode, on copies, and report what is wrong",
    )
    _add_options_of_sessions(parser)
    parser.add_argument("--no-config", action="store_true", help="ignore [tool.depyf] of pyproject.toml")
    parser.add_argument("-m", action="store_true", dest="module", help="run a module, as python -m does")


def _add_options_of_sessions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--values",
        choices=("all", "types"),
        help="whether the dump quotes values that the program held, or their types (types where CI is set, else all)",
    )
    parser.add_argument(
        "--files",
        choices=("read", "all"),
        help="read (the default): what is rarely read is in the folder stages, and equal states of a graph share a "
        "file; all: each state of a graph has a file, beside the others",
    )
    parser.add_argument(
        "--no-stepping",
        action="store_true",
        help="run nothing from the dump: lines in tracebacks and coverage stay those of your files, and breakpoints in "
        "the dump do not stop",
    )


def _number_of_calls(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of calls")
    return int(text)


def _add_profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile",
        action="store_true",
        help="measure what each line and module costs in five steps after compiling; a step ends with its backward()",
    )
    parser.add_argument(
        "--json", metavar="FILE", help="write the summary with all findings, and what other options measured, as JSON"
    )


def split(arguments: Sequence[str]) -> Tuple[List[str], List[str]]:
    """Return the arguments of depyf, and those from the name of the program on; for other commands all are depyf's."""
    arguments = list(arguments)
    if not arguments or arguments[0] not in COMMANDS:
        return arguments, []
    index = 1
    while index < len(arguments):
        argument = arguments[index]
        if argument == "-m" or not argument.startswith("-") or argument == "-":
            start = index + (argument == "-m")
            return arguments[:start], arguments[start:]
        if argument.startswith("-m"):
            return [*arguments[:index], "-m"], [argument[2:], *arguments[index + 1 :]]
        index += 2 if argument in _WITH_VALUE else 1
    return arguments, []


def run(options: argparse.Namespace, words: Sequence[str]) -> int:
    """Run the program ``words[0]``; return the program's exit status, or 2 without a program to run."""
    if not words:
        error_line(f"usage: {USAGE}\ndepyf run: name a script, or a module with -m")
        return 2
    try:
        if not options.no_config:
            apply_defaults(options)
    except DefaultsError as error:
        error_line(f"depyf: {error}")
        return 2
    program = UserProgram(words[0], words[1:], options.module)
    directory = os.path.abspath(options.output or f"depyf_{program.short_name}")
    chosen = SessionOptions(
        stepping=not options.no_stepping,
        values=options.values,
        files=options.files,
        shadow=options.shadow,
        profile=options.profile,
        json=options.json and os.path.abspath(options.json),
    )
    try:
        outcome = run_dumped(
            program,
            directory,
            quiet=options.quiet,
            view="#story" if options.story else "" if options.open else None,
            find_nonfinite=options.find_nonfinite,
            trace=options.trace,
            follow=options.follow,
            session=chosen,
        )
    except CannotRunError as error:
        error_line(f"depyf: {error}")
        return 2
    if outcome.interrupt is not None:
        die_of(outcome.interrupt)
    return outcome.status


def die_of(interrupt: KeyboardInterrupt) -> NoReturn:
    """End as the interpreter does after an uncaught interrupt: by the signal. It has been printed already."""
    sys.excepthook = lambda *_: None
    raise interrupt


def add_worth_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``worth`` to the subparsers of the command line."""
    parser = commands.add_parser(
        "worth",
        usage="depyf worth [--json] SCRIPT [ARGS...]\n       depyf worth [--json] -m MODULE [ARGS...]",
        help="say in three sentences whether compiling a training program pays",
        description="Runs SCRIPT or MODULE twice, as it is and then with TORCHDYNAMO_DISABLE=1, and compares the steps "
        "of both: a step ends with its backward(). Prints whether compiled steps are faster beyond the noise, after "
        "how many steps the compile time is paid back, and what guards and the slowest line cost. What the program "
        "prints and writes comes twice. Exit status 0, or 2 where too few steps were timed.",
    )
    parser.set_defaults(run_program=_worth)
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    parser.add_argument("-m", action="store_true", dest="module", help="run a module, as python -m does")


def _worth(options: argparse.Namespace, words: Sequence[str]) -> int:
    if not words:
        error_line("depyf worth: name a script, or a module with -m")
        return 2
    try:
        found = worth(UserProgram(words[0], words[1:], options.module))
        print(as_json(found) if options.json else found)
    except NothingMeasuredError as error:
        error_line(f"depyf: {error}")
        return 2
    return 0


def add_hook_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``install-hook`` and ``uninstall-hook`` to the subparsers of the command line."""
    for name, help_text, word, change in (
        (
            "install-hook",
            "let DEPYF_DUMP, DEPYF_WATCH, DEPYF_SHADOW and DEPYF_ATTACH work in every program of this Python",
            "written",
            install_hook,
        ),
        ("uninstall-hook", "remove the files of install-hook", "removed", uninstall_hook),
    ):
        parser = commands.add_parser(
            name,
            help=help_text,
            description="Writes (or removes) three small files in site-packages that make Python check the "
            "environment when it starts: with DEPYF_DUMP=DIR a program and the processes that it starts are dumped "
            "into DIR, with DEPYF_WATCH=1 they are watched, with DEPYF_SHADOW=N one in N calls of compiled code is "
            "checked, with DEPYF_ATTACH=1 `depyf attach` can ask them while they run. "
            "Without these variables nothing is imported. `depyf run "
            "--follow` needs no hook. Exit status 0, or 2 when that can't be done.",
        )
        parser.add_argument("--user", action="store_true", help="in the site-packages of the user")
        parser.set_defaults(run=functools.partial(_change_hook, word, change))


def _change_hook(word: str, change: Callable[..., List[str]], options: argparse.Namespace) -> int:
    try:
        paths = change(user=options.user)
    except HookError as error:
        error_line(f"depyf: {error}")
        return 2
    print("\n".join(f"{word:<8} {path}" for path in paths) or "there is no hook")
    return 0
