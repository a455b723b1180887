"""``why``: explain what a call would do: which cache entry it hits, why it misses the others, and what would be
compiled. It evaluates PyTorch's own guards with ``check_verbose``, which changes neither hit counters nor the order of
the entries; ``guards/failing.py`` finds all failing guards, not only the first.
"""

from __future__ import annotations

import inspect
from types import CodeType, FrameType
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.why import GuardFailure, Why, WhyEntry, nearest_first
from depyf.base.messages import listed
from depyf.base.quick_dataclass import replace
from depyf.diagnosis.constraints import violated_constraint
from depyf.diagnosis.guard import Guard, GuardKind
from depyf.diagnosis.guard_advice import GuardedFrame
from depyf.diagnosis.guard_explanations import explain
from depyf.diagnosis.guard_history import SETTINGS, EntryHistory, under
from depyf.diagnosis.guard_sources import as_written
from depyf.dynamo.capture.fallbacks import fallbacks
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.entries.call_target import CallTarget, resolve
from depyf.dynamo.entries.called_entries import entries_of
from depyf.dynamo.entries.entry_check import differentiating_hold, first_failure, hit_of, is_backend_of
from depyf.dynamo.entries.guarded_frame import guarded_frame_of, in_call
from depyf.dynamo.entries.limits import standings_of_frame
from depyf.dynamo.guards import python_guards as guards_function
from depyf.dynamo.guards.entry_guards import Checked, EntryGuards
from depyf.dynamo.guards.failing import failing_guards, with_whole_path
from depyf.dynamo.hooks import (
    backends,
    cache_entries,
    compiled_callables,
    frame_evaluation,
    known_code,
    private_names,
    torch_names,
    torch_settings,
)
from depyf.dynamo.hooks.cache_entries import global_scope
from depyf.dynamo.hooks.nested_code import qualified_name
from depyf.dynamo.questions.call_outcome import LIMIT_GIVEN, Missed, Outcome, limit_of_callback, outcome_of
from depyf.dynamo.questions.unguarded import unguarded
from depyf.dynamo.store.names import compiled_fn_number

_NAMED = 3
"""How many values are named for one advice."""


def why(compiled: object, *args: object, **kwargs: object) -> Why:
    """Return the cache entry that ``compiled(*args, **kwargs)`` would hit, and the guards of the others that fail.

    ``compiled``: what ``torch.compile`` returned (a function, method or module); what holds it (a partial, a plain
    wrapper, a module after ``Module.compile``); the function itself; or a frame, as a debugger has it, of the function
    or of one of its resume functions. Nothing is compiled or called, and nothing changes; only a call whose last
    compilation raised an exception is traced once more, on copies. The result holds for the current state: ask under
    the same ``no_grad``, autocast and so on as the call.

    Raises ``TypeError`` when the arguments do not fit the signature, or when a call of ``compiled`` runs
    no Python function, and ``ImportError`` without PyTorch.
    """
    torch_names.require_torch("why")
    if isinstance(compiled, FrameType):
        code, values = _of_frame(compiled)
        lookup = Lookup(cache_entries.cache_entries(code), values, None)
        return _answer(lookup, Missed(None, code, (), {}, bool(lookup.found)), qualified_name(code), code)
    found = resolve(compiled, "why")
    answer = of_call(found, args, kwargs)[0]
    return replace(answer, notes=(*_violations(found), *answer.notes))


def of_call(
    found: CallTarget, args: Tuple[object, ...], kwargs: Mapping[str, object]
) -> Tuple[Why, Optional[cache_entries.CacheEntry]]:
    """Return what a call of ``found`` would do, and the cache entry that it hits, if any.

    Raises ``TypeError`` when the arguments do not fit the signature.
    """
    try:
        values = found.frame_locals(args, kwargs)
    except TypeError as error:
        raise TypeError(f"depyf.why can't determine what this call would run: {error}") from error
    with found.surroundings():
        lookup = Lookup(entries_of(found), values, found.entered)
        if found.disabled_reason:
            lookup = Lookup([], values, found.entered)
        call = Missed(found, found.code, args, kwargs, bool(lookup.found))
        answer = _answer(lookup, call, *found.shown)
        unchecked = () if lookup.hit is None else unguarded(found, lookup.hit, values)
        notes = (*_notes(found), *unchecked)
    return replace(answer, notes=notes), lookup.hit


