"""Look-ups in PyTorch's caches of compiled graphs, and the parts of their keys, as its trace reports them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.torch_trace.addresses import without_addresses
from depyf.torch_trace.events import Event

CACHES = {"fx_graph_cache_": "fx_graph", "aotautograd_cache_": "aotautograd"}
"""Inductor's cache and AOTAutograd's cache, by the prefix of their events' names."""

FORCED_MISS = "depyf_forced_miss"
"""Reported by depyf where an entry was in the cache, and PyTorch compiles again because depyf asked for it."""

FORCED_REASON = "an entry with this key was there: depyf let PyTorch compile again, so that the dump has every stage"

_LOOKUP, _BEFORE = "depyf_lookup", "depyf_parts_before"

_PART = regex(r"\[(\w+)\] ([^:]*): (.*)", re.DOTALL)
_OF_SETTINGS = ("inductor_config", "functorch_config")
_LONGEST = 80
_HASH = 10


@dataclass(frozen=True)
class Lookup:
    """One look-up. ``parts`` are the parts of the key, each as ``hash name: value`` without long values. Parts that are
    settings, which many look-ups share, are in ``settings``. ``before`` are all parts at the same look-up of an earlier
    process, None if no earlier look-up is on record. ``saved`` are the seconds that the entry had taken to compile; of
    ``aotautograd`` forward and backward with the work of Inductor."""

    cache: str
    state: str
    key: str = ""
    detail: str = ""
    bypass: str = ""
    backward: bool = False
    parts: Tuple[str, ...] = ()
    settings: Tuple[str, ...] = ()
    before: Optional[Tuple[str, ...]] = None
    saved: Optional[float] = None

    @property
    def all_parts(self) -> Tuple[str, ...]:
        return self.parts + self.settings


_shared_settings: Dict[Tuple[str, ...], Tuple[str, ...]] = {}


def lookup_of(event: Event) -> Optional[Lookup]:
    """Return the look-up that an event reports; None for other events."""
    prefix = next((prefix for prefix in CACHES if event.name.startswith(prefix)), None)
    if prefix is None:
        return None
    # In process the payload was parsed when the event came, and dropped (``with_lookup``).
    if isinstance(event.meta, Mapping) and isinstance(event.meta.get(_LOOKUP), Lookup):
        return event.meta[_LOOKUP]  # type: ignore[no-any-return]
    cache, state = CACHES[prefix], event.name[len(prefix) :]
    try:
        data = json.loads(event.payload or "{}")
    except synchronous(ValueError, RecursionError):
        data = {}
    if not isinstance(data, dict):
        return Lookup(cache, state)
    # ``components`` are all parts of the key; the settings of the compilers in them are equal for most look-ups.
    components = data.get("components")
    parts = list(map(_part, components)) if isinstance(components, list) else []
    settings = tuple(part for part in parts if _name(part).startswith(_OF_SETTINGS))
    if len(_shared_settings) > 100:
        _shared_settings.clear()
    return Lookup(
        cache,
        state,
        str(data.get("key") or ""),
        str(data.get("cache_status_detailed") or ""),
        without_addresses(str(data.get("cache_bypass_reason") or "")),
        any(_name(part) == "fx_kwargs[is_backward]" and part.endswith("True") for part in parts),
        tuple(part for part in parts if not _name(part).startswith(_OF_SETTINGS)),
        _shared_settings.setdefault(settings, settings),
        saved=_saved(data),
    )


def _saved(data: Mapping[str, object]) -> Optional[float]:
    """Return the seconds that a hit reports as saved; None where it reports none."""
    for name, unit in (("time_saved_ns", 1e9), ("time_saved_ms", 1e3)):
        value = data.get(name)
        if isinstance(value, (int, float)) and 0 <= value / unit < _LARGEST:
            return value / unit
    return None


_LARGEST = 1e9
"""In seconds. Larger ones are no times."""


def with_lookup(event: Event, lookup: Lookup) -> Event:
    """Return the event with what was read from its payload, which is long."""
    meta = dict(event.meta) if isinstance(event.meta, Mapping) else {}
    return replace(event, text=None, meta={**meta, _LOOKUP: lookup})


def differing(before: Sequence[str], now: Sequence[str]) -> List[Tuple[str, str, str]]:
    """Return the parts of two keys that differ, each with its values; ``...`` where a value is long, empty where one
    side lacks the part."""
    then, today = _by_name(before), _by_name(now)
    return [
        (name, _value(then.get(name)), _value(today.get(name)))
        for name in dict.fromkeys([*then, *today])
        if then.get(name, "").partition(" ")[0] != today.get(name, "").partition(" ")[0]
    ]


def _part(component: object) -> str:
    # ``[v2hc3a...] inductor_config[max_autotune]: False``: hash, name, value
    match = _PART.match(str(component))
    if match is None:
        return f"? {str(component)[:_LONGEST]}:"
    hashed, name, value = match.groups()
    short = without_addresses(value) if len(value) <= _LONGEST and value.isprintable() else "..."
    return f"{hashed[:_HASH]} {name}: {short}"


def _name(part: str) -> str:
    return part.partition(" ")[2].partition(": ")[0]


def _value(part: Optional[str]) -> str:
    return "" if part is None else part.partition(": ")[2]


def _by_name(parts: Iterable[str]) -> Dict[str, str]:
    return {_name(part): part for part in parts}
