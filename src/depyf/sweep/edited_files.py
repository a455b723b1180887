"""Compare an edited file with the original, function by function. Neither is run.

A row for each function and class that both have under one name, and one for the statements around them. What is inside
of a function is compared with the function. Functions that share a name are compared with the code around them.
"""

from __future__ import annotations

import enum
import inspect
import os
from typing import Callable, Dict, FrozenSet, Iterator, List, Mapping, Optional, Tuple

from depyf.base.late_regex import regex
from depyf.base.own_bugs import are_let_through
from depyf.base.quick_dataclass import dataclass, replace
from depyf.decompiler import EditedComparison, Finding, compare_edited, is_compiler_made
from depyf.decompiler.syntax import Code, is_code
from depyf.sweep.definitions import GuardChange, definition_code, guard_changes, source_text
from depyf.sweep.limits import TimeLimit, time_limited
from depyf.sweep.targets import Module, Target, find_module, named_target, targets_of
from depyf.sweep.unreadable import UnreadableError


class Same(enum.Enum):
    """How a function of the edited file relates to the original."""

    BYTECODE = "same bytecode"
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    UNPROVED = "could not be proved"
    ONLY_ORIGINAL = "only in ORIGINAL"
    ONLY_EDITED = "only in EDITED"

    @property
    def proved(self) -> bool:
        return self in (Same.BYTECODE, Same.EQUIVALENT)


_OF_FINDING = {
    Finding.EXACT: Same.EQUIVALENT,
    Finding.EQUIVALENT: Same.EQUIVALENT,
    Finding.DIFFERENT: Same.DIFFERENT,
    Finding.UNVERIFIED: Same.UNPROVED,
}


@dataclass(frozen=True)
class EditedRow:
    """The result for one function, class, or the code around them. ``notes`` are phrases: what the proof needed, which
    variables have other names. ``guards``: how guards of a ``full_code_*`` file differ as texts."""

    name: str
    same: Same
    comparison: EditedComparison = EditedComparison(Finding.UNVERIFIED)
    guards: Optional[GuardChange] = None

    def notes(self) -> List[str]:
        """Return what there is to say beside the verdict, a phrase each."""
        found = [f"{new} was {old}" for old, new in self.comparison.renamed]
        found += [f"up to what compilers do differently: {each}" for each in sorted(self.comparison.compiler_changes)]
        return found


AROUND = "<module>"
DEFINITION = "the definition of {}: decorators, default values, annotations"


def open_both(edited: str, original: str, python: Optional[str] = None) -> Tuple[Module, Module]:
    """Return (original, edited): the modules that the two arguments of ``depyf verify`` name. ``original`` may be a
    folder with a file of the same name. Source is compiled as the original was. Raises what ``find_module`` raises, and
    ``UnreadableError`` when both are one file."""
    theirs = find_module(edited, None, 0)
    if os.path.isdir(original):
        inside = os.path.join(original, os.path.basename(theirs.path))
        if not os.path.isfile(inside):
            raise FileNotFoundError(f"{original}: no file {os.path.basename(inside)} in it; name the original file")
        original = inside
    mine = find_module(original, python, 0)
    optimized = _OPTIMIZED.search(mine.path)
    if optimized is not None:
        theirs = find_module(edited, None, int(optimized.group(1)))
    is_one_file = os.path.realpath(mine.path) == os.path.realpath(theirs.path)
    if is_one_file and (mine.wanted or theirs.wanted) == (theirs.wanted or mine.wanted):
        raise UnreadableError(f"{theirs.path}: EDITED and ORIGINAL are one file")
    return mine, theirs


_OPTIMIZED = regex(r"\.opt-([12])\.pyc$")
"""The end of the name of a ``.pyc`` file that Python writes under ``-O`` or ``-OO``."""


def compare_files(original: Module, edited: Module, seconds: float) -> Iterator[EditedRow]:
    """Yield the rows of two modules, in the order of the edited file; each may take ``seconds`` of CPU time."""
    if original.wanted or edited.wanted:
        yield from _compare_one(original, edited, seconds)
        return
    mine, theirs = units_of(original.code), units_of(edited.code)
    rows = list(_compare_units(mine, theirs, seconds))
    both = frozenset(id(mine[name][0]) for name in mine if _is_one_in_both(name, mine, theirs))
    rows.append(_row(AROUND, lambda: compare_edited(original.code, edited.code, assumed=both), seconds))
    changes: Mapping[str, GuardChange] = {}
    if any(row.same in (Same.DIFFERENT, Same.UNPROVED) for row in rows):
        changes = _changes_of_guards(original, edited)
    for row in rows:
        yield row if row.same.proved else _with_guards(row, changes.get(row.name))


Units = Dict[str, List[Code]]