class Lookup:
    """The cache entries of a function, and which of them a call with these local variables hits. ``unchecked``: the
    stance skips all guards but those that tell entries apart.
    """

    def __init__(
        self, found: Sequence[cache_entries.CacheEntry], values: Mapping[str, object], entered: object
    ) -> None:
        self.found = found
        self.values = values
        self.entered = entered
        self.unchecked = frame_evaluation.skips_guards()
        self.backend = None
        if entered is not None:
            forced = frame_evaluation.forced_backend()
            used = getattr(entered, "callback", None) if forced is None else forced
            named = backends.registered_backend(used) if isinstance(used, str) else used
            self.backend = compiled_callables.innermost_backend(named)
        self.known: Dict[int, Checked] = {}
        self._checked: Dict[int, Tuple[Sequence[str], bool]] = {}
        self.hit = hit_of(found, self.backend, self._holds)

    def _holds(self, entry: cache_entries.CacheEntry) -> bool:
        if self.unchecked:
            return differentiating_hold(entry.guard_manager, self.values)
        return self.first_failure(entry)[1]

    def first_failure(self, entry: cache_entries.CacheEntry) -> Tuple[Sequence[str], bool]:
        """Return PyTorch's message about the first guard of the entry that fails, and whether all pass."""
        if id(entry) not in self._checked:
            self._checked[id(entry)] = first_failure(entry.guard_manager, self.values)
        return self._checked[id(entry)]


def _answer(lookup: Lookup, call: Missed, name: str, code: CodeType) -> Why:
    """Return the result for a call with these cache entries; ``name`` and ``code`` are its display name and code."""
    frame = _compiled_now(guarded_frame_of(code), lookup.entered)
    entries = _with_history([_entry(each, lookup, code.co_filename, frame) for each in lookup.found], frame)
    limit = None if lookup.hit is not None else _limit(lookup, code)
    outcome = _outcome(entries, replace(call, limit=limit))
    is_limit = limit is not None and limit[0] in outcome.words
    that_count = lookup.found if lookup.hit is None else [lookup.hit]
    return Why(
        function=name,
        filename=code.co_filename,
        first_line=code.co_firstlineno,
        entries=tuple(entries),
        outcome=outcome.words,
        limit=limit if is_limit else None,
        resumes=tuple(dict.fromkeys(name for each in that_count for name in _resume_functions(each))),
        advice=_advice(entries),
        left_alone=lookup.hit is None and not outcome.compiles and not is_limit,
        raises=outcome.raises,
    )


def _outcome(entries: Sequence[WhyEntry], call: Missed) -> Outcome:
    """Return what a call does: it runs an entry, or what ``outcome_of`` says, or plain Python without Dynamo."""
    hit = next((entry for entry in entries if entry.hit), None)
    if hit is not None:
        runs = f"runs what was compiled as {hit.compile_id or 'one of its cache entries'}"
        skipped = "torch.compiler.set_stance(skip_guard_eval_unsafe=True) skips the guards that do not hold"
        return Outcome(f"{runs}: {skipped}" if hit.failed else runs)
    disabled = "" if call.target is None else call.target.disabled_reason
    return Outcome(f"runs as plain Python: {disabled}") if disabled else outcome_of(call)


def _violations(found: CallTarget) -> Tuple[str, ...]:
    """Return the dimensions that are marked dynamic and specialised, for which open sessions saw compiling fail."""
    _, code = found.shown
    failed = [each for session in capture.receivers() for each in fallbacks(session)]
    notes: Dict[str, None] = {}
    for each in failed:
        violated = violated_constraint(each.reason) if each.filename == code.co_filename else None
        if violated is not None and each.first_line == code.co_firstlineno:
            where = "" if violated.location is None else " ({}:{})".format(*violated.location)
            notes.setdefault(f"compiling it failed: {violated.advice}{where}")
    return tuple(notes)


def _notes(found: CallTarget) -> Tuple[str, ...]:
    """Return the assumptions of the result."""
    notes = [
        f"{qualified_name(code)} ({code.co_filename}:{code.co_firstlineno}) wraps the compiled function and was not "
        "analysed; this result assumes that the wrapped function gets the same arguments and modes"
        for code in (wrapper.__code__ for wrapper in found.opaque)
    ]
    if found.entered is None:
        parts = f". Parts of it are compiled: ask about {', '.join(found.parts)}" if found.parts else ""
        notes.append(f"{found.name} is not compiled: this result is for a call through torch.compile{parts}")
    return tuple(notes)


def line_that_guards(code: CodeType, subject: str) -> Optional[Tuple[str, int]]:
    """Return the line of the user (with its file) that made Dynamo guard ``subject``, in some entry of ``code``."""
    for entry in cache_entries.cache_entries(code):
        manager = entry.guard_manager
        if guards_function.is_function(manager):
            continue
        for line in EntryGuards.of(manager, "guard").lines:
            location = line.guard.location if as_written(line.source) == subject else None
            if location is not None:
                return with_whole_path(location, code.co_filename)
    return None


