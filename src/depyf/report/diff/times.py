"""Times of two programs, each run once or several times: whether they differ beyond the noise of the runs.

A module of its own: the statistics stand in one place, without the facts of a compilation.
"""

from __future__ import annotations

import functools
import math
from statistics import median
from typing import Tuple

from depyf.answers.worth import FASTER, SLOWER
from depyf.base.messages import duration
from depyf.base.quick_dataclass import dataclass

LEVEL = 0.05
"""A difference this likely to come by chance is not called one."""


@dataclass(frozen=True)
class Times:
    """The seconds of one part of compiling, or of one line of the program: a number for each run of the program before,
    and of the program after."""

    before: Tuple[float, ...]
    after: Tuple[float, ...]

    @property
    def medians(self) -> Tuple[float, float]:
        return median(self.before), median(self.after)

    def verdict(self) -> str:
        """Return what the runs allow to say: ``faster`` or ``slower``, ``within the noise``, ``too few runs``, or
        nothing for one run of each side.

        The Mann-Whitney test, two-sided, with exact probabilities (H. Mann and D. Whitney, "On a Test of Whether one of
        Two Random Variables is Stochastically Larger than the Other", 1947): no distribution of times is assumed.
        """
        one, other = len(self.before), len(self.after)
        if one == other == 1:
            return ""
        if 2 / math.comb(one + other, one) > LEVEL:  # runs that do not overlap at all come by chance more often
            return "too few runs"
        # The pairs of runs in which the later program took longer. A tie counts for half, and is rounded to the side
        # that claims less.
        longer = sum((b < a) + 0.5 * (b == a) for b in self.before for a in self.after)
        fewest = math.ceil(min(longer, one * other - longer))
        if min(1.0, 2 * _orders(fewest, one, other) / math.comb(one + other, one)) > LEVEL:
            return "within the noise"
        return SLOWER if longer > one * other / 2 else FASTER

    def spread(self, *, short: bool = False) -> Tuple[str, str]:
        """Return the median of each side with the least and the most of its runs: in seconds, or, where times are
        ``short``, with a unit for each."""
        return _spread(self.before, short=short), _spread(self.after, short=short)


def _spread(seconds: Tuple[float, ...], *, short: bool) -> str:
    middle, *ends = (
        (duration(each) if each else "0 s") if short else f"{each:.2f}"
        for each in (median(seconds), min(seconds), max(seconds))
    )
    middle = middle if short else f"{middle} s"
    return middle if len(seconds) == 1 else f"{middle} ({' to '.join(ends)})"


@functools.lru_cache(maxsize=None)
def _orders(most: int, one: int, other: int) -> int:
    """Count the orders of ``one`` and ``other`` runs in which at most ``most`` pairs have the second side longer."""
    if most < 0:
        return 0
    if not one or not other:
        return 1
    # The longest run is of the second side (it is longer than all ``one`` runs of the first), or of the first side.
    return _orders(most - one, one, other - 1) + _orders(most, one - 1, other)
