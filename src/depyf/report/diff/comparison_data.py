"""A comparison of two runs as data for the page, which shows both runs, and this as one of its views."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List, Tuple

from depyf.report.diff.comparison import Change, Comparison


def as_differences(comparison: Comparison) -> List[Dict[str, Any]]:
    """Return the changes."""
    return [_as_difference(comparison, change) for change in comparison.changes]


_WORSE_WHEN_MORE = ("graph breaks", "recompilations", "fallbacks to eager", "graphs", "compile time")


def tables_of(comparison: Comparison) -> Dict[str, object]:
    """Return the numbers for the page, before and after, and the notes. They are those of the runs, and of each
    function (null where it was not compiled), with whether more is worse."""
    counts = [[name, one, other, "", name in _WORSE_WHEN_MORE] for name, (one, other) in comparison.counts.items()]
    times = [[name, one, other, "s", name in _WORSE_WHEN_MORE] for name, (one, other) in comparison.times.items()]
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


def _as_difference(comparison: Comparison, change: Change) -> Dict[str, Any]:
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
