"""Measure work by counting executed lines, which is the same on every machine, unlike time."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Callable, Dict


def lines_run(work: Callable[[], object]) -> int:
    """Return how many lines of Python run in ``work``: turns of loops count, also of loops on one line."""
    counted: Dict[str, int] = {"lines": 0}

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        counted["lines"] += event in ("line", "call")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return counted["lines"]


def grows_like(make: Callable[[int], Callable[[], object]], size: int, times: int) -> float:
    """Return how much more work ``make(times * size)`` is than ``make(size)``, divided by ``times``: 1 is linear."""
    make(size)()  # caches
    small, large = (lines_run(make(each)) for each in (size, times * size))
    return large / small / times
