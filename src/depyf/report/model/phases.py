"""The time of a compilation by phase; phases are nested."""

from __future__ import annotations

import math
from typing import Dict, List, Sequence, Tuple

from depyf.diagnosis.break_advice import called
from depyf.report.model.counts import counts_of
from depyf.report.model.run import Phase, Run

_MOST, _LONG = 0.5, 5.0


def own_seconds(run: Run) -> Sequence[float]:
    """The own seconds of each phase, without those of nested phases."""
    own = [phase.seconds for phase in run.phases]
    for phase in run.phases:
        if phase.parent is not None:
            own[phase.parent] -= phase.seconds
    return [max(0.0, seconds) for seconds in own]


def phase_totals(run: Run) -> List[Tuple[str, float]]:
    """The phases with their own time, without nested phases, longest first."""
    totals: Dict[str, float] = {}
    for phase, seconds in zip(run.phases, own_seconds(run)):
        name = _phase_name(phase)
        totals[name] = totals.get(name, 0.0) + seconds
    return sorted(((name, seconds) for name, seconds in totals.items() if seconds >= 0.005), key=lambda each: -each[1])


def slowest_part(run: Run) -> Tuple[str, float, str]:
    """Return what takes most of the compile time in words, its own seconds, and torch's name of its longest phase.

    ``("", 0.0, "")`` where nothing takes half of the time and five seconds: then there is nothing to say.
    """
    parts: Dict[str, Dict[str, float]] = {}
    for phase, seconds in zip(run.phases, own_seconds(run)):
        names = parts.setdefault(called(phase.name), {})
        names[phase.name] = names.get(phase.name, 0.0) + seconds
    totals = [(sum(names.values()), words, max(names, key=names.__getitem__)) for words, names in parts.items()]
    seconds, words, name = max(totals, default=(0.0, "", ""))
    if not _LONG <= seconds < math.inf or seconds < _MOST * counts_of(run).seconds:
        return "", 0.0, ""
    return words, seconds, name


def _phase_name(phase: Phase) -> str:
    return phase.name + (" (backward)" if phase.backward and "backward" not in phase.name else "")
