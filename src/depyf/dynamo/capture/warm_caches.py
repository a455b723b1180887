"""Store the stages that torch does not report when its caches are warm, and report them again at a later hit.

A compiled graph from a cache has skipped the passes before it, so the trace lacks their graphs. The events of a miss
are stored beside the cache, under the key of the miss:

- A hit on a key with stored events reports these events again.
- A hit on a key without them (the cache was filled without depyf) is turned into a miss: the graph is compiled again,
  and the dump is complete. The exception is a saved graph that is loaded by its key (``CompiledArtifact.load``), since
  nothing would compile it.
- A hit of AOTAutograd's cache asks Inductor's cache for the graphs, and counts only when Inductor's cache has them.
- With ``force_recompile`` every look-up is a miss.

Torch's other caches (autotuning, shared libraries) lose no stage.
"""

from __future__ import annotations

import json
import os
import time
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.locks import Lock
from depyf.base.own_builtins import keep_builtins
from depyf.base.regular_files import read_text
from depyf.dynamo.capture.session import Receivers, Session
from depyf.dynamo.hooks import frames, private_names, torch_settings
from depyf.dynamo.hooks.attribution import current_compile_id
from depyf.dynamo.hooks.patching import Undo, collecting, replace_attribute, undo_all
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.store.directory import write_atomically
from depyf.torch_trace.cache_lookups import FORCED_MISS
from depyf.torch_trace.events import AOTAUTOGRAD_HIT, GRAPH_PASS, Event
from depyf.torch_trace.provenance import KERNEL_LAUNCHES, NODE_STACKS
from depyf.torch_trace.stages import NamedStage, Stage, stage_of

keep_builtins(globals())

LOST_WHEN_WARM = frozenset(
    {
        *(name for stage in Stage if stage.facts.lost_when_warm for name in stage.facts.records),
        NODE_STACKS,
        KERNEL_LAUNCHES,
        GRAPH_PASS,
    }
)

_FORM = 5
"""The version of the stored format; others are ignored. Events of 4 may be stored under two keys."""

_LOOKED_UP = AOTAUTOGRAD_HIT.rpartition("_")[0]
"""The beginnings of the events that report how a look-up of AOTAutograd ended: hit, miss, or bypass."""

Note = Tuple[str, str]
"""The name and the payload of an event."""


