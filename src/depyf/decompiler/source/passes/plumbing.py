"""Remove the variables that a tool made for its own use, where the hints name them.

Dynamo writes ``tmp_1 = f; tmp_2 = tmp_1()`` and deletes ``tmp_1`` again. A variable that is never read is not stored; a
variable that is stored once becomes a temporary, which the other passes handle.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import AbstractSet, Dict, List, Optional, Set, Tuple, Union

from depyf.decompiler.bytecode.syntax_trees import Transformer


def drop_plumbing(statements: List[ast.stmt], droppable: AbstractSet[str], first_temporary: int) -> List[ast.stmt]:
    """Return the statements without the variables ``droppable``; new temporaries count from ``first_temporary``."""
    if not droppable:
        return statements
    uses = _Uses(droppable)
    for statement in statements:
        uses.visit(statement)
    # Read, and stored once: a temporary, which the other passes fold. Never read: not stored. Captured by a function,
    # or stored several times: left as it is.
    names: Dict[str, str] = {}
    for name in sorted(uses.stores):
        if uses.loads[name] and uses.stores[name] == 1 and name not in uses.captured:
            names[name] = f"__temp_{first_temporary + len(names)}"
    unread = {name for name in uses.stores if not uses.loads[name] and name not in uses.captured}
    # Folding moves assignments that are statements, so ``:=`` becomes one where nothing is evaluated before it.
    return _hoisted(_block(_Dropper(unread, names), statements), set(names.values()))


def _hoisted(statements: List[ast.stmt], names: AbstractSet[str]) -> List[ast.stmt]:
    """Rewrite ``x = (t := a.b)['k']`` as ``t = a.b; x = t['k']``, wherever the assignment is evaluated first."""
    result: List[ast.stmt] = []
    for statement in statements:
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(statement, field, None)
            if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                setattr(statement, field, _hoisted(inner, names))
        if isinstance(statement, (ast.Assign, ast.Expr, ast.Return)):
            first = _evaluated_first(statement, names)
            while first is not None:
                holder, field, assigned = first
                setattr(holder, field, ast.Name(assigned.target.id, ast.Load()))
                result.append(ast.Assign([assigned.target], assigned.value))
                first = _evaluated_first(statement, names)
        result.append(statement)
    return result


def _evaluated_first(statement: ast.stmt, names: AbstractSet[str]) -> Optional[Tuple[ast.AST, str, ast.NamedExpr]]:
    """Return the innermost ``:=`` that ``statement`` evaluates before anything else, with its parent and field."""
    found: Optional[Tuple[ast.AST, str, ast.NamedExpr]] = None
    holder: ast.AST = statement
    field: Optional[str] = "value"
    while field is not None:
        node = getattr(holder, field, None)
        if isinstance(node, ast.NamedExpr) and node.target.id in names:
            found = (holder, field, node)
        if not isinstance(node, ast.AST):
            break
        holder, field = node, _FIRST.get(type(node))
    return found


_FIRST: Dict[type, str] = {
    ast.NamedExpr: "value",
    ast.Subscript: "value",
    ast.Attribute: "value",
    ast.Call: "func",
    ast.BinOp: "left",
    ast.Compare: "left",
}


class _Uses(ast.NodeVisitor):
    def __init__(self, droppable: AbstractSet[str]) -> None:
        self.droppable = droppable
        self.loads: Counter[str] = Counter()
        self.stores: Counter[str] = Counter()
        self.captured: Set[str] = set()
        self.depth = 0

    def visit_Name(self, node: ast.Name) -> None:
        if node.id not in self.droppable:
            return
        if self.depth:
            self.captured.add(node.id)
        elif isinstance(node.ctx, ast.Store):
            self.stores[node.id] += 1
        elif isinstance(node.ctx, ast.Load):
            self.loads[node.id] += 1

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    def visit_FunctionDef(self, node: Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_ClassDef = visit_FunctionDef


class _Dropper(Transformer):
    def __init__(self, unread: Set[str], names: Dict[str, str]) -> None:
        super().__init__()
        self.unread, self.names = unread, names

    def visit_NamedExpr(self, node: ast.NamedExpr) -> object:
        self.generic_visit(node)
        return node.value if isinstance(node.target, ast.Name) and node.target.id in self.unread else node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self.names:
            return ast.Name(self.names[node.id], node.ctx)
        return node

    def visit_Assign(self, node: ast.Assign) -> object:
        kept = [target for target in node.targets if not (isinstance(target, ast.Name) and target.id in self.unread)]
        self.generic_visit(node)
        if len(kept) == len(node.targets):
            return node
        if kept:
            return ast.Assign([self.visit(target) for target in kept], node.value)
        return None if isinstance(node.value, (ast.Name, ast.Constant)) else ast.Expr(node.value)

    def visit_Delete(self, node: ast.Delete) -> object:
        gone = self.unread | set(self.names)
        kept = [target for target in node.targets if not (isinstance(target, ast.Name) and target.id in gone)]
        return ast.Delete(kept) if kept else None


def _block(dropper: _Dropper, statements: List[ast.stmt]) -> List[ast.stmt]:
    result: List[ast.stmt] = []
    for statement in statements:
        kept = dropper.visit(statement)
        if kept is not None:
            result.append(kept)
    return result
