"""Look-ups of compiled graphs in PyTorch's caches: hit or miss, and why."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

from depyf.base.messages import listed
from depyf.base.quick_dataclass import dataclass


@dataclass(frozen=True)
class ChangedPart:
    """A part of a cache key (``inductor_config[max_autotune]``) with its values, ``...`` for a long one."""

    name: str
    before: str
    now: str


@dataclass(frozen=True)
class CacheLookup:
    """One look-up in ``cache`` (``fx_graph`` or ``aotautograd``).

    ``state`` is ``hit``, ``miss``, ``bypass`` or ``disabled``; ``reason`` says why it is no hit, where known. ``parts``
    are the parts of the cache key, as ``hash name: value``; the parts that are settings are the entry with index
    ``settings`` in ``Run.cache_settings``. ``changed`` are the parts with another value than at the same look-up of an
    earlier run. ``saved`` are the seconds that PyTorch reports as saved by a hit.
    """

    compile_id: Optional[str]
    cache: str
    state: str
    key: str = ""
    backward: bool = False
    reason: str = ""
    changed: Tuple[ChangedPart, ...] = ()
    parts: Tuple[str, ...] = ()
    settings: Optional[int] = None
    saved: Optional[float] = None


def changed_in_words(changed: Sequence[ChangedPart], limit: int = 4) -> str:
    """Return ``: name (value before, value now), ...``, without long values; empty where nothing changed."""
    return f": {listed([_in_words(each) for each in changed], limit)}" if changed else ""


def _in_words(each: ChangedPart) -> str:
    if each.before == each.now == "...":
        return each.name
    return f"{each.name} ({each.before or 'not there'} before, {each.now or 'not there'} now)"
