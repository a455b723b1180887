"""Find the guards of a cache entry that fail for a call, as causes and consequences; PyTorch's own first failure first.

If a dict lacks a key, or an object has another class, every guard on a value that is reached through it fails. These
guards are consequences of one cause and are not reported separately.
"""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.why import GuardFailure
from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass, replace
from depyf.diagnosis.guard import COMPARISONS, NO_GUARD, Guard, GuardKind, Location
from depyf.diagnosis.guard_advice import GuardCause
from depyf.diagnosis.guard_explanations import GuardExplanation, explain, with_sizes_together
from depyf.diagnosis.guard_sources import is_reached_through, parts_read, reads_values
from depyf.diagnosis.guard_text import read
from depyf.dynamo.guards import python_guards as guards_function
from depyf.dynamo.guards import runtime as guard_runtime
from depyf.dynamo.guards.current_values import as_known_here, tensor_mismatches_by_kind, value_of
from depyf.dynamo.guards.entry_guards import Checked, EntryGuards, GuardLine
from depyf.dynamo.guards.kept_readings import code_of
from depyf.dynamo.guards.live_facts import as_missing, with_facts
from depyf.dynamo.guards.live_values import NotLiveError
from depyf.dynamo.guards.tree import EPILOGUE, TEXT
from depyf.dynamo.hooks.loaded_modules import file_of, loaded_namespace, loaded_namespaces
from depyf.dynamo.hooks.torch_types import Guards

_OF_WHAT_A_VALUE_IS = frozenset(
    (GuardKind.CLASS, GuardKind.IDENTITY, GuardKind.FUNCTION, GuardKind.TENSOR_CLASS, GuardKind.NONE)
    + (GuardKind.MEMBER, GuardKind.NAMED)
)
"""Guards on the identity or type of a value: if one fails, everything reached through the value is different, too."""

_OF_A_TENSOR = frozenset(
    (GuardKind.TENSOR, GuardKind.TENSOR_CLASS, GuardKind.SIZE, GuardKind.STRIDE, GuardKind.RANK, GuardKind.DTYPE)
    + (GuardKind.REQUIRES_GRAD, GuardKind.DISPATCH_KEYS)
)
"""PyTorch's messages for a failed guard on all properties of a tensor."""

_NOTHING: Mapping[str, object] = MappingProxyType({})

_MODES = ("function_mode_stack", "CURRENT_DEVICE")
"""Parts of the sources of torch function modes, and of the default device, which is one."""


@dataclass(frozen=True)
class Failing:
    """Guards that fail on their own, PyTorch's first failure first; and guards that fail because one of these does.
    ``of`` is how many guards the entry has."""

    causes: Tuple[GuardFailure, ...]
    follow: Tuple[GuardFailure, ...] = ()
    of: int = 0


@dataclass(frozen=True)
class _Found:
    """A line that fails. ``missing`` is the part of its ``source`` that can't be read, if any. With ``is_another``
    everything reached through its value is different, too. ``more`` are further properties of a tensor that differ."""

    line: GuardLine
    guard: GuardFailure
    source: str
    missing: str
    is_another: bool
    more: Tuple[GuardFailure, ...] = ()

    @property
    def is_relation(self) -> bool:
        """Whether the guard is about several values."""
        return _is_of_sizes(self.line) or "ALIASING" in self.line.kind or "OVERLAPPING" in self.line.kind


def _is_of_sizes(line: GuardLine) -> bool:
    """Return whether the guard relates sizes: ``L['x'].size()[0] == L['y'].size()[0]``."""
    # PyTorch 2.4 and later check them last, in the epilogue; before, each is a condition of the one Python function.
    return line.source == EPILOGUE or (line.kind == TEXT and line.guard.kind is GuardKind.RELATION)


