"""The ends of lists of statements: whether control can fall off, and ``return`` statements that nothing follows."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

from depyf.decompiler.bytecode.syntax_trees import TRY_STATEMENTS

if TYPE_CHECKING:
    from typing import TypeGuard  # new in 3.10


Known = Dict[int, Tuple[ast.stmt, bool]]
"""The results for statements, by their ids; they are valid while the statements do not change."""


def leaves(statements: List[ast.stmt], known: Optional[Known] = None) -> bool:
    """Return whether the statements always end in return, raise, break or continue (False if that is not obvious)."""
    if not statements:
        return False
    last = statements[-1]
    if known is None:
        return _leaves(last, {})
    if id(last) not in known:
        known[id(last)] = last, _leaves(last, known)
    return known[id(last)][1]


def _leaves(last: ast.stmt, known: Known) -> bool:
    """Return ``leaves`` of a list that ends in ``last``."""
    if isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue)) or fails(last):
        return True
    if isinstance(last, ast.If):
        return bool(last.orelse) and leaves(last.body, known) and leaves(last.orelse, known)
    if isinstance(last, (ast.With, ast.AsyncWith)):
        return False  # its manager may suppress an exception of the body, and control continues after it
    if isinstance(last, TRY_STATEMENTS):
        if leaves(last.finalbody, known):
            return True
        ends = leaves(last.orelse or last.body, known)  # ``else`` runs after a body that does not leave
        return ends and all(leaves(handler.body, known) for handler in last.handlers)
    if is_match(last):
        cases = last.cases
        complete = cases[-1].guard is None and always_matches(cases[-1].pattern)
        return complete and all(leaves(case.body, known) for case in cases)
    if isinstance(last, ast.While):
        return isinstance(last.test, ast.Constant) and last.test.value is True and not _breaks(last.body)
    return False


def is_match(statement: ast.stmt) -> TypeGuard[ast.Match]:
    """Return whether ``statement`` is a ``match`` statement, which some supported Pythons lack."""
    return type(statement).__name__ == "Match"


def fails(statement: ast.stmt) -> bool:
    """Return whether ``statement`` is ``assert False``."""
    return (
        isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Constant) and statement.test.value is False
    )


def _breaks(statements: List[ast.stmt]) -> bool:
    for statement in statements:
        if isinstance(statement, ast.Break):
            return True
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            if _breaks(statement.orelse):
                return True
            continue
        for field in ("body", "orelse", "finalbody"):
            if _breaks(getattr(statement, field, None) or []):
                return True
        inner = [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
        if any(_breaks(part.body) for part in inner):
            return True
    return False


def always_matches(pattern: ast.pattern) -> bool:
    """Return whether a pattern of a ``match`` statement can't fail."""
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is None or always_matches(pattern.pattern)
    return isinstance(pattern, ast.MatchOr) and always_matches(pattern.patterns[-1])


# --- class and module bodies ------------------------------------------------------------------------------------------

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def without_returns(statements: List[ast.stmt], *, last: bool = True) -> List[ast.stmt]:
    """Return ``statements`` without each ``return`` that nothing would follow; in loops it becomes ``break``. ``last``:
    the end of the class or module follows ``statements``, or their end is unreachable."""
    # class C:                  bytecode returns None at the end of each branch, and ``return`` in a class is a
    #     if a: b()             syntax error
    #     else: c()
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
    # A ``finally`` that raises has no normal exit: where its ``try`` would continue makes no difference.
    inner = last or bool(final and isinstance(final[-1], ast.Raise))
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement, field, None)
        if block:
            # The end of a ``try`` body is followed by ``else``.
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
