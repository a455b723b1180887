"""Read, copy and remove Dynamo's cache entries."""

from __future__ import annotations

from types import CodeType
from typing import Any, Dict, List, Mapping, Optional

from depyf.base.own_builtins import keep_builtins
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.torch_types import Guards
from depyf.torch_trace.recompiles import REMOVED

keep_builtins(globals())

_forgotten: Dict[int, CodeType] = {}
"""Code whose cache entries depyf removed."""


def reports_absent_items() -> bool:
    """Return whether the text of a guard on a set's contents shows a negation (not in 2.8 and 2.9)."""
    return private_names.PRESENT_ITEMS.find() is None or private_names.ABSENT_ITEMS.find() is not None


@dataclass(frozen=True)
class CacheEntry:
    """A snapshot of one of Dynamo's cache entries. Dynamo frees its own object when a guarded object is deleted, and
    reading it after that crashes the process. ``code`` is None if Dynamo has dropped it, ``compile_id`` and ``backend``
    if this torch does not report them. ``region`` is the number of a ``torch.compile(isolate_recompiles=True)``, -1 for
    all others."""

    code: Optional[CodeType]
    guard_manager: Guards
    compile_id: Optional[str]
    backend: object
    region: int = -1


def _as_read(entry: Any) -> CacheEntry:
    compile_id = getattr(entry, "compile_id", None)
    known = None if compile_id is None else str(compile_id)
    region = getattr(entry, "isolate_recompiles_id", -1)
    return CacheEntry(entry.code, guards_of(entry), known, getattr(entry, "backend", None), region)


def cache_entries(code: CodeType, region: int = -1) -> List[CacheEntry]:
    """Return Dynamo's cache entries of the original ``code``, most recently used first.

    ``region`` identifies a ``torch.compile(..., isolate_recompiles=True)``, whose entries are tried first.
    """
    of_region = private_names.CACHE_ENTRIES_OF_REGION.find() if region != -1 else None
    own = [] if of_region is None else list(of_region(code, region))
    lookup = private_names.CACHE_ENTRY_LIST.find_or_report()
    found = own if lookup is None else own + [entry for entry in lookup(code) if entry not in own]
    entries = [_as_read(entry) for entry in found]
    return [entry for entry in entries if getattr(entry.guard_manager, "invalidation_reason", None) != REMOVED]


def number_of_entries(code: CodeType) -> int:
    """Return how many entries Dynamo counts for ``code``: of all regions, and those that are no longer used."""
    counted = private_names.NUMBER_OF_ENTRIES.find()
    lookup = private_names.CACHE_ENTRY_LIST.find()
    return int(counted(code)) if counted is not None else 0 if lookup is None else len(lookup(code))


def forget_code(code: CodeType) -> None:
    """Remove all cache entries of ``code``."""
    reset = torch_names.first_of(private_names.RESET_CODE, private_names.RESET_CODE_IN_C)
    if reset is not None:
        _forgotten[id(code)] = code
        reset(code)


def looked_at_in_vain(code: CodeType) -> bool:
    """Return whether Dynamo has tried to compile ``code``, and has no cache entry for it."""
    seen = private_names.INPUT_CODES.find()
    lookup = private_names.CACHE_ENTRY_LIST.find()
    if seen is None or lookup is None or id(code) in _forgotten:
        return False
    return code in seen and not lookup(code)


def guards_of(entry: object) -> Any:
    """Return the guards of a cache entry."""
    return private_names.GUARD_MANAGER.of(entry) or private_names.CHECK_FN.of(entry)


def forget_entry(guards: object) -> None:
    """Invalidate the cache entry with these guards. It stays in Dynamo's list, unused, and does not count towards
    limits."""
    deleted = private_names.DELETED_GUARDS.find()
    entry, owner = getattr(guards, "cache_entry", None), getattr(guards, "extra_state", None)
    if deleted is not None and entry is not None and owner is not None:
        removed = deleted(REMOVED)
        # It must not count as one for the same objects: the limit.
        removed.id_matched_objs = {"depyf": object}
        owner.invalidate(entry, removed)


def has_regions() -> bool:
    """Return whether this torch (2.13) can keep the cache entries of each ``torch.compile`` apart."""
    return private_names.CACHE_ENTRIES_OF_REGION.find() is not None


def global_scope(manager: Optional[Guards]) -> Mapping[str, object]:
    """Return the user's globals as the guards of an entry see them, empty if the entry was deleted."""
    scope = getattr(manager, "global_scope", None) or {}
    found: Mapping[str, object] = scope.get("G") or {}
    return found
