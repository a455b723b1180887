"""Remove ``return`` from class and module bodies, where control falls off the end anyway."""

from __future__ import annotations

import ast
from typing import List

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def without_returns(statements: List[ast.stmt], *, last: bool = True) -> List[ast.stmt]:
    """Return ``statements`` without each ``return`` that nothing would follow; in loops it becomes ``break``. ``last``:
    the end of the body follows all of them, or their end is unreachable."""
    result = list(statements)
    if last and result and isinstance(result[-1], ast.Return):
        result.pop()
    for index, statement in enumerate(result):
        _shorten(statement, last=last and index == len(result) - 1)
    return result or [ast.Pass()]


def _shorten(statement: ast.stmt, *, last: bool) -> None:
    if isinstance(statement, _SCOPES):
        return
    if isinstance(statement, _LOOPS):
        if last and not statement.orelse:
            statement.body = [_with_breaks(inner) for inner in statement.body]
        statement.body = without_returns(statement.body, last=False)
        statement.orelse = statement.orelse and without_returns(statement.orelse, last=last)
        return
    final = getattr(statement, "finalbody", None)
    # A ``finally`` that raises has no normal exit.
    inner = last or bool(final and isinstance(final[-1], ast.Raise))
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement, field, None)
        if block:
            followed = field == "body" and isinstance(statement, ast.Try) and bool(statement.orelse)
            reached = last if field == "finalbody" else inner and not followed
            setattr(statement, field, without_returns(block, last=reached))
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        part.body = without_returns(part.body, last=inner)


def _with_breaks(statement: ast.stmt) -> ast.stmt:
    """Return ``statement`` with ``break`` for ``return``, except in inner loops and functions."""
    if isinstance(statement, ast.Return):
        return ast.Break()
    if not isinstance(statement, (*_LOOPS, *_SCOPES)):
        for part in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(part, field, None)
                if block:
                    setattr(part, field, [_with_breaks(each) for each in block])
    return statement
