"""Random control flow comes back proved, and takes the same path for every seed of an oracle."""

from __future__ import annotations

import re
from types import CodeType
from typing import Optional

import pytest
from corpus import code_of_function
from random_programs import program, run

from depyf.decompiler import Decompilation, DecompilationError, decompile_code

PROGRAMS = 300
SEEDS = range(25)
FLOOR = 0.7
"""The share of programs that must come back proved. They nest expressions as nobody writes them."""


def decompiled(number: int) -> Optional[Decompilation]:
    try:
        return decompile_code(code_of_program(number))
    except DecompilationError:
        return None


def code_of_program(number: int) -> CodeType:
    return code_of_function(compile(program(number), "<program>", "exec"), "program")


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_a_random_program_takes_the_same_path_when_decompiled(number: int) -> None:
    answer = decompiled(number)
    if answer is None or not answer.verdict.proved:
        pytest.skip("refused or not proved, and says so; the next test counts")
    again = code_of_function(compile(answer.source, "<decompiled>", "exec"), "program")
    for seed in SEEDS:
        expected = run(code_of_program(number), seed)
        assert run(again, seed) == expected, f"seed {seed}\n{program(number)}\n---\n{answer.source}"


def test_most_random_programs_come_back_proved() -> None:
    answers = [decompiled(number) for number in range(0, PROGRAMS, 3)]
    proved = [answer for answer in answers if answer is not None and answer.verdict.proved]
    assert len(proved) >= FLOOR * len(answers)


def test_the_oracle_notices_a_changed_program() -> None:
    noticed = 0
    for number in range(10):
        source = program(number)
        changed = code_of_function(compile(re.sub(r"probe\((\d+)\)", "probe(9\\1)", source), "<c>", "exec"), "program")
        noticed += any(run(code_of_program(number), seed) != run(changed, seed) for seed in SEEDS)
    assert noticed >= 8


def test_runs_are_reproducible_and_differ_between_seeds() -> None:
    code = code_of_function(compile(program(5), "<program>", "exec"), "program")
    assert [run(code, seed) for seed in SEEDS] == [run(code, seed) for seed in SEEDS]
    assert len({repr(run(code, seed)) for seed in SEEDS}) > 1
