"""A drawing of what a call of a compiled function goes through, as SVG: one for each of the user's functions.

A function and each of its resume functions is a frame. In a frame every cache entry is a row, in the order in which
guards are checked: guards, transformed code, what that calls. Frames stand below each other, callers first; edges from
a row to the resume function that it goes on with run in lanes on the right, so that nothing crosses a box. All sizes
follow from the number of entries and calls; a browser is not needed to lay it out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import Dict, Iterator, List, Optional, Tuple
from urllib.parse import quote

from depyf.answers.ran_text import duration
from depyf.diagnosis.guard_groups import GROUPS, group_of
from depyf.quick_dataclass import dataclass
from depyf.report.model.run import Compilation, Run
from depyf.report.render.flow_facts import FlowFacts
from depyf.report.render.svg import Box, arrow, box, label, svg

_MARGIN = 12
_BOX_HEIGHT = 38
_GAP = 10
_FAILS = 20
_TITLE = 30
_LANE = 14
_COLUMNS = (_MARGIN, 296, 650)
"""Where guards, transformed code and calls begin."""
MOST_ENTRIES = 60
"""The number of rows drawn for one function: thousands would be unreadable, and take seconds to open."""
_WIDTHS = (230, 300, 400)
_RIGHT = _COLUMNS[2] + _WIDTHS[2] + _MARGIN


def drawings(run: Run, rank: Optional[int] = None) -> Iterator[Tuple[int, str]]:
    """The index of each of the user's functions in ``Run.functions``, with its drawing. ``rank`` goes into links."""
    facts = FlowFacts(run, rank)
    for root in facts.roots():
        yield root, _draw(facts, root)


@dataclass
class _Frame:
    """One function with its place on the drawing; ``leaves`` are the points where rows go on with another frame."""

    function: int
    top: int
    bottom: int = 0
    parts: List[str] = field(default_factory=list)
    leaves: List[Tuple[int, int]] = field(default_factory=list)


def _draw(facts: FlowFacts, root: int) -> str:
    frames: List[_Frame] = []
    top = 4
    for function in facts.family(root):
        frame = _frame(facts, function, top, is_root=function == root)
        frames.append(frame)
        top = frame.bottom + 16
    edges, width = _lanes(frames)
    name = facts.run.functions[root].qualified_name or facts.run.functions[root].name
    body = "".join("".join(frame.parts) for frame in frames) + edges
    return svg(width, top, f"What a call of {name} goes through", body)


