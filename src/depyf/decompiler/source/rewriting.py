"""The base of all tree rewrites here: it copies only the nodes that change."""

from __future__ import annotations

import ast
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Tuple, TypeVar

from depyf.decompiler.lift.node_attributes import attributes_of
from depyf.decompiler.source.inventory import UNKNOWN, Contents, child_fields

Node = TypeVar("Node", bound=ast.AST)


class _Plan(NamedTuple):
    """How nodes of one class are visited: by a method of the rewriter, else their children in these fields."""

    method: Optional[Callable[[Any, Any], Any]]
    fields: Tuple[str, ...]


def replaced(node: Node, **fields: object) -> Node:
    """Return a shallow copy of ``node`` with some fields replaced; ``node`` is unchanged."""
    clone = node.__class__.__new__(node.__class__)
    clone.__dict__.update(node.__dict__)
    clone.__dict__.update(fields)
    attributes_of(clone).pop("tested_by", None)  # it was derived from the operands
    return clone


class Rewriter:
    """Like ``ast.NodeTransformer``, but its input is not changed: changed nodes and their ancestors are copied.
    Subclasses define ``visit_<Class>(node)``, and ``visit_stmt(node)`` for all other statements; they return a node, in
    statement lists also a list of nodes or ``None`` to drop the statement. Nodes of the classes ``SKIPPED`` are not
    visited. Unchanged parts are shared between both trees."""

    SKIPPED: FrozenSet[type] = frozenset()
    _plans: Dict[type, Optional[_Plan]]
    _contents: Contents = UNKNOWN
    _wanted = -1

    def __init_subclass__(cls) -> None:
        cls._plans = {}

    def visit_holders(self, tree: Node, contents: Contents, wanted: int) -> Node:
        """Return ``tree`` rewritten; statements that hold none of the ``wanted`` classes are not visited."""
        self._contents, self._wanted = contents, wanted
        result: Node = self.visit(tree)
        return result

    def visit(self, node: Any) -> Any:
        """Return the node, node list or ``None`` that replaces ``node`` in the new tree."""
        cls = node.__class__
        plan = self._plans[cls] if cls in self._plans else self._plan(cls)
        if plan is None:
            return node
        return self._with_children(node, plan.fields) if plan.method is None else plan.method(self, node)

    def rewrite_children(self, node: Node) -> Node:
        """Return ``node`` with its children visited; ``node`` itself if none of them changed."""
        cls = node.__class__
        plan = self._plans[cls] if cls in self._plans else self._plan(cls)
        return node if plan is None else self._with_children(node, plan.fields)

    def visit_list(self, nodes: List[Any]) -> List[Any]:
        """Return the list with each node visited; the same list object if nothing changed."""
        plans, contents, wanted = self._plans, self._contents, self._wanted
        result: List[Any] = []
        changed = False
        for node in nodes:
            cls = node.__class__
            plan = plans[cls] if cls in plans else self._plan(cls)
            if plan is None or not contents.get(id(node), -1) & wanted:
                result.append(node)
                continue
            new = self._with_children(node, plan.fields) if plan.method is None else plan.method(self, node)
            if new is node:
                result.append(node)
                continue
            changed = True
            if isinstance(new, list):
                result.extend(new)
            elif new is not None:
                result.append(new)
        return result if changed else nodes

    def _with_children(self, node: Node, fields: Tuple[str, ...]) -> Node:
        plans = self._plans
        changes: Dict[str, Any] = {}
        values = node.__dict__
        for name in fields:
            old: Any = values.get(name)
            cls = old.__class__
            if cls is list:
                new = self.visit_list(old) if old else old
            else:
                plan = plans[cls] if cls in plans else self._plan(cls)
                if plan is None:
                    continue
                new = self._with_children(old, plan.fields) if plan.method is None else plan.method(self, old)
            if new is not old:
                changes[name] = new
        return replaced(node, **changes) if changes else node

    def _plan(self, cls: type) -> Optional[_Plan]:
        """Return the plan for the nodes of a class, ``None`` for what is not visited. It is kept for all rewriters of
        this class."""
        kinds, plan = cls.__mro__, None
        if ast.AST in kinds and self.SKIPPED.isdisjoint(kinds):
            every = getattr(self, "visit_stmt", None) if ast.stmt in kinds else None
            method = getattr(self, "visit_" + cls.__name__, every)
            if method is not None or child_fields(cls):
                plan = _Plan(method and method.__func__, child_fields(cls))
        self._plans[cls] = plan
        return plan
