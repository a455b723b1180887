"""Count the cache entries of a function against Dynamo's limits of recompilation, as Dynamo counts them.

Dynamo refuses a compilation in three cases: the entries with the same modules (guarded by ``ID_MATCH``) are
``recompile_limit``, all entries of the code are ``accumulated_recompile_limit``, or the code was compiled that often,
whatever became of the entries. With ``torch.compile(isolate_recompiles=True)`` the first count is one of each region.
"""

from __future__ import annotations

from types import CodeType
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.diagnosis.recompile_limits import LimitStanding
from depyf.dynamo.hooks import cache_entries, private_names, torch_settings

Limits = Tuple[Tuple[str, int], ...]
"""Name and value of the limit for equal modules and of the limit for all, as far as this torch has them."""

_NAMES = (
    ("recompile_limit", "cache_size_limit"),
    ("accumulated_recompile_limit", "accumulated_cache_size_limit"),
)
"""The names of each limit, today's first; the others are the names before PyTorch 2.6."""


def limits_in_force() -> Limits:
    """Return the limits of this thread. While a function is compiled, the limit that its ``torch.compile`` was given
    (``recompile_limit=``) is in force."""
    found = []
    for names in _NAMES:
        values = ((name, torch_settings.dynamo_setting(name)) for name in names)
        found += [(name, value) for name, value in values if isinstance(value, int)][:1]
    return tuple(found)


def region_now() -> int:
    """Return the number of the region (``isolate_recompiles=True``) that is compiled for; -1 outside of regions."""
    read = private_names.GET_REGION.find()
    return -1 if read is None else int(read())


def standings(code: CodeType, of_regions: Mapping[int, Limits]) -> Tuple[LimitStanding, ...]:
    """Return where ``code`` stands now with each limit; nothing where it has no entries: Dynamo of PyTorch
    2.2 drops them when a limit is reached. Of several sets of modules, and of several regions, the one counts with the
    fewest compilations left. ``of_regions`` are the limits of regions that are known; for others, the limits
    of this thread are assumed."""
    regions: Dict[int, List[cache_entries.CacheEntry]] = {}
    for entry in cache_entries.cache_entries(code):
        regions.setdefault(entry.region, []).append(entry)
    found = [
        _standings(code, group, of_regions.get(region) or limits_in_force(), _frames_of(group))
        for region, group in regions.items()
    ]
    return min(found, key=lambda each: [standing.left for standing in each], default=())


def standings_of_frame(code: CodeType, region: int, values: Mapping[str, object]) -> Tuple[LimitStanding, ...]:
    """Return where ``code`` stands for a call with these local variables."""
    entries = [each for each in cache_entries.cache_entries(code, region) if each.region == region]
    return _standings(code, entries, limits_in_force(), [values])


def _standings(
    code: CodeType,
    entries: Sequence[cache_entries.CacheEntry],
    limits: Limits,
    frames: Sequence[Mapping[str, object]],
) -> Tuple[LimitStanding, ...]:
    alike = max((sum(_has_same_objects(entry, frame) for entry in entries) for frame in frames), default=0)
    # ``2/5`` is the sixth compilation of the code.
    numbers = [str(entry.compile_id).rpartition("/")[2] for entry in entries]
    times = max((int(number) + 1 for number in numbers if number.isdigit()), default=0)
    counts = (alike, max(cache_entries.number_of_entries(code), times))
    objects = sum(map(bool, frames))
    return tuple(
        LimitStanding(name, value, count, 0 if number else objects)
        for number, ((name, value), count) in enumerate(zip(limits, counts))
    )


def _frames_of(entries: Sequence[cache_entries.CacheEntry]) -> List[Dict[str, object]]:
    """Return the different sets of modules that entries have by identity, as variables of a call."""
    found: Dict[Tuple[Tuple[str, int], ...], Dict[str, object]] = {}
    for entry in entries:
        frame = {name: value for name, value in _matched(entry) if value is not None}
        found.setdefault(tuple(sorted((name, id(value)) for name, value in frame.items())), frame)
    return list(found.values())


def _has_same_objects(entry: cache_entries.CacheEntry, values: Mapping[str, object]) -> bool:
    return all(value is None or value is values.get(name) for name, value in _matched(entry))


def _matched(entry: cache_entries.CacheEntry) -> Iterator[Tuple[str, Optional[object]]]:
    """Yield the variables that an entry requires to be one object, with that object; None where it has been freed."""
    for name, reference in (getattr(entry.guard_manager, "id_matched_objs", None) or {}).items():
        yield name, reference()
