"""Locations in the user's source: as short texts, the user's line in a stack that leads to one, and all of a run."""

from __future__ import annotations

from typing import Any, Iterator, Optional, Sequence, Tuple

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


def places_in(run: Run) -> Iterator[Place]:
    """Yield every location that a run names; a location may come several times."""
    for artifact in run.artifacts:
        for link in artifact.links:
            yield from link.places
    for kernel in run.kernels:
        yield from kernel.places
    for stacks in ([e.stack for e in run.breaks], [e.stack for e in run.shapes], [e.callers for e in run.compilations]):
        for stack in stacks:
            yield from stack
    for timing in run.timings:
        yield from (each.place for each in timing.lines)
        yield from (each.place for each in timing.outside if each.place is not None)
        for timed in timing.kernels:
            yield from timed.places
        for pair in timing.not_fused:
            yield from (*pair.first_places, *pair.second_places)
        for gap in timing.gaps:
            yield from (place for place in (gap.after, gap.before) if place is not None)
        for ran in timing.timeline:
            yield from ran.places
    yield from (each.compiled_at for each in run.compilations if each.compiled_at is not None)
    with_place: Tuple[Tuple[Any, ...], ...] = (run.breaks, run.recompiles, run.fallbacks, run.findings)
    with_place += (run.cudagraph_skips, run.cudagraph_rerecords, () if run.shadow is None else run.shadow.found)
    with_place += tuple(each.guards for each in run.compilations) + tuple(each.failed for each in run.recompiles)
    yield from (each.place for group in with_place for each in group if each.place is not None)
