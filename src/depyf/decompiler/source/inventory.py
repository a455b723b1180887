"""The contents of a tree and of each of its statements, found in one walk: passes skip what holds no work for them."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any, Dict, List, Mapping, Set, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.syntax_trees import PLAIN_FIELDS, block_fields

_IDENTIFIER_FIELDS = ("id", "attr", "arg", "name", "asname", "module", "rest")

Contents = Mapping[int, int]
"""The node classes in each statement, as bits, by the ``id`` of the statement. A statement that is not in it was made
later, and may hold anything."""

UNKNOWN: Contents = {}


@dataclass(frozen=True)
class Inventory:
    """``names``: all identifiers. ``kinds``: all node classes except names and constants, as bits. ``contents``:
    the contents of each statement, valid while the inventory is kept, which keeps the ``statements``."""

    names: Set[str]
    kinds: int
    contents: Contents
    statements: List[ast.AST]


def take_inventory(tree: ast.AST) -> Inventory:
    """Return the inventory of ``tree``."""
    names: Set[str] = set()
    owners = [0]
    statements: List[ast.AST] = [tree]
    held: List[int] = []
    for number, statement in enumerate(statements):  # the statements in it are appended meanwhile
        bits = 0
        pending: List[Any] = [statement]
        while pending:
            node = pending.pop()
            cls = node.__class__
            if cls is ast.Name:
                names.add(node.id)
                continue
            if cls is ast.Constant:
                continue
            bit, strings, children, blocks = _shapes[cls]
            if not bit:  # a name in a list of names, or ``None`` in place of the key of ``**``
                names.update([node] if cls is str else ())
                continue
            bits |= bit
            values = node.__dict__
            for field in strings:
                value = values.get(field)
                if value.__class__ is str:
                    names.add(value)
            for field in children:
                value = values.get(field)
                if value.__class__ is list:
                    pending.extend(value)
                elif isinstance(value, ast.AST):  # a field that a newer Python has may hold anything
                    pending.append(value)
            for field in blocks:
                value = values.get(field)
                if value:
                    statements.extend(value)
                    owners.extend([number] * len(value))
        held.append(bits)
    for number in range(len(held) - 1, 0, -1):
        held[owners[number]] |= held[number]
    return Inventory(names, held[0], dict(zip(map(id, statements), held)), statements)


def bits_of(*classes: type) -> int:
    """Return the bits of node classes in ``Contents``."""
    found = 0
    for cls in classes:
        found |= _bits.setdefault(cls, 1 << len(_bits))
    return found


_bits: Dict[type, int] = {}
_Shape = Tuple[int, Tuple[str, ...], Tuple[str, ...], Tuple[str, ...]]


class _Shapes(Dict[type, _Shape]):
    """By class: its bit, and its fields: those with a string, those with nodes, those with statements. What is no node
    has no bit."""

    def __missing__(self, cls: type) -> _Shape:
        fields: Tuple[str, ...] = getattr(cls, "_fields", ())
        strings = tuple(field for field in fields if field in _IDENTIFIER_FIELDS)
        blocks = () if issubclass(cls, ast.Expression) else block_fields(cls)[0]
        inner = tuple(field for field in child_fields(cls) if field not in blocks)
        bit = bits_of(cls) if issubclass(cls, ast.AST) else 0
        shape = self[cls] = bit, strings, inner, blocks
        return shape


_shapes = _Shapes()


@lru_cache(maxsize=None)
def child_fields(cls: type) -> Tuple[str, ...]:
    """Return the fields of a node class that hold nodes with contents (operators and contexts have none)."""
    fields: Tuple[str, ...] = getattr(cls, "_fields", ())
    if cls.__name__ in ("Constant", "MatchSingleton"):
        return ()  # they hold any object
    return tuple(field for field in fields if field not in _NO_CHILDREN or cls.__name__ == "TypeAlias")


_NO_CHILDREN = PLAIN_FIELDS.union(_IDENTIFIER_FIELDS)