def _of_frame(frame: FrameType) -> Tuple[CodeType, Dict[str, object]]:
    """Return the original code that a frame runs (from Dynamo's tables), and its arguments and free variables."""
    code = known_code.original_of(frame.f_code) or frame.f_code
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars] + code.co_freevars
    return code, {name: frame.f_locals[name] for name in names if name in frame.f_locals}


def _entry(entry: cache_entries.CacheEntry, lookup: Lookup, file: str, frame: GuardedFrame) -> WhyEntry:
    """Return one entry as ``why`` shows it: whether it runs, or what keeps the call from it."""
    number, manager, values = entry.compile_id, entry.guard_manager, lookup.values
    graphs = tuple(_graphs_of(entry.code))
    is_hit = entry is lookup.hit
    if not is_hit and not is_backend_of(entry, lookup.backend):
        note = "compiled with another backend callable"
        explanation = explain(Guard(GuardKind.BACKEND))
        return WhyEntry(number, False, (GuardFailure("BACKEND_MATCH", note, "", explanation),), note, graphs=graphs)
    first, holds = lookup.first_failure(entry)
    if holds:
        note = "" if is_hit else "its guards hold too; it is not tried"
        return WhyEntry(number, is_hit, (), note, graphs=graphs)
    failing = failing_guards(manager, values, first, file, known=lookup.known)
    causes = tuple(
        replace(each, explanation=in_call(each.explanation, frame, manager, values)) for each in failing.causes
    )
    return WhyEntry(number, is_hit, causes, follow=failing.follow, graphs=graphs)


def _compiled_now(frame: GuardedFrame, entered: object) -> GuardedFrame:
    """Return the frame with what the options of ``torch.compile`` and Dynamo's settings say about constants."""
    frame = under({name: torch_settings.dynamo_setting(name) for name in SETTINGS}, frame)
    given = private_names.DYNAMIC.of(entered)
    return replace(frame, dynamic=given) if isinstance(given, bool) else frame


def _with_history(entries: Sequence[WhyEntry], frame: GuardedFrame) -> List[WhyEntry]:
    """Return the entries with the advice that all of them show together."""
    history = EntryHistory()
    history.add(None, [guard.explanation for each in entries for guard in each.failed], frame)

    def applied(guard: GuardFailure) -> GuardFailure:
        return replace(guard, explanation=history.applied(None, guard.explanation, frame))

    return [replace(each, failed=tuple(map(applied, each.failed))) for each in entries]


def _graphs_of(code: Optional[CodeType]) -> Iterator[str]:
    """Yield the names, as in dumps, of the graphs that transformed code calls; torch may have deleted it (``None``)."""
    for name in () if code is None else code.co_names:
        number = compiled_fn_number(name)
        if number is not None:
            yield f"__compiled_fn_{number}"


def _limit(lookup: Lookup, code: CodeType) -> Optional[Tuple[str, int]]:
    """Return the limit of Dynamo that one more entry would exceed, with its value, counted as Dynamo does."""
    if not lookup.found:
        return None
    of_callback = limit_of_callback(lookup.entered)
    # Dynamo looks at the limit of all entries first.
    for each in reversed(standings_of_frame(code, private_names.REGION.of(lookup.entered, -1), lookup.values)):
        name, value = each.name, each.value
        if name == "recompile_limit" and of_callback is not None:
            name, value = LIMIT_GIVEN, of_callback
        if each.entries >= value:
            return name, value
    return None


def _advice(entries: Sequence[WhyEntry]) -> Tuple[str, ...]:
    """Return how to avoid the compilation: for the entry that the call misses by the fewest guards."""
    if any(entry.hit for entry in entries) or not entries:
        return ()
    subjects: Dict[str, Dict[str, None]] = {}
    for guard in nearest_first(entries)[0].failed:
        if guard.explanation.advice:
            subjects.setdefault(guard.explanation.advice, {})[guard.explanation.subject] = None
    return tuple(f"{listed(names, _NAMED)}: {advice}".lstrip(": ") for advice, names in subjects.items())


def _resume_functions(entry: cache_entries.CacheEntry) -> Iterator[str]:
    """Yield the resume functions that transformed code calls, named as in dumps and in ``watch``."""
    scope = global_scope(entry.guard_manager)
    for name in () if entry.code is None else entry.code.co_names:  # None: torch has thrown it away
        code = getattr(scope.get(name), "__code__", None) if name.startswith("__resume_at_") else None
        if code is not None:
            yield code.co_name
