"""Make text of unknown origin safe for a terminal: control characters and direction marks are shown as escapes."""

from __future__ import annotations

from depyf.base.late_regex import regex

_UNSEEN = regex("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Return ``text`` with control characters (except newlines and tabs) and direction marks as escapes."""
    if text.replace("\n", "").replace("\t", "").isprintable():  # then the pattern is not needed
        return text
    return _UNSEEN.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)
