"""Mutators of values: constants, names, attributes, containers, subscripts, texts."""

from __future__ import annotations

import ast
from typing import Any, Iterator, List

from mutators.places import (
    COMPREHENSIONS,
    FUNCTIONS,
    Change,
    Mutator,
    Place,
    constant,
    is_loud,
    same,
    simple_name,
    swap,
)

VALUES: List[Mutator] = []


def mutator(function: Mutator) -> Mutator:
    VALUES.append(function)
    return function


def _set(node: Any, field: str, value: Any) -> Change:
    return lambda: setattr(node, field, value)


# --- constants and names


def _is_unused(place: Place) -> bool:
    """Whether a constant is a statement of its own, or stored to a variable that the next statement stores again."""
    statement = place.parent
    if statement is None:
        return False
    if isinstance(statement.node, ast.Assign) and statement.is_local and statement.following:
        following = statement.following[0]
        names = [ast.dump(target) for target in getattr(following, "targets", [])]
        return any(ast.dump(target) in names for target in statement.node.targets) and not is_loud(following)
    return isinstance(statement.node, ast.Expr)


def _in_text(place: Place) -> bool:
    return place.parent is not None and isinstance(place.parent.node, ast.JoinedStr)


@mutator
def other_number(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, complex) and not _is_unused(place):
        yield _set(node, "value", node.value + 1)


@mutator
def other_number_type(place: Place) -> Iterator[Change]:
    """A constant that is equal, and yet another one: ``1``, ``1.0``, ``True``, ``(1+0j)``; ``0.0``, ``-0.0``."""
    node = place.node
    if not isinstance(node, ast.Constant) or _is_unused(place):
        return
    if type(node.value) is int and abs(node.value) < 10**15:
        yield _set(node, "value", float(node.value))
        yield _set(node, "value", complex(node.value))
        if node.value in (0, 1):
            yield _set(node, "value", bool(node.value))
    elif type(node.value) is bool:
        yield _set(node, "value", int(node.value))
        yield _set(node, "value", not node.value)
    elif type(node.value) is float:
        yield _set(node, "value", complex(node.value))
        if node.value == 0.0:
            yield lambda: place.replace(ast.UnaryOp(ast.USub(), constant(0.0)))


@mutator
def other_text(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Constant) and type(node.value) in (str, bytes):
        more = "x" if isinstance(node.value, str) else b"x"
        yield _set(node, "value", node.value + more)  # type: ignore[operator]
        if node.value and not _in_text(place):
            yield _set(node, "value", node.value[:0])


@mutator
def text_or_bytes(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Constant) and type(node.value) in (str, bytes) and not _in_text(place):
        if isinstance(node.value, str) and node.value.isascii():
            yield _set(node, "value", node.value.encode())
        elif isinstance(node.value, bytes):
            yield _set(node, "value", node.value.decode("latin-1"))


@mutator
def other_singleton(place: Place) -> Iterator[Change]:
    """``None`` becomes ``...`` or ``False``, which a test can't tell but everything else can."""
    node = place.node
    if isinstance(node, ast.Constant) and (node.value is None or node.value is ...) and not _is_unused(place):
        if place.parent is not None and type(place.parent.node).__name__ != "MatchSingleton":
            yield _set(node, "value", False)
            yield _set(node, "value", None if node.value is ... else ...)


@mutator
def other_name(place: Place) -> Iterator[Change]:
    """Another name that is read; ``x_other`` is a global that nobody else has."""
    node = place.node
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and not node.id.startswith("__const_"):
        yield _set(node, "id", simple_name(node.id))


@mutator
def other_parameter(place: Place) -> Iterator[Change]:
    """Another parameter of the same function is read, in a function that never stores one."""
    node = place.node
    function = place.scope
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or not isinstance(function, FUNCTIONS):
        return
    names = [argument.arg for argument in function.args.args]
    stored = {
        each.id for each in ast.walk(function) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }
    if node.id in names and not stored & set(names) and not place.inside(COMPREHENSIONS, FUNCTIONS):
        for name in names:
            if name != node.id:
                yield _set(node, "id", name)


@mutator
def swap_names(place: Place) -> Iterator[Change]:
    """What is stored to ``a, b`` goes to ``b, a``, with something behind it that can be told."""
    node = place.node
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store):
        assignment = place.parent
        if assignment is not None and isinstance(assignment.node, ast.Assign) and place.is_local:
            values = getattr(assignment.node.value, "elts", [])
            if len({ast.dump(value) for value in values}) < len(values) or not assignment.shows:
                return
        if len({ast.dump(target) for target in node.elts}) < len(node.elts):
            return
        for at in range(len(node.elts) - 1):
            if not same(node.elts[at], node.elts[at + 1]):
                yield swap(node.elts, at, at + 1)