def units_of(module: Code) -> Units:
    """Return the functions and classes of a module and of its classes, by qualified name. What has no name of its own
    (a lambda, a comprehension) belongs to the code around it."""
    found: Units = {}

    def walk(code: Code, prefix: str) -> None:
        for inner in code.co_consts:
            if not is_code(inner):
                continue
            if is_compiler_made(inner):  # the code that makes type parameters holds the function
                walk(inner, prefix)
            elif not inner.co_name.startswith("<"):
                found.setdefault(prefix + inner.co_name, []).append(inner)
                if _is_class(inner):
                    walk(inner, f"{prefix}{inner.co_name}.")

    walk(module, "")
    return found


def _is_class(code: Code) -> bool:
    return not code.co_flags & inspect.CO_OPTIMIZED


def _is_one_in_both(name: str, mine: Units, theirs: Units) -> bool:
    return len(mine.get(name, ())) == 1 == len(theirs.get(name, ()))


def _compare_units(mine: Units, theirs: Units, seconds: float) -> Iterator[EditedRow]:
    for name, found in theirs.items():
        if name not in mine:
            yield EditedRow(name, Same.ONLY_EDITED)
        elif _is_one_in_both(name, mine, theirs):
            yield _unit_row(name, mine[name][0], found[0], seconds)
    for name in mine:
        if name not in theirs:
            yield EditedRow(name, Same.ONLY_ORIGINAL)


def _unit_row(name: str, mine: Code, theirs: Code, seconds: float) -> EditedRow:
    """Return the row of a function, or of a class without the methods that have rows of their own."""
    assumed: FrozenSet[int] = frozenset()
    if _is_class(mine) and _is_class(theirs):
        one, other = units_of(mine), units_of(theirs)
        assumed = frozenset(id(one[each][0]) for each in one if _is_one_in_both(each, one, other))
    return _row(name, lambda: compare_edited(mine, theirs, assumed=assumed), seconds)


def _row(name: str, compare: Callable[[], EditedComparison], seconds: float) -> EditedRow:
    try:
        with time_limited(seconds):
            found = compare()
    except TimeLimit:
        found = EditedComparison(Finding.UNVERIFIED, f"not done in {seconds:g} s of CPU time (--timeout)")
    except MemoryError:
        found = EditedComparison(Finding.UNVERIFIED, "it needs more memory than --memory allows")
    except Exception as error:
        if are_let_through():
            raise
        found = EditedComparison(Finding.UNVERIFIED, f"a bug of depyf's ({type(error).__name__}: {error})")
    return EditedRow(name, Same.BYTECODE if found.has_same_bytecode else _OF_FINDING[found.finding], found)


# --- one function


def _compare_one(original: Module, edited: Module, seconds: float) -> Iterator[EditedRow]:
    """Yield the row of the function that one or both arguments name, those of its methods, and its definition's."""
    mine, theirs = (_named(each, original.wanted or edited.wanted) for each in (original, edited))
    if _is_class(mine.code) and _is_class(theirs.code):
        yield from _compare_units(units_of(mine.code), units_of(theirs.code), seconds)
    yield _unit_row(theirs.qualname, mine.code, theirs.code, seconds)
    yield _row(
        DEFINITION.format(theirs.qualname), lambda: _compare_definitions(original, mine, edited, theirs), seconds
    )


def certified_codes(original: Module, edited: Module) -> Tuple[Code, Code]:
    """Return what a certificate is about: the two modules, or the functions that the arguments name."""
    wanted = original.wanted or edited.wanted
    if not wanted:
        return original.code, edited.code
    return _named(original, wanted).code, _named(edited, wanted).code


def _named(module: Module, other: str) -> Target:
    wanted = module.wanted or other
    targets = list(targets_of(module.code, module.path))
    return named_target(targets, f"{module.path}:{wanted}", wanted)


def _compare_definitions(original: Module, mine: Target, edited: Module, theirs: Target) -> EditedComparison:
    codes = []
    for module, target, name in ((original, mine, "ORIGINAL"), (edited, theirs, "EDITED")):
        source = source_text(module)
        if source is None:
            return EditedComparison(Finding.UNVERIFIED, f"there is no proved source of {name}: compare the whole files")
        code = definition_code(source, target.qualname)
        if code is None:
            return EditedComparison(Finding.UNVERIFIED, f"{name} does not define it by exactly one statement")
        codes.append(code)
    return compare_edited(*codes)


def _changes_of_guards(original: Module, edited: Module) -> Mapping[str, GuardChange]:
    """Return how guards differ, where both have the source for it."""
    if not all(module.path.endswith(".py") for module in (original, edited)):
        return {}
    return guard_changes(*(source_text(module) or "" for module in (original, edited)))


def _with_guards(row: EditedRow, change: Optional[GuardChange]) -> EditedRow:
    if change is None:
        return row
    same = row.same
    # The same guards in another order: which is evaluated first can matter, and none is known to be gone.
    is_a_step = "the original does:" in row.comparison.reason  # and no other signature
    if not change.gone and not change.new and change.is_reordered and is_a_step:
        same = Same.UNPROVED
    return replace(row, same=same, guards=change)
