"""``depyf memory``: what the graphs of a run keep alive."""

from __future__ import annotations

import argparse

from depyf.messages import error_line
from depyf.report.read.ranks import load_ranks
from depyf.report.render.memory_words import whole_lines, with_memory
from depyf.visible import visible


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add it to the subparsers of the command line."""
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


def _memory(options: argparse.Namespace) -> int:
    run = load_ranks([options.path]).runs[0].run
    known = with_memory(run)
    wanted = options.graph
    shown = [each for each in known if wanted is None or wanted == each.compile_id or wanted in each.id]
    if not shown:
        which = "there is no graph of AOTAutograd" if not known else f"none of {len(known)} graphs is {wanted}"
        error_line(visible(f"depyf: {options.path}: {which}"))
        return 2
    for number, artifact in enumerate(shown):
        if number:
            print()
        for line in whole_lines(run, artifact):
            print(visible(line))
    return 0
