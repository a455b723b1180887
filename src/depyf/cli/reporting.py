"""``depyf report``, ``depyf diff`` and ``depyf memory``: what dumps and logs show. PyTorch is not needed."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import time
import webbrowser
from pathlib import Path
from typing import Collection, Dict, Iterable, Iterator, Sequence, TextIO, Tuple

from depyf import __version__
from depyf.answers.recorded import recordings_in
from depyf.base.messages import error_line, takes_escapes, write
from depyf.base.visible import visible
from depyf.cli.caches import print_caches
from depyf.cli.parsing import JSON_HELP
from depyf.cli.shadowing import diff_recordings
from depyf.report.diff.comparison import compare
from depyf.report.diff.comparison_output import comparison_lines
from depyf.report.model.manifest import ManifestError
from depyf.report.model.run import Run
from depyf.report.read.ranks import Ranks, load_ranks
from depyf.report.read.reading import Loaded, NothingToRead, load
from depyf.report.render.annotations import github_annotations, sarif
from depyf.report.render.memory_words import memory_of, whole_lines, with_memory
from depyf.report.render.reported import Reported, reported
from depyf.report.render.summary import summary_lines
from depyf.report.render.terminal_links import addresses_of_lines, hyperlink, with_links
from depyf.report.render.writing import write_comparison, write_report, write_summaries
from depyf.running.documents import as_json
from depyf.torch_trace import file_names
from depyf.torch_trace.log_file import find_logs


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``report`` and ``diff`` to the subparsers of the command line."""
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
    _add_output(report)
    report.add_argument("--open", action="store_true", help="open the page in a browser")


def _add_output(report: argparse.ArgumentParser) -> None:
    report.add_argument(
        "--perfetto",
        metavar="FILE.json",
        type=_json_file,
        help="write phases and profiled calls for ui.perfetto.dev, too",
    )
    report.add_argument(
        "--flow",
        metavar="FILE",
        type=_flow_file,
        help="also write the flow of calls: a Mermaid chart of each function (FILE.md), or a drawing (FILE.svg)",
    )
    report.add_argument(
        "--format",
        choices=("text", "github", "sarif", "json"),
        default="text",
        help="what is printed: a summary (text), or each finding for its source line, as annotations of GitHub Actions "
        "or as a SARIF log, with paths relative to the current directory; or all of it as JSON",
    )
    report.add_argument("--json", dest="format", action="store_const", const="json", help=JSON_HELP)
    report.add_argument(
        "--caches",
        action="store_true",
        help="write no page: print where the seconds of a start from PyTorch's caches go, what missed, and why; PATH "
        "may also be a cache directory of vLLM (VLLM_CACHE_ROOT), or two whose factors are compared",
    )
    report.add_argument(
        "--watch",
        nargs="?",
        const=2.0,
        type=_seconds,
        metavar="SECONDS",
        help="check every SECONDS (2) whether something has changed, and write the page again, until Ctrl-C",
    )
    report.add_argument(
        "--summaries",
        metavar="DIR",
        help="write no page, only rank_summary.rank_N.json of each rank: a few kilobytes, from which `depyf "
        "report DIR` makes the page that compares all ranks",
    )
    report.add_argument(
        "-j",
        "--jobs",
        type=_jobs,
        metavar="N",
        help="read the logs of N ranks at once, in processes (as many as there are CPUs, where the logs are large)",
    )


