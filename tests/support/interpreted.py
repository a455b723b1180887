"""Programs in normal form, run beside the bytecode that they were lowered from."""

from __future__ import annotations

import contextlib
import io
import random
from types import CodeType
from typing import Any, Callable, Dict, Iterable, List, Tuple

import random_conditions
import random_finally
import random_programs
import random_syntax
from corpus import Specimen, namespace_of, observe
from random_checks import Run, _same, time_limit

KINDS: Dict[str, Tuple[Callable[[random.Random], str], Run]] = {
    "programs": (lambda rng: random_programs.program_from(rng, rng.randint(1, 6)), random_programs.run),
    "syntax": (lambda rng: random_syntax.program(rng, rng.randint(1, 5)), random_syntax.run),
    "finally": (random_finally.program_from, random_programs.run),
    "conditions": (random_conditions.program_from, random_syntax.run),
}


def differs(run: Run, original: CodeType, other: CodeType, seeds: Iterable[int]) -> str:
    """Return where the logs of both differ first, or nothing."""
    for seed in seeds:
        with time_limit():
            mine = run(original, seed)
        with time_limit():
            theirs = run(other, seed)
        if not _same(mine, theirs):
            pair = next((pair for pair in zip(mine, theirs) if pair[0] != pair[1]), (len(mine), len(theirs)))
            return f"seed {seed}: {pair[0]}, and in normal form {pair[1]}"
    return ""


def observations(specimen: Specimen, module: CodeType) -> List[Any]:
    """What all calls of a specimen show, with the functions that ``module`` defines."""
    with contextlib.redirect_stdout(io.StringIO()):
        namespace = namespace_of(module)
    return [observe(call, namespace) for call in specimen.calls]
