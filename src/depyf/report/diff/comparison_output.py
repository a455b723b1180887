"""A comparison of two runs, as lines for the terminal and as data for a view of the page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List, Tuple

from depyf.answers.worth import FASTER, SLOWER
from depyf.report.diff.comparison import Change, RunComparison

_LINES_OF_A_DIFF = 30


def comparison_lines(comparison: RunComparison, longest_diff: int = _LINES_OF_A_DIFF) -> List[str]:
    """Return the numbers of both runs beside each other, then every change; long diffs are cut, with a note."""
    rows = [("", _short(comparison.before), _short(comparison.after), "")]
    rows += [(name, str(one), str(other), "") for name, (one, other) in comparison.counts.items()]
    rows += [(name, *times.spread(), times.verdict()) for name, times in comparison.times.items()]
    rows += [(name, *times.spread(short=True), times.verdict()) for name, times in comparison.measured.items()]
    width = max(23, *(len(name) for name, *_ in rows)) + 1
    column = max(18, *(len(value) + 2 for _, one, other, _ in rows for value in (one, other)))
    lines = [f"{name:<{width}}{one:>{column}}{other:>{column}}  {words}".rstrip() for name, one, other, words in rows]
    lines += [f"note: {note}" for note in comparison.notes]
    lines += [f"cache of {each}" for each in comparison.caches]
    if comparison.same:
        return [*lines, "", "the same was compiled"]
    for change in comparison.changes:
        lines += ["", *_change(change, longest_diff)]
    return lines


def _change(change: Change, longest: int) -> List[str]:
    lines = [f"* {change.title}"]
    lines += [f"    {line}" for line in change.text.splitlines()]
    for mark, text in (("-", change.before), ("+", change.after)):
        lines += [f"  {mark} {line}" for line in text.splitlines()]
    for _, diff in change.diffs[:1]:  # later stages follow from the first that changed; the page has all
        lines += [f"  {line}" for line in diff[:longest]]
        if len(diff) > longest:
            lines.append(f"  ... {len(diff) - longest} more lines (--html FILE has all)")
    return lines


def _short(name: str) -> str:
    return name if len(name) <= 16 else "..." + name[-13:]


def as_differences(comparison: RunComparison) -> List[Dict[str, Any]]:
    """Return the changes."""
    return [_as_difference(comparison, change) for change in comparison.changes]


_WORSE_WHEN_MORE = ("graph breaks", "recompilations", "fallbacks to eager", "graphs")


def tables_of(comparison: RunComparison) -> Dict[str, object]:
    """Return the numbers of the runs and of each function, before and after, and the notes.

    A function that was not compiled has null. With each number of a run stands whether more is worse; more time is
    only where several runs show that it is beyond their noise, as the time of one run says nothing about the next.
    Behind the times of several runs stand their spread and what it allows to say.
    """
    counts = [[name, one, other, "", name in _WORSE_WHEN_MORE] for name, (one, other) in comparison.counts.items()]
    times = []
    for name, each in (*comparison.times.items(), *comparison.measured.items()):
        words = each.verdict()
        row = [name, *each.medians, "s", words in (FASTER, SLOWER)]
        ends = [[min(side), max(side)] for side in (each.before, each.after)]
        times.append([*row, *ends, words] if words else row)
    functions = [
        [name, None if one is None else asdict(one), None if other is None else asdict(other)]
        for name, (one, other) in comparison.functions.items()
    ]
    notes = [*comparison.notes, *(f"cache of {each}" for each in comparison.caches)]
    return {"numbers": [*counts, *times], "functions": functions, "notes": notes}


def _words(change: Change) -> Tuple[str, str]:
    """Return a title and a text; the page has the stages that changed, and a line for each fact about kernels."""
    name, _, what = change.title.partition(": ")
    if change.kind == "graph":
        return f"{name}: another graph", change.text
    if change.kind == "kernel":
        facts = what[len("kernels ") :].split("; ")
        return f"{name}: other kernels", "\n".join([*facts, *filter(None, [change.text])])
    return change.title, change.text


def _as_difference(comparison: RunComparison, change: Change) -> Dict[str, Any]:
    title, text = _words(change)
    sides = {comparison.before: change.before, comparison.after: change.after}
    ranks = {name: text for name, text in sides.items() if text} if change.before or change.after else {}
    ranks.update({name: "\n".join(lines) for name, lines in change.diffs})
    return {
        "title": title,
        "text": text,
        "ranks": ranks,
        "place": None,
        "kind": change.kind,
        "unified": bool(change.diffs),
    }
