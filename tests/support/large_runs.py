"""Runs of the size that the page has to stand, made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Optional, Tuple

from run_builder import RunBuilder

from depyf.report.model.run import Artifact, FailedEntryGuard, Function, Recompile, Run, SourceFile


def stormy(run: Run, count: int) -> Run:
    """A run whose first function was compiled again and again: a guard of each of the last eight entries failed."""
    failed = [
        FailedEntryGuard(
            f"0/{entry}",
            f"n == {entry}",
            f"n is {entry + 1}, and was compiled for {entry}",
            str(entry),
            str(entry + 1),
            checked="n",
            stack=((0, 17), (0, 9)),
        )
        for entry in range(count)
    ]
    recompiles = tuple(
        Recompile(
            f"0/{number}", 0, tuple(reversed(failed[max(0, number - 8) : number])), "Pass n as a tensor.", (0, 17)
        )
        for number in range(1, count)
    )
    compilations = tuple(replace(run.compilations[0], compile_id=f"0/{number}") for number in range(count))
    return replace(run, recompiles=recompiles, compilations=compilations)


def many_functions(count: int, operations: int = 30) -> Tuple[Run, Callable[[Artifact], Optional[str]]]:
    """A run of ``count`` functions, each compiled once, forward and backward."""
    length = operations + 3
    lines = [f"    x = sin(x, {line})" for line in range(length - 1)]
    text = "\n".join("\n".join([f"def f{number}(x):", *lines]) for number in range(count))
    b = RunBuilder(sources=[SourceFile("/m.py", text)])
    for number in range(count):
        first = 1 + number * length
        b.functions.append(Function(f"f{number}", f"f{number}", 0, first, first + length - 1))
        ops = [(f"sin_{at}", f"sin(x, {at})", ((0, first + 1 + at),)) for at in range(operations)]
        b.compilation(f"{number}/0", number, ops, backward=True)
    return b.run()
