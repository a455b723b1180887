"""Read the events of compilations: status, symbols, time, and the look-ups in PyTorch's caches."""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.diagnosis.break_advice import is_limit, is_raised_limit
from depyf.diagnosis.guard_sources import class_name
from depyf.report.analysis.facts import TransformedFact
from depyf.report.model.cache_lookup import CacheLookup, ChangedPart
from depyf.report.model.run import Status
from depyf.torch_trace.addresses import without_addresses
from depyf.torch_trace.cache_lookups import CACHES, FORCED_MISS, FORCED_REASON, Lookup, differing, lookup_of
from depyf.torch_trace.events import ERROR, FORWARD_METRICS, Event
from depyf.torch_trace.metrics import seconds_of
from depyf.torch_trace.stages import Stage
from depyf.torch_trace.tracebacks import Frame, users_stack

GRAPHS = frozenset(
    name for stage in (Stage.CAPTURED, Stage.BEFORE_PRE_GRAD, Stage.FORWARD) for name in stage.facts.records
)
"""Each compilation with a graph has one of these events: Inductor may be called without Dynamo."""


def status_of(
    events: Sequence[Event], metrics: Mapping[str, object], fact: Optional[TransformedFact]
) -> Tuple[Status, str]:
    """Return the status of a compilation, and why it failed."""
    names = {event.name for event in events}
    failure = failure_in(metrics)
    if failure:
        return ("limit" if is_limit(failure) else "failed"), failure
    if metrics.get("has_guarded_code") is False:
        return "skipped", "Dynamo made no code for it"
    if fact is None and not metrics and Stage.CAPTURED.record not in names:
        return "failed", "it did not come to its end"
    graph = bool(names & GRAPHS) or bool(fact is not None and fact.graphs)
    return ("compiled" if graph else "empty"), ""


def failure_in(metrics: Mapping[str, object]) -> str:
    """Return the name of the type and the text of the error that ended a compilation; empty without an error. Up to
    PyTorch 2.4 the type is named as ``<class 'torch._dynamo.exc.Unsupported'>``."""
    if not metrics.get("fail_type"):
        return ""
    kind = class_name(str(metrics["fail_type"])).rpartition(".")[2]
    return f"{kind}: {without_addresses(str(metrics.get('fail_reason') or '')).strip()}"


def reached_limit(metrics: Mapping[str, object]) -> bool:
    """Return whether torch gave up at a limit before it compiled: this is not a recompilation."""
    failure = failure_in(metrics)
    return is_limit(failure) or is_raised_limit(failure)


def error_stack(events: Sequence[Event]) -> Tuple[Frame, ...]:
    """Return the frames of the program that the failure of a compilation is due to, the outermost first. Up to PyTorch
    2.5 the innermost one alone is known; there may be none."""
    for event in reversed(events):
        if event.name == ERROR and event.payload:
            return users_stack(event.payload)
    for event in reversed(events):
        if event.name == FORWARD_METRICS and event.meta.get("fail_user_frame_filename"):
            frame = event.meta["fail_user_frame_filename"], int(event.meta.get("fail_user_frame_lineno") or 0)
            return ((*frame, str(event.meta.get("co_name") or "")),)
    return ()


_CREATED, _UNBACKED, _SPECIALIZED = "create_symbol", "create_unbacked_symbol", "symbolic_shape_specialization"
_OF_SYMBOLS = frozenset((_CREATED, _UNBACKED, _SPECIALIZED))


def symbols_in(events: Iterable[Event]) -> Iterable[str]:
    """Return the symbols of dynamic shapes with their sources, and the values of those that were specialised."""
    last = max((event.attempt for event in events), default=0)
    found: Dict[str, str] = {}
    for event in events:
        if event.name not in _OF_SYMBOLS:
            continue
        meta = event.meta if isinstance(event.meta, Mapping) else {}
        symbol = str(meta.get("symbol"))
        if event.name == _SPECIALIZED:
            found[symbol] = f"{found.get(symbol, symbol)}, specialised to {meta.get('value')}"
        elif event.attempt == last:
            origin = meta.get("source") if event.name == _CREATED else "known only when it runs"
            found[symbol] = f"{symbol}: {origin}"
    return found.values()


def caches_in(events: Iterable[Event]) -> Dict[str, str]:
    """Return hit, miss or bypass for each of torch's caches; ``miss`` if one graph of several missed."""
    found: Dict[str, str] = {}
    for event in events:
        for prefix, cache in CACHES.items():
            if event.name.startswith(prefix):
                answer = event.name[len(prefix) :]
                found[cache] = answer if found.get(cache, answer) == answer else "miss"
    return found


def total_seconds(events: Iterable[Event], *names: str) -> Optional[float]:
    """Return the time in the events of these names, in seconds; None if no event has a time."""
    known = [seconds_of(event.meta) for event in events if event.name in names]
    some = [seconds for seconds in known if seconds is not None]
    return sum(some) if some else None


Settings = Tuple[Tuple[str, ...], ...]

_GUARDS = "an entry with this key was there, and its guards on sizes did not hold"
_GONE = "an earlier run had this key; its entry is no longer in the cache"
_CHANGED = "an earlier run had another key"


def cache_lookups(events: Sequence[Event]) -> Tuple[Tuple[CacheLookup, ...], Settings]:
    """Return the look-ups in their order, and the settings in their keys, which are the same for most."""
    missed = (each for each in events if each.name == FORCED_MISS)
    forced = {(each.compile_id, str(each.meta.get("key")) if isinstance(each.meta, dict) else "") for each in missed}
    numbers: Dict[Tuple[str, ...], int] = {}
    found: List[CacheLookup] = []
    for event in events:
        lookup = lookup_of(event)
        if lookup is not None:
            number = numbers.setdefault(lookup.settings, len(numbers)) if lookup.settings else None
            found.append(_lookup(event.compile_id, lookup, number, forced))
    return tuple(found), tuple(numbers)


def _lookup(
    compile_id: Optional[str], lookup: Lookup, settings: Optional[int], forced: Set[Tuple[Optional[str], str]]
) -> CacheLookup:
    changed = () if lookup.before is None else tuple(differing(lookup.before, lookup.all_parts))
    reason = lookup.bypass
    if lookup.state == "miss":
        if (compile_id, lookup.key) in forced:
            reason = FORCED_REASON
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
        lookup.saved,
    )
