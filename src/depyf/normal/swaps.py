"""SWAPs that permute the values on the stack."""

from __future__ import annotations

from typing import Hashable, List, Sequence


def swaps_between(now: Sequence[Hashable], wanted: Sequence[Hashable]) -> List[int]:
    """Return the depths of SWAPs that permute distinct values from ``now`` to ``wanted``; the last is the topmost."""
    values, made = list(now), []
    while values != list(wanted):
        place = wanted.index(values[-1])
        if place == len(values) - 1:
            place = next(index for index, value in enumerate(values) if value != wanted[index])
        values[place], values[-1] = values[-1], values[place]
        made.append(len(values) - place)
    return made
