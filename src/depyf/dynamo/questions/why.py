"""``why``: explain what a call would do: which cache entry it hits, why it misses the others, and what would be
compiled. It evaluates PyTorch's own guards with ``check_verbose``, which changes neither hit counters nor the order of
the entries; ``guards/failing.py`` finds all failing guards, not only the first.
"""

from __future__ import annotations

import inspect
from types import CodeType, FrameType
from typing import Dict, Iterator, Mapping, Optional, Sequence, Tuple

from depyf.answers.lookup import Entry, FailedGuard, Why, nearest_first
from depyf.diagnosis.constraints import violated_constraint
from depyf.diagnosis.guard import Guard, GuardKind
from depyf.diagnosis.guard_advice import GuardedFrame
from depyf.diagnosis.guard_explanations import explain
from depyf.diagnosis.guard_sources import as_written
from depyf.dynamo.capture.fallbacks import fallbacks
from depyf.dynamo.dump.active_sessions import capture
from depyf.dynamo.dump.full_code.story import global_scope
from depyf.dynamo.entries.call_target import CallTarget, resolve
from depyf.dynamo.entries.called_entries import entries_of
from depyf.dynamo.entries.entry_check import first_failure, is_backend_of
from depyf.dynamo.entries.guarded_frame import guarded_frame_of, in_call
from depyf.dynamo.guards import python_guards as guards_function
from depyf.dynamo.guards.check_function import EntryGuards
from depyf.dynamo.guards.failing import failing_guards, with_whole_path
from depyf.dynamo.guards.stable_expressions import Naming
from depyf.dynamo.hooks import (
    cache_entries,
    compiled_callables,
    frame_evaluation,
    known_code,
    torch_names,
    torch_settings,
)
from depyf.dynamo.hooks.nested_code import qualified_name
from depyf.dynamo.store.names import compiled_fn_number
from depyf.messages import listed
from depyf.quick_dataclass import replace

_NAMED = 3
"""How many values are named for one advice."""

_WITHOUT_RECOMPILES = {"eager_on_recompile": "runs as plain Python", "fail_on_recompile": "raises an error"}
"""What a cache miss does under each stance of ``torch.compiler.set_stance``."""


def why(compiled: object, *args: object, **kwargs: object) -> Why:
    """Return the cache entry that ``compiled(*args, **kwargs)`` would hit, and the guards of the others that fail.

    ``compiled``: what ``torch.compile`` returned (a function, method or module); what holds it (a partial, a plain
    wrapper, a module after ``Module.compile``); the function itself; or a frame, as a debugger has it, of the function
    or of one of its resume functions. Nothing is compiled or called, and nothing changes. The result holds for the
    current state: ask under the same ``no_grad``, autocast and so on as the call.

    Raises ``TypeError`` when the arguments do not fit the signature, or when there is no Python function behind
    ``compiled``, and ``ImportError`` without PyTorch.
    """
    torch_names.require_torch("why")
    if isinstance(compiled, FrameType):
        code, values = _of_frame(compiled)
        return _answer(cache_entries.cache_entries(code), values, None, qualified_name(code), code)
    found = resolve(compiled, "why")
    try:
        values = found.frame_locals(args, kwargs)
    except TypeError as error:
        raise TypeError(f"depyf.why can't determine what this call would run: {error}") from error
    with found.surroundings():
        answer = _answer(entries_of(found), values, found.entered, *found.shown)
    if found.skip_reason and not answer.entries:
        outcome = f"runs as plain Python: {found.skip_reason}"
        answer = replace(answer, outcome=outcome, left_alone=True)
    elif found.disabled_reason:
        answer = replace(answer, entries=(), outcome=f"runs as plain Python: {found.skip_reason}", left_alone=True)
    elif answer.hit is None and frame_evaluation.stance() in _WITHOUT_RECOMPILES:
        does = _WITHOUT_RECOMPILES[frame_evaluation.stance()]
        outcome = f"{does}: torch.compiler.set_stance({frame_evaluation.stance()!r}) is in force, and no entry fits"
        answer = replace(answer, outcome=outcome, left_alone=True)
    return replace(answer, notes=(*_violations(found), *_notes(found)))


