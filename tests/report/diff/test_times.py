"""Times of several runs: a difference is claimed where chance alone seldom gives it, and nowhere else."""

from __future__ import annotations

from itertools import combinations
from typing import Tuple

import pytest

from depyf.report.diff.times import LEVEL, Times


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((1.0,), (9.0,), ""),
        ((1.0,), (9.0, 9.1, 9.2), "too few runs"),
        ((1.0, 1.1, 1.2), (9.0, 9.1, 9.2), "too few runs"),
        ((1.0, 1.1, 1.2, 1.3), (9.0, 9.1, 9.2, 9.3), "slower"),
        ((9.0, 9.1, 9.2, 9.3), (1.0, 1.1, 1.2, 1.3), "faster"),
        ((1.0, 1.1, 1.2, 9.9), (1.05, 1.15, 1.25, 9.0), "within the noise"),
        ((1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0), "within the noise"),
    ],
)
def test_what_runs_allow_to_say(before: Tuple[float, ...], after: Tuple[float, ...], verdict: str) -> None:
    assert Times(before, after).verdict() == verdict


@pytest.mark.parametrize(("one", "other"), [(4, 4), (3, 5), (6, 2), (5, 6)])
def test_runs_of_one_program_are_seldom_called_different(one: int, other: int) -> None:
    """All orders of the runs are equally likely where nothing differs: counted are those that are called different."""
    runs = range(one + other)
    said = []
    for before in combinations(runs, one):
        after = [at for at in runs if at not in before]
        said.append(Times(tuple(map(float, before)), tuple(map(float, after))).verdict())
    wrong = sum(each in ("faster", "slower") for each in said)
    assert wrong <= LEVEL * len(said)
    assert said.count("faster") == said.count("slower")
    assert wrong or "too few runs" in said


def test_a_spread_names_the_fastest_and_the_slowest_run() -> None:
    assert Times((3.0, 1.0, 2.0), (5.0,)).spread() == ("2.00 s (1.00 to 3.00)", "5.00 s")
