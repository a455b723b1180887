"""``depyf bug-report`` and ``depyf extract``: a dump as an archive for strangers, and a graph as a script."""

from __future__ import annotations

import argparse
import getpass
import os
import platform
import socket
import sys
import tempfile
from typing import Optional

from depyf import __version__
from depyf.base.asynchronous import synchronous
from depyf.base.messages import error_line
from depyf.base.visible import visible
from depyf.cli.parsing import JSON_HELP
from depyf.report.read.ranks import load_ranks
from depyf.report.render.bug_report import MachineNames, NotScrubbedError, bug_report, write_archive
from depyf.running.documents import as_json
from depyf.torch_trace.stages import Stage


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``bug-report`` to the subparsers of the command line."""
    parser = commands.add_parser(
        "bug-report",
        help="write one archive for an issue tracker, without paths, names and values",
        description="Writes a zip file with versions, page, manifest, and one graph as a script, of the dump DIR (of "
        "several ranks the first). Home folders, user and host names, secrets of the environment, and values of the "
        "program are left out; README.txt in it says what was. Look at it before you send it. Exit status 0, 2 when "
        "the dump has no such GRAPH, and when the archive can't be written.",
    )
    parser.set_defaults(run=_report)
    parser.add_argument("directory", metavar="DIR", help="a dump directory, or a log")
    parser.add_argument("graph", metavar="GRAPH", nargs="?", help="the graph of the script, as for `depyf extract`")
    parser.add_argument("-o", "--output", metavar="FILE.zip", default="depyf_bug_report.zip")
    parser.add_argument("--with-values", action="store_true", help="keep texts, numbers and comments of the program")


def _report(options: argparse.Namespace) -> int:
    if os.path.lexists(options.output):
        error_line(visible(f"depyf: {options.output} exists already; name another file with -o"))
        return 2
    loaded = load_ranks([options.directory]).runs[0]
    try:
        script = _script(loaded.directory or options.directory, options.graph)  # of several ranks, that of the first
        files = bug_report(loaded, _machine(), script, _versions(), with_values=options.with_values)
    except (LookupError, NotScrubbedError) as error:
        error_line(visible(f"depyf: {error}"))
        return 2
    write_archive(files, options.output)
    print(visible(f"{'the report':<24}{options.output}"))
    for line in files["README.txt"].splitlines()[2:]:
        print(visible(line))
    return 0


def _script(directory: str, graph: Optional[str]) -> str:
    """Return one graph as a script; empty without PyTorch, and if no graph has one. LookupError is raised if the graph
    that is asked for is not there.
    """
    try:
        from depyf.dynamo.questions.extract.question import extract  # needs PyTorch

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.py")
            extract(directory, graph or Stage.CAPTURED.value, path=path, check=False)
            with open(path, encoding="utf-8") as file:
                return file.read()
    except synchronous(LookupError, ImportError, OSError, ValueError, NotImplementedError) as error:
        if graph is not None and isinstance(error, LookupError):
            raise
        print(visible(f"no script: {error}"))
        return ""


def _machine() -> MachineNames:
    try:
        user = getpass.getuser()
    except synchronous(OSError, KeyError, ImportError):
        user = ""
    return MachineNames(os.environ, os.path.expanduser("~"), user, socket.gethostname())


def _versions() -> str:
    return "\n".join(
        [
            "of the machine that made this report:",
            f"depyf {__version__}",
            f"Python {platform.python_version()} ({platform.python_implementation()})",
            f"{platform.system()} {platform.machine()}",
            f"byte order {sys.byteorder}",
            "those of the run are in manifest.json",
            "",
        ]
    )


def add_extract_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``extract`` to the subparsers of the command line."""
    parser = commands.add_parser(
        "extract",
        help="write one graph of a dump as a script that runs on its own",
        description="Writes GRAPH of the dump directory DIR as a script for a bug report, which needs PyTorch and not "
        "depyf, and runs it. Its inputs have the shapes, strides and types of the dump; values are made up. Exit "
        "status 0 when the script runs and gives the same compiled as eagerly, 1 when not, 2 when it can't be made.",
    )
    parser.set_defaults(run=_extract)
    parser.add_argument("directory", metavar="DIR", help="a dump directory")
    parser.add_argument(
        "graph",
        metavar="GRAPH",
        nargs="?",
        help="a number, a compile id, __compiled_fn_1, __compiled_fn_1.before_split, or the name of a file; not needed "
        "where there is one only",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the script (GRAPH.py)")
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    running = parser.add_mutually_exclusive_group()
    running.add_argument(
        "--bisect",
        action="store_true",
        help="where it fails, run it some twenty times with PyTorch's bisector, which names the part of the compiler "
        "that makes it fail",
    )
    running.add_argument("--no-check", action="store_false", dest="check", help="write it, and do not run it")


def _extract(options: argparse.Namespace) -> int:
    from depyf.dynamo.questions.extract.question import extract  # needs PyTorch, and the other commands do not

    try:
        answer = extract(
            options.directory, options.graph, path=options.output, check=options.check, bisect=options.bisect
        )
    except (LookupError, ImportError) as error:
        error_line(visible(f"depyf: {error}"))
        return 2
    print(as_json(answer) if options.json else visible(str(answer)))
    return 1 if answer.runs is False else 0
