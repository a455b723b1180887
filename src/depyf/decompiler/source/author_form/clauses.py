"""Statements in an ``else`` clause or after the statement: their columns decide.

if a:                       if a:
    return b()                  return b()
else:                       c()
    c()

Of two branches, the one that was written first comes first: lines decide.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Optional, Tuple, Union

from depyf.decompiler.bytecode.syntax_trees import TRY_STATEMENTS, TryStatement
from depyf.decompiler.lift.build import negate
from depyf.decompiler.lift.node_attributes import Start
from depyf.decompiler.lift.spans import first_operand, first_span, start_of, statement_of
from depyf.decompiler.source.author_form.indentation import Indentation
from depyf.decompiler.source.passes.blocks import Block, Leaving, is_loop
from depyf.decompiler.source.passes.loops import breaks_in
from depyf.decompiler.source.rewriting import replaced
from depyf.decompiler.structure.leaving import fails

if TYPE_CHECKING:
    from typing import TypeGuard  # new in 3.10

_Clause = Union[ast.If, ast.For, ast.AsyncFor, ast.While, TryStatement]
"""A statement with an ``else`` clause."""


class Clauses:
    """Moves statements into ``else`` clauses and out of them, where that changes only the text. ``indentation``: the
    indentation of blocks in columns."""

    def __init__(self, indentation: Indentation) -> None:
        self.indentation, self._leaving = indentation, Leaving()

    def restored(self, block: Block) -> Block:
        """Return ``block`` with statements in an ``else`` clause, or after it, as their columns show."""
        following: Block = []
        # Backwards: statements that leave an ``else`` clause may belong into the clause of an earlier statement.
        for statement in reversed(block):
            if isinstance(statement, TRY_STATEMENTS) and not statement.orelse:
                statement = _with_else(statement)
            if _leaves_to_else(statement, self._leaving):
                if statement.orelse:
                    kept = len(statement.orelse) - self._count_after(statement, block)
                    if kept < len(statement.orelse):
                        following = [*statement.orelse[kept:], *following]
                        statement = replaced(statement, orelse=statement.orelse[:kept])
                elif following:
                    count = self._count_inside(statement, following, block)
                    if count:
                        statement = replaced(statement, orelse=following[:count])
                        following = following[count:]
            following = [statement, *following]
        return following

    def is_after(self, statement: _Clause, each: ast.stmt, block: Block) -> bool:
        """Return whether columns show that ``each``, the first statement in the ``else`` clause of ``statement``,
        follows ``statement`` in the source."""
        column, inner = self._columns(statement, block)
        start = self.indentation.start_of(each)
        if column is None or start is None or start.column is None or self._is_elif(statement, each, column):
            return False
        own = start_of(statement)
        if own is not None and not own.exact and inner is not None and inner - column != self.indentation.columns:
            return False  # the test begins in a parenthesis: ``if (a`` is further to the left
        moved = len("el") if isinstance(each, ast.If) else self.indentation.columns / 2  # it may be an ``elif``
        return start.column - column < moved

    def _count_inside(self, statement: _Clause, following: Block, block: Block) -> int:
        """Return how many of the statements after ``statement`` belong into its ``else`` clause."""
        column, inner = self._columns(statement, block)
        if column is None:
            return 0
        count = 0
        for index, each in enumerate(following):
            inside = self._is_inside(statement, each, column, inner, first=index == 0)
            if inside is False:
                break
            if inside is None and not count:
                continue  # a later statement may show it
            count = index + 1
            if index == 0 and self._is_elif(statement, each, column):
                break  # nothing follows an ``elif`` in its clause
        return count

    def _count_after(self, statement: _Clause, block: Block) -> int:
        """Return how many of the last statements in the ``else`` clause of ``statement`` belong after it."""
        column, inner = self._columns(statement, block)
        if column is None:
            return 0
        count = 0
        for index in range(len(statement.orelse) - 1, -1, -1):
            inside = self._is_inside(statement, statement.orelse[index], column, inner, first=index == 0)
            if inside:
                break
            if inside is False:
                count = len(statement.orelse) - index
        return count

    # --- columns -----------------------------------------------------------------------------------------------------

    def _columns(self, statement: _Clause, block: Block) -> Tuple[Optional[int], Optional[int]]:
        """Return the columns of ``statement`` and of its body; the first is ``None`` if they don't show it."""
        inner = self.indentation.column_of(statement.body)
        start = self.indentation.start_of(statement)
        column = self.indentation.column_of(block) if start is None else start.column
        if column is None or (inner is not None and inner <= column):
            return None, None
        return column, inner

    def _is_inside(
        self, statement: ast.stmt, each: ast.stmt, column: int, inner: Optional[int], *, first: bool
    ) -> Optional[bool]:
        """Return whether ``each`` is in the ``else`` clause of ``statement``; ``None`` if nothing shows it."""
        if first and self._is_elif(statement, each, column):
            return True
        start = self.indentation.start_of(each)
        if start is None or start.column is None:
            return None
        if inner is None:  # ``column`` may be the estimate for an ``elif``, too far right
            return start.column - column >= max(self.indentation.columns - len("el"), len("el"))
        # The nearer of both columns: estimated starts are a few characters off.
        return abs(start.column - inner) < abs(start.column - column)

    def _is_elif(self, statement: ast.stmt, each: ast.stmt, column: int) -> bool:
        if not isinstance(statement, ast.If) or not isinstance(each, ast.If):
            return False
        # The jumps of an ``elif`` have its span, which is in the span of the whole ``if`` and begins in its column.
        outer, jump, start = statement_of(statement.test), statement_of(each.test), start_of(each)
        if outer is not None and jump is not None:
            return outer.line < jump.line and jump[2:] <= outer[2:] and jump.column == column
        if start is None or start.column is None:
            return False
        if start.exact:
            return start.column == column and _has_space_for_elif(each, start)
        # An estimated start assumes ``if``: the start of ``elif`` is two characters further left.
        moved = self.indentation.start_of(each)
        return start.column == column + len("el") and moved is not None and moved.column == column


