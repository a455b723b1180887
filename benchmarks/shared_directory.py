"""Measure what becomes of one directory that many processes dump into, and of one whose processes are killed.

    python benchmarks/shared_directory.py [processes] [kills] [--count N]

- ``processes``: N processes (16) at once, each with one session of five functions into the same directory
- ``kills``: N processes (30), one after the other, each killed at a random moment while it compiles; after each, a
  process that is not killed

Printed are exit statuses, seconds of each process, files, and what is wrong: a process that fails, a function without a
file, a file that is not Python, a manifest that can't be read. The exit status is 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from typing import Callable, Dict, List

COUNTS = {"processes": 16, "kills": 30}
FUNCTIONS = 5

PROGRAM = """
import os, sys, torch, depyf
first, count = int(sys.argv[2]), int(sys.argv[3])
with depyf.prepare_debug(sys.argv[1]):
    print("begun", flush=True)
    for number in range(first, first + count):
        scope = {}
        exec(f"def f{number}(x):\\n    return x * 2 + {number}\\n", scope)
        result = torch.compile(scope[f"f{number}"], backend="eager")(torch.ones(3))
        assert result.tolist() == [2.0 + number] * 3
"""


def start(directory: str, first: int, count: int) -> subprocess.Popen[str]:
    """Start a process that compiles ``count`` functions into the directory."""
    command = [sys.executable, "-c", PROGRAM, directory, str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def faults(directory: str, numbers: List[int]) -> List[str]:
    """Return what is wrong with a directory in which these functions were compiled by processes that ended."""
    from depyf.report.read.reading import load

    found = []
    names = [name for name in os.listdir(directory) if os.path.isfile(os.path.join(directory, name))]
    for name in names:
        if name.endswith(".py"):
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                try:
                    compile(file.read(), name, "exec", dont_inherit=True)
                except (SyntaxError, ValueError) as error:
                    found.append(f"{name}: {error}")
    for number in numbers:
        if not any(name.startswith(f"full_code_for_f{number}_") for name in names):
            found.append(f"f{number} has no full_code file")
    runs = load([directory])
    shown = {function.name for loaded in runs for function in loaded.run.functions}
    found += [f"f{number} is on no page" for number in numbers if f"f{number}" not in shown]
    return found


def processes(directory: str, count: int) -> List[str]:
    """Let ``count`` processes dump into the directory at once."""
    begun = time.monotonic()
    children = [start(directory, FUNCTIONS * number, FUNCTIONS) for number in range(count)]
    found, seconds = [], []
    for child in children:
        _, errors = child.communicate()
        seconds.append(time.monotonic() - begun)
        if child.returncode or errors:
            found.append(f"exit status {child.returncode}: {errors.strip().splitlines()[-1:]}")
    print(f"{count} processes at once: all had ended after {max(seconds):.1f} s")
    return found + faults(directory, list(range(FUNCTIONS * count)))


def kills(directory: str, count: int) -> List[str]:
    """Kill ``count`` processes at random moments; after each, let one end."""
    chosen, found, seconds, killed = random.Random(0), [], [], 0
    for number in range(count):
        child = start(directory, 1000 * (number + 1), 200)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(chosen.uniform(0, 3))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        killed += child.returncode == -signal.SIGKILL
        begun = time.monotonic()
        next_one = start(directory, number, 1)
        _, errors = next_one.communicate()
        seconds.append(time.monotonic() - begun)
        if next_one.returncode or errors:
            found.append(f"after kill {number}: exit status {next_one.returncode}: {errors.strip().splitlines()[-1:]}")
        wrong = faults(directory, [number])
        found += [f"after kill {number}: {each}" for each in wrong]
    fifth = max(1, count // 5)
    curve = " ".join(f"{sum(seconds[at : at + fifth]) / fifth:.1f}" for at in range(0, fifth * 5, fifth))
    print(f"{killed} of {count} killed; seconds of the next process, by fifths: {curve}")
    entries = os.path.join(directory, ".depyf_writers")
    print(f"entries of dead processes that are left: {len(os.listdir(entries)) if os.path.isdir(entries) else 0}")
    return found


PARTS: Dict[str, Callable[[str, int], List[str]]] = {"processes": processes, "kills": kills}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)} (all of them)")
    parser.add_argument("--count", type=int, help="use this number of processes or kills")
    options = parser.parse_args()
    wrong: List[str] = []
    for part in options.parts or PARTS:
        with tempfile.TemporaryDirectory() as directory:
            wrong += (found := PARTS[part](directory, options.count or COUNTS[part]))
            files = [name for name in os.listdir(directory) if os.path.isfile(os.path.join(directory, name))]
            print(f"    {len(files)} files, {len(found)} faults", *found, sep="\n    ", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
