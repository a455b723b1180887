"""What PyTorch's caches answered when they were asked for a compiled graph."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

from depyf.messages import listed
from depyf.quick_dataclass import dataclass


@dataclass(frozen=True)
class ChangedPart:
    """A part of a cache key (``inductor_config[max_autotune]``) with its values, ``...`` for a long one."""

    name: str
    before: str
    now: str


@dataclass(frozen=True)
class CacheLookup:
    """One look-up in ``cache`` (``fx_graph`` or ``aotautograd``).

    ``state`` is ``hit``, ``miss``, ``bypass`` or ``disabled``; ``reason`` why it is no hit, as far as that is known.
    ``parts`` are what the key is made of, as ``hash name: value``; ``settings`` is an index into
    ``Run.cache_settings``, which has the rest of them. ``changed`` are the parts that differ from those at the same
    look-up of an earlier run.
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


def changed_in_words(changed: Sequence[ChangedPart], limit: int = 4) -> str:
    """Return ``: name (value before, value now), ...``, without long values; empty where nothing changed."""
    return f": {listed([_in_words(each) for each in changed], limit)}" if changed else ""


def _in_words(each: ChangedPart) -> str:
    if each.before == each.now == "...":
        return each.name
    return f"{each.name} ({each.before or 'not there'} before, {each.now or 'not there'} now)"
