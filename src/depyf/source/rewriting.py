"""The base of everything here that turns one tree into another: rewriting that copies only what changes."""

from __future__ import annotations

import ast
from typing import Any, Callable, Dict, List, Tuple, TypeVar

from depyf.source.inventory import child_fields

Node = TypeVar("Node", bound=ast.AST)


def replaced(node: Node, **fields: object) -> Node:
    """Return a shallow copy of ``node`` with some fields replaced; ``node`` is unchanged."""
    clone = node.__class__.__new__(node.__class__)
    clone.__dict__.update(node.__dict__)
    clone.__dict__.update(fields)
    return clone


class Rewriter:
    """Like ``ast.NodeTransformer``, but the tree it is given is not changed: changed nodes and those above are copied.

    Subclasses define ``visit_<Class>(node)``; it returns a node, in statement lists also a list of nodes or ``None``
    to drop the statement. Unchanged parts are shared between both trees.
    """

    def __init__(self) -> None:
        self._methods: Dict[type, Callable[[Any], Any]] = {}
        self._fields: Dict[type, Tuple[str, ...]] = {}

    def visit(self, node: Any) -> Any:
        """The node, node list or ``None`` that stands for ``node`` in the new tree."""
        cls = node.__class__
        method = self._methods.get(cls)
        if method is None:
            method = self._methods[cls] = getattr(self, "visit_" + cls.__name__, self.rewrite_children)
        return method(node)

    def rewrite_children(self, node: Node) -> Node:
        """``node`` with its children visited; ``node`` itself if none of them changed."""
        changes: Dict[str, Any] = {}
        cls = node.__class__
        fields = self._fields.get(cls)
        if fields is None:
            fields = self._fields[cls] = child_fields(cls)
        values = node.__dict__
        for name in fields:
            old = values.get(name)
            if old.__class__ is list:
                new = self.visit_list(old)
            elif isinstance(old, ast.AST):
                new = self.visit(old)
            else:
                continue
            if new is not old:
                changes[name] = new
        return replaced(node, **changes) if changes else node

    def visit_list(self, nodes: List[Any]) -> List[Any]:
        """The list with each node visited; the same list object if nothing changed."""
        result: List[Any] = []
        changed = False
        for node in nodes:
            new = self.visit(node) if isinstance(node, ast.AST) else node
            if new is node:
                result.append(node)
                continue
            changed = True
            if isinstance(new, list):
                result.extend(new)
            elif new is not None:
                result.append(new)
        return result if changed else nodes
