"""Conditions that compile to the same code in one statement and in several nested ones."""

from __future__ import annotations

import ast
from typing import List, Optional, Tuple

from depyf.lift.places import first_operand, first_place, jump_of, place_of, statement_of


def parts(values: List[ast.expr], split: int) -> Tuple[ast.expr, ast.expr]:
    """Return the test of the first ``split`` operands of ``and``, and that of the others."""
    return joined(values[:split]), joined(values[split:])


def joined(values: List[ast.expr]) -> ast.expr:
    """Return the test that all of ``values`` are true."""
    return values[0] if len(values) == 1 else ast.BoolOp(ast.And(), values)


def operands(test: ast.expr) -> List[ast.expr]:
    """Return the operands of ``and``; an empty list for another test."""
    return test.values if type(test) is ast.BoolOp and isinstance(test.op, ast.And) else []


def are_apart(before: ast.expr, operand: ast.expr) -> Optional[bool]:
    """Return whether a statement other than that of ``before`` tests ``operand``; ``None`` if jumps do not show it."""
    whole = statement_of(before), statement_of(operand)
    if whole[0] is not None and whole[1] is not None:
        return whole[0] != whole[1]
    (first, _), (second, _) = first_operand(before), first_operand(operand)
    one, two, place = jump_of(first), jump_of(second), first_place(second)
    if one is None or two is None or place is None or one == two or one.line == two.line:
        return False
    if two.column is None or place.column is None:
        return place.line == two.line  # the jump has the line of its statement
    reached = place_of(before)
    return False if reached is not None and reached.end_line >= place.line else None
