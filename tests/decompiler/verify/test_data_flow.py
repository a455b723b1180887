"""The verifier tracks which value is in which variable: random programs with one variable replaced by another.

``test_mutants`` changes what a program does; here only the flow of data changes, through loops, branches and ``del``.
"""

from __future__ import annotations

import random
from types import CodeType, FunctionType
from typing import Any, List, Tuple

import pytest

from depyf.decompiler.verify import compare

VARIABLES = "abcd"
PROGRAMS = 120
MUTANTS = 6
RUNS = 15


def statements(chooser: random.Random, depth: int, indent: str) -> List[str]:
    lines: List[str] = []
    for _ in range(chooser.randint(2, 4)):
        one, other = chooser.choice(VARIABLES), chooser.choice(VARIABLES)
        kind = chooser.randrange(9)
        if kind < 2:
            lines.append(f"{indent}use({one}, {other})")
        elif kind == 2:
            lines.append(f"{indent}use({one} is {other}, {one} is not None)")
        elif kind == 3:
            lines.append(f"{indent}{one} = {other}")
        elif kind == 4:
            lines.append(f"{indent}{one} = {chooser.choice(['None', 'ask()', other + ' is None', '[' + other + ']'])}")
        elif kind == 5:
            lines.append(f"{indent}{one} = ask()")
        elif kind == 6 and depth > 1:
            lines.append(f"{indent}del {one}")
        elif depth < 3:
            test = chooser.choice(["ask()", f"ask() and {one}"])  # a loop that asks nothing may never end
            lines.append(f"{indent}{chooser.choice(['while', 'while', 'if'])} {test}:")
            lines.extend(statements(chooser, depth + 1, indent + " "))
    return lines or [f"{indent}pass"]


def mutated(lines: List[str], chooser: random.Random) -> List[str]:
    """``lines`` with another variable, or another way round, in one place."""
    places = [(index, at) for index, line in enumerate(lines) for at in range(len(line)) if _is_variable(line, at)]
    index, at = chooser.choice(places)
    line = lines[index]
    return [*lines[:index], line[:at] + chooser.choice(VARIABLES) + line[at + 1 :], *lines[index + 1 :]]


def _is_variable(line: str, at: int) -> bool:
    around = line[max(at - 1, 0) : at] + line[at + 1 : at + 2]
    return line[at] in VARIABLES and not any(letter.isalnum() or letter in "_" for letter in around)


def code_of(lines: List[str]) -> CodeType:
    text = "\n".join(["def f(use, ask, a, b):", " if 0: c = d = 0", *lines, " use(a, b)"])
    return next(const for const in compile(text, "<flow>", "exec").co_consts if isinstance(const, CodeType))


class EnoughError(Exception):
    """The run has shown enough."""


def behaviour(code: CodeType, seed: int) -> Tuple[List[str], str]:
    chooser, log = random.Random(seed), []
    numbers = iter(range(100, 160))

    def ask() -> Any:
        number = next(numbers, None)
        if number is None:
            raise EnoughError
        return number if chooser.random() < 0.6 else 0

    def use(*values: object) -> None:
        log.append(repr(values))
        if len(log) > 60:
            raise EnoughError

    try:
        return log, repr(FunctionType(code, {})(use, ask, 1, [2]))
    except (EnoughError, NameError) as error:
        return log, repr(error)


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_one_variable_is_not_taken_for_another(number: int) -> None:
    chooser = random.Random(number)
    lines = statements(chooser, 0, " ") + statements(chooser, 0, " ")
    original = code_of(lines)
    assert compare(original, code_of(lines), always_prove=True).proved
    for _ in range(MUTANTS):
        changed = mutated(lines, chooser)
        mutant = code_of(changed)
        if compare(original, mutant, always_prove=True).proved:
            for seed in range(RUNS):
                assert behaviour(original, seed) == behaviour(mutant, seed), "\n".join([*lines, "---", *changed])
