"""The compile time of findings.

A compilation is part of the cost of one finding at most: the first that takes it. The time that depyf's own hooks take
in a compilation is part of no cost. The costs of all findings are therefore not more than the compile time.

A module of its own: findings of all kinds share one account, so that they do not overlap.
"""

from __future__ import annotations

import math
from typing import Dict, Iterable, Optional

from depyf.report.model.phases import own_seconds
from depyf.report.model.run import Run

_OF_DEPYF = "bytecode_hooks"
"""The phase of Dynamo in which depyf decompiles and proves transformed code."""


class Costs:
    """The seconds of the compilations of a run, which findings take."""

    def __init__(self, run: Run) -> None:
        hooks: Dict[Optional[str], float] = {}
        for phase, seconds in zip(run.phases, own_seconds(run)):
            if phase.name.startswith(_OF_DEPYF):
                hooks[phase.compile_id] = hooks.get(phase.compile_id, 0.0) + seconds
        self._left: Dict[Optional[str], float] = {}
        for each in run.compilations:
            known = (each.seconds, each.backward_seconds)
            took = sum(part for part in known if part is not None and math.isfinite(part))
            self._left[each.compile_id] = max(0.0, took - hooks.get(each.compile_id, 0.0))

    def take(self, compile_ids: Iterable[Optional[str]]) -> float:
        """Return the compile time of these compilations, as far as no other finding has taken it."""
        return sum(self._left.pop(each, 0.0) for each in compile_ids)
