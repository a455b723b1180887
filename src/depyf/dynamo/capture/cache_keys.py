"""Store the parts of the keys of PyTorch's caches beside these caches, so that a later miss can name what changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from dataclasses import replace
from typing import Callable, Dict, Mapping, Optional, Sequence, Tuple
from typing import Counter as CounterOf

from depyf.base.asynchronous import synchronous
from depyf.base.regular_files import read_text
from depyf.base.source_lines import source_lines
from depyf.dynamo.hooks import torch_settings
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.structured_trace_listener import interned_strings
from depyf.dynamo.store.directory import write_atomically
from depyf.report.analysis.source_facts import source_facts
from depyf.torch_trace.cache_lookups import Lookup, lookup_of, with_lookup
from depyf.torch_trace.events import Event

_FORM = 1
"""The version of the stored format; others are ignored."""

LookupId = Tuple[object, ...]
"""Identifies a look-up in every run of a program: the function, the cache, and the number of the look-up."""


class CacheKeys:
    """Compare the keys of one process with the keys of an earlier process. ``start_of`` returns the event with which a
    compilation started."""

    def __init__(self, start_of: Callable[[str], Optional[Event]]) -> None:
        self._start_of = start_of
        self._numbers: CounterOf[LookupId] = Counter()
        self._qualified_names: Dict[str, Mapping[Tuple[str, int], Tuple[str, int]]] = {}

    @safely("comparing a cache key with the key of an earlier run")
    def _compared(self, event: Event, lookup: Lookup) -> Lookup:
        identity = self._identity(event, lookup)
        if identity is None or not lookup.parts:
            return lookup
        before = _stored(identity)
        if before is None or before[0] != lookup.key:
            _store(identity, lookup)
        return lookup if before is None else replace(lookup, before=before[1])

    def of(self, event: Event) -> Event:
        """Return the event of a look-up together with the compared keys, and any other event as it is."""
        lookup = lookup_of(event)
        if lookup is None:
            return event
        return with_lookup(event, self._compared(event, lookup) or lookup)

    def _identity(self, event: Event, lookup: Lookup) -> Optional[LookupId]:
        start = None if event.compile_id is None else self._start_of(event.compile_id)
        stack = start.meta.get("stack") if start is not None and isinstance(start.meta, Mapping) else None
        if not stack:
            return None
        frame = stack[-1]
        file = _file(frame.get("filename"))
        function = (self._name(file, frame.get("name"), frame.get("line")), file, os.environ.get("RANK", ""))
        identity = (*function, lookup.cache, lookup.backward)
        self._numbers[identity] += 1
        return (*identity, self._numbers[identity])

    def _name(self, file: str, name: str, line: int) -> str:
        """Return the qualified name of the function that starts at a line; the plain name if the source does not say
        it.

        The line may be another one in the next run, and classes in one file have methods of one name.
        """
        if file not in self._qualified_names:
            self._qualified_names[file] = source_facts("".join(source_lines(file))).definitions
        return self._qualified_names[file].get((name, line), (name, 0))[0]


def _file(name: object) -> str:
    """Return the name of a file; PyTorch's trace may have a number for it."""
    return next((text for text, number in interned_strings().items() if number == name), str(name))


def _folder() -> str:
    return os.path.join(torch_settings.cache_directory(), "depyf", f"keys.{_FORM}")


def _path(*parts: object) -> str:
    return os.path.join(_folder(), hashlib.sha256(repr(parts).encode()).hexdigest()[:24] + ".json")


def _stored(identity: LookupId) -> Optional[Tuple[str, Tuple[str, ...]]]:
    """Return the key of an earlier run and its parts."""
    try:
        key, parts, settings = json.loads(read_text(_path(identity)))
        rest: Sequence[str] = json.loads(read_text(os.path.join(_folder(), settings))) if settings else ()
        return str(key), tuple(map(str, [*parts, *rest]))
    except synchronous(OSError, ValueError, TypeError):
        return None


@safely("storing a cache key for later runs")
def _store(identity: LookupId, lookup: Lookup) -> None:
    os.makedirs(_folder(), exist_ok=True)
    settings = _path(lookup.settings) if lookup.settings else ""
    if settings and not os.path.exists(settings):
        write_atomically(settings, json.dumps(lookup.settings).encode())
    text = json.dumps([lookup.key, lookup.parts, os.path.basename(settings)])
    write_atomically(_path(identity), text.encode())
