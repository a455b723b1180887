"""Which guards of a cache entry fail for a call: the causes, PyTorch's own first one before all, and what follows.

A dict without a key, or an object of another class, makes every guard fail on what was reached through it. Those follow
from one cause and are no findings of their own.
"""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.lookup import FailedGuard
from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.diagnosis.guard_advice import GuardCause
from depyf.diagnosis.guard_explanations import GuardExplanation, GuardText, explain, split
from depyf.dynamo.guards import python_guards as guards_function
from depyf.dynamo.guards import runtime as guard_runtime
from depyf.dynamo.guards.check_function import EntryGuards, GuardLine
from depyf.dynamo.guards.current_values import as_known_here, tensor_mismatch, value_of
from depyf.dynamo.guards.live_values import NotLiveError
from depyf.dynamo.guards.to_python import Naming
from depyf.dynamo.guards.tree import EPILOGUE, TEXT
from depyf.dynamo.hooks.loaded_modules import file_of, loaded_namespaces
from depyf.source.printing.unparsing import unparse

_IS_ANOTHER = re.compile(r"_{2,3}check_(?:obj|type)_id\(|expected type of '|.* is (?:not )?None\Z", re.S)
"""Guards on what a value is: where one fails, all that is reached through the value is another, too."""

_MODES = "function_mode_stack"

_MARKS = re.compile(r"\A_dynamo_\w+ not a subset|\A_has_dynamo_dim_marking")
"""PyTorch's words for marks of dimensions, which do not say of what."""

_RAISED = re.compile(r"\A'[^']*' object (?:has no|is not)|\A\w+Error\b(?! on )")
"""Those for relations of sizes that can't be computed: what Python says."""

_MISSING = re.compile(r"\A(?:\w+Error on|getattr failed on source) (.*)\Z", re.S)
"""PyTorch's words for a value that is not there."""


@dataclass(frozen=True)
class Failing:
    """The guards that fail, a cause each, and those that fail because of them; PyTorch's first one comes first."""

    causes: Tuple[FailedGuard, ...]
    follow: Tuple[FailedGuard, ...] = ()


@dataclass(frozen=True)
class _Found:
    """A line that fails. ``missing`` is what can't be read of the ``source`` that it looks at, if anything."""

    line: GuardLine
    guard: FailedGuard
    source: str
    missing: str
    is_another: bool

    @property
    def is_relation(self) -> bool:
        """Whether the guard is about several values."""
        return self.line.source == EPILOGUE or "ALIASING" in self.line.kind or "OVERLAPPING" in self.line.kind


def failing_guards(manager: object, values: Mapping[str, object], first: Sequence[str], file: str) -> Failing:
    """All guards of an entry that fail for these local variables, in causes and what follows from them.

    ``first`` is what PyTorch says of the first one, ``file`` that of the function.
    """
    guards = EntryGuards.of(manager, "guard", Naming(lambda text: text))
    scope: Mapping[str, Any] = guards.live.global_scope() or {}
    try:
        lines = guards.failing(values, scope)
        if not guards.live.tells_apart():  # those that only PyTorch can check: the one that it names, if any
            named = split(first[0]).code if len(first) == 1 else ""
            lines = [line for line in lines if not line.live or _is_about(line, named)]
    except NotLiveError:
        lines = []
    found = [_found(line, guards, manager, values, scope) for line in lines]
    failing = _causes(_named_first(found, first, values, scope))
    if not failing.causes:
        failing = Failing((_told_by_torch(first[0], values, scope) if first else _UNKNOWN,))
    places = {each.place for each in (*failing.causes, *failing.follow)}  # hundreds of guards may be of one line
    whole = {place: with_whole_path(place, file) for place in places}
    return Failing(_with_places(failing.causes, whole), _with_places(failing.follow, whole))


_DICT = re.compile(r"___check_dict\(.*, (\d+)\)\Z", re.DOTALL)

_UNKNOWN = FailedGuard("", "", "", GuardExplanation("", "its guards do not hold, and PyTorch does not say which"))