def _add_diff(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    diff = commands.add_parser(
        "diff",
        help="compare two runs: graph breaks, recompiles, graphs, kernels, times",
        description="Compares what was compiled in two runs (dump directories or TORCH_TRACE logs). Exit status 0 when "
        "it is the same (times do not count), 1 when not, 2 when they can't be compared. With --exit-code worse it is "
        "1 only where there are more graph breaks, recompilations, fallbacks or graphs than before, or none any more. "
        "Times of one run each say little: with --before and --after, whether they differ beyond the runs' noise. "
        "Of two runs recorded with `depyf shadow --record`: the first step and module where they part by more than "
        "rounding.",
    )
    diff.set_defaults(run=_diff)
    diff.add_argument("before", metavar="DIR_A")
    diff.add_argument("after", metavar="DIR_B")
    for side, name in (("before", "DIR_A"), ("after", "DIR_B")):
        diff.add_argument(
            f"--{side}",
            dest=f"more_{side}",
            metavar="DIR",
            nargs="+",
            action="extend",
            default=[],
            help=f"more runs of the program of {name}, for the spread of its times",
        )
    diff.add_argument("--html", metavar="FILE", help="write a page with the comparison and both runs")
    diff.add_argument(
        "--exit-code",
        nargs="?",
        const="differs",
        default="differs",
        choices=("differs", "worse"),
        help="what makes the exit status 1: that anything differs (as without it), or that something got worse",
    )
    diff.add_argument("--json", action="store_true", help=JSON_HELP)
    diff.add_argument("--lines", type=int, default=30, metavar="N", help="lines of each difference of code (30)")


def _json_file(text: str) -> str:
    if not text.endswith(".json"):
        raise argparse.ArgumentTypeError(f"the name of the trace must end in .json: {text!r}")
    return text


def _flow_file(text: str) -> str:
    if not text.endswith((".md", ".svg")):
        raise argparse.ArgumentTypeError(f"the name of the charts must end in .md or .svg: {text!r}")
    return text


def _jobs(text: str) -> int:
    jobs = int(text)
    if not 1 <= jobs <= 1024:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 1024 processes")
    return jobs


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.1 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.1 and 86400 seconds")
    return seconds


def _report(options: argparse.Namespace) -> int:
    if options.format == "json":
        ignored = next((name for name in ("caches", "summaries", "watch") if getattr(options, name)), None)
        if ignored is not None:
            raise NothingToRead(f"--json can't be combined with --{ignored}, which prints text")
    if options.caches:
        return print_caches(options.paths)
    if options.summaries is not None:
        return _write_summaries(options)
    return _write_one(options) if options.watch is None else _watch(options)


def _watch(options: argparse.Namespace) -> int:
    """Report again when something has changed, until Ctrl-C; ``main`` then returns the exit status."""
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
                error_line(visible(f"depyf: waiting: {error}" if not written else f"depyf: not updated: {error}"))
            sys.stdout.flush()
        time.sleep(options.watch)


def _state(paths: Sequence[str], ours: Collection[str]) -> Dict[str, Tuple[int, int]]:
    """Return the files at these paths with their size and time, except those that a report writes: ``ours``, pages,
    indices, and manifests beside logs."""
    found = {}
    for path in paths:
        of_logs = bool(find_logs(path))
        files = [os.path.join(directory, name) for directory, _, names in os.walk(path) for name in names]
        for file in [path, *files]:
            made = file.endswith((".html", ".md")) or (of_logs and file_names.is_manifest(os.path.basename(file)))
            if not made and os.path.abspath(file) not in ours:
                with contextlib.suppress(OSError):
                    status = os.stat(file)
                    if not os.path.isdir(file):
                        found[file] = status.st_size, status.st_mtime_ns
    return found


def _write_summaries(options: argparse.Namespace) -> int:
    with ProgressLine(sys.stderr) as progress:
        ranks = load_ranks(options.paths, progress, options.jobs)
    for path in write_summaries(ranks, options.summaries):
        print(f"{'the summary':<24}{visible(path)}")
    return 0


def _write_one(options: argparse.Namespace) -> int:
    with ProgressLine(sys.stderr) as progress:
        ranks = load_ranks(options.paths, progress, options.jobs)
        progress("writing the page")
        followed = [path for path in options.paths if file_names.process_folders(path)]
        output = options.output or (followed[0] if followed else None)
        page = write_report(ranks, output, options.perfetto, options.flow)
    if options.format == "text":
        print("\n".join(_summary(ranks, page, options, links=is_coloured())))
    elif options.format == "json":
        of_each = tuple(reported(loaded.run, loaded.name, loaded.directory) for loaded in ranks.runs)
        differences = tuple(str(each["title"]) for each in ranks.differences())
        text = "\n".join(_summary(ranks, page, options, links=False))
        print(as_json(Reported(os.path.abspath(page), of_each, differences), text))
    else:
        _print_annotations([loaded.run for loaded in ranks.runs], options.format)
    if options.open:
        webbrowser.open(Path(page).resolve().as_uri())
    return 0


def _summary(ranks: Ranks, page: str, options: argparse.Namespace, *, links: bool) -> Iterator[str]:
    """Yield what is printed of a report; with ``links`` lines of findings lead to their place on the page."""
    runs = ranks.runs
    several = len(runs) > 1
    for number, loaded in enumerate(runs):
        if several:
            yield visible(f"{loaded.name}:")
        lines = addresses_of_lines(loaded.run, page, number if several else None) if links else {}
        for line in summary_lines(loaded.run):
            yield with_links(visible(f"  {line}" if several else line), lines)
    head = ranks.in_numbers()
    if head is not None:
        yield visible(f"{head['title']}; shown are {', '.join(loaded.name for loaded in runs)}")
    for each in ranks.differences():
        yield visible(f"! {each['title']}")
    for note in dict.fromkeys(note for loaded in runs for note in loaded.run.notes):
        yield visible(f"note: {note}")
    yield f"{'the page':<24}{linked(page) if links else visible(page)}"
    if options.perfetto:
        yield f"{'the trace':<24}{visible(options.perfetto)}"
    if options.flow:
        yield f"{'the flow of calls':<24}{visible(options.flow)}"


def _print_annotations(runs: Sequence[Run], how: str) -> None:
    if how == "sarif":
        print(json.dumps(sarif(runs, os.getcwd(), __version__), indent=1))
        return
    for line in github_annotations(runs, os.getcwd()):
        print(line)


def _diff(options: argparse.Namespace) -> int:
    if recordings_in(options.before) or recordings_in(options.after):
        if options.html or options.more_before or options.more_after:
            raise NothingToRead(
                "--html, --before and --after are for dumps and logs: recorded runs are compared in text"
            )
        return diff_recordings(options.before, options.after, as_data=options.json)
    more_paths = [*options.more_before, *options.more_after]
    paths = [options.before, options.after, *more_paths]
    real = [os.path.realpath(path) for path in paths]
    if more_paths and len(real) > len({*real}):  # it would make any difference look certain
        twice = next(path for at, path in enumerate(paths) if real[at] in real[:at])
        error_line(visible(f"depyf: {twice} is given twice: each run counts once"))
        return 2
    before, after = (_first_run(path) for path in (options.before, options.after))
    names = _names(options.before, options.after)
    more = [[_first_run(path).named(path).side for path in side] for side in (options.more_before, options.more_after)]
    comparison = compare(before.named(names[0]).side, after.named(names[1]).side, (more[0], more[1]))
    if options.html:  # first: an error is reported instead of the comparison, and not after pages of it
        write_comparison(before.named(names[0]), after.named(names[1]), comparison, options.html)
    lines = comparison_lines(comparison, options.lines)
    if options.json:
        print(as_json(comparison, "\n".join(lines)))
    else:
        _print(lines)
    if options.html and not options.json:
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


def _first_run(path: str) -> Loaded:
    runs = load([path])
    if len(runs) > 1:
        others = ", ".join(loaded.name for loaded in runs[1:])
        error_line(f"depyf: {path}: {runs[0].name} is compared; not compared: {others}")
    return runs[0]


def _names(before: str, after: str) -> tuple[str, str]:
    """Return the names of the runs: the last parts of their paths, or the whole paths where these are the same."""
    short = tuple(os.path.basename(os.path.abspath(path)) for path in (before, after))
    if short[0] != short[1]:
        return short[0], short[1]
    return (before, after) if before != after else (f"{before} (1)", f"{after} (2)")


def _print(lines: Iterable[str]) -> None:
    """Print in colours on a terminal, if rich is installed."""
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
    """Return whether the output is a terminal whose user has not asked for plain text (https://no-color.org)."""
    return takes_escapes(sys.stdout)


def linked(path: str) -> str:
    """Return the path for printing: on a terminal as a link (OSC 8) that opens it."""
    shown = visible(path)
    if not is_coloured():
        return shown
    return hyperlink(Path(path).resolve().as_uri(), shown)


def _style(line: str) -> str:
    text = line.lstrip()
    if line.startswith("* "):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan", "!": "yellow"}.get(text[:1], "") if line.startswith(" ") else ""


def add_memory_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``memory`` to the subparsers of the command line."""
    parser = commands.add_parser(
        "memory",
        help="how much memory graphs need: the peak, what is alive then, what is saved for the backward",
        description="Prints, for each forward and backward graph of a dump or a TORCH_TRACE log, and for the code that "
        "Inductor generated for it: the most memory that is alive at once, inputs included, the operation at which "
        "that is, the largest tensors at that time, and what is saved for the backward. Counted are tensors; what "
        "kernels need inside, and how an allocator rounds, is not known. PyTorch is not needed. Exit status 0, 2 when "
        "there is nothing to read, or no such graph.",
    )
    parser.set_defaults(run=_memory)
    parser.add_argument("path", metavar="PATH", help="a dump directory, or a log (of several ranks the first is read)")
    parser.add_argument("graph", metavar="GRAPH", nargs="?", help="a compile id (0/1), or a part of a file name")
    parser.add_argument("--json", action="store_true", help=JSON_HELP)


def _memory(options: argparse.Namespace) -> int:
    run = load_ranks([options.path]).runs[0].run
    known = with_memory(run)
    wanted = options.graph
    shown = [each for each in known if wanted is None or wanted == each.compile_id or wanted in each.id]
    if not shown:
        which = "there is no graph of AOTAutograd" if not known else f"none of {len(known)} graphs is {wanted}"
        error_line(visible(f"depyf: {options.path}: {which}"))
        return 2
    text = "\n\n".join("\n".join(whole_lines(run, artifact)) for artifact in shown)
    print(as_json(memory_of(run, shown), text) if options.json else visible(text))
    return 0


_SECONDS = 0.2
"""Between two changes of the line."""


class ProgressLine:
    """A line on the error stream that says what takes long, on terminals only. Call it with what is being done; leaving
    the context removes the line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = takes_escapes(stream)
        self._shown = 0.0

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if self._terminal and now - self._shown >= _SECONDS:
            self._shown = now
            width = shutil.get_terminal_size().columns - 1
            write(self._stream, f"\r{visible(text)[:width]}\x1b[K")

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            write(self._stream, "\r\x1b[K")
