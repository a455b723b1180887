"""``depyf attach``: ask running processes what they compile, and begin and end sessions in them."""

from __future__ import annotations

import argparse
import functools
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, Iterator, List, Mapping, Sequence, Union

from depyf.answers.attached import AttachedProcesses
from depyf.base.messages import error_line
from depyf.base.visible import visible
from depyf.running.attach import ask, descendants
from depyf.running.documents import envelope
from depyf.running.other_process import AttachError

_SECONDS = 5.0
"""How long a program may be kept waiting for its answer."""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``attach`` to the subparsers of the command line."""
    parser = commands.add_parser(
        "attach",
        help="ask a running process what it compiles now and what it has compiled",
        description="Asks processes of the same user, which go on, without a restart: what is compiled now, and from "
        "which line; all compiled functions with their entries, guards and limits; counters; settings in force. Python "
        "3.14 and later can be asked at any time (sys.remote_exec). Older ones answer a signal if they were started "
        "with DEPYF_ATTACH=1 and `depyf install-hook` had been run. Exit status 0, 2 when a process can't be asked or "
        "has not answered.",
    )
    parser.add_argument("pid", metavar="PID", type=int, nargs="+", help="the number of a process")
    parser.add_argument("--tree", action="store_true", help="ask the processes that it has started, too")
    parser.add_argument("--why", action="store_true", help="print the guards that failed last")
    parser.add_argument("--json", action="store_true", help="print all as JSON, with guards and decompiled code")
    parser.add_argument("-o", "--output", metavar="DIR", help="write the decompiled code of each function into DIR")
    parser.add_argument("--start", metavar="DIR", help="dump what the process compiles from now on into DIR")
    parser.add_argument("--stop", action="store_true", help="end the dump that --start has begun")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=float, default=30.0, help="how long to wait for an answer (30)"
    )
    parser.add_argument(
        "--signal", metavar="NAME", help="the signal that the process answers, where its environment does not say it"
    )
    parser.set_defaults(run=_attach)


def _attach(options: argparse.Namespace) -> int:
    processes = [each for pid in options.pid for each in (descendants(pid) if options.tree else [pid])]
    if options.start and len(processes) > 1:
        error_line("depyf: --start takes one process: each dump has a directory of its own")
        return 2
    if options.start and options.stop:
        error_line("depyf: --start begins a dump, and --stop ends the dump: give one option")
        return 2
    request = {
        "code": bool(options.json or options.output),
        "seconds": _SECONDS,
        "start": options.start and os.path.abspath(options.start),
        "stop": options.stop,
    }
    asked = list(dict.fromkeys(processes))
    cancelled = threading.Event()
    with ThreadPoolExecutor(max_workers=len(asked)) as pool:  # ranks wait for each other, and so would this
        try:
            found = list(pool.map(functools.partial(_asked, request, options, cancelled), asked))
        finally:  # Ctrl-C
            cancelled.set()
    answers = [each for each in found if not isinstance(each, AttachError)]
    for each in found:
        if isinstance(each, AttachError):
            error_line(visible(f"depyf: {each}"))
        elif not options.json:
            print(visible(str(each["why" if options.why and "why" in each else "text"])))
        if options.output and not isinstance(each, AttachError) and "state" in each:
            written = _write_code(options.output, each, several=len(asked) > 1)
            if not options.json:
                print("".join(visible(f"  {path}\n") for path in written), end="")
    if options.json:
        states = {"processes": [each["state"] for each in answers if "state" in each]}
        text = "\n".join(str(each.get("text", "")) for each in answers)
        print(json.dumps(envelope(AttachedProcesses, states, text), indent=1))
    else:
        print("".join(f"{line}\n" for line in _waited_for(answers, len(found))), end="")
    return 0 if len(answers) == len(found) else 2


Answer = Mapping[str, object]


def _asked(
    request: Answer, options: argparse.Namespace, cancelled: threading.Event, process: int
) -> Union[Answer, AttachError]:
    def tell(line: str) -> None:
        error_line(visible(f"depyf: {line}"))

    try:
        return ask(
            process,
            request,
            timeout=options.timeout,
            tell=tell,
            signal_name=options.signal,
            cancelled=cancelled,
        )
    except AttachError as error:
        return error


def _waited_for(answers: Sequence[Answer], asked: int) -> Iterator[str]:
    """Yield which ranks compile while others do not, or do not answer: these may wait for them."""
    states = [state for each in answers for state in [each.get("state")] if isinstance(state, dict)]
    compiling = [state for state in states if str(state.get("phase")).startswith("compiles")]
    if asked > 1 and compiling and len(compiling) < asked:
        for state in compiling:
            rank = state.get("rank")
            who = f"process {state['pid']}" if rank is None else f"rank {rank}"
            yield visible(f"{who} {state['phase']}: processes that do not compile may wait for that")


def _write_code(directory: str, found: Mapping[str, object], *, several: bool) -> List[str]:
    """Write one file for each function, below a directory of the process if there are several; return the paths."""
    state = found["state"]
    functions = state.get("functions") if isinstance(state, dict) else None
    if several and isinstance(state, dict):
        directory = os.path.join(directory, str(state["pid"]))
    os.makedirs(directory, mode=0o700, exist_ok=True)
    numbers: Dict[str, int] = {}
    written: List[str] = []
    for function in functions if isinstance(functions, list) else ():
        stem = "".join(letter if letter.isalnum() else "_" for letter in str(function["name"]))[:80]
        count = numbers[stem] = numbers.get(stem, -1) + 1
        path = os.path.join(directory, f"{stem}_{count}.py")
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(number, "w", encoding="utf-8") as file:
            file.write(str(function["code"]))
        written.append(path)
    return written