def _with_else(statement: TryStatement) -> TryStatement:
    """Return ``statement`` with an ``else`` clause of what stands below its clauses: ``return`` of a constant has no
    region."""
    # try:                      the ``return`` is lifted as the end of the body, and its line is below ``except``
    #     a()
    # except b: c()
    # else: return 1
    clause = first_span(statement.handlers[0].type or statement.handlers[0]) if statement.handlers else None
    count = len(statement.body)
    while count > 1 and clause is not None:
        start = start_of(statement.body[count - 1])
        if start is None or start.line <= clause.line:
            break
        count -= 1
    if count == len(statement.body):
        return statement
    return replaced(statement, body=statement.body[:count], orelse=statement.body[count:])


def _has_space_for_elif(statement: ast.If, start: Start) -> bool:
    """Return whether there is space for ``elif`` between the start of ``statement`` and its test."""
    operand, opens = first_operand(statement.test)
    first = first_span(operand)
    if first is None or first.column is None or start.column is None or first.line != start.line:
        return False
    return first.column - opens - start.column == len("elif ")


def _leaves_to_else(statement: ast.stmt, leaving: Leaving) -> TypeGuard[_Clause]:
    """Return whether an ``else`` clause of ``statement`` has the same meaning as the code after it."""
    if isinstance(statement, ast.If):
        return leaving.leaves(statement.body) or fails(statement.body[-1])
    if is_loop(statement):
        endless = isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant)
        return not endless and not breaks_in(statement.body)
    if isinstance(statement, TRY_STATEMENTS):
        handlers = statement.handlers
        return bool(handlers) and not statement.finalbody and all(leaving.leaves(each.body) for each in handlers)
    return False


# --- the order of both branches --------------------------------------------------------------------------------------


def restore_branch_order(block: Block) -> Block:
    """Return ``block`` with the branches of each ``if`` in the order of the source."""
    return [_in_order(each) if isinstance(each, ast.If) and each.orelse else each for each in block]


def _in_order(statement: ast.If) -> ast.If:
    one, two = _line(statement.body), _line(statement.orelse)
    if one is None or two is None or one <= two:
        return statement
    return replaced(statement, test=negate(statement.test), body=statement.orelse, orelse=statement.body)


def _line(block: Block) -> Optional[int]:
    start = start_of(block[0])
    return None if start is None else start.line
