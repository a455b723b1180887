"""The statement that tests a condition: one ``if`` or two, ``while`` or ``if``, ``match`` or ``if``.

if a:                       if a and b:                 the jumps have the spans of their statements
    if b:                       c()
        c()

while a:                    while a and b:              the column of ``b`` shows an ``if`` in the loop
    if not b:                   c()
        break
    c()

while True:                 while True:                 the column of ``a`` shows which keyword precedes it
    while a:                    if a:
        b()                         b()
    c()                             continue
                                c()

match a:                    if a == 1:                  the subject is on a line above the comparison
    case 1:                     b()
        b()
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, List, Optional, Tuple

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.lift.build import both, negate
from depyf.decompiler.lift.spans import column_of, first_operand, first_span, jump_of, span_of, start_of
from depyf.decompiler.lift.split_tests import are_apart, joined, operands, parts
from depyf.decompiler.source.author_form.indentation import Indentation
from depyf.decompiler.source.passes.blocks import Block, Leaving, is_elif
from depyf.decompiler.source.passes.loops import breaks_in, is_endless
from depyf.decompiler.source.rewriting import replaced

if TYPE_CHECKING:
    from typing import TypeGuard  # new in 3.10


class Tests:
    """Splits each condition of an ``if`` or ``while`` into the statements of the source that test it. ``indentation``:
    the indentation of blocks, in columns."""

    def __init__(self, indentation: Indentation) -> None:
        self.indentation = indentation

    def restored(self, block: Block) -> Block:
        """Return ``block`` with each condition in as many statements as the source has."""
        return [self._with_tests(each, block) if isinstance(each, (ast.If, ast.While)) else each for each in block]

    def _with_tests(self, statement: ast.stmt, block: Block, around: Optional[int] = None) -> ast.stmt:
        if isinstance(statement, ast.If) and is_elif(statement.orelse):
            return self._with_last_elif(statement, block)
        if isinstance(statement, ast.If):
            # if a: if b: c()       ->  if a and b: c(), where both jumps have the span of one statement
            while _is_one_test(statement):
                inner: Any = statement.body[0]
                statement = replaced(statement, test=both(ast.And(), statement.test, inner.test), body=inner.body)
            if not statement.orelse:
                values = operands(statement.test)
                if around is None and values:
                    around = self.indentation.column_of(block)
                split = self._split(statement, values, around)
                if split:  # if a and b: c()    ->  if a: if b: c()
                    outer, inner_test = parts(values, split)
                    deeper = None if around is None else around + self.indentation.columns
                    inner = self._with_tests(ast.If(inner_test, statement.body, []), statement.body, deeper)
                    return replaced(statement, test=outer, body=[inner])
        elif isinstance(statement, ast.While) and not statement.orelse:
            split = self._split_loop(statement)
            if split:  # while a and b: c()  ->  while a: if not b: break; c()
                outer, inner_test = parts(_operands_of_loop(statement.test), split)
                leaves = ast.If(negate(inner_test), [ast.Break()], [])
                rest = [] if _is_empty(statement.body) else statement.body
                return replaced(statement, test=outer, body=[leaves, *rest])
        return statement

    def _with_last_elif(self, statement: ast.If, block: Block) -> ast.stmt:
        """Return ``statement`` with the test of its last ``elif`` split; the other tests have an ``else``."""
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
                # The jumps do not show it: an inner ``if`` starts one indentation deeper, in front of its body.
                operand, opens = first_operand(values[index])
                place = first_span(operand)
                begins = None if place is None or place.column is None else place.column - opens - len("if ")
                inner, deeper = column_of(statement.body), around + self.indentation.columns
                if isinstance(operand, ast.NamedExpr) and begins == deeper + 1:
                    begins = deeper  # it is in parentheses
                known = begins == deeper and inner is not None and begins < inner
            if known:
                return index
        return 0

    def _split_loop(self, loop: ast.While) -> int:
        """Return how many operands of its test belong to ``loop``; 0: all. The others belong to ``if ...: break``."""
        values = _operands_of_loop(loop.test)
        inner = self._column_in_loop(loop) if values else None
        for index in range(1, len(values)):
            known = are_apart(values[index - 1], values[index])
            if known is None and inner is not None:
                # ``if not b: break`` is the first statement of the loop, and in the column of the others.
                second, opens = first_operand(negate(values[index]))
                place = first_span(second)
                known = place is not None and place.column == inner + len("if ") + opens
                known = known and not _is_right_above(values[-1], loop.body)
            if known:
                return index
        return 0

    def _column_in_loop(self, loop: ast.While) -> Optional[int]:
        """Return the column of the statements in ``loop``; ``None`` if it is unknown."""
        first, opens = first_operand(loop.test)
        place = first_span(first)
        if not _is_empty(loop.body) or place is None or place.column is None:
            return column_of(loop.body)
        return place.column - opens - len("while ") + self.indentation.columns


def _operands_of_loop(test: ast.expr) -> List[ast.expr]:
    """Return the operands of ``and``, also of ``not (a or b)``; an empty list for another test."""
    inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if inner is not test and type(inner) is ast.BoolOp and isinstance(inner.op, ast.Or):
        return [negate(value) for value in inner.values]
    return operands(test)


def _is_right_above(test: ast.expr, body: Block) -> bool:
    """Return whether ``body`` begins on the line below ``test``, so that there is no line for a ``break``."""
    # while (a                      b has the column that it has in ``if not (b or c):``
    #        and (b or c)):
    #     d()
    while isinstance(test, (ast.BoolOp, ast.UnaryOp)):
        test = test.values[-1] if isinstance(test, ast.BoolOp) else test.operand
    place, begins = span_of(test), start_of(body[0])
    return place is not None and begins is not None and begins.line == place.end_line + 1


def _is_one_test(statement: ast.If) -> bool:
    """Return whether ``statement`` and the only ``if`` inside of it are one statement of the source."""
    inner = statement.body[0] if len(statement.body) == 1 and not statement.orelse else None
    if not isinstance(inner, ast.If) or inner.orelse:
        return False
    one, operand = jump_of(first_operand(statement.test)[0]), first_operand(inner.test)[0]
    if one is None or one != jump_of(operand):
        return False
    place = first_span(operand)
    return place is not None and (one.column is not None or place.line != one.line)


def _is_empty(body: Block) -> bool:
    """Return whether ``body`` has no statement of the source: only a ``pass`` that has no place."""
    return all(isinstance(each, ast.Pass) and span_of(each) is None for each in body)


# --- the first test in an endless loop -------------------------------------------------------------------------------


class Loops:
    """Finds a ``while`` that is the first statement of an endless loop. ``indentation``: the indentation of blocks, in
    columns."""

    def __init__(self, indentation: Indentation) -> None:
        self.indentation, self._leaving = indentation, Leaving()

    def restored(self, block: Block) -> Block:
        """Return ``block`` with the loops that its endless loops start with."""
        return [self._with_inner_loop(each) if is_endless(each) else each for each in block]

    def _with_inner_loop(self, loop: ast.While) -> ast.While:
        first, rest = loop.body[0], loop.body[1:]
        if not isinstance(first, ast.If) or bool(first.orelse) == bool(rest):
            return loop
        # The body of the ``if`` must go back to its test: by ``continue``, or because nothing follows the ``if``.
        if rest and not self._leaving.leaves(first.body):
            return loop
        rest = rest or first.orelse
        column, (operand, opens) = self.indentation.column_of(rest), first_operand(first.test)
        place = first_span(operand)
        if place is None or place.column is None or place.column - opens - len("while ") != column:
            return loop
        if breaks_in(first.body):
            return loop  # the ``break`` would leave the inner loop only
        body = first.body[:-1] if isinstance(first.body[-1], ast.Continue) else first.body
        return replaced(loop, body=[ast.While(first.test, body or [ast.Pass()], []), *rest])


# --- match with one case ---------------------------------------------------------------------------------------------


_HAS_MATCH = hasattr(ast, "Match")


def restore_matches(block: Block) -> Block:
    """Return ``block`` with ``match`` for each ``if`` whose subject is on a line above its comparison."""
    return [_match(each) if isinstance(each, ast.If) else each for each in block] if _HAS_MATCH else block


def _match(statement: ast.If) -> ast.stmt:
    test, matched, other = statement.test, statement.body, statement.orelse
    inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    values = operands(inner) or [inner]
    found = _subject_and_pattern(values[0])
    if found is None:
        return statement
    # ``if not a == 1``: the branches change places; ``a == 1 and b``: the other operands are the guard.
    if inner is not test:
        matched, other = other or [ast.Pass()], matched
    subject, pattern = found
    guard = joined(values[1:]) if len(values) > 1 else None
    cases: List[ast.match_case] = [ast.match_case(pattern, guard, matched)]
    if other:
        cases.append(ast.match_case(ast.MatchAs(None, None), None, other))
    return ast.Match(subject, cases)


def _subject_and_pattern(test: ast.expr) -> Optional[Tuple[ast.expr, ast.pattern]]:
    """Return the subject and the pattern that ``test`` compares it with; ``None`` where the source has a comparison,
    which starts with its left side."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    if not _is_above(span_of(left), span_of(test), jump_of(test)):
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
