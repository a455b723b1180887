"""``depyf report`` and ``depyf diff``: neither needs PyTorch."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import webbrowser
from pathlib import Path
from typing import Collection, Dict, Iterable, Sequence, Tuple

from depyf import file_names
from depyf.messages import error_line
from depyf.report.diff.comparison import compare
from depyf.report.diff.comparison_text import comparison_lines
from depyf.report.model.manifest import ManifestError
from depyf.report.read.reading import NothingToRead, load
from depyf.report.render.summary import summary_lines
from depyf.report.render.writing import where_ranks_differ, write_comparison, write_report
from depyf.visible import visible


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both to the subparsers of the command line."""
    _add_report(commands)
    _add_diff(commands)


def _add_report(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = commands.add_parser(
        "report",
        help="make the page that explains a run, from a dump or from a TORCH_TRACE log",
        description="Writes a page (index.html), index.md and manifest.json from what was captured earlier: a dump "
        "directory, or logs that were recorded with TORCH_TRACE=<directory>, packed with gzip or not. Several ranks, "
        "in one directory or in several, give one page, which shows where they differ. PyTorch is not needed. "
        "Exit status 0, 2 when there is nothing to read or the page can't be written, 130 after Ctrl-C.",
    )
    report.set_defaults(run=_report)
    report.add_argument("paths", nargs="+", metavar="PATH", help="a dump directory, a log, or a directory of logs")
    report.add_argument(
        "-o", "--output", metavar="FILE", help="the page, or its directory (PATH if that is a dump, or else this one)"
    )
    report.add_argument(
        "--perfetto", metavar="FILE.json", type=_json_file, help="write the phases as a trace for ui.perfetto.dev, too"
    )
    report.add_argument(
        "--flow",
        metavar="FILE",
        type=_flow_file,
        help="write what calls go through, too: a Mermaid chart of each function (FILE.md), or a drawing (FILE.svg)",
    )
    report.add_argument(
        "--watch",
        nargs="?",
        const=2.0,
        type=_seconds,
        metavar="SECONDS",
        help="look every so many seconds (2) whether something has changed, and write the page anew, until Ctrl-C",
    )
    report.add_argument("--open", action="store_true", help="open the page in a browser")


def _add_diff(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    diff = commands.add_parser(
        "diff",
        help="compare two runs: graph breaks, recompiles, graphs, kernels, times",
        description="Compares what was compiled in two runs (dump directories or TORCH_TRACE logs). Exit status 0 when "
        "it is the same (times do not count), 1 when not, 2 when they can't be compared. With --exit-code worse it is "
        "1 only where there are more graph breaks, recompilations, fallbacks or graphs than before, or none any more.",
    )
    diff.set_defaults(run=_diff)
    diff.add_argument("before", metavar="DIR_A")
    diff.add_argument("after", metavar="DIR_B")
    diff.add_argument("--html", metavar="FILE", help="write a page with all of it, and both runs")
    diff.add_argument(
        "--exit-code",
        nargs="?",
        const="differs",
        default="differs",
        choices=("differs", "worse"),
        help="what makes the exit status 1: that anything differs (as without it), or that something got worse",
    )
    diff.add_argument("--lines", type=int, default=30, metavar="N", help="lines of each difference of code (30)")


def _json_file(text: str) -> str:
    if not text.endswith(".json"):
        raise argparse.ArgumentTypeError(f"the name of the trace has to end in .json, and {text!r} does not")
    return text


def _flow_file(text: str) -> str:
    if not text.endswith((".md", ".svg")):
        raise argparse.ArgumentTypeError(f"the name of the charts has to end in .md or .svg, and {text!r} does not")
    return text


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.1 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.1 and 86400 seconds")
    return seconds


def _report(options: argparse.Namespace) -> int:
    return _write_one(options) if options.watch is None else _watch(options)


def _watch(options: argparse.Namespace) -> int:
    """Report when something has changed, until somebody interrupts it; the exit status is that of ``main`` then."""
    seen: object = None
    written = False
    ours = {os.path.abspath(path) for path in (options.output, options.perfetto, options.flow) if path}
    while True:
        found = _state(options.paths, ours)
        if found != seen:
            seen = found
            try:
                _write_one(options)
                options.open = False  # once
                written = True
            except (NothingToRead, ManifestError, OSError) as error:
                # It is being written, or nothing is compiled yet.
                error_line(visible(f"depyf: waiting: {error}" if not written else f"depyf: left as it was: {error}"))
            sys.stdout.flush()
        time.sleep(options.watch)


def _state(paths: Sequence[str], ours: Collection[str]) -> Dict[str, Tuple[int, int]]:
    """The files at these paths, with what changes when they do; not what a report writes: ``ours``, pages, indices."""
    found = {}
    for path in paths:
        files = [os.path.join(directory, name) for directory, _, names in os.walk(path) for name in names]
        for file in [path, *files]:
            if not file.endswith((".html", ".md")) and os.path.abspath(file) not in ours:
                with contextlib.suppress(OSError):
                    status = os.stat(file)
                    if not os.path.isdir(file):
                        found[file] = status.st_size, status.st_mtime_ns
    return found


def _write_one(options: argparse.Namespace) -> int:
    runs = load(options.paths)
    followed = [path for path in options.paths if file_names.process_folders(path)]
    page = write_report(runs, options.output or (followed[0] if followed else None), options.perfetto, options.flow)
    for loaded in runs:
        if len(runs) > 1:
            print(visible(f"{loaded.name}:"))
        for line in summary_lines(loaded.run):
            print(visible(f"  {line}" if len(runs) > 1 else line))
    for each in where_ranks_differ(runs):
        print(visible(f"! {each['title']}"))
    for note in dict.fromkeys(note for loaded in runs for note in loaded.run.notes):
        print(visible(f"note: {note}"))
    print(f"{'the page':<24}{linked(page)}")
    if options.perfetto:
        print(f"{'the trace':<24}{visible(options.perfetto)}")
    if options.flow:
        print(f"{'the flow of calls':<24}{visible(options.flow)}")
    if options.open:
        webbrowser.open(Path(page).resolve().as_uri())
    return 0


def _diff(options: argparse.Namespace) -> int:
    sides = []
    for path in (options.before, options.after):
        runs = load([path])
        if len(runs) > 1:
            others = ", ".join(loaded.name for loaded in runs[1:])
            error_line(f"depyf: {path}: {runs[0].name} is compared, and not {others}")
        sides.append(runs[0])
    before, after = sides
    names = _names(options.before, options.after)
    comparison = compare(before.named(names[0]).side, after.named(names[1]).side)
    if options.html:  # first: what can't be written is said instead of the comparison, and not after pages of it
        write_comparison(before.named(names[0]), after.named(names[1]), comparison, options.html)
    _print(comparison_lines(comparison, options.lines))
    if options.html:
        print(f"\n{'the page':<24}{linked(os.path.abspath(options.html))}")
    if options.exit_code == "differs":
        return 0 if comparison.same else 1
    try:
        got_worse = comparison.worse()
    except ValueError as error:
        error_line(f"depyf: {error}")
        return 2
    for words in got_worse:
        print(f"worse: {words}")
    return 1 if got_worse else 0


def _names(before: str, after: str) -> tuple[str, str]:
    """What the runs are called: the last parts of their paths, or all of them where these are the same."""
    short = tuple(os.path.basename(os.path.abspath(path)) for path in (before, after))
    if short[0] != short[1]:
        return short[0], short[1]
    return (before, after) if before != after else (f"{before} (1)", f"{after} (2)")


def _print(lines: Iterable[str]) -> None:
    """In colours where there is a terminal, and rich to write on it."""
    if is_coloured():
        try:
            from rich.console import Console
            from rich.text import Text
        except ImportError:
            pass
        else:
            console = Console(highlight=False, soft_wrap=True)
            for line in lines:
                console.print(Text(visible(line), style=_style(line)))
            return
    for line in lines:
        print(visible(line))


def is_coloured() -> bool:
    """Whether what is printed goes to a terminal whose user has not asked for plain text (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def linked(path: str) -> str:
    """Return the path as it is printed: on a terminal as a link (OSC 8) that opens it."""
    shown = visible(path)
    if not is_coloured():
        return shown
    return f"\x1b]8;;{Path(path).resolve().as_uri()}\x1b\\{shown}\x1b]8;;\x1b\\"


def _style(line: str) -> str:
    text = line.lstrip()
    if line.startswith("* "):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan", "!": "yellow"}.get(text[:1], "") if line.startswith(" ") else ""
