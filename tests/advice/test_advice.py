"""Each piece of advice is followed: it does what it says, changes no result, and names the cheapest remedy first."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Mapping, Tuple

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

import break_rows
import cuda_rows
import guard_rows
import limit_rows
import wrapper_rows
from harness import Remedy, Row, expected, fewer, nothing, problems

MODULES = (guard_rows, break_rows, limit_rows, wrapper_rows, cuda_rows)
ROWS = [(row, module.RULES) for module in MODULES for row in module.ROWS]

pytestmark = [pytest.mark.torch]


@pytest.mark.parametrize(("row", "rules"), ROWS, ids=[row.name for row, _ in ROWS])
def test_following_the_advice_does_what_it_says(row: Row, rules: Mapping[Any, str]) -> None:
    reason = row.skip()
    if reason:
        pytest.skip(reason)
    found = problems(row, rules)
    if found:
        pytest.fail("\n".join(found), pytrace=False)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_rule_has_a_row(module: ModuleType) -> None:
    covered = {rule for row in module.ROWS for rule in row.rules}
    assert [rule for rule in module.RULES if rule not in covered] == []
    assert [rule for rule in covered if rule not in module.RULES] == []


def test_names_are_unique() -> None:
    names = [row.name for row, _ in ROWS]
    assert sorted(names) == sorted(set(names))


SIZES = next(row for row in guard_rows.ROWS if row.name == "size of an argument")


@pytest.mark.parametrize(
    ("remedies", "problem"),
    [
        ((fewer("dynamic=True", ("compile(f)", "compile( f)"), graphs=2),), "no improvement"),
        ((fewer("dynamic=True", ("compile(f)", "compile(f, dynamic=True)"), graphs=2),), "instead of"),
        ((fewer("dynamic=True", ("x + 1", "x + 2"), ("(4, 5, 6)", "(4, 4, 4)"), graphs=1),), "other results"),
        ((fewer("in another way", ("compile(f)", "compile(f, dynamic=True)"), graphs=1),), "does not advise"),
        ((expected("dynamic=True", "call(c, torch.ones(1))", graphs=2),), "instead of"),
        ((nothing("dynamic=True", ("compile(f)", "compile(f, dynamic=True)")),), "it does help"),
        (SIZES.remedies[::-1], "named in another order"),
    ],
)
def test_a_row_whose_advice_does_not_help_is_reported(remedies: Tuple[Remedy, ...], problem: str) -> None:
    found = problems(dataclasses.replace(SIZES, remedies=remedies), guard_rows.RULES)
    assert problem in "\n".join(found)
