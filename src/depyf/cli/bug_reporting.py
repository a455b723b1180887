"""``depyf bug-report``: a dump as one archive that can be sent to strangers."""

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
from depyf.asynchronous import synchronous
from depyf.messages import error_line
from depyf.report.read.ranks import load_ranks
from depyf.report.render.bug_report import Machine, NotScrubbedError, bug_report, write_archive
from depyf.torch_trace.stages import Stage
from depyf.visible import visible


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add it to the subparsers of the command line."""
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


def _machine() -> Machine:
    try:
        user = getpass.getuser()
    except synchronous(OSError, KeyError, ImportError):
        user = ""
    return Machine(os.environ, os.path.expanduser("~"), user, socket.gethostname())


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
