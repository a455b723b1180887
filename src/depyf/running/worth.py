"""``depyf worth``: run a program twice, compiled and in eager mode, and compare its steps.

Each run is a process of its own, so that neither changes the other: ``TORCHDYNAMO_DISABLE`` keeps the second from
compiling. Both profile five steps after compiling, then time the following ones without the profiler.

A module of its own, because no other module of this folder runs a program in another process.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import replace
from typing import Mapping

from depyf.answers.profiled import Profiled, eager_times, loss_of
from depyf.answers.worth import FEWEST_PAIRS, Worth, beside
from depyf.base.asynchronous import synchronous
from depyf.report.model.manifest import from_data
from depyf.running.program import UserProgram, own_command

_EAGER = {"TORCHDYNAMO_DISABLE": "1"}


class NothingMeasuredError(Exception):
    """Raised when the program can't be measured; names the reason."""


def worth(program: UserProgram) -> Worth:
    """Return whether compiling the steps of a program pays. Raises ``NothingMeasuredError``."""
    with tempfile.TemporaryDirectory(prefix="depyf_worth_") as directory:
        compiled = _measured(program, directory, "compiled", {})
        eager = _measured(program, directory, "eager", _EAGER)
    pairs = min(len(compiled.times), len(eager.times))
    if pairs < FEWEST_PAIRS:
        raise NothingMeasuredError(
            f"the program has too few steps: {pairs} were timed after those that compile and those that are profiled, "
            f"and {FEWEST_PAIRS} are needed. A step ends with its backward(); for other programs there is "
            "depyf.profile(fn, ...).worth()"
        )
    found = beside(
        compiled.times[:pairs],
        eager.times[:pairs],
        compile_seconds=compiled.compile_seconds,
        overhead=compiled.parts.guards + compiled.parts.calling,
    )
    took = eager_times(eager.lines, eager.modules)
    lines = [replace(each, eager=took.get((each.line.file, each.line.line))) for each in compiled.lines]
    return Worth(found, loss_of(lines))


def _measured(program: UserProgram, directory: str, name: str, environment: Mapping[str, str]) -> Profiled:
    """Run the program, and return what it wrote."""
    path = os.path.join(directory, f"{name}.json")
    command = [*own_command("depyf.cli"), "run", "-q", "--no-config", "--no-stepping", "--profile", "--json", path]
    command += ["-o", os.path.join(directory, name), *(["-m"] if program.is_module else []), program.name]
    status = subprocess.run([*command, *program.arguments], env={**os.environ, **environment}, check=False).returncode
    try:
        with open(path, encoding="utf-8") as file:
            return from_data(Profiled, json.load(file)["answer"]["profile"])
    except synchronous(OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise NothingMeasuredError(f"the {name} run measured nothing (exit status {status})") from error
