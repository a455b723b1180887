"""``assert`` alone in an ``if``, or with that test as an operand; ``assert 0`` or ``assert False``.

    if a:                       assert not a or b
        assert b

The jumps are the same. On the left ``a`` precedes the statement that raises.
"""

from __future__ import annotations

import ast
from typing import List, Optional

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.lift.build import both, negate
from depyf.decompiler.lift.spans import first_span, span_of_assert
from depyf.decompiler.lift.split_tests import joined
from depyf.decompiler.source.passes.blocks import Block
from depyf.decompiler.source.rewriting import replaced
from depyf.decompiler.structure.leaving import fails


def nest_asserts(block: Block) -> Block:
    """Return ``block`` with each ``assert`` in the ``if`` whose test precedes it in the source."""
    return [_nested(each) if isinstance(each, ast.Assert) else each for each in block]


def join_asserts(block: Block) -> Block:
    """Return ``block`` with ``assert not a or b`` for ``if a: assert b`` where ``a`` follows the keyword ``assert``."""
    return [_whole(each) or each if isinstance(each, ast.If) else each for each in block]


def _whole(statement: ast.If) -> Optional[ast.stmt]:
    """Return the ``assert`` in ``statement`` joined with the test of ``statement``, if it begins in front of that test;
    else ``None``."""
    inner = statement.body[0] if len(statement.body) == 1 and not statement.orelse else None
    place = span_of_assert(inner) if isinstance(inner, ast.Assert) else None
    if place is None or not isinstance(inner, ast.Assert) or fails(inner):
        return None
    values = statement.test.values if isinstance(statement.test, ast.BoolOp) else [statement.test]
    if any(_is_before(each, place) or first_span(each) is None for each in values):
        return None
    return replaced(inner, test=both(ast.Or(), negate(statement.test), inner.test))


_LOOKS_UP = "AssertionError" in compile("assert a", "", "exec", dont_inherit=True, optimize=0).co_names
"""Whether an ``assert`` looks up the exception, as ``raise AssertionError`` does: up to Python 3.8."""


def restore_raised_asserts(block: Block) -> Block:
    """Return ``block`` with ``assert`` for ``if not a: raise AssertionError`` where the lines show no second statement,
    and where ``a`` is a constant: the compiler would drop such an ``if``, while the test of an ``assert`` stays."""
    return [_looked_up(each) if isinstance(each, ast.If) else each for each in block] if _LOOKS_UP else block


def _looked_up(statement: ast.If) -> ast.stmt:
    raised = statement.body[0] if len(statement.body) == 1 and not statement.orelse else None
    if not isinstance(raised, ast.Raise) or raised.exc is None or raised.cause is not None:
        return statement
    # raise AssertionError, or raise AssertionError(message) with one plain argument
    made = raised.exc
    message = made.args[0] if isinstance(made, ast.Call) and len(made.args) == 1 and not made.keywords else None
    name = made.func if isinstance(made, ast.Call) and message is not None else made
    if not isinstance(name, ast.Name) or name.id != "AssertionError" or isinstance(message, ast.Starred):
        return statement
    # if a and not 0: raise ...     the last operand is a constant, which the compiler keeps only in an ``assert``:
    #                               if a: assert 0
    values = _operands(negate(statement.test))
    if len(values) > 1 and _is_constant(values[-1]):
        return ast.If(joined(values[:-1]), [ast.Assert(negate(values[-1]), message)], [])
    # A ``raise`` on a later line is a statement in an ``if``.
    test, raises = first_span(statement.test), first_span(name)
    is_one = test is not None and raises is not None and raises.line <= test.line
    if is_one or _is_constant(values[-1]) or any(map(_is_of_constant, ast.walk(statement.test))):
        return ast.Assert(negate(statement.test), message)
    return statement


def _is_of_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and _is_constant(node.operand)


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and _is_constant(node.operand))


def restore_zeros(block: Block) -> Block:
    """Return ``block`` with ``assert 0`` for ``assert False`` where the columns leave no space for more."""
    return [_zero(each) if isinstance(each, ast.Assert) and fails(each) else each for each in block]


def _nested(statement: ast.Assert) -> ast.stmt:
    place = span_of_assert(statement)
    if place is None or fails(statement):
        return statement
    # The operands in front of the keyword are the test of an ``if``:
    #
    #     if a:                 assert not (a and b)        -> if a: assert not b
    #         assert not b
    values = _operands(statement.test)
    before = 0
    while before < len(values) and _is_before(values[before], place):
        before += 1
    if not before:
        return statement
    if before == len(values):
        inner = replaced(statement, test=ast.Constant(False))
    else:
        inner = replaced(statement, test=negate(joined(values[before:])))
    return ast.If(joined(values[:before]), [inner], [])


def _zero(statement: ast.Assert) -> ast.Assert:
    place = span_of_assert(statement)
    if place is None or not _is_short(statement, place):
        return statement
    return replaced(statement, test=ast.Constant(0))


def _operands(test: ast.expr) -> List[ast.expr]:
    """Return the expressions that must all be true for ``test`` to be false."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = test.operand
        return inner.values if type(inner) is ast.BoolOp and isinstance(inner.op, ast.And) else [inner]
    if type(test) is ast.BoolOp and isinstance(test.op, ast.Or):
        return [negate(value) for value in test.values]
    return [negate(test)]


def _is_before(operand: ast.expr, place: Span) -> bool:
    first = first_span(operand)
    if first is None:
        return False
    return first.line < place.line if first.column is None else first[:2] < place[:2]


def _is_short(statement: ast.Assert, place: Span) -> bool:
    """Return whether there is only space for ``0`` between ``assert`` and the next token, or the end."""
    end: Optional[int] = place.end_column if place.line == place.end_line else None
    if statement.msg is not None:
        message = first_span(statement.msg)
        if message is None or message.line != place.line or message.column is None:
            return False
        end = message.column - len(", ")
    return end is not None and place.column is not None and end - place.column == len("assert 0")
