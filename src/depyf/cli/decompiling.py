"""``depyf sweep`` and ``depyf decompile``."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from typing import FrozenSet, List, Optional

from depyf.bytecode.opcode_table import table_for
from depyf.decompiler import decompile_code
from depyf.messages import error_line
from depyf.normal.disassembly import disassembly
from depyf.regular_files import write_whole
from depyf.result import DecompilationError
from depyf.sweep.judge import Keep, Result
from depyf.sweep.limits import Limits, TimeLimit, memory_limited, time_limited
from depyf.sweep.output import SourceTree, check_nothing_is_lost, print_source, source_of
from depyf.sweep.pool import Selection, Skipped, sweep_files
from depyf.sweep.progress import Progress
from depyf.sweep.summary import (
    Summary,
    comparison_lines,
    places_of_shortfalls,
    read_json,
    shortfall_lines,
    table,
    write_json,
)
from depyf.sweep.targets import UnreadableError, find_files, find_target, stdlib_folder
from depyf.visible import visible

KINDS = ("module", "class", "function", "lambda")


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both to the subparsers of the command line."""
    _add_sweep(commands)
    _add_decompile(commands)


def _add_sweep(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sweep = commands.add_parser(
        "sweep",
        help="decompile and verify all code objects of modules or folders, and name what falls short",
        description="Compiles (never imports) every .py file, decompiles each code object and verifies the answer. "
        "Comprehensions are decompiled with the code that they stand in. Exit status 1 when not all were proved.",
    )
    sweep.set_defaults(run=_sweep)
    sweep.add_argument("names", nargs="*", metavar="MODULE|FOLDER|FILE")
    sweep.add_argument("--stdlib", action="store_true", help="the whole standard library of this Python")
    sweep.add_argument("--no-tests", action="store_true", help="leave out folders named test or tests")
    sweep.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    sweep.add_argument("--timeout", type=_positive, default=20.0, metavar="S", help="CPU seconds a code object (20)")
    sweep.add_argument("--memory", type=int, default=4096, metavar="MIB", help="for a worker process (4096)")
    sweep.add_argument(
        "--kinds", type=_kinds, default=",".join(KINDS), help="of code objects, with commas (%(default)s)"
    )
    sweep.add_argument(
        "--whole",
        action="store_true",
        help="judge modules and classes first, and count what stands in one that is proved with it (faster; a function "
        "is then proved where it stands, and not on its own)",
    )
    sweep.add_argument("--name", type=_regex, metavar="REGEX", help="only code objects whose qualified name matches")
    sweep.add_argument("--sample", type=_positive, default=1.0, metavar="SHARE", help="a share of them, e.g. 0.05")
    sweep.add_argument("--retry", metavar="FILE", help="only what fell short in the run that wrote this JSON")
    sweep.add_argument("--top", type=int, default=20, metavar="N", help="reasons to show (20; 0 shows all)")
    sweep.add_argument("--list", type=int, default=3, metavar="N", help="examples a reason, smallest first (3; 0: all)")
    sweep.add_argument("--json", metavar="FILE", help="write every row")
    sweep.add_argument("--compare", metavar="FILE", help="say what changed since the run that wrote this JSON")


def _add_decompile(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    decompile = commands.add_parser(
        "decompile",
        help="print the source of a module or of one function, or write a tree of sources",
        description="Decompiles a .pyc file of this Python or an older one, a .py file (compiled first), all modules "
        "of a folder, or one function or class. Nothing is imported. Exit status 0 when the text alone is proved to be "
        "the same, 1 when not (or only with what a comment at its head lists), 2 when there is nothing to decompile or "
        "it can't be written.",
    )
    decompile.set_defaults(run=_decompile)
    decompile.add_argument(
        "target",
        help="a .pyc or .py file, a folder or a module; with :qualname or :line for one function or class "
        "(heapq:merge, a/b.py:Class.name, c.pyc:12)",
    )
    decompile.add_argument(
        "-o", "--output", metavar="PATH", help="the file to write, for a folder the folder (no -: print)"
    )
    decompile.add_argument(
        "-f", "--force", action="store_true", help="replace files that are there (never what is read)"
    )
    decompile.add_argument("--verdict", action="store_true", help="say in the last line how far the source was proved")
    decompile.add_argument(
        "--dis", "--bytecode", action="store_true", dest="listing", help="print the bytecode first, and what it means"
    )
    decompile.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="for a folder")
    decompile.add_argument(
        "--timeout", type=_positive, default=600.0, metavar="S", help="CPU seconds for a module (600)"
    )
    decompile.add_argument("--memory", type=int, default=4096, metavar="MIB", help="for a module (4096)")


def _kinds(text: str) -> FrozenSet[str]:
    found = frozenset(text.split(","))
    if not found <= set(KINDS):
        raise argparse.ArgumentTypeError(f"kinds of code objects are {', '.join(KINDS)}")
    return found


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error
    return text


def _positive(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text} is not more than nothing")
    return number


def _sweep(options: argparse.Namespace) -> int:
    table_for()  # a Python that is not supported is said once, and not for every code object
    earlier = None if options.compare is None else _earlier_run(options.compare)
    only = None if options.retry is None else places_of_shortfalls(_earlier_run(options.retry))
    names: List[str] = [*options.names, *([stdlib_folder()] if options.stdlib else []), *(only or ())]
    if not names:
        error_line("depyf sweep: name a module, a folder, --stdlib or --retry FILE")
        return 2
    selection = Selection(options.kinds, options.name, options.sample, only, options.whole)
    summary = _judge_files(find_files(names, tests=not options.no_tests), selection, options)
    if options.json:
        write_json(summary, options.json)
    print(table(summary))
    for line in shortfall_lines(summary, options.top, options.list):
        print(line)
    if earlier is not None:
        for line in comparison_lines(earlier, summary):
            print(line)
    return 0 if summary.all_proved and not summary.unreadable else 1


def _earlier_run(path: str) -> Summary:
    try:
        return read_json(path)
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"{path}: not what sweep --json writes ({type(error).__name__}: {error})") from error