def _found(
    line: GuardLine, guards: EntryGuards, manager: object, values: Mapping[str, object], scope: Mapping[str, object]
) -> _Found:
    parts, code = parts_of(line), as_known_here(line.code)
    text = guards_function.mismatch(manager, line.code, values) or _words_of_torch(line, guards, values)
    text = text or tensor_mismatch(code, values, scope) or code or _number_of_keys(line)
    told = explain(text, value_of(code, values, scope))
    is_text = line.kind == TEXT  # of a condition of PyTorch's before 2.4, whose source is in its text
    source = guards_function.source_of(line.code) if is_text else line.source
    missing = _missing(code if line.source == EPILOGUE else source, values, scope)
    return _Found(
        line,
        FailedGuard(line.kind, line.code, source, told, parts.user_code, parts.place),
        source,
        missing,
        is_another=_IS_ANOTHER.match(text) is not None and not (is_text and missing),
    )


def _number_of_keys(line: GuardLine) -> str:
    """What PyTorch says where a dict has another number of keys; its guard on that has no text."""
    checked = _DICT.match(line.expression)
    return "" if checked is None else f"len({line.source}) != {checked.group(1)}"


def _words_of_torch(line: GuardLine, guards: EntryGuards, values: Mapping[str, object]) -> Optional[str]:
    """What PyTorch says of a guard that only it can check."""
    texts = guards.live.words_of_path(values, line.path) if line.live and line.source != EPILOGUE else ()
    return as_known_here(texts[0]) if len(texts) == 1 else None


def _named_first(
    found: Sequence[_Found], first: Sequence[str], values: Mapping[str, object], scope: Mapping[str, object]
) -> List[_Found]:
    """The guard that PyTorch names before the others, in its words."""
    if len(first) != 1:  # a whole list of relations of sizes, some of which fails
        return list(found)
    named = split(first[0]).code
    of_torch = _told_by_torch(first[0], values, scope)
    match = _MISSING.match(named)
    if match is not None:  # PyTorch does not say where it comes from; what was to be read there does
        missing = match.group(1)
        place = next((each.guard for each in found if each.missing == missing and each.guard.place), of_torch)
        guard = replace(of_torch, user_code=place.user_code, place=place.place)
        own = next((each for each in found if each.missing == each.source == missing), None)
        cause = _Found(GuardLine("", missing, named, "", ""), guard, missing, missing, True)
        return [cause, *(each for each in found if each is not own)]
    position = next((i for i, each in enumerate(found) if _is_about(each.line, named)), None)
    if position is None:
        raised = (each.missing for each in found if each.source == EPILOGUE and each.missing)
        missing = next(raised, "") if _RAISED.match(named) else ""
        return [_Found(GuardLine("", missing, named, "", ""), of_torch, missing, missing, bool(missing)), *found]
    text, known = as_known_here(first[0]), found[position]
    told = explain(text, known.guard.told.now if " == " in split(text).code else None)
    in_its_words = replace(known, guard=replace(known.guard, told=told))
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
    """The first guard on something that is missing says so, unless what leads there is another."""
    said = set()
    out: List[_Found] = []
    for each in found:
        if each.missing and each.missing not in said and not (each.is_relation or each.is_another):
            said.add(each.missing)
            if not any(_is_below(each.missing, other.source) for other in found if not other.missing):
                words = explain(f"KeyError on {each.missing}")
                each = replace(each, guard=replace(each.guard, told=words), is_another=True)
        out.append(each)
    return out


def _follows(each: _Found, cause: _Found) -> bool:
    """Whether a guard fails because another one does."""
    if each.missing and each.missing == cause.missing:
        return True
    source = each.missing or (each.line.code if each.is_relation else each.source)
    if cause.is_another and each.source == cause.source:
        return True
    of_one_tensor = each.line.kind == cause.line.kind == "TENSOR_MATCH"  # a tensor made of others
    of_one_number = cause.guard.told.cause is GuardCause.NUMBER  # the real part of a complex one
    if each.missing or cause.is_another or of_one_tensor or of_one_number:
        if _is_below(source, cause.missing or cause.source):
            return True
    told, other = each.guard.told, cause.guard.told
    if told.subject and told.subject == other.subject:
        return True
    if not other.subject and _MODES in cause.line.code and _MODES in each.source:
        return True
    is_mode = not other.subject and other.advice  # it shows in each tensor as well
    return bool(is_mode and told.subject and told.advice == other.advice)


