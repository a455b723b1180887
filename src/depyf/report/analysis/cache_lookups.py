"""Why PyTorch's caches of compiled graphs hit or missed."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Set, Tuple

from depyf.report.model.cache_lookup import CacheLookup, ChangedPart
from depyf.torch_trace.cache_lookups import FORCED_MISS, Lookup, differing, lookup_of
from depyf.torch_trace.events import Event

Settings = Tuple[Tuple[str, ...], ...]

_FORCED = "an entry with this key was there: depyf let PyTorch compile again, so that the dump has every stage"
_GUARDS = "an entry with this key was there, and its guards on sizes did not hold"
_GONE = "the key is that of an earlier run, and its entry is no longer in the cache"
_CHANGED = "the key differs from that of an earlier run"


def cache_lookups(events: Sequence[Event]) -> Tuple[Tuple[CacheLookup, ...], Settings]:
    """Return the look-ups in their order, and the settings in their keys, which are the same for most."""
    forced = {(each.compile_id, _key_of(each)) for each in events if each.name == FORCED_MISS}
    numbers: Dict[Tuple[str, ...], int] = {}
    found: List[CacheLookup] = []
    for event in events:
        lookup = lookup_of(event)
        if lookup is not None:
            number = numbers.setdefault(lookup.settings, len(numbers)) if lookup.settings else None
            found.append(_lookup(event.compile_id, lookup, number, forced))
    return tuple(found), tuple(numbers)


def _key_of(event: Event) -> str:
    return str(event.meta.get("key")) if isinstance(event.meta, dict) else ""


def _lookup(
    compile_id: Optional[str], lookup: Lookup, settings: Optional[int], forced: Set[Tuple[Optional[str], str]]
) -> CacheLookup:
    changed = () if lookup.before is None else tuple(differing(lookup.before, lookup.all_parts))
    reason = lookup.bypass
    if lookup.state == "miss":
        if (compile_id, lookup.key) in forced:
            reason = _FORCED
        elif lookup.detail == "guard_miss":
            reason = _GUARDS
        elif lookup.before is not None:
            reason = _CHANGED if changed else _GONE
    return CacheLookup(
        compile_id,
        lookup.cache,
        lookup.state,
        lookup.key,
        lookup.backward,
        reason,
        tuple(ChangedPart(*each) for each in changed),
        lookup.parts,
        settings,
    )
