"""Places in the user's source, as short texts."""

from __future__ import annotations

from typing import Optional, Sequence

from depyf.report.model.run import Place, Run


def place_text(run: Run, place: Optional[Place]) -> str:
    """Return ``file.py:12``; ``an unknown line`` where the place is not known."""
    if place is None:
        return "an unknown line"
    source, line = place
    name = run.sources[source].path.replace("\\", "/").rsplit("/", 1)[-1] if 0 <= source < len(run.sources) else "?"
    return f"{name}:{line}"


def own_place(run: Run, place: Optional[Place], stack: Sequence[Place]) -> Optional[Place]:
    """Return the user's own line that leads to a place, which may be in a library; the place itself if none does."""
    own = [each for each in stack if not is_of_a_library(run, each)]
    return own[-1] if own and is_of_a_library(run, place) else place


def is_of_a_library(run: Run, place: Optional[Place]) -> bool:
    """Return whether a place is known, and in an installed file."""
    return place is not None and 0 <= place[0] < len(run.sources) and run.sources[place[0]].library
