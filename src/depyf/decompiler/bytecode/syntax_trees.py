"""Walk syntax trees in half the time of ``ast``, which looks up every field of every node.

Operators and contexts are skipped: they have no children, and most trees share them.
"""

from __future__ import annotations

import ast
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, Iterator, List, Tuple, Type, Union

PLAIN_FIELDS = frozenset(
    ("ctx", "op", "ops", "kind", "type_comment", "conversion", "simple", "is_async", "is_lazy", "level")
)
"""The fields that hold no nodes with children and no names."""

TryStatement = Union["ast.Try", "ast.TryStar"]

TRY_STATEMENTS: Tuple[Type[TryStatement], ...] = (ast.Try, *([ast.TryStar] if hasattr(ast, "TryStar") else []))
"""The classes of ``try`` statements in this Python."""

_NO_NODES = PLAIN_FIELDS | {"id", "attr"}


class _FieldsOf(Dict[type, Tuple[str, ...]]):
    """The fields of each node class that may contain nodes with children."""

    def __missing__(self, cls: type) -> Tuple[str, ...]:
        fields: Tuple[str, ...] = getattr(cls, "_fields", ())
        if cls.__name__ in ("Constant", "MatchSingleton"):
            fields = ()  # their value is any object
        known = self[cls] = tuple(field for field in fields if field not in _NO_NODES)
        return known


fields_of = _FieldsOf()


def children(node: ast.AST) -> List[ast.AST]:
    """Return the child nodes of ``node`` in the order of its fields, without operators and contexts."""
    found: List[ast.AST] = []
    values = node.__dict__
    for field in fields_of[node.__class__]:
        value = values.get(field)
        if value.__class__ is list:
            for each in value:
                if isinstance(each, ast.AST):
                    found.append(each)
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def equal(one: object, other: object) -> bool:
    """Return whether two trees, or values of fields, have the same ``ast.dump``."""
    if one is other:
        return True
    cls = one.__class__
    if cls is not other.__class__:
        return False
    if isinstance(one, ast.AST):
        return all(equal(getattr(one, field, None), getattr(other, field, None)) for field in one._fields)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return repr(one) == repr(other)


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Return ``tree`` and all its descendants, parents before children, as ``ast.walk`` does."""
    todo: Deque[ast.AST] = deque([tree])
    while todo:
        node = todo.popleft()
        todo.extend(children(node))
        yield node


def _block_fields(cls: type) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    if issubclass(cls, ast.expr):
        return (), ()
    fields: Tuple[str, ...] = getattr(cls, "_fields", ())
    blocks = tuple(field for field in ("body", "orelse", "finalbody") if field in fields)
    return blocks, tuple(field for field in ("handlers", "cases") if field in fields)


block_fields: Callable[[type], Tuple[Tuple[str, ...], Tuple[str, ...]]] = lru_cache(maxsize=None)(_block_fields)
"""Return the fields of a node class that hold statements, and those that hold clauses or cases with statements."""


class _ByClass(Dict[type, bool]):
    """A fact about each node class, found once: a look-up that hot loops can afford."""

    def __init__(self, find: Callable[[type], bool]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, cls: type) -> bool:
        known = self[cls] = self._find(cls)
        return known


has_blocks = _ByClass(lambda cls: any(block_fields(cls)))
"""Whether nodes of a class hold statements."""


def statement_lists(node: ast.AST) -> List[List[ast.stmt]]:
    """Return the lists of statements of ``node`` and of its clauses or cases that are not empty."""
    blocks, clauses = block_fields(node.__class__)
    found = [getattr(node, field, ()) for field in blocks]
    for field in clauses:
        found.extend(part.body for part in getattr(node, field, ()))
    return [block for block in found if block]


_NOT_SEARCHED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


_may_return = _ByClass(lambda cls: cls is ast.Return or (has_blocks[cls] and not issubclass(cls, _NOT_SEARCHED)))


def own_returns(statements: List[ast.stmt]) -> Iterator[ast.Return]:
    """Yield the return statements of the function with these statements; nested functions are not searched."""
    pending = [statement for statement in statements if _may_return[statement.__class__]]
    while pending:
        statement = pending.pop()
        if isinstance(statement, ast.Return):
            yield statement
            continue
        for block in statement_lists(statement):
            pending.extend([each for each in block if _may_return[each.__class__]])


class Transformer(ast.NodeTransformer):
    """Like ``ast.NodeTransformer``, which changes its tree in place."""

    _methods: Dict[type, Callable[[Any, ast.AST], object]]
    _stays: Dict[type, bool]
    """Whether values of a class stay as they are: all but nodes, and nodes without children that have no method."""

    def __init_subclass__(cls) -> None:
        def stays(kind: type) -> bool:
            is_leaf = cls.generic_visit is Transformer.generic_visit and not fields_of[kind]
            return not issubclass(kind, ast.AST) or (is_leaf and not hasattr(cls, "visit_" + kind.__name__))

        cls._methods, cls._stays = {}, _ByClass(stays)

    if not TYPE_CHECKING:  # for type checkers it is the method of ast.NodeTransformer

        def visit(self, node):
            """Return the replacement of ``node``."""
            kind = node.__class__
            method = self._methods.get(kind)
            if method is None:
                cls = self.__class__
                method = self._methods[kind] = getattr(cls, "visit_" + kind.__name__, cls.generic_visit)
            return method(self, node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Return ``node`` with its children visited."""
        values = node.__dict__
        for field in fields_of[node.__class__]:
            old: Any = values.get(field)
            if old.__class__ is list:
                old[:] = self._visited(old)
            elif not self._stays[old.__class__]:
                new = self.visit(old)
                if new is None:
                    delattr(node, field)
                elif new is not old:
                    setattr(node, field, new)
        return node

    def _visited(self, nodes: List[Any]) -> List[object]:
        result: List[object] = []
        for node in nodes:
            new = node if self._stays[node.__class__] else self.visit(node)
            if isinstance(new, list):
                result.extend(new)
            elif new is not None or node is None:
                result.append(new)
        return result
