"""Bugs in one attempt are visible to the tests; a user gets the next attempt."""

from __future__ import annotations

from types import CodeType

import pytest

from depyf.base.own_bugs import as_for_users
from depyf.decompiler import decompile_code
from depyf.decompiler.pipeline import attempts


def function() -> CodeType:
    def double(a: int) -> int:
        return a + a

    return double.__code__


@pytest.fixture
def bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> object:
        raise KeyError("planted")

    monkeypatch.setattr(attempts, "simplify", broken)


@pytest.mark.usefixtures("bug")
def test_a_bug_in_a_pass_costs_a_user_the_form_alone() -> None:
    with as_for_users():
        assert decompile_code(function()).verdict.proved


@pytest.mark.usefixtures("bug")
def test_a_bug_in_a_pass_fails_a_test() -> None:
    with pytest.raises(KeyError, match="planted"):
        decompile_code(function())


def test_a_refusal_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> object:
        raise ValueError("it has no such form")

    monkeypatch.setattr(attempts, "simplify", refuse)
    assert decompile_code(function()).verdict.proved
