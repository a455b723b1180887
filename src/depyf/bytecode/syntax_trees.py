"""Walk syntax trees in half the time of ``ast``, which looks up every field of every node.

Operators and contexts are skipped: they have no children, and most trees share them.
"""

from __future__ import annotations

import ast
from collections import deque
from typing import TYPE_CHECKING, Callable, Deque, Dict, Iterator, List, Optional, Tuple

_NO_NODES = frozenset(
    ("id", "attr", "ctx", "op", "ops", "kind", "type_comment", "conversion", "simple", "is_async", "level")
)
_fields: Dict[type, Tuple[str, ...]] = {}

_Position = Tuple[int, int, Optional[int], Optional[int]]


def _fields_of(cls: type) -> Tuple[str, ...]:
    """Return the fields of a node class that may contain nodes with children."""
    fields: Tuple[str, ...] = getattr(cls, "_fields", ())
    if cls.__name__ in ("Constant", "MatchSingleton"):
        fields = ()  # their value is any object
    known = _fields[cls] = tuple(field for field in fields if field not in _NO_NODES)
    return known


def children(node: ast.AST) -> List[ast.AST]:
    """Return the child nodes of ``node`` in the order of its fields, without operators and contexts."""
    cls = node.__class__
    fields = _fields.get(cls)
    if fields is None:
        fields = _fields_of(cls)
    found: List[ast.AST] = []
    values = node.__dict__
    for field in fields:
        value = values.get(field)
        if value.__class__ is list:
            for each in value:
                if isinstance(each, ast.AST):
                    found.append(each)
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Return ``tree`` and all its descendants, parents before children, as ``ast.walk`` does."""
    todo: Deque[ast.AST] = deque([tree])
    while todo:
        node = todo.popleft()
        todo.extend(children(node))
        yield node


class Transformer(ast.NodeTransformer):
    """Like ``ast.NodeTransformer``, which changes its tree in place."""

    def __init__(self) -> None:
        self._methods: Dict[type, Callable[[ast.AST], object]] = {}

    if not TYPE_CHECKING:  # its type is that of ast.NodeTransformer

        def visit(self, node):
            """Return the replacement of ``node``."""
            cls = node.__class__
            method = self._methods.get(cls)
            if method is None:
                method = self._methods[cls] = getattr(self, "visit_" + cls.__name__, self.generic_visit)
            return method(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Return ``node`` with its children visited."""
        cls = node.__class__
        fields = _fields.get(cls)
        if fields is None:
            fields = _fields_of(cls)
        values = node.__dict__
        for field in fields:
            old = values.get(field)
            if old.__class__ is list:
                old[:] = self._visited(old)
            elif isinstance(old, ast.AST):
                new = self.visit(old)
                if new is None:
                    delattr(node, field)
                elif new is not old:
                    setattr(node, field, new)
        return node

    def _visited(self, nodes: List[object]) -> List[object]:
        result: List[object] = []
        for node in nodes:
            new = self.visit(node) if isinstance(node, ast.AST) else node
            if isinstance(new, list):
                result.extend(new)
            elif new is not None or node is None:
                result.append(new)
        return result


def fix_missing_locations(tree: ast.AST) -> None:
    """Give each node without a location that of its parent, as ``ast.fix_missing_locations`` does."""
    todo: List[Tuple[ast.AST, _Position]] = [(tree, (1, 0, 1, 0))]
    while todo:
        node, position = todo.pop()
        if "lineno" in node._attributes:
            values = node.__dict__
            line, column = values.setdefault("lineno", position[0]), values.setdefault("col_offset", position[1])
            end, end_column = values.get("end_lineno"), values.get("end_col_offset")
            if end is None:
                end = values["end_lineno"] = position[2]
            if end_column is None:
                end_column = values["end_col_offset"] = position[3]
            position = line, column, end, end_column
        for child in children(node):
            todo.append((child, position))
