"""The time of a compilation by phase; phases stand inside of each other."""

from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from depyf.report.model.run import Phase, Run


def own_seconds(run: Run) -> Sequence[float]:
    """Of each phase, the seconds that are not those of a phase inside of it."""
    own = [phase.seconds for phase in run.phases]
    for phase in run.phases:
        if phase.parent is not None:
            own[phase.parent] -= phase.seconds
    return [max(0.0, seconds) for seconds in own]


def phase_totals(run: Run) -> List[Tuple[str, float]]:
    """The phases with the time spent in each and in no phase inside of it, the longest first."""
    totals: Dict[str, float] = {}
    for phase, seconds in zip(run.phases, own_seconds(run)):
        name = _phase_name(phase)
        totals[name] = totals.get(name, 0.0) + seconds
    return sorted(((name, seconds) for name, seconds in totals.items() if seconds >= 0.005), key=lambda each: -each[1])


def _phase_name(phase: Phase) -> str:
    return phase.name + (" (backward)" if phase.backward and "backward" not in phase.name else "")
