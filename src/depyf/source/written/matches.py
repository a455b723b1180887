"""``match`` with one case that compares: its bytecode is that of an ``if``, but the subject is on an earlier line.

match a:                if a == 1:
    case 1:                 b()
        b()
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, List, Optional, Tuple

from depyf.bytecode.lines import Span
from depyf.lift.places import jump_of, place_of
from depyf.lift.split_tests import joined, operands
from depyf.source.passes.blocks import Block

if TYPE_CHECKING:
    from typing import TypeGuard  # new in 3.10

_HAS_MATCH = hasattr(ast, "Match")


def with_written_matches(block: Block) -> Block:
    """Return ``block`` with ``match`` for each ``if`` that was one."""
    return [_written(each) if isinstance(each, ast.If) else each for each in block] if _HAS_MATCH else block


def _written(statement: ast.If) -> ast.stmt:
    test, matched, other = statement.test, statement.body, statement.orelse
    inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    values = operands(inner) or [inner]
    found = _subject_and_pattern(values[0])
    if found is None:
        return statement
    if inner is not test:
        matched, other = other or [ast.Pass()], matched
    subject, pattern = found
    guard = joined(values[1:]) if len(values) > 1 else None
    cases: List[ast.match_case] = [ast.match_case(pattern, guard, matched)]
    if other:
        cases.append(ast.match_case(ast.MatchAs(None, None), None, other))
    return ast.Match(subject, cases)


def _subject_and_pattern(test: ast.expr) -> Optional[Tuple[ast.expr, ast.pattern]]:
    """Return the subject and the pattern that ``test`` compares it with; ``None`` for a comparison that was written as
    one: it starts with its left side."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    if not _is_above(place_of(left), place_of(test), jump_of(test)):
        return None
    if isinstance(operator, ast.Eq) and _is_value(right):
        return left, ast.MatchValue(right)
    if isinstance(operator, ast.Is) and isinstance(right, ast.Constant) and _is_singleton(right.value):
        return left, ast.MatchSingleton(right.value)
    return None


def _is_singleton(value: object) -> TypeGuard[Optional[bool]]:
    return value is None or isinstance(value, bool)


def _is_value(expr: ast.expr) -> bool:
    """Return whether ``expr`` may be a pattern that compares."""
    if isinstance(expr, ast.Attribute):
        while isinstance(expr, ast.Attribute):
            expr = expr.value
        return isinstance(expr, ast.Name)
    return isinstance(expr, ast.Constant) and isinstance(expr.value, (int, float, complex, str, bytes))


def _is_above(subject: Optional[Span], test: Optional[Span], jump: Optional[Span]) -> bool:
    """Return whether the ``subject`` ends above the line of the comparison: of its jump, where the test has none."""
    if subject is None or subject.end_line is None:
        return False
    where = jump if test is None or test == subject else test
    return where is not None and where.line is not None and where.line > subject.end_line
