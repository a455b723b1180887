"""Conditions that compile to the same code in one statement and in several nested ones."""

from __future__ import annotations

import ast
from typing import List, Optional, Tuple

from depyf.decompiler.lift.spans import first_operand, first_span, jump_of, span_of, statement_of


def parts(values: List[ast.expr], split: int) -> Tuple[ast.expr, ast.expr]:
    """Return two tests: of the first ``split`` operands of ``and``, and of the others."""
    return joined(values[:split]), joined(values[split:])


def joined(values: List[ast.expr]) -> ast.expr:
    """Return the test that all of ``values`` are true."""
    return values[0] if len(values) == 1 else ast.BoolOp(ast.And(), values)


def operands(test: ast.expr) -> List[ast.expr]:
    """Return the operands of ``and``; an empty list for another test."""
    return test.values if type(test) is ast.BoolOp and isinstance(test.op, ast.And) else []


def are_apart(before: ast.expr, operand: ast.expr) -> Optional[bool]:
    """Return whether another statement tests ``operand`` than tests ``before``; ``None`` if jumps do not show it."""
    # if a and b: c()       a: POP_JUMP_IF_FALSE 1; b: POP_JUMP_IF_FALSE 1; c
    # if a:
    #     if b: c()         the same operations; up to 3.11 each jump has the span of its ``if``, or only its line
    whole = statement_of(before), statement_of(operand)
    if whole[0] is not None and whole[1] is not None:
        return whole[0] != whole[1]
    # Otherwise the jumps that depend on the first operands must differ, and be on different lines.
    (first, _), (second, _) = first_operand(before), first_operand(operand)
    one, two, span = jump_of(first), jump_of(second), first_span(second)
    if one is None or two is None or span is None or one == two or one.line == two.line:
        return False
    if two.column is None or span.column is None:
        return span.line == two.line  # the jump has the line of its statement (3.8 to 3.10)
    # If ``before`` reaches to the line of the operand, no statement begins in between.
    reached = span_of(before)
    return False if reached is not None and reached.end_line >= span.line else None
