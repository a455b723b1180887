"""Which guards of a cache entry fail for a call: the causes, PyTorch's own first one first, and what follows. If a dict
lacks a key, or an object has another class, every guard on what is reached through it fails. These follow from one
cause and are not reported separately.
"""

from __future__ import annotations

import ast
import os
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.lookup import FailedGuard
from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.diagnosis.guard import COMPARISONS, NO_GUARD, Guard, GuardKind
from depyf.diagnosis.guard_advice import GuardCause
from depyf.diagnosis.guard_explanations import GuardExplanation, explain
from depyf.diagnosis.guard_sources import is_reached_through
from depyf.diagnosis.guard_text import read
from depyf.dynamo.guards import python_guards as guards_function
from depyf.dynamo.guards import runtime as guard_runtime
from depyf.dynamo.guards.check_function import EntryGuards, GuardLine
from depyf.dynamo.guards.current_values import as_known_here, tensor_mismatch, value_of
from depyf.dynamo.guards.live_values import NotLiveError
from depyf.dynamo.guards.python_guards import reads_values
from depyf.dynamo.guards.stable_expressions import Naming
from depyf.dynamo.guards.tree import EPILOGUE, TEXT
from depyf.dynamo.hooks.loaded_modules import file_of, loaded_namespaces
from depyf.dynamo.hooks.torch_types import Guards
from depyf.quick_dataclass import dataclass, replace
from depyf.source.printing.unparsing import unparse

_OF_WHAT_A_VALUE_IS = frozenset(
    (GuardKind.CLASS, GuardKind.IDENTITY, GuardKind.FUNCTION, GuardKind.TENSOR_CLASS, GuardKind.NONE)
)
"""Guards on the identity or type of a value: if one fails, everything reached through the value is different, too."""

_OF_A_TENSOR = frozenset(
    (GuardKind.TENSOR, GuardKind.TENSOR_CLASS, GuardKind.SIZE, GuardKind.STRIDE, GuardKind.RANK, GuardKind.DTYPE)
    + (GuardKind.REQUIRES_GRAD, GuardKind.DISPATCH_KEYS)
)
"""PyTorch's messages for a failed guard on all properties of a tensor."""

_MODES = "function_mode_stack"
"""Part of the sources of torch function modes."""


@dataclass(frozen=True)
class Failing:
    """The guards that fail on their own, and those that fail because of them; PyTorch's first one comes first."""

    causes: Tuple[FailedGuard, ...]
    follow: Tuple[FailedGuard, ...] = ()


@dataclass(frozen=True)
class _Found:
    """A line that fails. ``missing`` is the part of its ``source`` that can't be read, if any. With ``is_another``
    everything reached through its value is different, too."""

    line: GuardLine
    guard: FailedGuard
    source: str
    missing: str
    is_another: bool

    @property
    def is_relation(self) -> bool:
        """Whether the guard is about several values."""
        return self.line.source == EPILOGUE or "ALIASING" in self.line.kind or "OVERLAPPING" in self.line.kind


def failing_guards(manager: Guards, values: Mapping[str, object], first: Sequence[str], file: str) -> Failing:
    """Return all guards of an entry that fail for these local variables, as causes and what follows from them.
    ``first`` is PyTorch's message about the first one, ``file`` the function's file.
    """
    guards = EntryGuards.of(manager, "guard", Naming(lambda text: text))
    scope: Mapping[str, object] = guards.live.global_scope() or {}
    try:
        lines = guards.failing(values, scope)
        if not guards.live.distinguishes():  # of those that only PyTorch can check: the one that it names, if any
            named = read(first[0]) if len(first) == 1 else NO_GUARD
            lines = [line for line in lines if not line.live or _is_about(line, named)]
        lines = [line for line in lines if not _fails_for_another(line, guards, values)]
    except NotLiveError:
        lines = []
    found = [_found(line, guards, manager, values, scope) for line in lines]
    failing = _causes(_named_first(found, first, values, scope))
    if not failing.causes:
        failing = Failing((_reported_by_torch(read(first[0]), values, scope) if first else _UNKNOWN,))
    places = {each.place for each in (*failing.causes, *failing.follow)}  # hundreds of guards may come from one line
    whole = {place: with_whole_path(place, file) for place in places}
    return Failing(_with_places(failing.causes, whole), _with_places(failing.follow, whole))


_Place = Optional[Tuple[str, int]]

_UNKNOWN = FailedGuard("", "", "", GuardExplanation("", "its guards do not hold, and PyTorch does not say which"))


