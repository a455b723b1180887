"""What a cache entry does not guard although a call may depend on it: guards that ``guard_filter_fn`` drops, and hooks
of modules that were registered after the entry was compiled. A module of its own: both ``why`` and ``compare`` say it.
"""

from __future__ import annotations

from typing import Iterator, Mapping, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.messages import listed
from depyf.diagnosis.guard_sources import holder_of, parts_read
from depyf.dynamo.entries.call_target import CallTarget
from depyf.dynamo.guards import python_guards
from depyf.dynamo.guards import runtime as guard_runtime
from depyf.dynamo.guards.entry_guards import EntryGuards
from depyf.dynamo.hooks import cache_entries, frame_evaluation, private_names, torch_names
from depyf.dynamo.hooks.cache_entries import global_scope

_HOOKS = (private_names.FORWARD_PRE_HOOKS, private_names.FORWARD_HOOKS)
_OF_MODULES = frozenset(
    each.name for each in (*_HOOKS, private_names.PARAMETERS, private_names.BUFFERS, private_names.MODULES)
)
"""The attributes that a guard reads of modules alone."""
_NAMED = 3


def unguarded(target: CallTarget, entry: cache_entries.CacheEntry, values: Mapping[str, object]) -> Iterator[str]:
    """Yield what ``entry``, which a call with these local variables runs, does not guard."""
    name = entry.compile_id or "the entry"
    if frame_evaluation.filters_guards(getattr(target.entered, "callback", None)):
        yield f"a guard_filter_fn may have dropped guards of {name}: what they were on may change, and is not checked"
    hooked = list(dict.fromkeys(_hooked(target, entry, values)))
    if hooked:
        yield (
            f"{name} has no guard on the hooks of {listed(hooked, _NAMED)}: if they were registered after it was "
            "compiled, they do not run; register them before the first call, or set "
            "torch._dynamo.config.skip_nnmodule_hook_guards = False before that"
        )


def _hooked(target: CallTarget, entry: cache_entries.CacheEntry, values: Mapping[str, object]) -> Iterator[str]:
    """Yield the modules with forward hooks that the entry runs without a guard on these."""
    root = getattr(target.inner, "__self__", target.inner)
    module_class = torch_names.find("torch.nn", "Module")
    if module_class is None or not isinstance(root, module_class):
        return
    hooked = [(name, module, hooks) for name, module in root.named_modules() for hooks in _HOOKS if hooks.of(module)]
    if not hooked:
        return
    read = _read(entry, values)
    ran = {identity for identity, _ in read}
    for name, module, hooks in hooked:
        if id(module) in ran and (id(module), hooks.name) not in read:
            yield f"{name} ({type(module).__qualname__})" if name else type(module).__qualname__


def _read(entry: cache_entries.CacheEntry, values: Mapping[str, object]) -> Set[Tuple[int, str]]:
    """Return the ids of the modules that the guards read, with the member that they read."""
    manager = entry.guard_manager
    if python_guards.is_function(manager):
        return set()
    names = {**guard_runtime.torch_guard_names(), "L": values, "G": global_scope(manager)}
    lines = EntryGuards.of(manager, "guard").lines
    parts = {part for line in lines for part in parts_read(line.source)}
    texts = {(holder, str(name)) for holder, name in map(holder_of, parts) if name in _OF_MODULES}
    found: Set[Tuple[int, str]] = set()
    for owner, member in texts:
        try:
            found.add((id(eval(compile(owner, "<guard>", "eval"), names)), member))
        except synchronous():  # the guard fails for that reason
            continue
    return found