def _is_below(source: str, above: str) -> bool:
    """Whether a value is reached through the value ``above``: its source has that one in it."""
    if not above or source == above or above not in source:  # most are not: hundreds are compared with one another
        return False
    return re.search(re.escape(above) + r"(?!\w)", source) is not None


def _missing(code: str, values: Mapping[str, object], scope: Mapping[str, object]) -> str:
    """The first part of a source, or of an expression of them, that can't be read for this call; empty if all can."""
    try:
        tree = parse(code, mode="eval").body
    except synchronous(SyntaxError, ValueError, RecursionError):
        return ""
    names = {**guard_runtime.torch_guard_names(), "L": values, "G": scope}
    parts = [each for each in ast.walk(tree) if isinstance(each, (ast.Attribute, ast.Subscript, ast.Call))]
    smallest = (each for each in reversed(parts) if _reads_values(each) and not _can_be_read(each, names))
    return next(map(unparse, smallest), "")


def _reads_values(tree: ast.AST) -> bool:
    return any(isinstance(each, ast.Name) and each.id in ("L", "G") for each in ast.walk(tree))


def _can_be_read(tree: Any, names: Dict[str, object]) -> bool:
    try:
        eval(compile(ast.Expression(tree), "<guard>", "eval"), names)
    except NameError:  # a helper of PyTorch's that is not known: the guard itself says more
        return True
    except synchronous():
        return False
    return True


def _is_about(line: GuardLine, named: str) -> bool:
    """Whether PyTorch's words ``named`` are about this guard: they repeat its text, or name what it looks at."""
    if split(line.code).code in (named, guards_function.label(named) if line.kind == TEXT else named):
        return True
    if line.code.startswith(guards_function.TENSORS):
        return named.startswith(("tensor '", "expected type of '"))
    about_tensor = line.kind in ("TENSOR_MATCH", "DYNAMIC_INDICES") and f"'{line.source}'" in named
    if _MARKS.match(named):
        return "_dynamo_" in line.code or "DIMENSION" in line.kind
    if named.startswith("Duplicate tensor"):
        return "ALIASING" in line.kind
    about_size = named.startswith((f"len({line.source}) != ", f"TYPE_MISMATCH({line.source})"))
    return about_tensor or about_size or (named.startswith("GLOBAL_STATE") and line.kind == "GLOBAL_STATE")


def _told_by_torch(text: str, values: Mapping[str, object], scope: Mapping[str, object]) -> FailedGuard:
    parts = split(as_known_here(text))
    return FailedGuard(
        "", parts.code, "", explain(parts.code, value_of(parts.code, values, scope)), parts.user_code, parts.place
    )


def parts_of(line: GuardLine) -> GuardText:
    """The guard, and the line of the user that made Dynamo guard it."""
    return split(f"{line.code}  {line.user_line if line.user_line.startswith('#') else '# ' + line.user_line}")


def _with_places(guards: Sequence[FailedGuard], places: Mapping[Any, Any]) -> Tuple[FailedGuard, ...]:
    return tuple(replace(each, place=places[each.place]) for each in guards)


def with_whole_path(place: Optional[Tuple[str, int]], function_file: str) -> Optional[Tuple[str, int]]:
    """``place`` with the whole path of its file: PyTorch leaves out the first characters that its own path has too."""
    if place is None or os.path.isabs(place[0]):
        return place
    files = [function_file, *(file_of(namespace) for _, namespace in loaded_namespaces())]
    return next(((file, place[1]) for file in files if file is not None and file.endswith(place[0])), place)
