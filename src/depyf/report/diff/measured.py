"""What a call and its source lines cost in two profiled runs (``depyf run --profile``, ``depyf.profile``).

A module of its own: the runs are matched by lines here, and by functions and compilations everywhere else.
"""

from __future__ import annotations

from collections import Counter
from typing import Counter as CounterType
from typing import Dict, List, Sequence, Tuple

from depyf.base.messages import cut
from depyf.report.diff.matching import ComparedRun
from depyf.report.diff.times import Times
from depyf.report.model.timing import Timing

_MOST = 10
"""The lines whose time differs most are shown, so many."""
_SHARE = 0.01
"""Lines with a smaller share of the time of a call, in both programs, are not shown."""
_LONGEST = 60

_Key = Tuple[str, str, int]
"""A line: its file name, its text, and which of the lines of that file with this text it is. Its number moves when
something above it is edited."""


def measured_times(before: Sequence[ComparedRun], after: Sequence[ComparedRun]) -> Dict[str, Times]:
    """Return the seconds of a call, and of the lines whose time differs most, in each run that measured what the first
    runs of both sides measured; nothing where there is no such thing."""
    there = [each.function for each in after[0].run.timings]
    function = next((each.function for each in before[0].run.timings if each.function in there), None)
    known = [
        # A run may have measured several blocks: only the first counts, as another block is no other run.
        [
            (side, timing)
            for side in sides
            for timing in [each for each in side.run.timings if each.function == function][:1]
        ]
        for sides in (before, after)
    ]
    if not all(known):
        return {}
    whole = Times(*(tuple(timing.seconds for _, timing in side) for side in known))
    lines = [[_lines(side, timing) for side, timing in of_side] for of_side in known]
    names: Dict[_Key, str] = {}
    times: Dict[_Key, Times] = {}
    for of_side in lines:
        for of_run in of_side:
            names.update({key: name for key, (name, _) in of_run.items()})  # the number of the later program
    for key in names:
        # A line that a run does not have takes no time in it.
        sides = (tuple(of_run.get(key, ("", 0.0))[1] for of_run in of_side) for of_side in lines)
        times[key] = Times(*sides)
    least = _SHARE * max(whole.medians)
    shown = [key for key in times if max(times[key].medians) >= least]
    shown.sort(key=lambda key: -abs(times[key].medians[1] - times[key].medians[0]))
    return {"a call, as profiled": whole, **{f"  {names[key]}": times[key] for key in shown[:_MOST]}}


def _lines(side: ComparedRun, timing: Timing) -> Dict[_Key, Tuple[str, float]]:
    """Return the time of each line, with a name for a reader."""
    texts: Dict[int, List[str]] = {}
    seen: CounterType[Tuple[str, str]] = Counter()
    found: Dict[_Key, Tuple[str, float]] = {}
    for each in sorted(timing.lines, key=lambda line: line.place):
        source, line = each.place
        if source not in texts:
            texts[source] = (side.run.sources[source].text or "").splitlines()
        code = texts[source][line - 1].strip() if 0 < line <= len(texts[source]) else f"line {line}"
        alike = side.file_name(source), code
        key = (*alike, seen[alike])
        seen[alike] += 1
        found[key] = cut(f"{side.place(each.place)} {code}", _LONGEST), each.forward + each.backward
    return found
