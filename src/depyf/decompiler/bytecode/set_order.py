"""The iteration order of a constant set: it depends on the order in which its members were added.

``{8, 0}`` and ``{0, 8}`` are equal, but loops over them differ: 8 and 0 collide, and the first one gets the slot. So
for a set of numbers the order is observable. The hashes of strings, and before 3.12 that of ``None``, change from run
to run, and so does the order of sets with such members: no program can rely on it.
"""

from __future__ import annotations

import ast
import itertools
from typing import Any, FrozenSet, Iterable, List, Optional

_SMALL = 6
"""The limit on members for trying all orders."""

_REPAIRS = 200
"""The limit on repairs of an order before giving up."""


def has_fixed_order(values: FrozenSet[object]) -> bool:
    """Return whether the order is the same in every run, as for sets of numbers, or of tuples of numbers."""
    return all(_is_fixed(value) for value in values)


def _is_fixed(value: object) -> bool:
    if type(value) is tuple:
        return all(_is_fixed(item) for item in value)
    return type(value) in (bool, int, float, complex) and value == value  # NaN hashes by its address


def display_order(values: FrozenSet[object]) -> Optional[List[Any]]:
    """Return the members as a display must list them, so that the set has the iteration order of ``values``.

    Where that order is not fixed, return them in the order of their texts. ``None`` if no order was found.
    """
    texts = sorted(values, key=lambda value: (type(value).__name__, repr(value)))
    if not has_fixed_order(values):
        return texts
    wanted = list(values)
    for order in _candidates(texts, wanted):
        if _compiled(order) == wanted:
            return order
    return _repaired(texts, wanted)


def _repaired(order: List[object], wanted: List[object]) -> Optional[List[object]]:
    """Return ``order`` with members moved until it gives ``wanted``; ``None`` if that does not succeed."""
    # A member that comes too late was displaced by the one in its slot: it has to be added before that one.
    order = list(order)
    for _ in range(_REPAIRS):
        got = _compiled(order)
        if got == wanted:
            return order
        late, early = next((mine, its) for mine, its in zip(wanted, got) if mine != its or type(mine) is not type(its))
        order.remove(late)
        order.insert(order.index(early), late)
    return None


def _compiled(members: List[Any]) -> List[object]:
    """Return the iteration order of the set that the compiler makes of a display of ``members``.

    It rebuilds the set when it merges equal constants, so that ``frozenset(members)`` may have another order.
    """
    elements: List[ast.expr] = [ast.Constant(value=member, kind=None) for member in members]
    test = ast.Compare(ast.Constant(value=None, kind=None), [ast.In()], [ast.Set(elements)])
    code = compile(ast.fix_missing_locations(ast.Expression(test)), "<display>", "eval")
    return next(list(constant) for constant in code.co_consts if type(constant) is frozenset)


def _candidates(texts: List[object], wanted: List[Any]) -> Iterable[List[object]]:
    yield texts
    if all(type(value) in (bool, int, float) for value in wanted):
        yield sorted(wanted)
    yield wanted
    yield wanted[::-1]
    if len(wanted) <= _SMALL:
        yield from map(list, itertools.permutations(wanted))
