"""All functions of this process that have cache entries, with what their entries hold, and the guards that failed last.

Reading is bounded: after a number of seconds the rest is left out, and code of more than some bytes is not decompiled.
"""

from __future__ import annotations

import time
from types import CodeType
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.answers.attached import AttachedEntry, AttachedFunction, FailedLately
from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe
from depyf.diagnosis.guard_explanations import explain
from depyf.diagnosis.guard_text import read_failed
from depyf.dynamo.entries.decorated import short_name_of_entry
from depyf.dynamo.entries.limits import standings
from depyf.dynamo.guards.entry_guards import EntryGuards
from depyf.dynamo.guards.stable_expressions import Naming
from depyf.dynamo.hooks import cache_entries, compiled_callables, known_code, private_names
from depyf.dynamo.hooks.cache_entries import global_scope
from depyf.dynamo.hooks.nested_code import qualified_name
from depyf.dynamo.hooks.recovered import tensor_bytes
from depyf.dynamo.store.names import StableNames, compiled_fn_number
from depyf.report.render.hidden_values import TYPES, HiddenValues, chosen_values
from depyf.torch_trace.recompiles import failed_guard

_MOST_CODE = 20_000
"""Bytes of transformed code; decompiling more takes seconds, for which the program would stand still."""


class Budget:
    """How long the program may be kept waiting."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def is_spent(self) -> bool:
        return time.monotonic() > self._until


def stable_names() -> StableNames:
    """Return names that hide values if this process is to hide values in its dumps."""
    return StableNames(HiddenValues() if chosen_values() == TYPES else None)


def compiled_codes() -> List[CodeType]:
    """Return the user's code objects, and those of resume functions, from which Dynamo has made code that exists."""
    found: Dict[int, CodeType] = {}
    for transformed in known_code.transformed_codes():
        original = known_code.original_of(transformed)
        if original is not None:
            found.setdefault(id(original), original)
    return sorted(found.values(), key=lambda code: (code.co_filename, code.co_firstlineno, code.co_name))


def functions_now(budget: Budget, *, with_code: bool) -> Tuple[List[AttachedFunction], List[str]]:
    """Return the functions that have entries, and notes about what was left out."""
    found: List[AttachedFunction] = []
    notes: List[str] = []
    stable = stable_names()
    codes = compiled_codes()
    for number, code in enumerate(codes):
        if budget.is_spent():
            notes.append(f"{len(codes) - number} more functions were left out: the program was not to wait any longer")
            break
        try:
            function = _function(code, stable, with_code=with_code)
        except synchronous() as error:
            notes.append(f"{code.co_name} could not be read: {describe(error)}")
            continue
        if function is not None:
            found.append(function)
    return found, notes


def _function(code: CodeType, stable: StableNames, *, with_code: bool) -> Optional[AttachedFunction]:
    cached = cache_entries.cache_entries(code)
    if not cached:
        return None
    short = short_name_of_entry(code, cached[0].guard_manager)
    return AttachedFunction(
        name=qualified_name(code) if short == code.co_name else short,
        filename=code.co_filename,
        first_line=code.co_firstlineno,
        entries=tuple(_entry(each, stable) for each in cached),
        limits=standings(code, {}),
        code=_code(code, cached, stable) if with_code else "",
    )


def _entry(cached: cache_entries.CacheEntry, stable: StableNames) -> AttachedEntry:
    hidden = stable.hidden
    guards = EntryGuards.of(
        cached.guard_manager, "guard", Naming(stable.text, None if hidden is None else hidden.guard)
    )
    backend = compiled_callables.innermost_backend(cached.backend)
    scope = global_scope(cached.guard_manager)
    names = (
        [] if cached.code is None else [name for name in cached.code.co_names if compiled_fn_number(name) is not None]
    )
    return AttachedEntry(
        compile_id=cached.compile_id,
        backend=str(getattr(backend, "__qualname__", None) or type(backend).__name__),
        guards=tuple(line.code or line.expression for line in guards.lines),
        graphs=tuple(f"__compiled_fn_{compiled_fn_number(name)}" for name in names),
        code_bytes=0 if cached.code is None else cached.code.__sizeof__(),
        tensor_bytes=sum(tensor_bytes(scope[name]) for name in names if name in scope),
        deleted=cached.code is None,
    )


def _code(code: CodeType, cached: Sequence[cache_entries.CacheEntry], stable: StableNames) -> str:
    size = sum(len(each.code.co_code) for each in cached if each.code is not None)
    if size > _MOST_CODE:
        return (
            f"# {size:,} bytes of code are not decompiled while the program waits: depyf attach --start dumps them.\n"
        )
    from depyf.dynamo.dump.full_code.story import stories_of_code
    from depyf.dynamo.dump.full_code.writing import full_code

    return full_code(stories_of_code(code, stable), stable, lambda name: [])[0]


def failed_lately() -> List[FailedLately]:
    """Return the recompilations that PyTorch remembers (64 compilations), the latest first. A PyTorch before 2.6 has
    all guards that failed, by function and without compile ids."""
    found: List[FailedLately] = []
    metrics = remembered()
    for each in reversed(metrics):
        reason, name, file, line, number = (getattr(each, field, None) for field in _OF_METRICS)
        if isinstance(reason, str) and reason:
            found.append(_failed(reason, str(name), (str(file), int(line or 0)), str(number or "?")))
    if any(hasattr(each, _OF_METRICS[0]) for each in metrics):
        return found
    for code, reasons in dict(private_names.FAILED_GUARDS.find() or {}).items():
        place = (code.co_filename, code.co_firstlineno)
        found += [_failed(str(reason), code.co_name, place, "?") for reason in reversed(reasons)]
    return found


_OF_METRICS = ("recompile_reason", "co_name", "co_filename", "co_firstlineno", "compile_id")


def remembered() -> List[object]:
    """Return PyTorch's metrics of the last compilations."""
    return list(private_names.COMPILATION_METRICS.find() or ())


def _failed(reason: str, function: str, place: Tuple[str, int], compile_id: str) -> FailedLately:
    hidden = stable_names().hidden
    guard = failed_guard(reason)
    explained = explain(read_failed(guard))
    shown = (explained.words, guard.text)
    words, text = shown if hidden is None else tuple(map(hidden.message, shown))
    return FailedLately(compile_id, function, place, guard.entry or "", words, text.strip(), explained.advice)


def counters_now() -> Iterator[Tuple[str, Dict[str, int]]]:
    """Yield PyTorch's counters by group; the names of some are messages."""
    hidden = stable_names().hidden
    shown: Callable[[str], str] = str if hidden is None else hidden.message
    for group, counts in dict(private_names.COUNTERS.find() or {}).items():
        known = {shown(str(name)): int(count) for name, count in dict(counts).items() if isinstance(count, int)}
        if known:
            yield str(group), known
