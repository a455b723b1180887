"""``depyf shadow``, which records what a program computes, and ``depyf diff`` of two such recordings."""

from __future__ import annotations

import argparse
import os
import shlex
from typing import List, Sequence, Tuple

from depyf.answers.parted import PairsCompared, RecordingsCompared, compare_recordings, lines_of
from depyf.answers.recorded import Recording, RecordingError, read_recording, recordings_in
from depyf.base.messages import error_line
from depyf.base.visible import visible
from depyf.cli.running import die_of
from depyf.running.documents import as_json
from depyf.running.program import UserProgram
from depyf.running.runner import CannotRunError
from depyf.running.shadowing import run_compared_at, run_recorded

USAGE = (
    "depyf shadow --record DIR [--eager] SCRIPT [ARGS...]\n       depyf shadow --at N SCRIPT [ARGS...]\n"
    "       (or -m MODULE [ARGS...])"
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``shadow`` to the subparsers of the command line."""
    parser = commands.add_parser(
        "shadow",
        usage=USAGE,
        help="record what a program computes in each step, for depyf diff of two runs",
        description="With --record: runs SCRIPT or MODULE as it is, and writes a digest of each output, loss, gradient "
        "and parameter of each step into DIR; `depyf diff DIR_A DIR_B` of two runs (eager and compiled, two versions, "
        "two ranks) names the first step and module where they part by more than rounding. With --at: runs it, and "
        "compares the compiled calls of that step with eager mode, down to the operation. The exit status is the "
        "program's, or 2 when there is nothing to run.",
    )
    parser.set_defaults(run_program=_run)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--record", metavar="DIR", help="record into this folder; each rank has a file of its own")
    what.add_argument("--at", type=_number, metavar="N", help="compare the compiled calls of step N, counted from 0")
    what.add_argument(
        "--at-call",
        type=_number,
        metavar="N",
        help="the same for programs without an optimizer: step N is the call N of an outermost module or function",
    )
    parser.add_argument("--eager", action="store_true", help="record the program in eager mode: nothing is compiled")
    parser.add_argument("-m", action="store_true", dest="module", help="run a module, as python -m does")


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a step")
    return int(text)


def _run(options: argparse.Namespace, words: Sequence[str]) -> int:
    if not words:
        error_line(f"usage: {USAGE}\ndepyf shadow: name a script, or a module with -m")
        return 2
    if options.eager and options.record is None:
        error_line("depyf shadow: --eager goes with --record: --at compares compiled code")
        return 2
    program = UserProgram(words[0], words[1:], options.module)
    try:
        if options.record is not None:
            outcome = run_recorded(program, options.record, eager=options.eager)
        else:
            by_calls = options.at is None
            outcome = run_compared_at(program, options.at_call if by_calls else options.at, by_calls=by_calls)
    except CannotRunError as error:
        error_line(visible(f"depyf: {error}"))
        return 2
    if outcome.interrupt is not None:
        die_of(outcome.interrupt)
    return outcome.status


def diff_recordings(before: str, after: str, *, as_data: bool) -> int:
    """Print where recorded runs part, as text or as JSON. Return the exit status: 1 if they do, 2 if they can't be
    compared."""
    status = 0
    compared: List[RecordingsCompared] = []
    texts: List[str] = []
    try:
        pairs = _pairs(before, after)
        for one, other in pairs:
            found = compare_recordings(read_recording(one), read_recording(other))
            step = found.parting.step if found.parting else 0
            command = _command(found.before, found.after, step, by_steps=found.by_steps)
            head = [f"{os.path.basename(one)}:"] if len(pairs) > 1 else []
            text = "\n".join([*head, *lines_of(found, command)])
            if not as_data:
                print(visible(f"\n{text}" if texts else text))
            compared.append(found)
            texts.append(text)
            status = max(status, 2 if not found.compared else found.parting is not None)
        if as_data:
            print(as_json(PairsCompared(tuple(compared)), "\n\n".join(texts)))
    except RecordingError as error:
        error_line(visible(f"depyf: {error}"))
        return 2
    return status


def _pairs(before: str, after: str) -> List[Tuple[str, str]]:
    """Return the recordings to compare, one pair for each rank that both runs have. Raises ``RecordingError``."""
    sides = recordings_in(before), recordings_in(after)
    for path, found in zip((before, after), sides):
        if not found:
            raise RecordingError(f"{path}: there is no recorded run (depyf shadow --record), but the other has one")
    if all(len(found) == 1 for found in sides):
        return [(sides[0][0], sides[1][0])]
    ours, theirs = ({os.path.basename(each): each for each in found} for found in sides)
    shared = [each for each in ours if each in theirs]
    if not shared:
        raise RecordingError(f"{before} and {after} have no rank in common; name two files to compare")
    for name in sorted({*ours, *theirs} - {*shared}):
        error_line(visible(f"depyf: not compared, as only one run has it: {name}"))
    return [(ours[each], theirs[each]) for each in shared]


def _command(before: Recording, after: Recording, step: int, *, by_steps: bool) -> str:
    """Return the command that names the operation: for the program that compiled something."""
    side = before if after.header.get("eager") is True else after
    words = side.header.get("command")
    known = [str(each) for each in words] if isinstance(words, list) else []
    return " ".join(
        ["depyf shadow", "--at" if by_steps else "--at-call", str(step), *(shlex.quote(each) for each in known)]
    )
