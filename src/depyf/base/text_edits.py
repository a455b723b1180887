"""Replace ranges of a source text, located as syntax trees locate their nodes."""

from __future__ import annotations

from typing import Sequence, Tuple

Edit = Tuple[Tuple[int, int], Tuple[int, int], str]
"""Start and end, as line (from 1) and column (in UTF-8 bytes), and the replacement text."""


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return ``text`` with the ranges replaced; they do not overlap."""
    # From the end to the start, so that the positions of edits that are left stay valid.
    lines = [line.encode("utf-8", "surrogatepass") for line in text.split("\n")]
    for (first, start), (last, end), replacement in sorted(edits, reverse=True):
        tail = lines[last - 1][end:]
        lines[first - 1 : last] = [lines[first - 1][:start] + replacement.encode("utf-8", "surrogatepass") + tail]
    return b"\n".join(lines).decode("utf-8", "surrogatepass")
