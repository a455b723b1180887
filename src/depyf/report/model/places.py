"""Locations in the user's source: as short texts, and the user's line in a stack that leads to a location."""

from __future__ import annotations

from typing import Optional, Sequence

from depyf.report.model.run import Place, Run
from depyf.torch_trace.user_code import innermost


def place_text(run: Run, place: Optional[Place]) -> str:
    """Return ``file.py:12``, of a package ``logging/__init__.py:12``; ``an unknown line`` where it is not known."""
    if place is None:
        return "an unknown line"
    source, line = place
    parts = run.sources[source].path.replace("\\", "/").rsplit("/", 2) if 0 <= source < len(run.sources) else ["?"]
    return f"{'/'.join(parts[-2:] if parts[-1] == '__init__.py' else parts[-1:])}:{line}"


def own_place(run: Run, place: Optional[Place], stack: Sequence[Place]) -> Optional[Place]:
    """Return the user's line that leads to a location, which may be in a library; without one the location itself."""
    return place and innermost_place(run, (*stack, place))


def innermost_place(run: Run, places: Sequence[Place]) -> Optional[Place]:
    """Return the innermost location in the user's code, or else the innermost. ``places`` have the outermost first."""
    return innermost(places, lambda each: is_of_a_library(run, each))


def is_of_a_library(run: Run, place: Optional[Place]) -> bool:
    """Return whether a place is known, and in an installed file."""
    return place is not None and 0 <= place[0] < len(run.sources) and run.sources[place[0]].library
