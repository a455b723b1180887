"""Store what the keys of PyTorch's caches consist of beside these caches: a later miss names what changed."""

from __future__ import annotations

import hashlib
import json
import linecache
import os
from collections import Counter
from dataclasses import replace
from typing import Callable, Dict, Mapping, Optional, Sequence, Tuple
from typing import Counter as CounterOf

from depyf.asynchronous import synchronous
from depyf.dynamo.hooks import torch_settings
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.structured_trace_listener import interned_strings
from depyf.dynamo.store.directory import write_atomically
from depyf.regular_files import read_text
from depyf.report.analysis.source_facts import source_facts
from depyf.torch_trace.cache_lookups import Lookup, lookup_of, with_lookup
from depyf.torch_trace.events import Event

_FORM = 1
"""The version of the stored format; others are ignored."""

Place = Tuple[object, ...]
"""Which look-up it is, in every run of a program: the function, the cache, and its number."""


class CacheKeys:
    """Compare the keys of one process with those of an earlier one. ``start_of`` returns the event with which a
    compilation started."""

    def __init__(self, start_of: Callable[[str], Optional[Event]]) -> None:
        self._start_of = start_of
        self._numbers: CounterOf[Place] = Counter()
        self._qualified_names: Dict[str, Mapping[Tuple[str, int], Tuple[str, int]]] = {}

    @safely("comparing a cache key with that of an earlier run")
    def _compared(self, event: Event, lookup: Lookup) -> Lookup:
        place = self._place(event, lookup)
        if place is None or not lookup.parts:
            return lookup
        before = _stored(place)
        if before is None or before[0] != lookup.key:
            _store(place, lookup)
        return lookup if before is None else replace(lookup, before=before[1])

    def of(self, event: Event) -> Event:
        """Return the event of a look-up with what was read from it, and any other event as it is."""
        lookup = lookup_of(event)
        if lookup is None:
            return event
        return with_lookup(event, self._compared(event, lookup) or lookup)

    def _place(self, event: Event, lookup: Lookup) -> Optional[Place]:
        start = None if event.compile_id is None else self._start_of(event.compile_id)
        stack = start.meta.get("stack") if start is not None and isinstance(start.meta, Mapping) else None
        if not stack:
            return None
        frame = stack[-1]
        file = _file(frame.get("filename"))
        function = (self._name(file, frame.get("name"), frame.get("line")), file, os.environ.get("RANK", ""))
        place = (*function, lookup.cache, lookup.backward)
        self._numbers[place] += 1
        return (*place, self._numbers[place])

    def _name(self, file: str, name: str, line: int) -> str:
        """Return the qualified name of the function that starts at a line, which may be another one in the next run:
        classes in one file have methods of one name. It is the plain name where the source does not say."""
        if file not in self._qualified_names:
            self._qualified_names[file] = source_facts("".join(linecache.getlines(file))).definitions
        return self._qualified_names[file].get((name, line), (name, 0))[0]


def _file(name: object) -> str:
    """Return the name of a file, for which PyTorch's trace may have a number."""
    return next((text for text, number in interned_strings().items() if number == name), str(name))


def _folder() -> str:
    return os.path.join(torch_settings.cache_directory(), "depyf", f"keys.{_FORM}")


def _path(*parts: object) -> str:
    return os.path.join(_folder(), hashlib.sha256(repr(parts).encode()).hexdigest()[:24] + ".json")


def _stored(place: Place) -> Optional[Tuple[str, Tuple[str, ...]]]:
    """Return the key of an earlier run and its parts."""
    try:
        key, parts, settings = json.loads(read_text(_path(place)))
        rest: Sequence[str] = json.loads(read_text(os.path.join(_folder(), settings))) if settings else ()
        return str(key), tuple(map(str, [*parts, *rest]))
    except synchronous(OSError, ValueError, TypeError):
        return None


@safely("storing a cache key for later runs")
def _store(place: Place, lookup: Lookup) -> None:
    os.makedirs(_folder(), exist_ok=True)
    settings = _path(lookup.settings) if lookup.settings else ""
    if settings and not os.path.exists(settings):
        write_atomically(settings, json.dumps(lookup.settings).encode())
    text = json.dumps([lookup.key, lookup.parts, os.path.basename(settings)])
    write_atomically(_path(place), text.encode())
