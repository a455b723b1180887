"""Random control flow comes back proved, and takes the same path for every seed of an oracle."""

from __future__ import annotations

import pytest
from corpus import code_of_function
from random_programs import program, run

from depyf.decompiler import decompile_code

PROGRAMS = 300
SEEDS = range(25)


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_a_random_program_takes_the_same_path_when_decompiled(number: int) -> None:
    source = program(number)
    original = code_of_function(compile(source, "<program>", "exec"), "program")
    answer = decompile_code(original)
    assert answer.verdict.proved, f"{answer.reason}\n{source}"
    decompiled = code_of_function(compile(answer.source, "<decompiled>", "exec"), "program")
    for seed in SEEDS:
        assert run(decompiled, seed) == run(original, seed), f"seed {seed}\n{source}\n---\n{answer.source}"


def test_the_oracle_notices_a_changed_program() -> None:
    source = program(3)
    original = code_of_function(compile(source, "<program>", "exec"), "program")
    changed = code_of_function(compile(source.replace("probe(1)", "probe(999)"), "<changed>", "exec"), "program")
    assert any(run(original, seed) != run(changed, seed) for seed in SEEDS)


def test_runs_are_reproducible_and_differ_between_seeds() -> None:
    code = code_of_function(compile(program(5), "<program>", "exec"), "program")
    assert [run(code, seed) for seed in SEEDS] == [run(code, seed) for seed in SEEDS]
    assert len({repr(run(code, seed)) for seed in SEEDS}) > 1
