"""Lists and tuples that only move values around.

Dynamo shuffles what lies on the stack through literal lists: it builds them, takes slices, stores into slices, extends
and pops, and in the end calls with their elements. Such containers are followed element by element here, so that
nothing of it is left in the source. Compiled source never needs this; lifting starts again with it (``Retry``) when
an operation of that kind is met.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional

from depyf.lift.items import Retry, Value


def wanted() -> Retry:
    """Raised where it turns out that containers must be followed. A new one each time: its traceback holds frames."""
    return Retry("containers", True)


@dataclass(eq=False)
class Container:
    """A list, tuple or dict display whose elements are still items. Several slots may hold the same one."""

    kind: str
    elements: List[Any]
    keys: Optional[List[str]] = None
    offset: int = -1


@dataclass(eq=False)
class BoundMethod:
    """A method of a container that was looked up and not called yet."""

    container: Container
    name: str


def parts(stack: List[Any]) -> Iterator[Any]:
    """All items of a stack, those in containers included, each once, in the order of the stack."""
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


def copied(stack: List[Any]) -> List[Any]:
    """The stack with containers of its own (a branch goes on with its own state), shared ones still shared."""
    memo: Dict[int, Container] = {}

    def copy(item: Any) -> Any:
        if isinstance(item, BoundMethod):
            return BoundMethod(copy(item.container), item.name)
        if not isinstance(item, Container):
            return item
        known = memo.get(id(item))
        if known is None:
            known = memo[id(item)] = Container(item.kind, [], item.keys, item.offset)
            known.elements = [copy(element) for element in item.elements]
        return known

    return [copy(item) for item in stack]


def holds_containers(stack: List[Any]) -> bool:
    return any(isinstance(item, (Container, BoundMethod)) for item in stack)


def replaced(stack: List[Any], old: Any, new: Any) -> None:
    """Put ``new`` in place of ``old`` everywhere on the stack."""
    seen: set[int] = set()

    def walk(items: List[Any]) -> None:
        for index, item in enumerate(items):
            if item is old:
                items[index] = new
            elif isinstance(item, Container) and id(item) not in seen:
                seen.add(id(item))
                walk(item.elements)

    walk(stack)


def constant_key(item: Any) -> Any:
    """The int or slice that ``item`` is a constant of; ``None`` otherwise."""
    expr = item.expr if isinstance(item, Value) else None
    number = _integer(expr)
    if number is not None:
        return number
    if isinstance(expr, ast.Slice):
        bounds = [_bound(part) for part in (expr.lower, expr.upper, expr.step)]
        return None if "other" in bounds else slice(*bounds)
    value: Any = expr.value if isinstance(expr, ast.Constant) else None
    if type(value) is slice and all(type(part) in (int, type(None)) for part in (value.start, value.stop, value.step)):
        return value
    return None


def _integer(expr: Optional[ast.expr]) -> Optional[int]:
    if isinstance(expr, ast.Constant) and type(expr.value) is int:
        return expr.value
    return None


def _bound(expr: Optional[ast.expr]) -> Any:
    if expr is None or (isinstance(expr, ast.Constant) and expr.value is None):
        return None
    number = _integer(expr)
    return "other" if number is None else number


def as_display(container: Container, value_of: Callable[[Any], Value]) -> tuple[ast.expr, List[Value]]:
    """The display expression of ``container`` and the values it evaluates, in order."""
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


def references(stack: List[Any], container: Container) -> int:
    """How many slots of the stack and of containers on it hold ``container``."""
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