def failing_guards(
    manager: Guards,
    values: Mapping[str, object],
    first: Sequence[str],
    file: str,
    *,
    most: Optional[int] = None,
    known: Optional[Dict[int, Checked]] = None,
) -> Failing:
    """Return all guards of an entry that fail for these local variables, as causes and what follows from them.
    ``first`` is PyTorch's message about the first one, ``file`` the function's file. Not more than ``most`` are looked
    at, in PyTorch's order. ``known``: what was found for these values in other entries, by the ``id`` of their globals.
    """
    guards = EntryGuards.of(manager, "guard")
    scope: Mapping[str, object] = guards.live.global_scope() or _NOTHING
    try:
        lines = guards.failing(values, scope, None if known is None else known.setdefault(id(scope), {}))
        # An old PyTorch checks all guards or none: each line without a Python form then fails if any guard does. Only
        # the line that PyTorch's message is about counts.
        if not guards.live.distinguishes():
            named = read(first[0]) if len(first) == 1 else NO_GUARD
            lines = [line for line in lines if not line.live or _is_about(line, named)]
        lines = [line for line in lines if not _fails_for_another(line, guards, values)]
    except NotLiveError:
        lines = []
    found = [_found(line, guards, manager, values, scope) for line in lines[:most]]
    failing = _causes(_named_first(found, first, values, scope), values, scope)
    # PyTorch refuses the entry, and no guard in Python form agrees: its message is all that is known.
    if not failing.causes:
        failing = Failing((_reported_by_torch(read(first[0]), values, scope) if first else _UNKNOWN,))
    words = with_sizes_together([each.explanation for each in failing.causes])
    together = tuple(replace(each, explanation=one) for each, one in zip(failing.causes, words))
    failing = Failing(together, failing.follow)
    # Hundreds of guards may come from one line: each location is completed once.
    short = {each.location for each in (*failing.causes, *failing.follow)}
    whole = {location: with_whole_path(location, file) for location in short}
    return Failing(_located(failing.causes, whole), _located(failing.follow, whole), len(guards.lines))


_UNKNOWN = GuardFailure("", "", "", GuardExplanation("", "its guards fail, and PyTorch does not report which"))


def _found(
    line: GuardLine, guards: EntryGuards, manager: Guards, values: Mapping[str, object], scope: Mapping[str, object]
) -> _Found:
    guard = as_known_here(line.guard)
    # What differs, from the most exact source to the least: PyTorch's own message about this guard (``tensor 'L['x']'
    # size mismatch at index 0. expected 2, actual 3``), a comparison of the tensor with TENSOR_MATCH, the guard alone.
    reported = guards_function.mismatch(manager, line.code, values) or _reported_for(line, guards, values)
    failed = None if reported is None else as_known_here(read(reported))
    of_tensor = tensor_mismatches_by_kind(guard, values, scope)
    failed = failed or next(iter(of_tensor), guard)
    failed = with_facts(failed, guard if guard.source else replace(guard, source=line.source), values, scope)
    explanation = explain(failed.with_actual(value_of(guard, values, scope)))
    is_text = line.kind == TEXT  # a condition of PyTorch before 2.4, whose source is in its text
    # Such a condition is about one value only where its text reads one, and compares no sizes of several tensors.
    source = line.source
    if is_text:
        source = guard.source if reads_values(guard.source) and not _is_of_sizes(line) else ""
    # A relation (``L['x'].size()[0] == L['y'].size()[0]``, two names of one tensor) fails if any of its values is gone.
    relates = _is_of_sizes(line) or guard.kind is GuardKind.ALIASING
    missing = _missing(guard.code if relates else source, values, scope)
    return _Found(
        line,
        GuardFailure(line.kind, line.code, source, explanation, line.guard.user_code, line.guard.location),
        source,
        missing,
        is_another=failed.kind in _OF_WHAT_A_VALUE_IS and not missing,
        more=tuple(
            GuardFailure(line.kind, line.code, source, explain(each), line.guard.user_code, line.guard.location)
            for each in (with_facts(each, guard, values, scope) for each in of_tensor)
        ),
    )


