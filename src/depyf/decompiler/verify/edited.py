"""Compare a function with an edited one: match renamed local variables, and say where the first difference is.

``compare`` treats a variable with another name as another variable. A person who edits a function may rename one, so a
comparison without a proof is made once more with the new names mapped to the old ones. Offsets in the reasons become
lines of the two files.
"""

from __future__ import annotations

import inspect
import re
from typing import AbstractSet, Dict, FrozenSet, List, Match, Optional, Sequence, Set, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass, replace
from depyf.decompiler.bytecode.code import (
    Code,
    is_code,
    is_of_another_version,
    nested_codes,
    parameter_names,
    version_of,
)
from depyf.decompiler.bytecode.lines import line_of_offset
from depyf.decompiler.hints import Hints
from depyf.decompiler.normal.ops import byte_offset
from depyf.decompiler.verify.compare import compare, same_bytecode
from depyf.decompiler.verify.comparison import Comparison, Finding
from depyf.decompiler.verify.signature import LOOKS_AT_LOCALS

Lines = Tuple[Optional[int], Optional[int]]
"""A line of the original's file and one of the edited file, where they are known."""


@dataclass(frozen=True)
class EditedComparison:
    """How an edited code object relates to the original.

    ``reason`` describes the first difference, or why there is no proof; it is empty when there is a proof. ``lines``
    are the lines of the first difference. ``renamed``: (name in the original, name in the edited code) of each local
    variable that was matched. ``has_same_bytecode``: all instructions, names and constants are the same.
    ``compiler_changes``: what the compilers of two versions do differently, as far as the proof needed it.
    """

    finding: Finding
    reason: str = ""
    lines: Lines = (None, None)
    renamed: Tuple[Tuple[str, str], ...] = ()
    has_same_bytecode: bool = False
    compiler_changes: FrozenSet[str] = frozenset()

    @property
    def proved(self) -> bool:
        return self.finding.proved


def compare_edited(original: Code, edited: Code, *, assumed: AbstractSet[int] = frozenset()) -> EditedComparison:
    """Compare how ``original`` and ``edited`` behave, as ``compare`` does, which documents ``assumed``.

    Other names of local variables are no difference where no code of the two looks at names (``locals()``): no
    parameter, and no name that both have. ``original`` may be bytecode of another version; then nothing is known to
    differ, as the difference may come from the compilers.
    """
    found = compare(original, edited, assumed=assumed)
    names: Dict[str, str] = {}
    if not found.proved:
        names = _new_names(original, edited)
        again = compare(original, edited, assumed=assumed, renamed=names) if names else found
        # A difference that remains under the new names is real: another name of a variable changes no behaviour here.
        if again.proved or again.finding is Finding.DIFFERENT:
            found = again
    if found.proved:
        return EditedComparison(
            found.finding,
            renamed=tuple((old, new) for new, old in names.items()),
            has_same_bytecode=not names and _is_same_bytecode(original, edited, assumed),
            compiler_changes=frozenset().union(*(each.changes for each in found.walk())),
        )
    result = _with_lines(found, original, edited)
    if is_of_another_version(original):
        version = "{}.{}".format(*version_of(original))
        return replace(
            result, finding=Finding.UNVERIFIED, reason=f"compiled by another Python ({version}): {result.reason}"
        )
    if _ABOUT_CELLS.search(result.reason):
        return replace(result, finding=Finding.UNVERIFIED)
    if result.finding is Finding.UNVERIFIED:
        return replace(result, reason=result.reason + _what_would_do(original, edited, names, assumed))
    return result


def _is_same_bytecode(original: Code, edited: Code, assumed: AbstractSet[int]) -> bool:
    """Return whether the two have the same bytecode, with all code inside that is not ``assumed``."""
    inner = same_bytecode(original, edited)
    if inner is None:
        return False
    inside = [code for code in original.co_consts if is_code(code) and id(code) not in assumed]
    return all(_is_same_bytecode(code, inner[id(code)], assumed) for code in inside)


# --- other names of local variables


_LOOKS_AT_NAMES = LOOKS_AT_LOCALS | {"f_locals", "co_varnames"}


