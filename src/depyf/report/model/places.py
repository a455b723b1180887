"""Places in the user's source, as short texts."""

from __future__ import annotations

from typing import Optional

from depyf.report.model.run import Place, Run


def place_text(run: Run, place: Optional[Place]) -> str:
    """Return ``file.py:12``; ``an unknown line`` where the place is not known."""
    if place is None:
        return "an unknown line"
    source, line = place
    name = run.sources[source].path.replace("\\", "/").rsplit("/", 1)[-1] if 0 <= source < len(run.sources) else "?"
    return f"{name}:{line}"
