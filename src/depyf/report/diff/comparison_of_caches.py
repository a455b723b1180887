"""What PyTorch's caches answered in two runs, and which parts of the keys differ. It is no difference of the programs:
a second run finds what the first one has stored.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Sequence, Tuple

from depyf.report.diff.matching import Side
from depyf.report.model.cache_lookup import CacheLookup, ChangedPart, changed_in_words
from depyf.report.model.run import Compilation
from depyf.torch_trace.cache_lookups import differing

_PARTS = 8


def compared_lookups(
    before: Side, after: Side, matched: Sequence[Tuple[str, Compilation, Compilation]]
) -> Tuple[str, ...]:
    """Return a line for each look-up whose answer or key is another one; ``matched`` are compilations with a title."""
    then, now = _by_compile_id(before), _by_compile_id(after)
    found: List[str] = []
    for title, one, other in matched:
        for first, second in _pairs(then.get(one.compile_id, []), now.get(other.compile_id, [])):
            line = _line(before, first, after, second)
            if line:
                found.append(f"{title}: {line}")
    return tuple(found)


def _by_compile_id(side: Side) -> Dict[str, List[CacheLookup]]:
    found: Dict[str, List[CacheLookup]] = {}
    for each in side.run.cache_lookups:
        if each.compile_id is not None:
            found.setdefault(each.compile_id, []).append(each)
    return found


def _pairs(one: Sequence[CacheLookup], other: Sequence[CacheLookup]) -> Iterator[Tuple[CacheLookup, CacheLookup]]:
    """Yield the look-ups of both runs in the same cache, for the same direction, in their order."""
    for kind in dict.fromkeys((each.cache, each.backward) for each in one):
        both = ([each for each in side if (each.cache, each.backward) == kind] for side in (one, other))
        yield from zip(*both)


def _line(before: Side, one: CacheLookup, after: Side, other: CacheLookup) -> str:
    """Return words for two look-ups, empty if answer and key are the same."""
    parts = [ChangedPart(*each) for each in differing(_parts(before, one), _parts(after, other))]
    known = bool(one.parts and other.parts)
    if one.state == other.state and not (known and parts):
        return ""
    states = f"{one.state} before, {other.state} now" if one.state != other.state else f"{other.state} in both"
    which = other.cache + (", backward" if other.backward else "")
    why = f" ({other.reason})" if other.reason and not parts else ""
    if not known:
        return f"{which}: {states}{why}"
    keys = f"differ in{changed_in_words(parts, _PARTS)}" if parts else "are equal"
    return f"{which}: {states}{why}; the keys {keys}"


def _parts(side: Side, lookup: CacheLookup) -> Tuple[str, ...]:
    settings = side.run.cache_settings
    known = lookup.settings is not None and 0 <= lookup.settings < len(settings)
    return lookup.parts + (settings[lookup.settings] if known and lookup.settings is not None else ())
