"""The names that Dynamo gives to resume functions, which continue a function after a graph break."""

from __future__ import annotations

from typing import Optional, Tuple

from depyf.base.late_regex import regex

_RESUME = regex(r"^(?:torch_dynamo_)?resume_in_(.+?)(?:_at_(\d{1,9}))?$")


def resumed(name: str) -> Optional[Tuple[str, Optional[int]]]:
    """Return the function that a resume function called ``name`` continues, and the line; None for other functions."""
    match = _RESUME.match(name)
    return None if match is None else (match.group(1), int(match.group(2)) if match.group(2) else None)


def function_name(name: str) -> str:
    """Return the name of the user's function that a function with this (qualified) name is, or continues."""
    before, dot, last = name.rpartition(".")
    known = resumed(last)
    return name if known is None else f"{before}{dot}{known[0]}"