@mutator
def move_star(place: Place) -> Iterator[Change]:
    """``a, *b = c`` becomes ``*a, b = c``."""
    node = place.node
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Store) and len(node.elts) > 1:
        for at, item in enumerate(node.elts):
            if isinstance(item, ast.Starred):
                to = at - 1 if at else 1

                def change(at: int = at, to: int = to, item: ast.Starred = item) -> None:
                    node.elts[at], node.elts[to] = item.value, ast.Starred(node.elts[to], ast.Store())

                yield change
                yield lambda at=at, item=item: node.elts.__setitem__(at, item.value)  # type: ignore[misc]


@mutator
def other_attribute(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Attribute):
        yield _set(node, "attr", simple_name(node.attr))


@mutator
def drop_attribute(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield lambda: place.replace(node.value)


# --- containers and subscripts


@mutator
def swap_items(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)) and not isinstance(getattr(node, "ctx", None), ast.Store):
        for at in range(len(node.elts) - 1):
            if not same(node.elts[at], node.elts[at + 1]):
                yield swap(node.elts, at, at + 1)


@mutator
def drop_item(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)) and len(node.elts) > 1:
        if not isinstance(getattr(node, "ctx", None), ast.Del):
            yield lambda: node.elts.pop(0)
            yield lambda: node.elts.pop()


@mutator
def other_display(place: Place) -> Iterator[Change]:
    """Another kind of container, unless it is taken apart again at once and nobody sees it."""
    node, parent = place.node, place.parent
    if not isinstance(node, (ast.Tuple, ast.List, ast.Set)) or not isinstance(
        getattr(node, "ctx", ast.Load()), ast.Load
    ):
        return
    if (
        parent is None
        or isinstance(parent.node, (ast.Assign, ast.Starred, ast.Subscript, ast.For))
        or place.field == "iter"
    ):
        return
    if isinstance(node, ast.Tuple):
        yield lambda: place.replace(ast.List(node.elts, ast.Load()))
    elif isinstance(node, ast.List):
        yield lambda: place.replace(ast.Tuple(node.elts, ast.Load()))
    if not isinstance(node, ast.Set) and node.elts:
        yield lambda: place.replace(ast.Set(node.elts))


@mutator
def change_dict(place: Place) -> Iterator[Change]:
    """An entry dropped, two exchanged, the values of two exchanged."""
    node = place.node
    if not isinstance(node, ast.Dict):
        return
    for at in range(len(node.keys)):

        def drop(at: int = at) -> None:
            del node.keys[at], node.values[at]

        yield drop
    for at in range(len(node.keys) - 1):

        def exchange(at: int = at) -> None:
            node.keys[at], node.keys[at + 1] = node.keys[at + 1], node.keys[at]
            node.values[at], node.values[at + 1] = node.values[at + 1], node.values[at]

        yield exchange
        if not same(node.values[at], node.values[at + 1]):
            yield swap(node.values, at, at + 1)


@mutator
def drop_star(place: Place) -> Iterator[Change]:
    """``f(*a)`` becomes ``f(a)``."""
    node = place.node
    if isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Load):
        yield lambda: place.replace(node.value)


@mutator
def change_slice(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Slice):
        for field in ("lower", "upper", "step"):
            value = getattr(node, field)
            if value is None:
                yield _set(node, field, constant(7))
            elif not (isinstance(value, ast.Constant) and value.value is None):
                yield _set(node, field, None)
        if node.lower is not None and node.upper is not None and not same(node.lower, node.upper):

            def change() -> None:
                node.lower, node.upper = node.upper, node.lower

            yield change


@mutator
def drop_subscript(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield lambda: place.replace(node.value)


# --- texts


@mutator
def change_formatting(place: Place) -> Iterator[Change]:
    """Another conversion, another or no format specification."""
    node = place.node
    if isinstance(node, ast.FormattedValue):
        for conversion in (-1, ord("r"), ord("a"), ord("s")):
            if conversion != node.conversion:
                yield _set(node, "conversion", conversion)
        if node.format_spec is None:
            yield _set(node, "format_spec", ast.JoinedStr([constant(">10")]))
        else:
            yield _set(node, "format_spec", None)


@mutator
def change_text_parts(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.JoinedStr) and len(node.values) > 1:
        yield lambda: node.values.pop()
        for at in range(len(node.values) - 1):
            if not same(node.values[at], node.values[at + 1]):
                yield swap(node.values, at, at + 1)
