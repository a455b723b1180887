"""Find the cache entries that Dynamo tries for a call.

To compile a call of torch's own code, Dynamo compiles its own function ``inner``, whose code all such calls share: only
its entries for the same callable apply.
"""

from __future__ import annotations

from typing import Dict, List, Mapping

from depyf.base.late_regex import regex
from depyf.dynamo.entries.call_target import CallTarget
from depyf.dynamo.entries.callables import is_inner_code
from depyf.dynamo.guards.entry_guards import EntryGuards
from depyf.dynamo.guards.live_values import NotLiveError
from depyf.dynamo.hooks import cache_entries, private_names
from depyf.dynamo.hooks.nested_code import closure_of

_CALLED = ("L['fn']", "L['fn'].__code__")
"""The source that the guards of ``inner`` check to identify the callable."""
_CALLED_BY_FUNCTION = regex(r"___check_(?:obj|type)_id\(L\['fn'\](?:\.__code__)?, ")
"""The same before PyTorch 2.4, whose guards have no source but their text."""


def entries_of(found: CallTarget, *, same_tensors: bool = False) -> List[cache_entries.CacheEntry]:
    """Return Dynamo's cache entries for the call target, in the order in which they are tried. The entry of another
    module of the same class applies as well: Dynamo uses it if all guards pass. With ``same_tensors`` its parameters
    have to match, too.
    """
    entries = cache_entries.cache_entries(found.code, private_names.REGION.of(found.entered, -1))
    if not is_inner_code(found.code):
        return entries
    values = {**dict(closure_of(found.frame)), "args": found.args, "kwargs": dict(found.kwargs)}
    return [entry for entry in entries if _is_for(entry, values, same_tensors=same_tensors)]


def _is_for(entry: cache_entries.CacheEntry, values: Mapping[str, object], *, same_tensors: bool) -> bool:
    # Every other guard may fail: then the call misses an entry of this callable, and that is what ``why`` explains.
    manager = entry.guard_manager
    guards = EntryGuards.of(manager, "guard")
    scope: Dict[str, object] = dict(guards.live.global_scope() or {})
    try:
        failing = guards.failing(values, scope)
    except NotLiveError:
        return True
    return not any(
        line.source in _CALLED
        or _CALLED_BY_FUNCTION.match(line.code)
        or (same_tensors and line.kind == "TENSOR_MATCH" and line.source.startswith("L['fn']"))
        for line in failing
    )
