"""Line diffs of two texts."""

from __future__ import annotations

import difflib
from typing import List


def unified(before: str, after: str, name_before: str = "before", name_after: str = "after") -> List[str]:
    """Return the lines of a unified diff; empty when the texts are the same."""
    return list(
        difflib.unified_diff(before.splitlines(), after.splitlines(), name_before, name_after, lineterm="", n=2)
    )


def changed_lines(before: str, after: str) -> str:
    """Return what differs in ``after``, as a diff without its heading; a message if nothing does."""
    lines = unified(before, after)[2:]
    return "\n".join(lines) if lines else "the same"
