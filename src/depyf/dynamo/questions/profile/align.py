"""Find for each unit of a profile the operations that a listing has of it.

The call that was listed and the calls that were profiled run the same operations in the same order. A unit of the
profile holds one or more of them: ``aten::linear`` holds ``aten::t`` and ``aten::addmm``. So the names inside of a unit
are compared, in order, with the next names of the list.
"""

from __future__ import annotations

from typing import Dict, List, Sequence

from depyf.dynamo.questions.profile.listing import Listed, Listing
from depyf.dynamo.questions.profile.spans import Span
from depyf.dynamo.questions.profile.units import Division, Unit

_FARTHEST = 64
"""How many listed operations may be skipped to find the one of a unit: a step may leave some out."""

_AGREE = 3
"""So many units that follow have to match as well: names such as ``aten::detach`` come often."""


def align(division: Division, listing: Listing, listed_by: int) -> Dict[int, List[Listed]]:
    """Return the listed operations of each unit, by its ``id``. ``listed_by`` is the thread that made the call."""
    found: Dict[int, List[Listed]] = {}
    streams: Dict[tuple[int, int], List[Unit]] = {}
    for unit in division.units:
        if unit.number is not None:
            listed = listing.numbered.get(unit.number)
            found[id(unit)] = [] if listed is None else [listed]
        elif not unit.named:
            streams.setdefault((unit.span.thread, unit.step), []).append(unit)
    # The profiler numbers threads in its own way: the calling thread is known, the others follow in their order.
    others = [each for each in listing.threads if each != listed_by]
    threads: Dict[int, Sequence[Listed]] = {}
    if division.main_thread is not None:
        threads[division.main_thread] = listing.threads.get(listed_by, ())
    for thread, _ in streams:
        if thread not in threads and others:
            threads[thread] = listing.threads[others.pop(0)]
    for (thread, _), units in streams.items():
        _align(units, threads.get(thread, ()), found)
    return found


def _align(units: Sequence[Unit], listed: Sequence[Listed], found: Dict[int, List[Listed]]) -> None:
    at = 0
    for number, unit in enumerate(units):
        matched: List[Listed] = []
        at = _match(unit.span, listed, at, matched)
        if not matched:
            # Either the listing has no such operation (autograd adds gradients without the dispatcher), or the profiled
            # call has left out some that are in the listing: then the units that follow match there, and not here.
            following = units[number + 1 : number + 1 + _AGREE]
            here = _agreement(following, listed, at)
            for later in range(at, min(at + _FARTHEST, len(listed))):
                there: List[Listed] = []
                after = _match(unit.span, listed, later, there)
                # The last unit of a call has none that follow.
                if there and (not following or _agreement(following, listed, after) > here):
                    matched, at = there, after
                    break
        found[id(unit)] = matched


def _agreement(units: Sequence[Unit], listed: Sequence[Listed], at: int) -> int:
    """Return how many of these units match the list from ``at`` on."""
    count = 0
    for unit in units:
        matched: List[Listed] = []
        at = _match(unit.span, listed, at, matched)
        count += bool(matched)
    return count


def _match(span: Span, listed: Sequence[Listed], at: int, matched: List[Listed]) -> int:
    """Match the span, or else what is inside of it, with the list from ``at`` on; return where the list goes on."""
    if at < len(listed) and _is_same(listed[at], span):
        matched.append(listed[at])
        return at + 1
    for each in span.inside:
        at = _match(each, listed, at, matched)
    return at


def _is_same(listed: Listed, span: Span) -> bool:
    """Compare names. Autograd adds gradients in place (``aten::add_``), and out of place while a mode is on."""
    return listed.name.rstrip("_") == span.name.rstrip("_")
