"""What stands in an ``else`` clause and what behind the statement: the columns at which it begins decide.

if a:                       if a:
    return b()                  return b()
else:                       c()
    c()
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Optional, Tuple, Union

from depyf.lift.places import Start, column_of, first_operand, first_place, start_of, statement_of
from depyf.source.passes.blocks import Block, Leaving, is_loop
from depyf.source.passes.loops import breaks_in
from depyf.source.rewriting import replaced
from depyf.source.written.indentation import Indentation
from depyf.structure.except_star import TRY_STATEMENTS, TryStatement
from depyf.structure.leaving import fails

if TYPE_CHECKING:
    from typing import TypeGuard  # new in 3.10

_Clause = Union[ast.If, ast.For, ast.AsyncFor, ast.While, TryStatement]
"""A statement with an ``else`` clause."""


class Clauses:
    """Puts statements into ``else`` clauses and takes them out, where that changes nothing but the text.

    ``indentation``: by how many columns blocks are indented.
    """

    def __init__(self, indentation: Indentation) -> None:
        self.indentation = indentation

    def written(self, block: Block) -> Block:
        """``block`` with ``else`` clauses where they were written."""
        leaving = Leaving()
        following: Block = []
        for statement in reversed(block):
            if _leaves_to_else(statement, leaving):
                if statement.orelse:
                    kept = len(statement.orelse) - self._behind(statement, block)
                    following = [*statement.orelse[kept:], *following]
                    following = [replaced(statement, orelse=statement.orelse[:kept]), *following]
                    continue
                if following:
                    count = self._inside(statement, following, block)
                    following = [replaced(statement, orelse=following[:count]), *following[count:]]
                    continue
            following = [statement, *following]
        return following

    def _inside(self, statement: _Clause, following: Block, block: Block) -> int:
        """How many of the statements behind ``statement`` were written in its ``else`` clause."""
        column, inner = self._columns(statement, block)
        if column is None:
            return 0
        count = 0
        for index, each in enumerate(following):
            inside = self._is_inside(statement, each, column, inner, first=index == 0)
            if inside is False:
                break
            if inside is None and not count:
                continue  # what comes behind it may show it
            count = index + 1
            if index == 0 and self._is_elif(statement, each, column):
                break
        return count

    def _behind(self, statement: _Clause, block: Block) -> int:
        """How many of the last statements in the ``else`` clause of ``statement`` were written behind it."""
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
        """The columns of ``statement`` and of what stands in its body; the first is ``None`` if they don't show it."""
        inner = column_of(statement.body)
        start = self._start(statement)
        column = self.indentation.column_of(block) if start is None else start.column
        if column is None or (inner is not None and inner <= column):
            return None, None
        return column, inner

    def _start(self, statement: ast.stmt) -> Optional[Start]:
        """Where ``statement`` begins. An ``elif`` begins two columns before what its test lets expect."""
        start = start_of(statement)
        if isinstance(statement, ast.If) and start is not None and start.column is not None and not start.exact:
            inner = column_of(statement.body)
            if inner is not None and inner - start.column == self.indentation.columns - len("el"):
                return start._replace(column=start.column - len("el"))
        return start

    def _is_inside(
        self, statement: ast.stmt, each: ast.stmt, column: int, inner: Optional[int], *, first: bool
    ) -> Optional[bool]:
        """Whether ``each`` stands in the ``else`` clause of ``statement``; ``None`` if nothing shows it."""
        if first and self._is_elif(statement, each, column):
            return True
        start = self._start(each)
        if start is None or start.column is None:
            return None
        if inner is None:  # ``column`` may be that of ``elif``, too far to the right
            return start.column - column >= max(self.indentation.columns - len("el"), len("el"))
        return abs(start.column - inner) < abs(start.column - column)

    def _is_elif(self, statement: ast.stmt, each: ast.stmt, column: int) -> bool:
        if not isinstance(statement, ast.If) or not isinstance(each, ast.If):
            return False
        outer, jump, start = statement_of(statement.test), statement_of(each.test), start_of(each)
        if outer is not None and jump is not None:
            return outer.line < jump.line and jump[2:] <= outer[2:] and jump.column == column
        if start is None or start.column is None:
            return False
        if start.exact:
            return start.column == column and _has_space_for_elif(each, start)
        moved = self._start(each)
        return start.column == column + len("el") and moved is not None and moved.column == column


def _has_space_for_elif(statement: ast.If, start: Start) -> bool:
    """Whether there is space for ``elif`` between where ``statement`` begins and its test."""
    operand, opens = first_operand(statement.test)
    first = first_place(operand)
    if first is None or first.column is None or start.column is None or first.line != start.line:
        return False
    return first.column - opens - start.column == len("elif ")


def _leaves_to_else(statement: ast.stmt, leaving: Leaving) -> TypeGuard[_Clause]:
    """Whether an ``else`` clause of ``statement`` means the same as what stands behind it."""
    if isinstance(statement, ast.If):
        return leaving.leaves(statement.body) or fails(statement.body[-1])
    if is_loop(statement):
        endless = isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant)
        return not endless and not breaks_in(statement.body)
    if isinstance(statement, TRY_STATEMENTS):
        handlers = statement.handlers
        return bool(handlers) and not statement.finalbody and all(leaving.leaves(each.body) for each in handlers)
    return False
