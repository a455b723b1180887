"""The command line: arguments to calls."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import List, Optional, Sequence

from depyf.bytecode.opcode_table import table_for
from depyf.decompiler import decompile_code
from depyf.normal.disassembly import disassembly
from depyf.result import DecompilationError
from depyf.sweep.judge import Result
from depyf.sweep.pool import Limits, Selection, Skipped, sweep_files
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
from depyf.sweep.targets import find_files, find_target, stdlib_folder

KINDS = ("module", "class", "function", "lambda")


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run one command; returns the exit status: 0, 1 when not all could be proved, 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except (FileNotFoundError, NotImplementedError) as error:
        print(f"depyf: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough; without this the interpreter complains while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="depyf", description="Decompile CPython bytecode, verified.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

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
    sweep.add_argument("--timeout", type=float, default=20.0, metavar="S", help="CPU seconds a code object (20)")
    sweep.add_argument("--memory", type=int, default=4096, metavar="MIB", help="for a worker process (4096)")
    sweep.add_argument("--kinds", default=",".join(KINDS), help="of code objects, with commas (%(default)s)")
    sweep.add_argument("--name", metavar="REGEX", help="only code objects whose qualified name matches")
    sweep.add_argument("--sample", type=float, default=1.0, metavar="SHARE", help="a share of them, e.g. 0.05")
    sweep.add_argument("--retry", metavar="FILE", help="only what fell short in the run that wrote this JSON")
    sweep.add_argument("--top", type=int, default=20, metavar="N", help="reasons to show (20; 0 shows all)")
    sweep.add_argument("--list", type=int, default=3, metavar="N", help="examples a reason, smallest first (3; 0: all)")
    sweep.add_argument("--json", metavar="FILE", help="write every row")
    sweep.add_argument("--compare", metavar="FILE", help="say what changed since the run that wrote this JSON")

    decompile = commands.add_parser("decompile", help="print the source of one code object")
    decompile.set_defaults(run=_decompile)
    decompile.add_argument(
        "target", help="a module or .py file, with :qualname or :line for one function (heapq:merge, a/b.py:Class.name)"
    )
    decompile.add_argument("--bytecode", action="store_true", help="print its disassembly first")
    return parser


def _sweep(options: argparse.Namespace) -> int:
    table_for()  # a Python that is not supported is said once, and not for every code object
    earlier = None if options.compare is None else read_json(options.compare)
    only = None if options.retry is None else places_of_shortfalls(read_json(options.retry))
    names: List[str] = [*options.names, *([stdlib_folder()] if options.stdlib else []), *(only or ())]
    if not names:
        print("depyf sweep: name a module, a folder, --stdlib or --retry FILE", file=sys.stderr)
        return 2
    selection = Selection(frozenset(options.kinds.split(",")), options.name, options.sample, only)
    files = find_files(names, tests=not options.no_tests)
    summary = Summary()
    progress = Progress(sys.stderr, len(files))
    start = time.monotonic()
    for message in sweep_files(files, selection, Limits(options.timeout, options.memory), max(1, options.jobs)):
        if isinstance(message, Result):
            summary.results.append(message)
        elif isinstance(message, Skipped):
            summary.skipped.append(message)
        progress(message)
    summary.seconds = time.monotonic() - start
    progress.close()
    if options.json:
        write_json(summary, options.json)
    print(table(summary))
    for line in shortfall_lines(summary, options.top, options.list):
        print(line)
    if earlier is not None:
        for line in comparison_lines(earlier, summary):
            print(line)
    return 0 if summary.all_proved else 1


def _decompile(options: argparse.Namespace) -> int:
    target = find_target(options.target)
    if options.bytecode:
        for line in disassembly(target.code):
            print(line)
    try:
        answer = decompile_code(target.code)
    except DecompilationError as error:
        print(f"depyf: {error}", file=sys.stderr)
        return 1
    print(answer.source)
    verdict = answer.verdict.value + (f": {answer.reason}" if answer.reason else "")
    print(f"{target.label}: {verdict}", file=sys.stderr)
    return 0 if answer.verdict.proved else 1
