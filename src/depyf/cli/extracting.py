"""``depyf extract``: one graph of a dump as a script that runs on its own."""

from __future__ import annotations

import argparse

from depyf.messages import error_line
from depyf.visible import visible


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add it to the subparsers of the command line."""
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
    print(visible(str(answer)))
    return 1 if answer.runs is False else 0