def _judge_files(
    files: List[str], selection: Selection, options: argparse.Namespace, keep: Optional[Keep] = None
) -> Summary:
    """Return what ``sweep_files`` says of ``files``; write the progress to the error stream."""
    summary = Summary()
    progress = Progress(sys.stderr, len(files))
    start = time.monotonic()
    limits = Limits(options.timeout, options.memory)
    for message in sweep_files(files, selection, limits, max(1, options.jobs), keep):
        if isinstance(message, Result):
            summary.results.append(message)
        elif isinstance(message, Skipped):
            summary.skipped.append(message)
        progress(message)
    summary.seconds = time.monotonic() - start
    progress.close()
    return summary


def _decompile(options: argparse.Namespace) -> int:
    table_for()
    if os.path.isdir(options.target):
        return _decompile_folder(options)
    try:
        with memory_limited(options.memory), time_limited(options.timeout):
            return _decompile_target(options)
    except TimeLimit:
        error_line(f"depyf: {options.target}: not done in {options.timeout:g} s of CPU time (--timeout)")
    except MemoryError:
        error_line(f"depyf: {options.target}: needs more than {options.memory} MiB (--memory)")
    return 1


def _decompile_target(options: argparse.Namespace) -> int:
    target = find_target(options.target)
    to_file = options.output not in (None, "-")
    if to_file:
        check_nothing_is_lost([target.path], [options.output], force=options.force)
    if options.listing:
        for line in disassembly(target.code):
            print(visible(line))
    try:
        answer = decompile_code(target.code)
    except DecompilationError as error:
        error_line(visible(f"depyf: {error}"))
        return 1
    text = source_of(answer, verdict=options.verdict)
    if to_file:
        os.makedirs(os.path.dirname(options.output) or ".", exist_ok=True)
        write_whole(options.output, text)
    else:
        print_source(text, sys.stdout)
    error_line(visible(f"{target.label}: {answer.verdict_line()}"))
    return 0 if answer.verdict.proved else 1


def _decompile_folder(options: argparse.Namespace) -> int:
    if options.output in (None, "-") or options.listing:
        error_line("depyf decompile: for a folder, name the folder of the sources with -o, without --dis")
        return 2
    files = find_files([options.target])
    if not files:
        raise FileNotFoundError(f"{options.target}: no .py or .pyc files in there")
    tree = SourceTree(options.target, options.output, options.verdict)
    check_nothing_is_lost(files, [tree.place_of(path) for path in files], force=options.force)
    os.makedirs(options.output, exist_ok=True)
    summary = _judge_files(files, Selection(frozenset({"module"})), options, tree)
    print(table(summary))
    for line in shortfall_lines(summary, 0, 0):
        print(line)
    return 0 if summary.all_proved and not summary.skipped else 1