def _frame(facts: FlowFacts, function: int, top: int, *, is_root: bool) -> _Frame:
    frame = _Frame(function, top)
    one = facts.run.functions[function]
    name = one.qualified_name or one.name
    title = f"Call of {name}" if is_root else f"Resumed at line {one.resumes_at}"
    y = top + _TITLE
    entries = facts.cached(function)
    total = [entry.runs for entry in entries if entry.runs is not None]
    rows: List[str] = []
    for entry in entries[:MOST_ENTRIES]:
        height = _row(facts, frame, rows, entry, y)
        following = y + height + _FAILS
        down = _COLUMNS[0] + 30
        rows.append(arrow([(down, y + _BOX_HEIGHT), (down, following)]))
        rows.append(label(down + 6, y + _BOX_HEIGHT + (height - _BOX_HEIGHT + _FAILS) // 2 + 3, "fails", "flow-small"))
        y = following
    if len(entries) > MOST_ENTRIES:
        more = f"{len(entries) - MOST_ENTRIES:,} more cache entries, checked in the same way"
        rows.append(box(Box(_COLUMNS[0], y, _RIGHT - 2 * _MARGIN, 26), more, "", f"#recompiles{facts.query}"))
        rows.append(arrow([(_COLUMNS[0] + 30, y + 26), (_COLUMNS[0] + 30, y + 26 + _FAILS)]))
        y += 26 + _FAILS
    y = _otherwise(facts, rows, function, y, first=not entries)
    frame.bottom = y + _MARGIN
    outline = f'<rect class="flow-frame" x="0.5" y="{top}.5" width="{_RIGHT}" height="{frame.bottom - top}" rx="6"/>'
    calls = f"{sum(total)} call{'' if sum(total) == 1 else 's'}" if total else ""
    frame.parts = [
        outline,
        label(_MARGIN, top + 20, title, "flow-title", limit=70),
        label(_RIGHT - _MARGIN, top + 20, calls, "flow-small", end=True),
        *rows,
    ]
    return frame


def _row(facts: FlowFacts, frame: _Frame, rows: List[str], entry: Compilation, y: int) -> int:
    """Draws a cache entry at ``y`` and says how high its row is."""
    guards, code, calls = _COLUMNS
    begin = len(rows)
    failed = f", failed {times(entry.guard_failures)}" if entry.guard_failures else ""
    of_guards = f"#guards/{quote(entry.compile_id, safe='')}{facts.query}" if entry.guards else f"#time{facts.query}"
    href = facts.stage(facts.guards.get(entry.compile_id)) or of_guards
    rows.append(
        box(
            Box(guards, y, _WIDTHS[0], _BOX_HEIGHT),
            f"Guards of {entry.compile_id}",
            f"{len(entry.guards)} checked{failed}: {_groups(entry)}" if entry.guards else f"checked in order{failed}",
            href,
        )
    )
    rows.append(arrow([(guards + _WIDTHS[0], y + _BOX_HEIGHT // 2), (code, y + _BOX_HEIGHT // 2)]))
    rows.append(label(guards + _WIDTHS[0] + 8, y + _BOX_HEIGHT // 2 - 4, "hold", "flow-small"))
    ran = "" if entry.runs is None else f"ran {times(entry.runs)}"
    about = ", ".join(part for part in (ran, entry.verdict) if part) or entry.status
    rows.append(
        box(
            Box(code, y, _WIDTHS[1], _BOX_HEIGHT),
            f"Transformed {entry.compile_id}",
            about,
            facts.stage(entry.transformed),
        )
    )
    height = _calls(facts, frame, rows, entry, y, calls)
    if entry.runs == 0:
        rows[begin:] = ['<g class="flow-unused">', *rows[begin:], "</g>"]
    return height


def _groups(entry: Compilation) -> str:
    """What a cache entry checks, in groups, the largest first."""
    counts = Counter(group_of(guard.kind, guard.source, guard.text) for guard in entry.guards)
    return ", ".join(f"{GROUPS[at].name.lower()} {number}" for at, number in counts.most_common())


def _calls(facts: FlowFacts, frame: _Frame, rows: List[str], entry: Compilation, y: int, x: int) -> int:
    """What transformed code calls, below each other: its graph, then the resume functions that it goes on with."""
    resumes, graph = facts.reached_from(entry), facts.graph_of(entry)
    start = _COLUMNS[1] + _WIDTHS[1]
    middle = y + _BOX_HEIGHT // 2
    at = y
    if graph:
        kernels = facts.kernels.get(entry.compile_id, 0)
        parts = [f"{kernels} kernel{'' if kernels == 1 else 's'}"] if kernels else []
        backward = _mean(entry.backward_run_seconds, entry.backward_runs)
        parts += ["with backward" + backward] if entry.compile_id in facts.backward or backward else []
        forward = _mean(entry.graph_run_seconds, entry.graph_runs)
        parts += [f"a run{forward}"] if forward else []
        colour = facts.colours.get(entry.compile_id)
        kind = "flow-graph" if colour is None else f"flow-graph graph-{colour}"
        rows.append(
            box(
                Box(x, at, _WIDTHS[2], _BOX_HEIGHT),
                graph,
                ", ".join(parts) or "graph",
                facts.stage(facts.graphs.get(entry.compile_id)),
                kind,
            )
        )
        rows.append(arrow([(start, middle), (x, middle)]))
        at += _BOX_HEIGHT + _GAP
    bend = start + 22
    if len(resumes) > 1:
        rows.append(label(bend + 6, at + 12, "branch: one of", "flow-small"))
        at += 18
    for function in resumes:
        one = facts.run.functions[function]
        again = len([c for c in entry.calls if c.function == function])
        href = f"#source/f{facts.family(function)[0]}/{one.resumes_at or one.first_line}{facts.query}"
        ids = ", ".join(each.compile_id for each in facts.entries.get(function, ()))
        text = (
            f"resume at line {one.resumes_at}"
            + (f": {ids}" if ids else "")
            + (f" (from {again} places)" if again > 1 else "")
        )
        rows.append(box(Box(x, at, _WIDTHS[2], 24), text, "", href))
        rows.append(arrow([(bend if graph else start, middle), (bend, middle), (bend, at + 12), (x, at + 12)]))
        frame.leaves.append((at + 12, function))
        at += 24 + _GAP
    return max(at - _GAP - y, _BOX_HEIGHT)


def _otherwise(facts: FlowFacts, rows: List[str], function: int, y: int, *, first: bool) -> int:
    """What happens on a cache miss."""
    cause = facts.otherwise(function)
    place = Box(
        _COLUMNS[0], y, _WIDTHS[0] if cause is None else _RIGHT - 2 * _MARGIN, 26 if cause is None else _BOX_HEIGHT
    )
    if cause is None:
        rows.append(box(place, "not compiled" if first else "recompile", "", ""))
    else:
        rows.append(box(place, "Plain Python", cause, f"#recompiles{facts.query}", "flow-fallback"))
    return y + place.height


def _mean(seconds: Optional[float], runs: Optional[int]) -> str:
    return f" {duration(seconds / runs)}" if seconds is not None and runs else ""


def times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _lanes(frames: List[_Frame]) -> Tuple[str, int]:
    """The edges between frames, a lane for each target (those that don't overlap share one), and the whole width."""
    tops = {frame.function: frame.top + 15 for frame in frames}
    spans: Dict[int, List[int]] = {}
    for frame in frames:
        for y, target in frame.leaves:
            if target in tops:
                spans.setdefault(target, [tops[target]]).append(y)
    ends: List[List[Tuple[int, int]]] = []
    drawn = []
    for target, points in sorted(spans.items(), key=lambda item: min(item[1])):
        low, high = min(points), max(points)
        lane = next((n for n, taken in enumerate(ends) if all(high < a or low > b for a, b in taken)), len(ends))
        if lane == len(ends):
            ends.append([])
        ends[lane].append((low, high))
        x = _RIGHT + 14 + lane * _LANE
        leaf = _COLUMNS[2] + _WIDTHS[2]
        drawn += [arrow([(leaf, y), (x, y), (x, tops[target]), (_RIGHT + 1, tops[target])]) for y in points[1:]]
    return "".join(drawn), _RIGHT + 20 + len(ends) * _LANE