def _new_names(original: Code, edited: Code) -> Dict[str, str]:
    """Return a mapping from local names that only ``edited`` has to those that only ``original`` has, in their order,
    where there are as many of the one as of the other.

    A name of the mapping occurs on one side alone, in no code inside of the other one, so that mapping it is a
    consistent renaming. Parameters keep their names: callers use them.
    """
    sides = [list(nested_codes(each)) for each in (original, edited)]
    both = [code for codes in sides for code in codes]
    if any(not _LOOKS_AT_NAMES.isdisjoint(code.co_names) for code in both):
        return {}
    fixed: Set[str] = {name for code in both for name in parameter_names(code)}
    # A class body looks such a name up in its namespace first, which a metaclass may have made.
    bodies = [code for code in both if not code.co_flags & inspect.CO_OPTIMIZED]
    fixed |= {name for code in bodies for name in (*code.co_cellvars, *code.co_freevars)}
    mine, theirs = map(_local_names, sides)
    cells = [{name for code in codes for name in (*code.co_cellvars, *code.co_freevars)} for codes in sides]
    names: Dict[str, str] = {}
    # Variables that functions inside share are matched among themselves: the two kinds can't replace each other.
    for is_cell in (True, False):
        gone = [name for name in mine if name not in theirs and (name in cells[0]) is is_cell and name not in fixed]
        new = [name for name in theirs if name not in mine and (name in cells[1]) is is_cell and name not in fixed]
        if len(gone) == len(new):
            names.update(zip(new, gone))
    return names


def _local_names(codes: Sequence[Code]) -> List[str]:
    names = (name for code in codes for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars))
    return list(dict.fromkeys(names))


_ABOUT_CELLS = regex(
    r"the (free variables|variables of functions around) differ"
    r"|deref '.*; the edited code does: |; the edited code does: \S+ deref '",
    re.DOTALL,
)
"""Differences about variables that functions inside share. They need not be differences of behaviour: ``compare`` takes
the names for facts, and each access for a step, which may raise ``NameError``."""


def _what_would_do(original: Code, edited: Code, names: Dict[str, str], assumed: AbstractSet[int]) -> str:
    """Return the end of the reason where a proof needs one assumption: nothing observes variables of the original."""
    dropped = frozenset(_local_names([original])) - set(_local_names([edited])) - set(names.values())
    dropped -= set(parameter_names(original))
    hints = Hints(droppable=dropped)
    if not dropped or not compare(original, edited, assumed=assumed, renamed=names, hints=hints).proved:
        return ""
    return (
        f"; it would be the same if nothing observes {', '.join(sorted(dropped))} (a debugger, a traceback), nor when "
        "the values are released"
    )


# --- where the first difference is

_WHERE = regex(r"\bat offset (-?\d+) \(candidate: (-?\d+)\)")
_MADE_AT = regex(r"(?<=[\w']) at (\d+)>")


def _with_lines(comparison: Comparison, original: Code, edited: Code) -> EditedComparison:
    """Return the comparison with lines in place of offsets."""
    # The reason is the reason of the innermost code object that differs: its offsets are in that object's line table.
    culprits = (each for each in comparison.culprits() if each.reason and comparison.reason.endswith(each.reason))
    culprit = next(culprits, comparison)
    sides = (original, culprit.original_id), (edited, culprit.candidate_id)
    codes = [next((each for each in nested_codes(code) if id(each) == wanted), code) for code, wanted in sides]
    tables = [line_of_offset(code) for code in codes]

    def line(side: int, offset: str) -> Optional[int]:
        return tables[side].get(byte_offset(int(offset))) if int(offset) >= 0 else None

    # Without offsets in the reason both functions differ as a whole, and their first lines are named.
    lines: Lines = (codes[0].co_firstlineno, codes[1].co_firstlineno)
    place = _WHERE.search(culprit.reason)
    if place is not None:
        lines = line(0, place.group(1)), line(1, place.group(2))

    def in_lines(found: Match[str]) -> str:
        shown = [line(side, found.group(side + 1)) for side in (0, 1)]
        return "at " + " (edited: ".join(f"line {each}" if each else "no line" for each in shown) + ")"

    def made_at(found: Match[str]) -> str:
        number = line(0, found.group(1))
        return found.group(0) if number is None else f" of line {number}>"

    # The verifier speaks of a candidate; the reader has edited code.
    text = _MADE_AT.sub(made_at, _WHERE.sub(in_lines, culprit.reason))
    text = re.sub(r"\bthe candidate (does:|has\b|keeps\b)", r"the edited code \1", text)
    text = re.sub(r"\bin the candidate\b", "in the edited code", text)
    inside = f"in {culprit.original_name}: " if culprit is not comparison else ""
    return EditedComparison(comparison.finding, inside + text, lines)
