"""Mutators of operators: arithmetic, comparisons, ``and`` and ``or``, conditional expressions."""

from __future__ import annotations

import ast
from typing import Any, Dict, Iterator, List, Type

from mutators.places import Change, Mutator, Place, is_loud, same, swap

OPERATORS: List[Mutator] = []


def mutator(function: Mutator) -> Mutator:
    OPERATORS.append(function)
    return function


def _set(node: Any, field: str, value: Any) -> Change:
    return lambda: setattr(node, field, value)


@mutator
def swap_operands(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.BinOp) and not same(node.left, node.right):

        def change() -> None:
            node.left, node.right = node.right, node.left

        yield change


@mutator
def other_operator(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        for operator in (ast.Add, ast.Sub, ast.FloorDiv, ast.Div, ast.MatMult):
            if not isinstance(node.op, operator):
                yield _set(node, "op", operator())


@mutator
def other_unary_operator(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield _set(node, "op", ast.Invert() if isinstance(node.op, ast.USub) else ast.USub())
        if not isinstance(node.op, ast.Not):
            yield lambda: place.replace(node.operand)


@mutator
def drop_not(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield lambda: place.replace(node.operand)


_OTHER_COMPARISONS: Dict[Type[ast.cmpop], List[Type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt],
    ast.Eq: [ast.NotEq, ast.Is],
    ast.NotEq: [ast.Eq, ast.IsNot],
    ast.Is: [ast.IsNot, ast.Eq],
    ast.IsNot: [ast.Is, ast.NotEq],
    ast.In: [ast.NotIn, ast.Eq],
    ast.NotIn: [ast.In],
}


@mutator
def other_comparison(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            for other in _OTHER_COMPARISONS[type(operator)]:
                yield lambda at=at, other=other: node.ops.__setitem__(at, other())  # type: ignore[misc]


@mutator
def swap_compared(place: Place) -> Iterator[Change]:
    """``a < b`` becomes ``b > a``: evaluated, and asked, in the other order. ``is`` asks nobody."""
    node = place.node
    mirrored = {
        ast.Lt: ast.Gt,
        ast.Gt: ast.Lt,
        ast.LtE: ast.GtE,
        ast.GtE: ast.LtE,
        ast.Eq: ast.Eq,
        ast.NotEq: ast.NotEq,
    }
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in mirrored:
        right = node.comparators[0]
        if not same(node.left, right):

            def change() -> None:
                node.left, node.comparators, node.ops = right, [node.left], [mirrored[type(node.ops[0])]()]

            yield change


@mutator
def chain_twice(place: Place) -> Iterator[Change]:
    """``a < b() < c`` becomes ``a < b() and b() < c``."""
    node = place.node
    if isinstance(node, ast.Compare) and len(node.ops) == 2 and is_loud(node.comparators[0]):
        first = ast.Compare(node.left, node.ops[:1], node.comparators[:1])
        second = ast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:])
        yield lambda: place.replace(ast.BoolOp(ast.And(), [first, second]))


@mutator
def shorten_chain(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Compare) and len(node.ops) > 1:

        def change() -> None:
            del node.ops[-1], node.comparators[-1]

        yield change


@mutator
def swap_and_or(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.BoolOp):
        yield _set(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())


@mutator
def swap_alternatives(place: Place) -> Iterator[Change]:
    """``a and b`` becomes ``b and a``; tests of one another's loud parts only, as ``x is None`` is silent."""
    node = place.node
    if isinstance(node, ast.BoolOp):
        for at in range(len(node.values) - 1):
            one, other = node.values[at], node.values[at + 1]
            if not same(one, other) and (is_loud(one) or is_loud(other)):
                yield swap(node.values, at, at + 1)


@mutator
def drop_alternative(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.BoolOp) and len(node.values) > 1:
        yield lambda: place.replace(node.values[0]) if len(node.values) == 2 else node.values.pop()


@mutator
def regroup_and_or(place: Place) -> Iterator[Change]:
    """``(a and b) or c`` becomes ``a and (b or c)``."""
    node = place.node
    if (
        isinstance(node, ast.BoolOp)
        and isinstance(node.values[0], ast.BoolOp)
        and type(node.op) is not type(node.values[0].op)
    ):
        inner = node.values[0]
        rest = ast.BoolOp(node.op, [inner.values[-1], *node.values[1:]])
        yield lambda: place.replace(ast.BoolOp(inner.op, [*inner.values[:-1], rest]))


@mutator
def swap_branches(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.IfExp) and not same(node.body, node.orelse):

        def change() -> None:
            node.body, node.orelse = node.orelse, node.body

        yield change


@mutator
def always_first_branch(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.IfExp) and not same(node.body, node.orelse):
        yield lambda: place.replace(node.body)