def _reported_for(line: GuardLine, guards: EntryGuards, values: Mapping[str, object]) -> Optional[str]:
    """Return what PyTorch reports of a guard that only it can check."""
    texts = guards.live.words_of_path(values, line.path) if line.live and line.source != EPILOGUE else ()
    return texts[0] if len(texts) == 1 else None


def _fails_for_another(line: GuardLine, guards: EntryGuards, values: Mapping[str, object]) -> bool:
    """Return whether PyTorch, asked about the global state, reports another guard: of what reads no value it can only
    check all guards together.
    """
    reported = _reported_for(line, guards, values) if line.guard.kind is GuardKind.GLOBAL_STATE else None
    return reported is not None and read(reported).kind is not GuardKind.GLOBAL_STATE


def _named_first(
    found: Sequence[_Found], first: Sequence[str], values: Mapping[str, object], scope: Mapping[str, object]
) -> List[_Found]:
    """Return the guard that PyTorch reports first, in PyTorch's text."""
    if len(first) != 1:  # a list of relations of sizes, at least one of which fails
        return list(found)
    named = read(first[0])
    # Case 1: ``KeyError on L['d']['a']``. The message has no user's line: that of a guard on the value is taken.
    if named.kind is GuardKind.MISSING:
        missing, of_torch = _what_is_missing(named, found, values, scope)
        located = next((each.guard for each in found if each.missing == missing and each.guard.location), of_torch)
        own = next((each for each in found if each.missing == each.source == missing), None)
        guard = replace(of_torch, user_code=located.user_code, location=located.location)
        cause = _Found(GuardLine("", missing, named.code, "", "", guard=named), guard, missing, missing, True)
        return [cause, *(each for each in found if each is not own)]
    # Case 2: no line is about the message. A relation of sizes that raised (``'int' object has no attribute 'size'``)
    # comes with the value that its line can't read.
    position = next((i for i, each in enumerate(found) if _is_about(each.line, named)), None)
    if position is None:
        of_torch = _reported_by_torch(named, values, scope)
        raised = (each.missing for each in found if each.source == EPILOGUE and each.missing)
        missing = next(raised, "") if named.kind is GuardKind.NOT_COMPUTED else ""
        line = GuardLine("", missing, named.code, "", "", guard=named)
        others = [] if named.kind is GuardKind.GONE else found  # PyTorch deleted the guards
        return [_Found(line, of_torch, missing, missing, bool(missing)), *others]
    # Case 3: the message is about a line. It is explained in PyTorch's terms, with the values that the line knows.
    known, of_call = found[position], as_known_here(named)
    of_line = known.line.guard if known.line.guard.source else replace(known.line.guard, source=known.line.source)
    of_call = with_facts(of_call, of_line, values, scope)
    if named.kind is GuardKind.CLASS:  # its text may have an id only
        of_call = replace(of_call, expected=known.line.guard.expected)
    if of_call.kind in COMPARISONS or "==" in of_call.operators:  # the value now is known
        of_call = of_call.with_actual(known.guard.explanation.now)
    in_its_words = replace(known, guard=replace(known.guard, explanation=explain(of_call)))
    return [in_its_words, *(each for each in found if each is not known)]


def _what_is_missing(
    named: Guard,
    found: Sequence[_Found],
    values: Mapping[str, object],
    scope: Mapping[str, object],
) -> Tuple[str, GuardFailure]:
    """Return the source that can't be read, and the failure of it: PyTorch may name the object that lacks an attribute,
    or the attribute."""
    of_torch = _reported_by_torch(named, values, scope)
    missing = _missing(named.source, values, scope)
    if not missing:
        missing = next((each.missing for each in found if is_reached_through(each.missing, named.source)), "")
    # It is there where the program reads it: a module has it among its registered members, and not in its ``__dict__``.
    if not missing and _as_missing(named.source, found, values, scope).kind is GuardKind.MOVED:
        missing = named.source
    if not missing:
        return named.source, of_torch
    known = replace(_as_missing(missing, found, values, scope), code=named.code)
    return missing, replace(of_torch, explanation=explain(known))


