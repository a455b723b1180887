"""How often each temporary of one function is stored, loaded and deleted."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any, Iterator, List, Set

from depyf.bytecode.syntax_trees import children, walk
from depyf.lazy_pattern import re_compile

_TEMPORARY = re_compile(r"__temp_\d+$")

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
"""Definitions whose bodies have names of their own. (Comprehensions share the temporaries of what is around them.)"""


def is_temporary(name: str) -> bool:
    """Whether ``name`` was made up by lifting: nobody but the bytecode's stack is behind it."""
    return name.startswith("__temp_") and _TEMPORARY.match(name) is not None


class Usage:
    """The counts for the statements of one function, and which of its own names nobody else can change."""

    def __init__(self, function: object) -> None:
        self.loads: Counter[str] = Counter()
        self.stores: Counter[str] = Counter()
        self.deletes: Counter[str] = Counter()
        self.parameters: Set[str] = set(_parameters(function))
        self.local: Set[str] = set(self.parameters)
        foreign: Set[str] = set()
        for node in _own_nodes(function):
            if isinstance(node, ast.Name):
                self._count(node)
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                foreign.update(node.names)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                foreign.add(node.name)  # deleted when the handler ends
            elif isinstance(node, ast.NamedExpr):
                foreign.add(node.target.id)  # stored in the middle of an expression
            elif isinstance(node, SCOPES):
                foreign.update(_nonlocals(node))
        self.local -= foreign | set(self.deletes)
        if isinstance(function, (ast.Module, ast.ClassDef)):
            self.local = set()

    def _count(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.loads[node.id] += 1
        elif isinstance(node.ctx, ast.Store):
            self.stores[node.id] += 1
            self.local.add(node.id)
        else:
            self.deletes[node.id] += 1


def _parameters(function: object) -> Iterator[str]:
    arguments = getattr(function, "args", None)
    if isinstance(arguments, ast.arguments):
        for node in ast.walk(arguments):
            if isinstance(node, ast.arg):
                yield node.arg


def _own_nodes(function: Any) -> Iterator[ast.AST]:
    """The nodes of a body, without the bodies of definitions in it but with what those evaluate outside."""
    pending: List[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, SCOPES):
            pending.extend(_outside(node))
        else:
            pending.extend(children(node))


def _outside(definition: ast.AST) -> Iterator[ast.AST]:
    for field in definition._fields:
        if field == "body" and not isinstance(definition, ast.Lambda):
            continue
        value = getattr(definition, field, None)
        if isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, ast.AST))


def _nonlocals(definition: ast.AST) -> Iterator[str]:
    for node in walk(definition):
        if isinstance(node, ast.Nonlocal):
            yield from node.names
