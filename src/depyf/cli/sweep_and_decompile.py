"""``depyf sweep`` and ``depyf decompile``; their arguments are in ``decompiling.py``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import List, Optional

from depyf.bytecode.opcode_table import table_for
from depyf.decompiler import decompile_code
from depyf.errors import DecompilationError
from depyf.messages import error_line
from depyf.normal.disassembly import disassembly
from depyf.regular_files import write_whole
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
from depyf.sweep.targets import find_files, find_target, stdlib_folder
from depyf.sweep.unreadable import UnreadableError
from depyf.visible import visible


def sweep(options: argparse.Namespace) -> int:
    """Run ``depyf sweep``; return the exit status."""
    table_for()  # an unsupported Python is reported once, not for every code object
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
    """Return the results of ``sweep_files`` for ``files``; write the progress to the error stream."""
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


def decompile(options: argparse.Namespace) -> int:
    """Run ``depyf decompile``; return the exit status."""
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
        write_whole(options.output, [text])
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
        raise FileNotFoundError(f"{options.target}: no .py or .pyc files in it")
    tree = SourceTree(options.target, options.output, options.verdict)
    check_nothing_is_lost(files, [tree.place_of(path) for path in files], force=options.force)
    os.makedirs(options.output, exist_ok=True)
    summary = _judge_files(files, Selection(frozenset({"module"})), options, tree)
    print(table(summary))
    for line in shortfall_lines(summary, 0, 0):
        print(line)
    return 0 if summary.all_proved and not summary.skipped else 1
