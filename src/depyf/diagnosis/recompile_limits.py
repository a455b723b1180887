"""Where a function stands with Dynamo's limits of recompilation, in words."""

from __future__ import annotations

from typing import Sequence

from depyf.base.quick_dataclass import dataclass


@dataclass(frozen=True)
class LimitStanding:
    """How much of one limit is used: ``name`` and ``value`` of the setting, and the ``entries`` that count.

    Against ``recompile_limit`` only those entries count that have the same modules compiled in by identity:
    ``objects`` is the number of different sets of such modules, 0 where no entry has any, and ``entries`` is the
    count of the set with the most. Against ``accumulated_recompile_limit`` all compilations count.
    """

    name: str
    value: int
    entries: int
    objects: int = 0

    @property
    def left(self) -> int:
        """How many more compilations there may be."""
        return max(0, self.value - self.entries)

    @property
    def is_close(self) -> bool:
        """Whether half of the limit is used."""
        return 2 * self.entries >= self.value

    def __str__(self) -> str:
        of_one = f" for one of {self.objects} modules" if self.objects > 1 else ""
        used = f"{self.entries} of {self.value} ({self.name}){of_one}"
        if not self.left:
            return f"{used}: reached, nothing more is compiled"
        return f"{used}: {self.left} more, then nothing is compiled any more" if self.is_close else used


def nearest(standings: Sequence[LimitStanding]) -> Sequence[LimitStanding]:
    """Return the limit that is reached first, and another one if half of it is used as well; empty without limits."""
    in_order = sorted(standings, key=lambda each: each.left)
    return [each for number, each in enumerate(in_order) if not number or each.is_close]


def in_words(standings: Sequence[LimitStanding]) -> str:
    """Return how many entries there are of how many, and how many more may come; empty without limits."""
    return "; ".join(map(str, nearest(standings)))