def _found(
    line: GuardLine, guards: EntryGuards, manager: Guards, values: Mapping[str, object], scope: Mapping[str, object]
) -> _Found:
    guard = as_known_here(line.guard)
    reported = guards_function.mismatch(manager, line.code, values) or _reported_for(line, guards, values)
    failed = None if reported is None else as_known_here(read(reported))
    failed = failed or tensor_mismatch(guard, values, scope) or guard
    explanation = explain(failed.with_actual(value_of(guard, values, scope)))
    is_text = line.kind == TEXT  # of a condition of PyTorch before 2.4, whose source is in its text
    source = guards_function.source_of(line.code) if is_text else line.source
    missing = _missing(guard.code if line.source == EPILOGUE else source, values, scope)
    return _Found(
        line,
        FailedGuard(line.kind, line.code, source, explanation, line.guard.user_code, line.guard.location),
        source,
        missing,
        is_another=failed.kind in _OF_WHAT_A_VALUE_IS and not (is_text and missing),
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
    of_torch = _reported_by_torch(named, values, scope)
    if named.kind is GuardKind.MISSING:  # PyTorch does not say which line it comes from
        missing = named.source
        place = next((each.guard for each in found if each.missing == missing and each.guard.place), of_torch)
        guard = replace(of_torch, user_code=place.user_code, place=place.place)
        own = next((each for each in found if each.missing == each.source == missing), None)
        cause = _Found(GuardLine("", missing, named.code, "", "", guard=named), guard, missing, missing, True)
        return [cause, *(each for each in found if each is not own)]
    position = next((i for i, each in enumerate(found) if _is_about(each.line, named)), None)
    if position is None:
        raised = (each.missing for each in found if each.source == EPILOGUE and each.missing)
        missing = next(raised, "") if named.kind is GuardKind.NOT_COMPUTED else ""
        line = GuardLine("", missing, named.code, "", "", guard=named)
        return [_Found(line, of_torch, missing, missing, bool(missing)), *found]
    known, of_call = found[position], as_known_here(named)
    if of_call.kind is GuardKind.CLASS:  # its text may have an id only
        of_call = replace(of_call, expected=known.line.guard.expected)
    if of_call.kind in COMPARISONS or " == " in of_call.code:  # the value now is known
        of_call = of_call.with_actual(known.guard.explanation.now)
    in_its_words = replace(known, guard=replace(known.guard, explanation=explain(of_call)))
    return [in_its_words, *(each for each in found if each is not known)]


def _causes(found: Sequence[_Found]) -> Failing:
    causes: List[_Found] = []
    follow: List[FailedGuard] = []
    for each in _missing_once(found):
        if any(_follows(each, cause) for cause in causes):
            follow.append(each.guard)
        else:
            causes.append(each)
    return Failing(tuple(each.guard for each in causes), tuple(follow))


def _missing_once(found: Sequence[_Found]) -> List[_Found]:
    """Report the first guard on something missing as such, unless the path to it already differs."""
    said = set()
    out: List[_Found] = []
    for each in found:
        if each.missing and each.missing not in said and not (each.is_relation or each.is_another):
            said.add(each.missing)
            if not any(is_reached_through(each.missing, other.source) for other in found if not other.missing):
                words = explain(Guard(GuardKind.MISSING, each.missing))
                each = replace(each, guard=replace(each.guard, explanation=words), is_another=True)
        out.append(each)
    return out


def _follows(each: _Found, cause: _Found) -> bool:
    """Return whether a guard fails because another one does."""
    if each.missing and each.missing == cause.missing:
        return True
    source = each.missing or (each.line.code if each.is_relation else each.source)
    if cause.is_another and each.source == cause.source:
        return True
    of_one_tensor = each.line.kind == cause.line.kind == "TENSOR_MATCH"  # a tensor made of others
    of_one_number = cause.guard.explanation.cause is GuardCause.NUMBER  # the real part of a complex one
    if each.missing or cause.is_another or of_one_tensor or of_one_number:
        if is_reached_through(source, cause.missing or cause.source):
            return True
    explanation, other = each.guard.explanation, cause.guard.explanation
    if explanation.subject and explanation.subject == other.subject:
        return True
    if cause.line.guard.kind is GuardKind.MODES and _MODES in each.source:
        return True
    is_mode = not other.subject and other.advice  # each tensor shows it as well
    return bool(is_mode and explanation.subject and explanation.advice == other.advice)


def _missing(code: str, values: Mapping[str, object], scope: Mapping[str, object]) -> str:
    """Return the first part of a source, or of an expression of sources, that can't be read for this call; empty if all
    can.
    """
    try:
        tree = parse(code, mode="eval").body
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    names = {**guard_runtime.torch_guard_names(), "L": values, "G": scope}
    parts = [each for each in ast.walk(tree) if isinstance(each, (ast.Attribute, ast.Subscript, ast.Call))]
    smallest = (each for each in reversed(parts) if reads_values(each) and not _can_be_read(each, names))
    return next(map(unparse, smallest), "")


def _can_be_read(tree: ast.expr, names: Dict[str, object]) -> bool:
    try:
        eval(compile(ast.Expression(tree), "<guard>", "eval"), names)
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
    if named.kind in _OF_A_TENSOR:
        is_condition = line.code.startswith(guards_function.TENSORS)
        return is_condition or (line.kind in ("TENSOR_MATCH", "DYNAMIC_INDICES") and named.source == line.source)
    if named.kind is GuardKind.MARKS:
        return line.guard.kind is GuardKind.MARKS
    if named.kind is GuardKind.SAME_TENSOR:
        return "ALIASING" in line.kind
    if named.kind in (GuardKind.NUMBER_OF_KEYS, GuardKind.CLASS_OF_DICT):
        return named.source == line.source
    return named.kind is line.guard.kind is GuardKind.GLOBAL_STATE


def _reported_by_torch(guard: Guard, values: Mapping[str, object], scope: Mapping[str, object]) -> FailedGuard:
    known = as_known_here(guard)
    explanation = explain(known.with_actual(value_of(known, values, scope)))
    return FailedGuard("", known.code, "", explanation, guard.user_code, guard.location)


def _with_places(guards: Sequence[FailedGuard], places: Mapping[_Place, _Place]) -> Tuple[FailedGuard, ...]:
    return tuple(replace(each, place=places[each.place]) for each in guards)


def with_whole_path(place: Optional[Tuple[str, int]], function_file: str) -> Optional[Tuple[str, int]]:
    """Return ``place`` with the full path of its file: PyTorch omits the prefix that it shares with PyTorch's own
    path.
    """
    if place is None or os.path.isabs(place[0]):
        return place
    files = [function_file, *(file_of(namespace) for _, namespace in loaded_namespaces())]
    return next(((file, place[1]) for file in files if file is not None and file.endswith(place[0])), place)