def _as_missing(
    missing: str, found: Sequence[_Found], values: Mapping[str, object], scope: Mapping[str, object]
) -> Guard:
    """Return the guard on a value that is not where it was."""
    required = (each.line.guard for each in found if each.source == missing)
    known = (guard for guard in required if guard.expected or guard.identity is not None)
    return as_missing(missing, next(known, NO_GUARD), values, scope)


def _causes(
    found: Sequence[_Found], values: Mapping[str, object] = _NOTHING, scope: Mapping[str, object] = _NOTHING
) -> Failing:
    # PyTorch's order, in which a value is checked before what is reached through it: causes come first.
    causes: List[_Found] = []
    follow: List[GuardFailure] = []
    for each in _missing_once(found, values, scope):
        if any(_follows(each, cause) for cause in causes):
            follow.append(each.guard)
        else:
            causes.append(each)
    return Failing(tuple(_with_properties(causes)), tuple(follow))


def _with_properties(causes: Sequence[_Found]) -> Iterator[GuardFailure]:
    """Yield the causes, each with the further properties of its tensor that differ, unless a mode explains these."""
    of_modes = [each.guard.explanation.advice for each in causes if not each.guard.explanation.subject]
    for each in causes:
        yield each.guard
        own = each.guard.explanation.guard.kind
        for further in each.more if not each.missing else ():
            follows = any(_is_part(further.explanation.advice, advice) for advice in of_modes)
            if further.explanation.guard.kind is not own and not follows:
                yield further


def _missing_once(found: Sequence[_Found], values: Mapping[str, object], scope: Mapping[str, object]) -> List[_Found]:
    """Report the first guard on something missing as such, unless the path to it already differs."""
    said = set()
    out: List[_Found] = []
    for each in found:
        if each.missing and each.missing not in said and not (each.is_relation or each.is_another):
            said.add(each.missing)
            if not any(is_reached_through(each.missing, other.source) for other in found if not other.missing):
                words = explain(_as_missing(each.missing, found, values, scope))
                each = replace(each, guard=replace(each.guard, explanation=words), is_another=True)
        out.append(each)
    return out


def _follows(each: _Found, cause: _Found) -> bool:
    """Return whether a guard fails because another one does."""
    # The same missing value, or another check of a value that is another object.
    if each.missing and each.missing == cause.missing:
        return True
    source = each.missing or (each.line.code if each.is_relation else each.source)
    if cause.is_another and each.source == cause.source:
        return True
    # A value that is reached through the cause: ``L['d']['a'].x`` where ``L['d']['a']`` is missing or of another class.
    of_one_tensor = each.line.kind == cause.line.kind == "TENSOR_MATCH"  # a tensor made of others
    number = cause.guard.explanation  # a complex number, and its real part
    of_one_number = number.cause is GuardCause.COMPLEX or number.guard.kind is GuardKind.NAN
    if each.missing or cause.is_another or of_one_tensor or of_one_number:
        if is_reached_through(source, cause.missing or cause.source):
            return True
    # Two checks of one value, such as its class and its length.
    explanation, other = each.guard.explanation, cause.guard.explanation
    if explanation.subject and explanation.subject == other.subject:
        return True
    if cause.line.guard.kind is GuardKind.MODES and any(part in (each.source or each.line.code) for part in _MODES):
        return True
    # A mode of PyTorch's, which every tensor shows as well: under autocast each has one more dispatch key.
    is_mode = not other.subject and other.advice
    return bool(is_mode and explanation.subject and _is_part(explanation.advice, other.advice))


def _is_part(advice: str, whole: str) -> bool:
    """Return whether the advice for a value is among that for modes, of which several may have changed."""
    return bool(advice) and {*advice.split("; ")} <= {*whole.split("; ")}


