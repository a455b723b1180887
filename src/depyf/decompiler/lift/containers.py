"""Lists and tuples that only move values around.

Dynamo permutes the stack with literal lists: it builds them, takes slices, stores into slices, extends and pops, and
in the end calls with their elements. Such containers are tracked element by element here, so that none of them appear
in the source. Compiled source never needs containers tracked; lifting restarts with tracking (``Retry``) at such an
operation.
"""

from __future__ import annotations

import ast
from typing import Callable, Dict, Iterator, List, Optional, Union

from depyf.decompiler.lift.build import constant, is_none
from depyf.decompiler.lift.items import BoundMethod, Container, Copy, Function, Item, Marker, Retry, Target, Value


def wanted() -> Retry:
    """Return a new exception that restarts lifting with tracked containers (a traceback keeps frames alive)."""
    return Retry("containers", True)


def parts(stack: List[Item]) -> Iterator[Union[Value, Copy, Function, Marker, Target]]:
    """Yield all items of a stack, those in containers included, each once, in the order of the stack."""
    seen: set[int] = set()
    todo = list(reversed(stack))
    while todo:
        item = todo.pop()
        if isinstance(item, BoundMethod):
            item = item.container
        if isinstance(item, Container):
            if id(item) not in seen:
                seen.add(id(item))
                todo.extend(reversed(item.elements))
        else:
            yield item


def copied(stack: List[Item]) -> List[Item]:
    """Return a copy of the stack with its own containers for one branch; slots that share a container still do."""
    if not holds_containers(stack):
        return list(stack)
    memo: Dict[int, Container] = {}
    return [_copied(item, memo) for item in stack]


def _copied(item: Item, memo: Dict[int, Container]) -> Item:
    if isinstance(item, BoundMethod):
        return BoundMethod(_copy_of(item.container, memo), item.name)
    return _copy_of(item, memo) if isinstance(item, Container) else item


def _copy_of(container: Container, memo: Dict[int, Container]) -> Container:
    """Return the copy of ``container``; ``memo`` has the known ones, by the ``id`` of the original."""
    known = memo.get(id(container))
    if known is None:
        known = memo[id(container)] = Container(container.kind, [], container.keys, container.offset)
        known.elements = [_copied(element, memo) for element in container.elements]
    return known


def holds_containers(stack: List[Item]) -> bool:
    return any(isinstance(item, (Container, BoundMethod)) for item in stack)


def replaced(stack: List[Item], old: Item, new: Item) -> None:
    """Replace ``old`` with ``new`` everywhere on the stack."""
    seen: set[int] = set()

    def walk(items: List[Item]) -> None:
        for index, item in enumerate(items):
            if item is old:
                items[index] = new
            elif isinstance(item, Container) and id(item) not in seen:
                seen.add(id(item))
                walk(item.elements)

    walk(stack)


def constant_key(item: Item) -> Union[int, slice, None]:
    """Return the int or slice that ``item`` is a constant of; ``None`` otherwise."""
    expr = item.expr if isinstance(item, Value) else None
    number = _integer(expr)
    if number is not None:
        return number
    if isinstance(expr, ast.Slice):
        written = [part for part in (expr.lower, expr.upper, expr.step) if not _is_omitted(part)]
        if any(_integer(part) is None for part in written):
            return None
        return slice(*[_integer(part) for part in (expr.lower, expr.upper, expr.step)])
    value = constant(expr)
    if type(value) is slice and all(type(part) in (int, type(None)) for part in (value.start, value.stop, value.step)):
        return value
    return None


def _integer(expr: Optional[ast.expr]) -> Optional[int]:
    value = constant(expr)
    return value if type(value) is int else None


def _is_omitted(expr: Optional[ast.expr]) -> bool:
    return expr is None or is_none(expr)


def as_display(container: Container, value_of: Callable[[Item], Value]) -> tuple[ast.expr, List[Value]]:
    """Return the display expression of ``container`` and the values it evaluates, in order."""
    values: List[Value] = []
    exprs: List[ast.expr] = []
    for element in container.elements:
        if isinstance(element, Container):
            expr, inner = as_display(element, value_of)
            values.extend(inner)
        else:
            value = value_of(element)
            values.append(value)
            expr = value.expr
        exprs.append(expr)
    if container.kind == "tuple":
        return ast.Tuple(exprs, ast.Load()), values
    if container.kind == "dict":
        return ast.Dict([ast.Constant(key) for key in container.keys or ()], exprs), values
    return ast.List(exprs, ast.Load()), values


def references(stack: List[Item], container: Container) -> int:
    """Return how many slots of the stack and of containers on it refer to ``container``."""
    count = 0
    seen: set[int] = set()
    todo = list(stack)
    while todo:
        item = todo.pop()
        if isinstance(item, BoundMethod):
            item = item.container
        if item is container:
            count += 1
        if isinstance(item, Container) and id(item) not in seen:
            seen.add(id(item))
            todo.extend(item.elements)
    return count
