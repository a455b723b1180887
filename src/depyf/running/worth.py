"""``depyf worth``: run a program twice, compiled and in eager mode, and compare its steps.

Each run is a process of its own, so that neither changes the other: ``TORCHDYNAMO_DISABLE`` keeps the second from
compiling. Both profile five steps after compiling, then time the following ones without the profiler.

A module of its own: ``runner`` runs a program in this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any, List, Mapping

from depyf.answers.nonfinite import Line
from depyf.answers.profiled import Cost, LineTime, loss_of
from depyf.answers.worth import FEWEST_PAIRS, beside, sentences
from depyf.base.asynchronous import synchronous
from depyf.running.program import UserProgram

_Measured = Mapping[str, Any]
"""A result of ``profile`` as it was written, with tuples as lists."""

_EAGER = {"TORCHDYNAMO_DISABLE": "1"}


class NothingMeasuredError(Exception):
    """Raised when the program can't be measured; names the reason."""


def worth(program: UserProgram) -> List[str]:
    """Return three sentences about the steps of a program. Raises ``NothingMeasuredError``."""
    with tempfile.TemporaryDirectory(prefix="depyf_worth_") as directory:
        compiled = _measured(program, directory, "compiled", {})
        eager = _measured(program, directory, "eager", _EAGER)
    pairs = min(len(compiled["times"]), len(eager["times"]))
    if pairs < FEWEST_PAIRS:
        raise NothingMeasuredError(
            f"the program has too few steps: {pairs} were timed after those that compile and those that are profiled, "
            f"and {FEWEST_PAIRS} are needed. A step ends with its backward(); for other programs there is "
            "depyf.profile(fn, ...).worth()"
        )
    parts = compiled["parts"]
    found = beside(
        compiled["times"][:pairs],
        eager["times"][:pairs],
        compile_seconds=compiled["compile_seconds"],
        overhead=parts["guards"] + parts["calling"],
    )
    return sentences(found, loss_of(_lines(compiled, eager)))


def _lines(compiled: _Measured, eager: _Measured) -> List[LineTime]:
    """Return the lines of the compiled run with their times in the eager one."""
    took = {Line(**each["line"]): Cost(**each["cost"]).seconds for each in eager["lines"]}
    lines = [(Line(**each["line"]), Cost(**each["cost"])) for each in compiled["lines"]]
    return [LineTime(line, cost, eager=took.get(line)) for line, cost in lines]


def _measured(program: UserProgram, directory: str, name: str, environment: Mapping[str, str]) -> _Measured:
    """Run the program, and return what it wrote."""
    path = os.path.join(directory, f"{name}.json")
    command = [sys.executable, "-m", "depyf", "run", "-q", "--no-config", "--no-stepping", "--profile", "--json", path]
    command += ["-o", os.path.join(directory, name), *(["-m"] if program.is_module else []), program.name]
    status = subprocess.run([*command, *program.arguments], env={**os.environ, **environment}, check=False).returncode
    try:
        with open(path, encoding="utf-8") as file:
            found: _Measured = json.load(file)
    except synchronous(OSError, ValueError) as error:
        raise NothingMeasuredError(f"the {name} run measured nothing (exit status {status})") from error
    return found
