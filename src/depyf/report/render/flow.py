"""The path of a call of a compiled function as an SVG drawing, for each of the user's functions.

A function and each of its resume functions is a frame. In a frame every cache entry is a row, in the order in which
guards are checked: guards, transformed code, what that calls. Frames stand below each other, callers first; edges from
a row to the resume function that it goes on with run in lanes on the right, so that nothing crosses a box. All sizes
follow from the number of entries and calls; a browser is not needed to lay it out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from itertools import groupby
from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple
from urllib.parse import quote

from depyf.base.messages import duration
from depyf.base.quick_dataclass import dataclass
from depyf.diagnosis.guard_groups import GROUPS, group_of
from depyf.report.analysis.in_parts import Parts
from depyf.report.model.counts import RAISED, status_in_words
from depyf.report.model.run import Compilation, Run
from depyf.report.render.branches import Onward
from depyf.report.render.flow_facts import FlowFacts
from depyf.report.render.svg import LINE, Box, arrow, box, fits, label, svg

_MARGIN = 12
_BOX_HEIGHT = 38
_GAP = 10
_FAILS = 20
_TITLE = 30
_LANE = 14
_COLUMNS = (_MARGIN, 374, 604)
"""Where guards, transformed code and calls begin."""
_ALIKE = 4
"""From how many neighbouring entries on that do the same those between the first and the last are one box."""
_MOST_IDS = 4
"""Of the entries of a resume function that the box of a call names one by one."""
_NOT_TOLD = "Marked dimensions"
"""A group that says nothing of the program: nearly all its guards are that nothing was marked."""
MOST_ENTRIES = 60
"""The number of rows drawn for one function: thousands would be unreadable, and take seconds to open."""
_WIDTHS = (316, 184, 326)
_RIGHT = _COLUMNS[2] + _WIDTHS[2] + _MARGIN


def drawings(run: Run, rank: Optional[int] = None) -> Iterator[Tuple[int, str]]:
    """Yield the index of each user function in ``Run.functions``, with its drawing. ``rank`` is a part of links."""
    facts = FlowFacts(run, rank)
    for root in facts.roots():
        parts = Parts()
        drawing = parts.part("how calls of this function flow", "", _draw, facts, root)
        yield root, drawing or svg(_RIGHT, 40, "No drawing", label(_MARGIN, 24, "; ".join(parts.failures), "flow-name"))


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
    # The ways by which entries go on to a resume function (``true: line 9``); a single one is a part of its title.
    labels: Dict[int, Set[str]] = {}
    for entry in (entry for function in facts.family(root) for entry in facts.cached(function)):
        for way in facts.branches.ways_on(entry)[0]:
            labels.setdefault(way.function, set()).add(way.label)
    for function in facts.family(root):
        frame = _frame(facts, function, top, labels.get(function, set()), is_root=function == root)
        frames.append(frame)
        top = frame.bottom + 16
    # Frames are placed now, so the edges between them can be.
    edges, width = _lanes(frames)
    name = facts.run.functions[root].qualified_name or facts.run.functions[root].name
    body = "".join("".join(frame.parts) for frame in frames) + edges
    return svg(width, top, f"What a call of {name} goes through", body)


def _frame(facts: FlowFacts, function: int, top: int, labels: Set[str], *, is_root: bool) -> _Frame:
    frame = _Frame(function, top)
    one = facts.run.functions[function]
    name = one.qualified_name or one.name
    title = f"Call of {name}" if is_root else f"Resumed at line {one.resumes_at}"
    title += f", {next(iter(labels))}" if len(labels) == 1 and "" not in labels else ""
    y = top + _TITLE
    entries = facts.cached(function)
    total = [entry.runs for entry in entries if entry.runs is not None]
    rows: List[str] = []
    # The rows: guards that fail lead down to the next entry.
    for group in _folded(facts, entries[:MOST_ENTRIES]):
        if len(group) > 1:
            height = guards = _fold(facts, rows, group, y)
        else:
            height, guards = _row(facts, frame, rows, group[0], y)
        following = y + height + _FAILS
        down = _COLUMNS[0] + 30
        rows.append(arrow([(down, y + guards), (down, following)]))
        rows.append(label(down + 6, y + guards + (height - guards + _FAILS) // 2 + 3, "fails", "flow-small"))
        y = following
    # All other entries are one row.
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


def _folded(facts: FlowFacts, entries: Sequence[Compilation]) -> Iterator[Sequence[Compilation]]:
    """Yield the entries in groups that are drawn as one box: equal neighbours between the first and the last."""
    for _, neighbours in groupby(entries, key=lambda entry: _what_it_does(facts, entry)):
        alike = list(neighbours)
        if len(alike) < _ALIKE:
            yield from ([each] for each in alike)
        else:
            yield from (alike[:1], alike[1:-1], alike[-1:])


def _what_it_does(facts: FlowFacts, entry: Compilation) -> Tuple[object, ...]:
    graph = facts.graph_of(entry) is not None
    return graph, facts.kernels.get(entry.compile_id), tuple(facts.reached_from(entry)), entry.runs == 0


def _fold(facts: FlowFacts, rows: List[str], alike: Sequence[Compilation], y: int) -> int:
    """Draw entries that do the same as the one before them as one box; return its height."""
    ran = [each.runs for each in alike if each.runs is not None]
    conditions = dict.fromkeys(each for entry in alike for each in facts.conditions.failed(entry)[:1])
    about = "each runs a graph of its own" if facts.graph_of(alike[0]) else "without a graph"
    about += f", {times(sum(ran))} in all" if ran else ""
    title = f"{len(alike)} entries like it: {alike[0].compile_id} to {alike[-1].compile_id}"
    details = ["; ".join(conditions)] if conditions else []
    function = alike[0].function
    href = f"#recompiles/f{0 if function is None else facts.run.root(function)}{facts.query}"
    place = Box(_COLUMNS[0], y, _RIGHT - 2 * _MARGIN, _BOX_HEIGHT + LINE * len(details))
    rows.append(box(place, title, about, href, "flow-fold", details))
    return place.height


def _row(facts: FlowFacts, frame: _Frame, rows: List[str], entry: Compilation, y: int) -> Tuple[int, int]:
    """Draw a cache entry at ``y``; return the height of its row, and the box of its guards."""
    guards, code, calls = _COLUMNS
    begin = len(rows)
    failed = f"failed {times(entry.guard_failures)}" if entry.guard_failures else ""
    many = len(entry.guards)
    checks = _with_groups(f"{many} checked" if many else "checked in order", entry, failed)
    # The box of guards links to the tree of the guards, else to their list, else to the compile times.
    of_guards = f"#guards/{quote(entry.compile_id, safe='')}{facts.query}" if entry.guards else f"#time{facts.query}"
    href = facts.stage(facts.guards.get(entry.compile_id)) or of_guards
    conditions = facts.conditions.of(entry)
    checked = Box(guards, y, _WIDTHS[0], _BOX_HEIGHT + LINE * len(conditions))
    rows.append(
        box(
            checked,
            f"Guards of {entry.compile_id}",
            checks,
            href,
            details=conditions,
        )
    )
    rows.append(arrow([(guards + _WIDTHS[0], y + _BOX_HEIGHT // 2), (code, y + _BOX_HEIGHT // 2)]))
    rows.append(label(guards + _WIDTHS[0] + 8, y + _BOX_HEIGHT // 2 - 4, "hold", "flow-small"))
    ran = "" if entry.runs is None else f"ran {times(entry.runs)}"
    about = ", ".join(part for part in (ran, entry.verdict) if part) or status_in_words(entry)
    rows.append(
        box(
            Box(code, y, _WIDTHS[1], _BOX_HEIGHT),
            f"Transformed {entry.compile_id}",
            about,
            facts.stage(entry.transformed),
        )
    )
    height = max(_calls(facts, frame, rows, entry, y, calls), checked.height)
    if entry.runs == 0:
        # The whole row of an entry that never ran is drawn paler.
        rows[begin:] = ['<g class="flow-unused">', *rows[begin:], "</g>"]
    return height, checked.height


def _with_groups(text: str, entry: Compilation, failed: str) -> str:
    """Return ``text`` with the groups of the guards of a cache entry, the largest first, as many as the box has room
    for, and then how often the entry ``failed``, which counts all guards and not one group."""
    counts = Counter(group_of(guard.kind, guard.source, guard.text) for guard in entry.guards)
    names = [(GROUPS[at].name, number) for at, number in counts.most_common() if GROUPS[at].name != _NOT_TOLD]
    groups = [f"{name[:1].lower()}{name[1:]} {number}" for name, number in names]
    # As many groups as fit; the small ones are left out first.
    for number in range(len(groups), 0, -1):
        whole = f"{text}: {', '.join(groups[:number])}{failed and f'; {failed}'}"
        if fits(whole, _WIDTHS[0]):
            return whole
    return f"{text}{failed and f', {failed}'}"


def _calls(facts: FlowFacts, frame: _Frame, rows: List[str], entry: Compilation, y: int, x: int) -> int:
    """Draw the calls in transformed code, below each other: its graph, then the resume functions that continue it."""
    (ways, condition), graph = facts.branches.ways_on(entry), facts.graph_of(entry)
    start = _COLUMNS[1] + _WIDTHS[1]
    middle = y + _BOX_HEIGHT // 2
    at = y
    if graph:
        kernels = facts.kernels_in_words(entry)
        parts = [kernels] if kernels else []
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
    # Edges to resume functions leave the box of the code, and go down beside the box of the graph.
    bend = start + 22
    if len(ways) > 1:
        rows.append(label(bend + 6, at + 12, condition or "branch: one of", "flow-small", limit=66))
        at += 18
    # One box for each way; in front of it a box for what the broken line calls, if that is compiled, too.
    for way in ways:
        for text, href in _onward(facts, way):
            rows.append(box(Box(x, at, _WIDTHS[2], 24), text, "", href))
            rows.append(arrow([(bend if graph else start, middle), (bend, middle), (bend, at + 12), (x, at + 12)]))
            at += 24 + _GAP
        frame.leaves.append((at - _GAP - 12, way.function))
    return max(at - _GAP - y, _BOX_HEIGHT)


def _onward(facts: FlowFacts, way: Onward) -> Iterator[Tuple[str, str]]:
    """Yield the texts and addresses of boxes: what the line of a graph break calls, then the resume function."""
    one = facts.run.functions[way.function]
    for callee in facts.called_at(way.function, one.resumes_at or 0):
        called = facts.run.functions[callee]
        yield f"line {one.resumes_at} calls {called.qualified_name or called.name}", f"#flow/f{callee}{facts.query}"
    line = way.line or one.resumes_at or one.first_line
    ids = _range([each.compile_id for each in facts.entries.get(way.function, ())])
    text = way.label or f"resume at line {one.resumes_at}"
    text += (f": {ids}" if ids else "") + (f" (from {way.times} places)" if way.times > 1 else "")
    yield text, f"#source/f{facts.family(way.function)[0]}/{line}{facts.query}"


def _range(ids: Sequence[str]) -> str:
    """Return the entries of a function in short: of more than a few the first and the last."""
    return f"{ids[0]} to {ids[-1]}" if len(ids) > _MOST_IDS else ", ".join(ids)


def _otherwise(facts: FlowFacts, rows: List[str], function: int, y: int, *, first: bool) -> int:
    """Draw the box of a cache miss; return where it ends."""
    cause = facts.otherwise(function)
    place = Box(
        _COLUMNS[0], y, _WIDTHS[0] if cause is None else _RIGHT - 2 * _MARGIN, 26 if cause is None else _BOX_HEIGHT
    )
    if cause is None:
        rows.append(box(place, "not compiled" if first else "recompile", "", "", "flow-unused" if first else ""))
    else:
        title = "Error" if cause == RAISED else "Plain Python"
        rows.append(box(place, title, cause, f"#recompiles{facts.query}", "flow-fallback"))
    return y + place.height


def _mean(seconds: Optional[float], runs: Optional[int]) -> str:
    return f" {duration(seconds / runs)}" if seconds is not None and runs else ""


def times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _lanes(frames: List[_Frame]) -> Tuple[str, int]:
    """Return the edges between frames, a lane for each target (disjoint ones share one), and the whole width."""
    tops = {frame.function: frame.top + 15 for frame in frames}
    # For each target: the height of its title, then of all rows that go on with it.
    spans: Dict[int, List[int]] = {}
    for frame in frames:
        for y, target in frame.leaves:
            if target in tops:
                spans.setdefault(target, [tops[target]]).append(y)
    ends: List[List[Tuple[int, int]]] = []
    drawn = []
    # From above, each gets the first lane in which nothing overlaps it (greedy interval colouring).
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