def _answer(
    found: Sequence[cache_entries.CacheEntry], values: Mapping[str, object], entered: object, name: str, code: CodeType
) -> Why:
    """Return the result for a call with these cache entries; ``name`` and ``code`` are its display name and code."""
    backend = None if entered is None else compiled_callables.innermost_backend(getattr(entered, "callback", None))
    frame = guarded_frame_of(code)
    entries = [_entry(each, values, backend, code.co_filename, frame) for each in found]
    for index, each in enumerate(entries):
        if each.hit:  # those behind it are not tried
            entries = [*entries[: index + 1], *(_not_tried(other) for other in entries[index + 1 :])]
            break
    limit = None if any(entry.hit for entry in entries) else _limit(found, values)
    return Why(
        function=name,
        filename=code.co_filename,
        first_line=code.co_firstlineno,
        entries=tuple(entries),
        outcome=_outcome(entries, limit),
        limit=limit,
        resumes=tuple(dict.fromkeys(name for each in _that_count(found, entries) for name in _resume_functions(each))),
        advice=_advice(entries),
    )


def _violations(found: CallTarget) -> Tuple[str, ...]:
    """Return the dimensions that are marked dynamic and specialised, for which open sessions saw compiling fail."""
    _, code = found.shown
    failed = [each for session in capture.receivers() for each in fallbacks(session)]
    notes: Dict[str, None] = {}
    for each in failed:
        violated = violated_constraint(each.reason) if each.filename == code.co_filename else None
        if violated is not None and each.first_line == code.co_firstlineno:
            where = "" if violated.place is None else f" ({violated.place[0]}:{violated.place[1]})"
            notes.setdefault(f"compiling it failed: {violated.advice}{where}")
    return tuple(notes)


def _notes(found: CallTarget) -> Tuple[str, ...]:
    """Return the assumptions of the result."""
    notes = [
        f"around it is {qualified_name(code)} ({code.co_filename}:{code.co_firstlineno}), "
        "which is not looked into: the answer is for a call of what is inside, with these very arguments and modes"
        for code in (wrapper.__code__ for wrapper in found.opaque)
    ]
    if found.entered is None:
        parts = f"; compiled by themselves are {', '.join(found.parts)}: ask about those" if found.parts else ""
        notes.append(f"it is not compiled itself: the result is for a call of it through torch.compile{parts}")
    return tuple(notes)


def line_that_guards(code: CodeType, subject: str) -> Optional[Tuple[str, int]]:
    """Return the line of the user (with its file) that made Dynamo guard ``subject``, in some entry of ``code``."""
    for entry in cache_entries.cache_entries(code):
        manager = entry.guard_manager
        if guards_function.is_function(manager):
            continue
        for line in EntryGuards.of(manager, "guard", Naming(lambda text: text)).lines:
            place = line.guard.location if as_written(line.source) == subject else None
            if place is not None:
                return with_whole_path(place, code.co_filename)
    return None


def _of_frame(frame: FrameType) -> Tuple[CodeType, Dict[str, object]]:
    """Return the original code that a frame runs (from Dynamo's tables), and its arguments and free variables."""
    code = known_code.original_of(frame.f_code) or frame.f_code
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars] + code.co_freevars
    return code, {name: frame.f_locals[name] for name in names if name in frame.f_locals}