class WarmCaches:
    """Stored events by cache key. ``receivers`` returns the capturing sessions, ``repeat`` receives the events that a
    hit has skipped.
    """

    def __init__(self, receivers: Receivers, repeat: Callable[[Event], object]) -> None:
        self._receivers = receivers
        self._repeat = repeat
        self._lock = Lock()
        self._missed: Dict[str, str] = {}
        """The key of the last miss, by compile id: later events of the compilation are stored under it."""
        self._notes: Dict[str, List[Note]] = {}
        """The events stored so far, by key."""
        self._held: Dict[str, List[Note]] = {}
        """What a hit of AOTAutograd's cache would repeat, by compile id, until it is known that the hit counts."""
        self._sees_look_ups = False
        self._switch_on: List[Undo] = []

    def follow(self, sessions: Sequence[Session]) -> None:
        """Disable the caches while one of the open ``sessions`` wants that, if look-ups can't be observed."""
        wanted = any(session.force_recompile for session in sessions) and not self._watches()
        if wanted and not self._switch_on:
            collecting(self._switch_on, torch_settings.switch_caches_off)
        elif not wanted:
            undo_all(self._switch_on)

    def _watches(self) -> bool:
        """Return whether look-ups are observed, after importing the module that the hook may still wait for."""
        return sees_look_ups() and self._sees_look_ups

    def watch(self) -> Optional[Undo]:
        """Start to observe every cache look-up; return the function that stops it."""
        cache, lookup = private_names.GUARDED_CACHE.find(), _look_up()
        if lookup is None:
            return None  # before 2.8: missing.py reports what a cache loses, and force_recompile disables the cache
        original = lookup.__func__
        self._sees_look_ups = True

        def iterate_over_candidates(cls: type, /, *args: object, **kwargs: object) -> Iterator[object]:
            # ``GuardedCache.find_guarded_entry(key, ...)`` iterates over what this yields, evaluates the guards of each
            # entry, and breaks off at the first that holds. Parameters differ between versions; the key is the last
            # one.
            candidates = original(cls, *args, **kwargs)
            key = kwargs.get("key", args[-1] if args else None)
            sessions = self._receivers()
            if not sessions or not isinstance(key, str):
                yield from candidates
                return
            notes = None if any(session.force_recompile for session in sessions) else self._read(key)
            # Without stored events nothing is yielded, which is a miss; with an empty list of them the cache is asked.
            if notes is None and frames.inductor_compiles():
                self._forced(key, candidates)
                self._miss(key)
            else:
                yield from self._candidates_with_notes(key, candidates, notes or [], held=_asks_inductor(cls))

        return replace_attribute(cache, "iterate_over_candidates", classmethod(iterate_over_candidates))

    def _candidates_with_notes(
        self, key: str, candidates: Iterator[object], notes: List[Note], *, held: bool
    ) -> Iterator[object]:
        for candidate in candidates:
            try:
                yield candidate
            except GeneratorExit:  # torch has broken off its loop: the guards of this entry hold
                self._hit(notes, held=held)
                raise
        self._miss(key)

    def event(self, event: Event) -> None:
        """Store ``event`` if a warm cache would skip it, including graphs that passes print."""
        if event.compile_id is None:
            return
        # How the look-up of AOTAutograd ended comes after the look-ups of Inductor's cache that belong to it.
        if event.name.startswith(_LOOKED_UP):
            held = self._take_held(event.compile_id)
            if event.name == AOTAUTOGRAD_HIT:
                self._repeat_all(event.compile_id, held)
        if event.payload is None:
            return
        if event.name not in LOST_WHEN_WARM and not isinstance(stage_of(event.name, event.payload), NamedStage):
            return
        with self._lock:
            key = self._missed.get(event.compile_id)
            if key is None:
                return
            notes = [*self._notes.get(key, []), (event.name, event.payload)]
            self._notes[key] = notes
        # Written at each event: the process may end at any time, and the cache entry stays.
        self._write(key, notes)

    def forget(self, compile_id: str) -> None:
        """Forget a compilation that has ended: later events with its id belong to another look-up."""
        with self._lock:
            key = self._missed.pop(compile_id, None)
            self._held.pop(compile_id, None)
            if key is not None:
                self._notes.pop(key, None)

    @safely("noting which cached graph is missing")
    def _miss(self, key: str) -> None:
        compile_id = current_compile_id()
        if compile_id is not None:
            with self._lock:
                self._missed[compile_id] = key
                self._held.pop(compile_id, None)
                self._notes.pop(key, None)

    @safely("noting that a cached graph is compiled again")
    def _forced(self, key: str, candidates: Iterator[object]) -> None:
        """Report that there is an entry, whose guards are not evaluated: PyTorch compiles again because of depyf."""
        if next(candidates, None) is not None:
            self._repeat(Event(FORCED_MISS, current_compile_id(), 0, {"key": key}, None, time.time()))

    @safely("repeating the stages of a cached graph")
    def _hit(self, notes: List[Note], *, held: bool) -> None:
        compile_id = current_compile_id()
        before: List[Note] = []
        if compile_id is not None:
            before = self._take_held(compile_id)
            # A later hit of AOTAutograd's cache asks Inductor's again: what that repeats belongs to no other key.
            self.forget(compile_id)
        # If AOTAutograd's hit turns out to be a miss (Inductor's cache lacks the graph), the stages are compiled again,
        # and repeating them would show each twice.
        if held and compile_id is not None:
            with self._lock:
                self._held[compile_id] = notes
        else:
            self._repeat_all(compile_id, [*before, *notes])

    def _take_held(self, compile_id: str) -> List[Note]:
        with self._lock:
            return self._held.pop(compile_id, [])

    def _repeat_all(self, compile_id: Optional[str], notes: List[Note]) -> None:
        for name, payload in notes:
            self._repeat(Event(name, compile_id, 0, {}, payload, 0.0))

    @safely("noting the stages of a cached graph")
    def _write(self, key: str, notes: List[Note]) -> None:
        path = _path(key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_atomically(path, json.dumps(notes).encode())

    def _read(self, key: str) -> Optional[List[Note]]:
        try:
            return [(str(name), str(payload)) for name, payload in json.loads(read_text(_path(key)))]
        except synchronous(OSError, ValueError, TypeError):
            return None


def _look_up() -> Optional[classmethod[object, ..., Iterator[object]]]:
    cache = private_names.GUARDED_CACHE.find()
    lookup = vars(cache).get("iterate_over_candidates") if cache is not None else None
    return lookup if isinstance(lookup, classmethod) else None


def _asks_inductor(cache: type) -> bool:
    """Return whether a hit of this cache asks Inductor's cache for the graphs, and is a miss if one is not there."""
    outer = private_names.AOT_HITS.find()
    return outer is not None and issubclass(cache, outer)


def sees_look_ups() -> bool:
    """Return whether depyf can observe the cache look-ups of this PyTorch, so that the dump has what a hit skips."""
    return _look_up() is not None


def _path(key: str) -> str:
    """Return the path for a key: in torch's own cache directory, so that clearing the cache removes it."""
    return os.path.join(torch_settings.cache_directory(), "depyf", key[1:3], f"{key}.{_FORM}.json")
