"""Changes that matter, each in one place of a syntax tree: what a strict comparison must never call the same.

A mutator is a function from a place in a tree to the changes that it can make there. ``sites`` lists them for a whole
tree, ``mutated`` makes one of them in a copy. A mutator makes only changes that some run can tell from the original,
as far as the tree shows it (``places.is_loud``); what the compiler takes away, as code that is never reached, shows
only in the bytecode, and ``same_bytecode`` tells.
"""

from __future__ import annotations

import ast
import copy
from typing import Callable, Dict, List, Optional, Sequence, Set

from mutators.calls import CALLS
from mutators.definitions import DEFINITIONS
from mutators.flow import FLOW
from mutators.operators import OPERATORS
from mutators.patterns import PATTERNS
from mutators.places import Change, Mutator, Place, places_of
from mutators.statements import STATEMENTS
from mutators.values import VALUES

__all__ = ["MUTATORS", "Change", "Mutator", "mutated", "numbers_at", "sites"]


def _named(mutators: List[Mutator]) -> Dict[str, Mutator]:
    return {mutator.__name__: mutator for mutator in mutators}


MUTATORS: Dict[str, Mutator] = {
    **_named(OPERATORS),
    **_named(VALUES),
    **_named(CALLS),
    **_named(STATEMENTS),
    **_named(FLOW),
    **_named(DEFINITIONS),
    **_named(PATTERNS),
}


def sites(tree: ast.AST, mutator: Mutator) -> List[Callable[[], None]]:
    """All changes that ``mutator`` can make in ``tree``; calling one makes it."""
    return [change for place in places_of(tree) for change in mutator(place)]


def numbers_at(tree: ast.AST, mutator: Mutator, lines: Optional[Set[int]]) -> Sequence[int]:
    """Return the numbers of the changes (see ``mutated``) at places on one of ``lines``; all of them for ``None``.

    A definition or compound statement counts as on its first line, an expression that spans lines as on all of them.
    """
    places = [place for place in places_of(tree) for _ in mutator(place)]
    if lines is None:
        return range(len(places))
    return [number for number, place in enumerate(places) if not lines.isdisjoint(_lines_of(place))]


def _lines_of(place: Place) -> range:
    node = next((each.node for each in (place, *place.above()) if hasattr(each.node, "lineno")), None)
    if node is None:
        return range(0)
    last = node.end_lineno if isinstance(node, ast.expr) else node.lineno
    return range(node.lineno, last + 1)


def mutated(tree: ast.Module, mutator: Mutator, number: int) -> ast.Module:
    """A copy of ``tree`` with the change ``number`` of those that ``sites`` lists."""
    mutant = copy.deepcopy(tree)
    sites(mutant, mutator)[number]()
    return ast.fix_missing_locations(mutant)
