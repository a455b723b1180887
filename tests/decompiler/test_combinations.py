"""Constructs in every position where they are allowed are decompiled and proved, each function of them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from combinations import (
    chained_comparisons,
    clauses_that_bind,
    empty_loops,
    returns_out_of_blocks,
    statements_in_statements,
    ways_out_of_finally,
)

from depyf.decompiler import decompile_code

pytestmark = pytest.mark.shared


def named(modules: Any) -> Any:
    return pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in modules if source])


def is_proved(source: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = decompile_code(compile(source, "<combinations>", "exec", dont_inherit=True))
    assert answer.verdict.proved, answer.reason


@named(chained_comparisons())
def test_a_chained_comparison_of_any_operand(source: str) -> None:
    is_proved(source)


@named(ways_out_of_finally())
def test_each_clause_of_a_finally_left_in_every_way(source: str) -> None:
    is_proved(source)


@named(returns_out_of_blocks())
def test_a_return_out_of_two_blocks(source: str) -> None:
    is_proved(source)


@named(clauses_that_bind())
def test_a_clause_that_binds_the_exception(source: str) -> None:
    is_proved(source)


@named(empty_loops())
def test_a_loop_of_nothing_but_its_test(source: str) -> None:
    is_proved(source)


@named(statements_in_statements())
def test_a_statement_in_a_statement(source: str) -> None:
    is_proved(source)
