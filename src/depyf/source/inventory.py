"""The contents of a tree, found in one walk, so that passes without work are skipped."""

from __future__ import annotations

import ast
from typing import Any, Dict, List, Set, Tuple

from depyf.quick_dataclass import dataclass

_IDENTIFIER_FIELDS = ("id", "attr", "arg", "name", "asname", "module", "rest")

_PLAIN_CONSTANTS = (str, bytes, bool, type(None), type(...))

_LARGEST_PLAIN_NUMBER = 1 << 100


@dataclass(frozen=True)
class Inventory:
    """``names``: all identifiers. ``kinds``: all node classes. ``plain``: all constants print as they are."""

    names: Set[str]
    kinds: Set[type]
    plain: bool


def take_inventory(tree: ast.AST) -> Inventory:
    """Return the inventory of ``tree``."""
    names: Set[str] = set()
    plain = True
    shapes: Dict[type, Tuple[Tuple[str, ...], Tuple[str, ...]]] = {}
    pending: List[Any] = [tree]
    while pending:
        node = pending.pop()
        cls = node.__class__
        if cls is ast.Constant:
            plain = plain and _is_plain(node.value)
            shapes.setdefault(cls, ((), ()))
            continue
        shape = shapes.get(cls)
        if shape is None:
            shape = shapes[cls] = _shape(cls)
        strings, children = shape
        values = node.__dict__
        for field in strings:
            value = values.get(field)
            if value.__class__ is str:
                names.add(value)
        for field in children:
            value = values.get(field)
            if value.__class__ is list:
                for item in value:
                    if item.__class__ is str:
                        names.add(item)
                    elif item is not None:
                        pending.append(item)
            elif isinstance(value, ast.AST):
                pending.append(value)
    return Inventory(names, set(shapes), plain)


def _shape(cls: type) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """The fields that hold a string and those that may hold nodes."""
    fields: Tuple[str, ...] = getattr(cls, "_fields", ())
    strings = tuple(field for field in fields if field in _IDENTIFIER_FIELDS)
    return strings, child_fields(cls)


def child_fields(cls: type) -> Tuple[str, ...]:
    """The fields of a node class that hold nodes with something in them (operators and contexts have nothing)."""
    fields: Tuple[str, ...] = getattr(cls, "_fields", ())
    if cls.__name__ in ("Constant", "MatchSingleton"):
        return ()  # what they hold is any object
    return tuple(field for field in fields if field not in _NO_CHILDREN or cls.__name__ == "TypeAlias")


_NO_CHILDREN = frozenset(
    (*_IDENTIFIER_FIELDS, "ctx", "op", "ops", "kind", "type_comment", "conversion", "simple", "is_async", "level")
)


def _is_plain(value: object) -> bool:
    cls = value.__class__
    if cls in _PLAIN_CONSTANTS:
        return True
    # Negative numbers, infinity, and what is too long for repr() need another form.
    return (isinstance(value, int) and cls is int and 0 <= value < _LARGEST_PLAIN_NUMBER) or (
        isinstance(value, float) and cls is float and repr(value)[:1].isdigit()
    )
