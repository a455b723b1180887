"""Whether control can fall off the end of a list of statements."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

from depyf.bytecode.syntax_trees import TRY_STATEMENTS

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
    if isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue)) or fails(last):
        return True
    if isinstance(last, ast.If):
        return bool(last.orelse) and leaves(last.body, known) and leaves(last.orelse, known)
    if isinstance(last, (ast.With, ast.AsyncWith)):
        return False
    if isinstance(last, TRY_STATEMENTS):
        if leaves(last.finalbody, known):
            return True
        ends = leaves(last.orelse or last.body, known)
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
