"""``assert`` as it was written: alone in an ``if`` or with its test as an operand; ``assert 0`` or ``assert False``.

    if a:                       assert not a or b
        assert b

The jumps are the same. On the left ``a`` stands before the statement that raises.
"""

from __future__ import annotations

import ast
from typing import List, Optional

from depyf.bytecode.lines import Span
from depyf.lift.build import negate
from depyf.lift.places import first_place, place_of_assert
from depyf.source.passes.blocks import Block
from depyf.source.rewriting import replaced
from depyf.structure.leaving import fails


def with_written_asserts(block: Block) -> Block:
    """``block`` with each ``assert`` in the ``if`` that it was written in."""
    return [_written(each) if isinstance(each, ast.Assert) else each for each in block]


def with_written_zeros(block: Block) -> Block:
    """``block`` with ``assert 0`` for ``assert False`` where there is no space for more."""
    return [_zero(each) if isinstance(each, ast.Assert) and fails(each) else each for each in block]


def _written(statement: ast.Assert) -> ast.stmt:
    place = place_of_assert(statement)
    if place is None or fails(statement):
        return statement
    values = _operands(statement.test)
    before = 0
    while before < len(values) and _is_before(values[before], place):
        before += 1
    if not before:
        return statement
    if before == len(values):
        inner = replaced(statement, test=ast.Constant(False))
    else:
        inner = replaced(statement, test=negate(_joined(values[before:])))
    return ast.If(_joined(values[:before]), [inner], [])


def _zero(statement: ast.Assert) -> ast.Assert:
    place = place_of_assert(statement)
    if place is None or not _is_short(statement, place):
        return statement
    return replaced(statement, test=ast.Constant(0))


def _operands(test: ast.expr) -> List[ast.expr]:
    """What must all be true for ``test`` to be false."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = test.operand
        return inner.values if type(inner) is ast.BoolOp and isinstance(inner.op, ast.And) else [inner]
    if type(test) is ast.BoolOp and isinstance(test.op, ast.Or):
        return [negate(value) for value in test.values]
    return [negate(test)]


def _joined(values: List[ast.expr]) -> ast.expr:
    return values[0] if len(values) == 1 else ast.BoolOp(ast.And(), values)


def _is_before(operand: ast.expr, place: Span) -> bool:
    first = first_place(operand)
    if first is None:
        return False
    return first.line < place.line if first.column is None else first[:2] < place[:2]


def _is_short(statement: ast.Assert, place: Span) -> bool:
    """Whether there is only space for ``0`` between ``assert`` and what comes next, or the end."""
    end: Optional[int] = place.end_column if place.line == place.end_line else None
    if statement.msg is not None:
        message = first_place(statement.msg)
        if message is None or message.line != place.line or message.column is None:
            return False
        end = message.column - len(", ")
    return end is not None and place.column is not None and end - place.column == len("assert 0")
