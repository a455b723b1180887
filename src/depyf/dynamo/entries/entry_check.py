"""Check whether a cache entry would serve a call, with PyTorch's check that changes no counters and no order."""

from __future__ import annotations

from types import CodeType
from typing import Callable, Mapping, Optional, Sequence, Tuple

from depyf.dynamo.guards import python_guards as guards_function
from depyf.dynamo.hooks import cache_entries, compiled_callables, private_names
from depyf.dynamo.hooks.torch_types import Guards


def first_failure(manager: Guards, values: Mapping[str, object]) -> Tuple[Sequence[str], bool]:
    """Return PyTorch's message about the first guard that fails for these local variables, and whether all pass."""
    invalidated = getattr(manager, "invalidation_reason", None)
    if invalidated is not None:
        return [f"Cache line invalidated: {invalidated}"], False
    if guards_function.is_function(manager):
        return guards_function.first_failure(manager, values), guards_function.holds(manager, values)
    answer = manager.root.check_verbose(dict(values))
    return list(answer.verbose_code_parts), bool(answer.result)


def is_backend_of(entry: cache_entries.CacheEntry, backend: object) -> bool:
    """Return whether the entry was compiled with this backend, as Dynamo compares them."""
    used = entry.backend
    if backend is None or used is None:
        return True
    return used is backend or compiled_callables.innermost_backend(used) is backend or bool(used == backend)


def hit_of(
    entries: Sequence[cache_entries.CacheEntry], backend: object, holds: Callable[[cache_entries.CacheEntry], bool]
) -> Optional[cache_entries.CacheEntry]:
    """Return the entry that Dynamo runs, None if it runs none; ``holds``: whether the guards of an entry hold."""
    return next((each for each in entries if holds(each) and is_backend_of(each, backend)), None)


def differentiating_hold(manager: Guards, values: Mapping[str, object]) -> bool:
    """Return whether the guards hold that ``skip_guard_eval_unsafe`` leaves."""
    root = private_names.DIFFERENTIATING.of(manager)
    return root is not None and bool(root.check_verbose(dict(values)).result)


def would_hit(code: CodeType, values: Mapping[str, object], backend: object, region: int = -1) -> bool:
    """Return whether some cache entry of ``code`` would run for these local variables."""
    return any(
        is_backend_of(entry, backend) and first_failure(entry.guard_manager, values)[1]
        for entry in cache_entries.cache_entries(code, region)
    )
