"""What a function does with one of its variables: where it is assigned, and whether that is known."""

from __future__ import annotations

import ast
from typing import List, Optional

from depyf.fixing.edits import FUNCTIONS, Function, dotted

SCOPES = (*FUNCTIONS, ast.Lambda, ast.GeneratorExp, ast.ClassDef)


def has_line(node: ast.AST, line: int) -> bool:
    """Return whether a line is one of the lines of a node."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return bool(first <= line <= (last or 0))


def function_at(tree: ast.Module, line: int) -> Optional[Function]:
    """Return the innermost function around a line; None where that is a lambda, a class or a generator expression."""
    around = [node for node in ast.walk(tree) if isinstance(node, SCOPES) and has_line(node, line)]
    return around[-1] if around and isinstance(around[-1], FUNCTIONS) else None


def stores_of(function: Function, name: str) -> List[ast.AST]:
    """Return what binds or deletes a variable in a function: parameters, assignments, loops, imports, handlers."""
    found: List[ast.AST] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            is_it = node.id == name and not isinstance(node.ctx, ast.Load)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            is_it = name in node.names
        elif isinstance(node, ast.alias):
            is_it = (node.asname or node.name.partition(".")[0]) == name
        else:
            is_it = node is not function and name in (getattr(node, "name", None), getattr(node, "arg", None))
        if is_it and not isinstance(node, ast.keyword):
            found.append(node)
    return found


def sees_variables(node: ast.AST) -> bool:
    """Return whether a node may use, or assign, each variable of its function without naming it."""
    return isinstance(node, ast.Call) and dotted(node.func) in ("locals", "vars", "eval", "exec")


def only_value(function: Function, name: str) -> Optional[ast.expr]:
    """Return the value that a variable has wherever the function uses it; None where it may have another one, or is
    changed in place so that its shape or dtype may be another one."""
    stores = stores_of(function, name)
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and dotted(node.value) == name:
            if node.attr == "data" or node.attr.endswith("_") or not isinstance(node.ctx, ast.Load):
                return None
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and stores == [node.targets[0]]:
            return node.value
    return None
