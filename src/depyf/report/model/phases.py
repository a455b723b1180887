"""The time of a compilation by phase; phases are nested."""

from __future__ import annotations

import math
from typing import Dict, List, Sequence, Tuple

from depyf.diagnosis.break_advice import called
from depyf.report.model.counts import counts_of
from depyf.report.model.run import Run

_MOST, _LONG = 0.5, 5.0
_COMPILER, _WAITING = "compile_file", "async_compile.wait"


def own_seconds(run: Run) -> Sequence[float]:
    """Return the seconds of each phase, without the seconds of phases nested in it."""
    own = [phase.seconds for phase in run.phases]
    for phase in run.phases:
        if phase.parent is not None:
            own[phase.parent] -= phase.seconds
    return [max(0.0, seconds) for seconds in own]


def phase_totals(run: Run) -> List[Tuple[str, float]]:
    """Return (words, seconds) of each kind of phase, longest first, without kinds below five milliseconds."""
    return [(words, seconds) for seconds, words, _ in parts_in_words(run) if seconds >= 0.005]


def parts_in_words(run: Run) -> List[Tuple[float, str, str]]:
    """Return (own seconds, words, torch's name of its longest phase) of each kind of phase, longest first.

    While a compiler runs in another process, the waiting for it is not counted a second time.
    """
    totals: Dict[str, float] = {}
    for phase, seconds in zip(run.phases, own_seconds(run)):
        totals[phase.name] = totals.get(phase.name, 0.0) + seconds
    if _WAITING in totals:
        totals[_WAITING] = max(0.0, totals[_WAITING] - totals.get(_COMPILER, 0.0))
    parts: Dict[str, Dict[str, float]] = {}
    for name, seconds in totals.items():
        parts.setdefault(called(name), {})[name] = seconds
    found = [(sum(names.values()), words, max(names, key=names.__getitem__)) for words, names in parts.items()]
    return sorted(found, reverse=True)


def slowest_part(run: Run) -> Tuple[str, float, str]:
    """Return (words, own seconds, torch's name of its longest phase) of the kind that takes most of the compile time.

    ``("", 0.0, "")`` if no kind takes half of the compile time and at least five seconds.
    """
    seconds, words, name = next(iter(parts_in_words(run)), (0.0, "", ""))
    if not _LONG <= seconds < math.inf or seconds < _MOST * counts_of(run).seconds:
        return "", 0.0, ""
    return words, seconds, name
