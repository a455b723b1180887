"""Statements of a class or module without ``return``, where control gets to the end without it."""

from __future__ import annotations

import ast
from typing import Any, List

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def without_returns(statements: List[ast.stmt], last: bool = True) -> List[ast.stmt]:
    """``statements`` with each ``return`` left out behind which nothing would follow; in loops it becomes ``break``.

    ``last``: what comes behind all of them is the end of the body, or can't be reached.
    """
    result = list(statements)
    if last and result and isinstance(result[-1], ast.Return):
        result.pop()
    for index, statement in enumerate(result):
        _shorten(statement, last and index == len(result) - 1)
    return result or [ast.Pass()]


def _shorten(statement: Any, last: bool) -> None:
    if isinstance(statement, _SCOPES):
        return
    if isinstance(statement, _LOOPS):
        if last and not statement.orelse:
            statement.body = [_Breaks().visit(inner) for inner in statement.body]
        statement.body = without_returns(statement.body, False)
        statement.orelse = statement.orelse and without_returns(statement.orelse, last)
        return
    final = getattr(statement, "finalbody", None)
    # A ``finally`` that raises lets nothing through.
    inner = last or bool(final and isinstance(final[-1], ast.Raise))
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement, field, None)
        if block:
            followed = field == "body" and isinstance(statement, ast.Try) and bool(statement.orelse)
            reached = last if field == "finalbody" else inner and not followed
            setattr(statement, field, without_returns(block, reached))
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        part.body = without_returns(part.body, inner)


class _Breaks(ast.NodeTransformer):
    """``break`` for ``return``, not in loops and functions further in."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Return):
            return ast.Break()
        return node if isinstance(node, (*_LOOPS, *_SCOPES, ast.expr)) else self.generic_visit(node)