def _missing(code: str, values: Mapping[str, object], scope: Mapping[str, object]) -> str:
    """Return the first part of a source, or of an expression of sources, that can't be read for this call; empty if all
    can.
    """
    parts = parts_read(code)
    names = {**guard_runtime.torch_guard_names(), "L": values, "G": scope} if parts else {}
    return next((part for part in parts if not _can_be_read(part, names)), "")


def _can_be_read(part: str, names: Dict[str, object]) -> bool:
    try:
        eval(code_of(part), names)
    except NameError:  # an unknown helper of PyTorch: the guard itself has more detail
        return True
    except synchronous():
        return False
    return True


def _is_about(line: GuardLine, named: Guard) -> bool:
    """Return whether PyTorch's message is about this guard: it is the same text, or about the value that the guard
    reads.
    """
    if line.guard.code == named.code:
        return True
    # ``tensor 'L['x']' dtype mismatch``: the line is ``check_tensor(L['x'], ...)``, or before 2.4 the one condition
    # ``___check_tensors(L['x'], L['y'], ...)``.
    if named.kind in _OF_A_TENSOR:
        is_condition = line.code.startswith(guards_function.TENSORS)
        return is_condition or (line.kind in ("TENSOR_MATCH", "DYNAMIC_INDICES") and named.source == line.source)
    # ``_dynamo_dynamic_indices not a subset: ...`` and ``Duplicate tensor found`` name no value.
    if named.kind is GuardKind.MARKS:
        return line.guard.kind is GuardKind.MARKS
    if named.kind is GuardKind.SAME_TENSOR:
        return "ALIASING" in line.kind
    # ``len(L['d']) != 2`` and ``TYPE_MISMATCH(L['d'])`` come from a dict manager, which has no text.
    if named.kind in (GuardKind.NUMBER_OF_KEYS, GuardKind.CLASS_OF_DICT):
        return named.source == line.source
    return named.kind is line.guard.kind is GuardKind.GLOBAL_STATE


def _reported_by_torch(guard: Guard, values: Mapping[str, object], scope: Mapping[str, object]) -> GuardFailure:
    known = with_facts(as_known_here(guard), guard, values, scope)
    explanation = explain(known.with_actual(value_of(known, values, scope)))
    return GuardFailure("", known.code, "", explanation, guard.user_code, guard.location)


def _located(
    guards: Sequence[GuardFailure], whole: Mapping[Optional[Location], Optional[Location]]
) -> Tuple[GuardFailure, ...]:
    return tuple(replace(each, location=whole[each.location]) for each in guards)


def with_whole_path(location: Optional[Location], function_file: str) -> Optional[Location]:
    """Return ``location`` with the full path of its file: of ``function_file``, or of a loaded module. PyTorch omits
    the prefix that the file shares with PyTorch's own folder.
    """
    if location is None or os.path.isabs(location[0]) or location[0].startswith("<"):  # ``<string>`` is no path
        return location
    path, line = location
    return (function_file if function_file.endswith(path) else _loaded_file(path)), line


_MODULES: Dict[str, str] = {}
"""The names of the modules that were found, by the endings of their files."""


def _loaded_file(ending: str) -> str:
    """Return the file of the first loaded module that ends so; ``ending`` itself if there is none."""
    # A module may have been replaced since it was found, and one that was not there may have been loaded.
    known = file_of(loaded_namespace(_MODULES.get(ending)))
    if known is not None and known.endswith(ending):
        return known
    # Not only at a separator: of a path that shares only the root folder with PyTorch, the first letter is missing, as
    # PyTorch's ``shorten_filename`` cuts one character more than the prefix, which is ``/`` itself there.
    for name, namespace in loaded_namespaces():
        file = file_of(namespace)
        if file is not None and file.endswith(ending):
            _MODULES[ending] = name
            return file
    return ending
