"""``if a: if b:`` or ``if a and b:``, ``while a and b:`` or ``while a:`` with ``if not b: break``."""

from __future__ import annotations

import ast
from typing import Any, List, Optional

from depyf.lift.build import both, negate
from depyf.lift.places import column_of, first_operand, first_place, jump_of, place_of
from depyf.lift.split_tests import are_apart, operands, parts
from depyf.source.passes.blocks import Block, is_elif
from depyf.source.rewriting import replaced
from depyf.source.written.indentation import Indentation


class Tests:
    """Splits each condition of an ``if`` or a ``while`` into the statements that it was written in. ``indentation``:
    the indentation of blocks in columns."""

    def __init__(self, indentation: Indentation) -> None:
        self.indentation = indentation

    def written(self, block: Block) -> Block:
        """Return ``block`` with its conditions as they were written."""
        return [self._with_tests(each, block) if isinstance(each, (ast.If, ast.While)) else each for each in block]

    def _with_tests(self, statement: ast.stmt, block: Block, around: Optional[int] = None) -> ast.stmt:
        if isinstance(statement, ast.If) and is_elif(statement.orelse):
            return self._with_last_elif(statement, block)
        if isinstance(statement, ast.If):
            while _is_one_test(statement):
                inner: Any = statement.body[0]
                statement = replaced(statement, test=both(ast.And(), statement.test, inner.test), body=inner.body)
            if not statement.orelse:
                values = operands(statement.test)
                if around is None and values:
                    around = self.indentation.column_of(block)
                split = self._split(statement, values, around)
                if split:
                    outer, inner_test = parts(values, split)
                    deeper = None if around is None else around + self.indentation.columns
                    inner = self._with_tests(ast.If(inner_test, statement.body, []), statement.body, deeper)
                    return replaced(statement, test=outer, body=[inner])
        elif isinstance(statement, ast.While) and not statement.orelse:
            split = self._split_loop(statement)
            if split:
                outer, inner_test = parts(operands(statement.test), split)
                leaves = ast.If(negate(inner_test), [ast.Break()], [])
                rest = [] if _is_empty(statement.body) else statement.body
                return replaced(statement, test=outer, body=[leaves, *rest])
        return statement

    def _with_last_elif(self, statement: ast.If, block: Block) -> ast.stmt:
        """Return ``statement`` with the test of its last ``elif`` as it was written; all others have an ``else``."""
        chain, last = [statement], statement.orelse[0]
        while isinstance(last, ast.If) and is_elif(last.orelse):
            chain.append(last)
            last = last.orelse[0]
        found = self._with_tests(last, block, self.indentation.column_of(block))
        if found is last:
            return statement
        for each in reversed(chain):
            found = replaced(each, orelse=[found])
        return found

    def _split(self, statement: ast.If, values: List[ast.expr], around: Optional[int]) -> int:
        """Return how many operands of the test belong to the outer ``if``; 0 for all."""
        for index in range(1, len(values)):
            known = are_apart(values[index - 1], values[index])
            if known is None and around is not None:
                operand, opens = first_operand(values[index])
                place = first_place(operand)
                begins = None if place is None or place.column is None else place.column - opens - len("if ")
                inner, deeper = column_of(statement.body), around + self.indentation.columns
                if isinstance(operand, ast.NamedExpr) and begins == deeper + 1:
                    begins = deeper  # it is in parentheses
                known = begins == deeper and inner is not None and begins < inner
            if known:
                return index
        return 0

    def _split_loop(self, loop: ast.While) -> int:
        """Return how many operands of its test belong to a loop; 0 for all. Others are those of ``if ...: break``."""
        values = operands(loop.test)
        inner = self._column_in_loop(loop) if values else None
        for index in range(1, len(values)):
            known = are_apart(values[index - 1], values[index])
            if known is None and inner is not None:
                second, opens = first_operand(negate(values[index]))
                place = first_place(second)
                known = place is not None and place.column == inner + len("if ") + opens
            if known:
                return index
        return 0

    def _column_in_loop(self, loop: ast.While) -> Optional[int]:
        """Return the column of the statements in ``loop``; ``None`` if it is unknown."""
        first, opens = first_operand(loop.test)
        place = first_place(first)
        if not _is_empty(loop.body) or place is None or place.column is None:
            return column_of(loop.body)
        return place.column - opens - len("while ") + self.indentation.columns


def _is_one_test(statement: ast.If) -> bool:
    """Return whether a test and the only one inside of it were written in one statement."""
    inner = statement.body[0] if len(statement.body) == 1 and not statement.orelse else None
    if not isinstance(inner, ast.If) or inner.orelse:
        return False
    one, operand = jump_of(first_operand(statement.test)[0]), first_operand(inner.test)[0]
    if one is None or one != jump_of(operand):
        return False
    place = first_place(operand)
    return place is not None and (one.column is not None or place.line != one.line)


def _is_empty(body: Block) -> bool:
    """Return whether ``body`` has no statement of the source: only a ``pass`` that has no place."""
    return all(isinstance(each, ast.Pass) and place_of(each) is None for each in body)
