"""``depyf sweep`` and ``depyf decompile``; their arguments are in ``decompiling.py``."""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from pathlib import Path
from typing import List, Optional, Sequence, TextIO

from depyf.base.archives import is_archive
from depyf.base.messages import error_line
from depyf.base.quick_dataclass import dataclass
from depyf.base.regular_files import write_whole
from depyf.base.visible import visible
from depyf.decompiler import Decompilation, DecompilationError, check_python, decompile_code, disassembly
from depyf.sweep.judge import Keep, Result
from depyf.sweep.limits import Limits, TimeLimit, memory_limited, time_limited
from depyf.sweep.pool import Selection, Skipped, sweep_files
from depyf.sweep.summary import (
    Summary,
    SweepProgress,
    comparison_lines,
    places_of_shortfalls,
    read_json,
    shortfall_lines,
    table,
    write_json,
)
from depyf.sweep.targets import Target, find_files, find_target, module_name, stdlib_folder
from depyf.sweep.unreadable import UnreadableError


def sweep(options: argparse.Namespace) -> int:
    """Run ``depyf sweep``; return the exit status."""
    check_python()  # an unsupported Python is reported once, not for every code object
    earlier = None if options.compare is None else _earlier_run(options.compare)
    only = None if options.retry is None else places_of_shortfalls(_earlier_run(options.retry))
    names: List[str] = [*options.names, *([stdlib_folder()] if options.stdlib else []), *(only or ())]
    if not names:
        error_line("depyf sweep: name a module, a folder, --stdlib or --retry FILE")
        return 2
    selection = Selection(options.kinds, options.name, options.sample, only, options.whole)
    files = find_files(names, tests=not options.no_tests)
    if not files:
        raise FileNotFoundError(f"{', '.join(names)}: no .py or .pyc files in it")
    summary = _judge_files(files, selection, options)
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
    progress = SweepProgress(sys.stderr, len(files))
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
    check_python()
    if os.path.isdir(options.target) or (is_archive(options.target) and not options.target.endswith((".py", ".pyc"))):
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
    target = find_target(options.target, options.python)
    for remark in target.remarks:
        error_line(visible(f"depyf: {target.path}: {remark}"))
    to_file = options.output not in (None, "-")
    if to_file:
        check_nothing_is_lost([target.path], [options.output], force=options.force)
    if options.listing:
        for line in disassembly(target.code):
            print(visible(line))
    try:
        answer = decompile_code(target.code, unsafe=options.unsafe, python=options.python)
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
    check_nothing_is_lost(files, [tree.path_for(path) for path in files], force=options.force)
    os.makedirs(options.output, exist_ok=True)
    summary = _judge_files(files, Selection(frozenset({"module"}), python=options.python), options, tree)
    print(table(summary))
    for line in shortfall_lines(summary, 0, 0):
        print(line)
    return 0 if summary.all_proved and not summary.skipped else 1


# --- where decompiled source is written to


@dataclass(frozen=True)
class SourceTree:
    """Writes the sources of the modules below ``folder`` to the same relative paths below ``output``."""

    folder: str
    output: str
    verdicts: bool = False

    def __call__(self, target: Target, answer: Decompilation) -> None:
        path = self.path_for(target.path)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, [source_of(answer, verdict=self.verdicts)])

    def path_for(self, path: str) -> str:
        parent = os.path.relpath(os.path.dirname(path) or ".", self.folder)
        if os.path.basename(parent) == "__pycache__":
            parent = os.path.dirname(parent)
        return os.path.normpath(os.path.join(self.output, parent, f"{module_name(path)}.py"))


def check_nothing_is_lost(inputs: Sequence[str], outputs: Sequence[str], *, force: bool) -> None:
    """Raise ``FileExistsError`` where ``outputs`` would replace one of ``inputs`` or, without ``force``, any file.
    Devices and pipes are written to, and lose nothing."""
    read = {os.path.realpath(path) for path in inputs}
    present = [path for path in outputs if os.path.isfile(path) or os.path.islink(path)]
    own = next((path for path in present if os.path.realpath(path) in read), None)
    if own is not None:
        raise FileExistsError(f"{own}: would replace the input: write to another path")
    if present and not force:
        more = f" and {len(present) - 1} more files exist" if len(present) > 1 else " exists"
        raise FileExistsError(f"{present[0]}{more} already: write to another path, or replace with --force")


def source_of(answer: Decompilation, *, verdict: bool) -> str:
    """Return the text to write for a result; with ``verdict`` a last line has its verdict."""
    text = answer.source if answer.source.endswith("\n") or not answer.source else f"{answer.source}\n"
    if not verdict:
        return text
    return f"{text}# depyf: {answer.verdict_line()}\n"


def print_source(text: str, stream: TextIO) -> None:
    """Write source to a stream, as UTF-8 where its encoding lacks some of the characters."""
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    stream.write(text)
