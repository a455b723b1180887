"""A comparison of two runs as lines for the terminal."""

from __future__ import annotations

from typing import List

from depyf.report.diff.comparison import Change, Comparison

_LINES_OF_A_DIFF = 30


def comparison_lines(comparison: Comparison, longest_diff: int = _LINES_OF_A_DIFF) -> List[str]:
    """Return the numbers of both runs beside each other, then every change; long diffs are cut, with a note."""
    names = (_short(comparison.before), _short(comparison.after))
    width = max(23, *(len(name) for name in (*comparison.counts, *comparison.times))) + 1
    lines = [f"{'':<{width}}{names[0]:>18}{names[1]:>18}"]
    lines += [f"{name:<{width}}{one:>18}{other:>18}" for name, (one, other) in comparison.counts.items()]
    lines += [f"{name:<{width}}{one:>16.2f} s{other:>16.2f} s" for name, (one, other) in comparison.times.items()]
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