def _entry(
    entry: cache_entries.CacheEntry, values: Mapping[str, object], backend: object, file: str, frame: GuardedFrame
) -> Entry:
    number, manager = entry.compile_id, entry.guard_manager
    graphs = tuple(_graphs_of(entry.code))
    first, holds = first_failure(manager, values)
    if holds:
        note = ""
        if not is_backend_of(entry, backend):
            note = "compiled with another backend callable"
            explanation = explain(Guard(GuardKind.BACKEND))
            return Entry(number, False, (FailedGuard("BACKEND_MATCH", note, "", explanation),), note, graphs=graphs)
        return Entry(number, True, (), note, graphs=graphs)
    failing = failing_guards(manager, values, first, file)
    causes = tuple(
        replace(each, explanation=in_call(each.explanation, frame, manager, values)) for each in failing.causes
    )
    return Entry(number, False, causes, follow=failing.follow, graphs=graphs)


def _graphs_of(code: Optional[CodeType]) -> Iterator[str]:
    """Yield the names, as in dumps, of the graphs that transformed code calls; torch may have deleted it (``None``)."""
    for name in () if code is None else code.co_names:
        number = compiled_fn_number(name)
        if number is not None:
            yield f"__compiled_fn_{number}"


def _not_tried(entry: Entry) -> Entry:
    return replace(entry, hit=False, note="its guards hold too; it is not tried") if entry.hit else entry


def _limit(entries: Sequence[cache_entries.CacheEntry], values: Mapping[str, object]) -> Optional[Tuple[str, int]]:
    """Return the limit of Dynamo that one more entry would exceed, with its value, counted as Dynamo does."""
    alike = sum(_has_same_objects(entry, values) for entry in entries)
    for names, count in (
        (("accumulated_recompile_limit", "accumulated_cache_size_limit"), len(entries)),
        (("recompile_limit", "cache_size_limit"), alike),
    ):
        for name in names:
            value = torch_settings.dynamo_setting(name)
            if value is not None:
                if count >= value:
                    return name, int(value)
                break
    return None


def _has_same_objects(entry: cache_entries.CacheEntry, values: Mapping[str, object]) -> bool:
    """Return whether the call has the objects that an entry is specialized on by identity."""
    matched = getattr(entry.guard_manager, "id_matched_objs", None) or {}
    return all(ref() is None or ref() is values.get(name) for name, ref in matched.items())


def _outcome(entries: Sequence[Entry], limit: Optional[Tuple[str, int]]) -> str:
    hit = next((entry for entry in entries if entry.hit), None)
    if hit is not None:
        return f"runs what was compiled as {hit.compile_id or 'one of its cache entries'}"
    if limit is not None:
        return f"runs as plain Python: torch._dynamo.config.{limit[0]} = {limit[1]} is reached"
    return "would be compiled once more" if entries else "would be compiled for the first time"


def _advice(entries: Sequence[Entry]) -> Tuple[str, ...]:
    """Return how to avoid the compilation: for the entry that the call misses by the fewest guards."""
    if any(entry.hit for entry in entries) or not entries:
        return ()
    subjects: Dict[str, Dict[str, None]] = {}
    for guard in nearest_first(entries)[0].failed:
        if guard.explanation.advice:
            subjects.setdefault(guard.explanation.advice, {})[guard.explanation.subject] = None
    return tuple(f"{listed(names, _NAMED)}: {advice}".lstrip(": ") for advice, names in subjects.items())


def _that_count(
    found: Sequence[cache_entries.CacheEntry], entries: Sequence[Entry]
) -> Sequence[cache_entries.CacheEntry]:
    """Return the entry that the call would run, or all of them."""
    return [each for each, entry in zip(found, entries) if entry.hit] or found


def _resume_functions(entry: cache_entries.CacheEntry) -> Iterator[str]:
    """Yield the resume functions that transformed code calls, named as in dumps and in ``watch``."""
    scope = global_scope(entry.guard_manager)
    for name in () if entry.code is None else entry.code.co_names:  # None: torch has thrown it away
        code = getattr(scope.get(name), "__code__", None) if name.startswith("__resume_at_") else None
        if code is not None:
            yield code.co_name
