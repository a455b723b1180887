"""Run a private copy with the backends that stop at each stage, and restore the state afterwards. A copy of the user's
code is compiled, so that it has its own cache entries. New entries of other code (functions that are called after a
graph break) are recorded and removed; if the code had entries before, the new ones go into a separate region, where
this torch has regions.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import threading
from types import CodeType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from depyf.answers.compared import AOT, DECOMPOSITIONS, DYNAMO
from depyf.base.asynchronous import synchronous
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.hooks import (
    cache_entries,
    compiled_callables,
    frame_evaluation,
    known_code,
    private_names,
    torch_settings,
)
from depyf.dynamo.hooks.hooked_context import undone_afterwards
from depyf.dynamo.hooks.last_attempts import attempts_kept
from depyf.dynamo.hooks.patching import collecting
from depyf.dynamo.hooks.safely import report_failure
from depyf.dynamo.questions.compare.recorded import StageRecorder
from depyf.dynamo.questions.compare.wide import Widened

STAGES: Tuple[Tuple[str, str], ...] = (
    (DYNAMO, "eager"),
    (AOT, "aot_eager"),
    (DECOMPOSITIONS, "aot_eager_decomp_partition"),
)
"""The backends that stop after each stage."""


def backend_itself(backend: object) -> object:
    """Return the function that was given to ``torch.compile``, without the wrappers of that and of Dynamo."""
    inner = compiled_callables.innermost_backend(backend)
    return getattr(inner, "compiler_fn", inner)


class CompiledCode:
    """Records the code that is compiled on this thread, to remove its cache entries."""

    def __init__(self) -> None:
        self._fresh: Dict[int, CodeType] = {}
        self._seen: Dict[int, CodeType] = {}
        self.left: List[CodeType] = []
        """Code of the user's that had cache entries before, and has ours, too."""
        self._theirs: List[object] = []
        """The guards of the entries that were there."""

    def note(self, original: CodeType, _: CodeType) -> None:
        """Record transformed code as Dynamo's bytecode hook, before its entry exists."""
        # Dynamo calls the hook before it adds the entry. So code without entries is ours alone, and is forgotten as a
        # whole; in other code only the new entries are.
        if id(original) in self._seen:
            return
        self._seen[id(original)] = original
        if not cache_entries.cache_entries(original):
            self._fresh[id(original)] = original
        else:
            self.left.append(original)
            self._theirs += [entry.guard_manager for entry in cache_entries.cache_entries(original)]

    def fresh_entries(self, like: CodeType) -> List[cache_entries.CacheEntry]:
        """Return the entries of the copies of ``like`` that were compiled."""
        codes = [code for code in self._fresh.values() if code == like]
        return [entry for code in codes for entry in cache_entries.cache_entries(code)]

    def forget(self) -> None:
        for code in self._fresh.values():
            cache_entries.forget_code(code)
        for code in self.left:
            for entry in cache_entries.cache_entries(code):
                if self._is_ours(entry):
                    cache_entries.forget_entry(entry.guard_manager)

    def _is_ours(self, entry: Any) -> bool:
        if entry.backend is not None:
            return isinstance(backend_itself(entry.backend), (StageRecorder, Widened))
        return not any(entry.guard_manager is each for each in self._theirs)  # up to 2.7


@contextlib.contextmanager
def nothing_left_behind() -> Iterator[CompiledCode]:
    """Restore cache entries, sizes that Dynamo saw, its records of compilations, and settings after compilations in the
    block, which no session of the program records."""
    entries = CompiledCode()
    thread = threading.get_ident()

    def note(original: CodeType, transformed: CodeType) -> None:
        try:
            if threading.get_ident() == thread:
                entries.note(original, transformed)
        except synchronous() as error:
            report_failure("noting what is compiled", error)

    sizes = known_code.sizes_that_dynamo_has_seen()
    before = None if sizes is None else copy.deepcopy(dict(sizes))

    def restore_sizes() -> None:
        if sizes is not None and before is not None:
            sizes.clear()
            sizes.update(before)

    with capture.apart(), undone_afterwards("forgetting what was compiled") as undo:
        undo += [attempts_kept(), restore_sizes, entries.forget]
        collecting(undo, lambda: frame_evaluation.watch_bytecode(note))
        collecting(undo, torch_settings.switch_caches_off)
        yield entries


@contextlib.contextmanager
def nothing_compiled() -> Iterator[None]:
    """Run separately compiled parts (a layer, a helper) in eager mode, too."""
    with undone_afterwards("restoring the stance") as undo:
        collecting(undo, lambda: frame_evaluation.set_stance("force_eager"))
        yield


def compiled_with(
    function: Callable[..., object],
    recorder: Callable[..., Callable[..., object]],
    *,
    dynamic: Optional[bool],
    isolate: bool,
) -> Callable[..., object]:
    """Return ``torch.compile`` of a private copy. PyTorch's bisector gives that another backend: hence ``optimize``."""
    import torch

    options: Dict[str, Any] = {"backend": recorder, "dynamic": dynamic}
    if isolate and "isolate_recompiles" in inspect.signature(torch.compile).parameters:
        options["isolate_recompiles"] = True
    optimize = private_names.OPTIMIZE.find()
    compiled: Callable[..., object]
    compiled = torch.compile(function, **options) if optimize is None else optimize(**options)(function)
    return compiled


@contextlib.contextmanager
def same_random_numbers() -> Iterator[bool]:
    """Make Inductor draw the random numbers of eager mode; return whether it draws its own otherwise."""
    config = private_names.INDUCTOR_CONFIG.find()
    if config is None or not hasattr(config, "fallback_random"):
        yield False
        return
    draws_its_own = not config.fallback_random
    with undone_afterwards("restoring Inductor's random numbers") as undo:
        undo.append(functools.partial(setattr, config, "fallback_random", config.fallback_random))
        config.fallback_random = True
        yield draws_its_own
