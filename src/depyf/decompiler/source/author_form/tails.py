"""``return`` and ``continue`` where control goes anyway, in front of statements that were not in an ``else`` clause.

    with a:                     with a:
        if b:                       if b:
            c()                         c()
            return                  else:
        d()                             d()

Both have the same bytecode, and the jump has no span of its own. Columns show where ``d()`` stands.
"""

from __future__ import annotations

import ast
from typing import Type, Union

from depyf.decompiler.bytecode.syntax_trees import TRY_STATEMENTS
from depyf.decompiler.lift.build import negate
from depyf.decompiler.lift.spans import first_span, span_of, start_of
from depyf.decompiler.source.author_form.clauses import Clauses
from depyf.decompiler.source.passes.blocks import Block, Leaving, is_elif, is_loop
from depyf.decompiler.source.rewriting import replaced
from depyf.decompiler.structure.leaving import is_match

_Jump = Union[Type[ast.Return], Type[ast.Continue]]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Tails:
    """Writes jumps at the end of functions and loops. ``clauses`` knows what is in an ``else`` clause."""

    def __init__(self, clauses: Clauses) -> None:
        self._clauses, self._leaving = clauses, Leaving()

    def restored(self, block: Block) -> Block:
        """Return ``block`` with jumps added in its functions and loops."""
        return [self._with_jumps(each) for each in block]

    def _with_jumps(self, statement: ast.stmt) -> ast.stmt:
        if is_loop(statement):
            body = self._tail(statement.body, ast.Continue)
        elif isinstance(statement, _FUNCTIONS):
            body = self._tail(statement.body, ast.Return)
        else:
            return statement
        return statement if body is statement.body else replaced(statement, body=body)

    def _tail(self, block: Block, jump: _Jump) -> Block:
        """Return ``block`` with ``jump`` where columns require it. Control goes from the end of ``block`` to the target
        of ``jump``, so a jump may be added at the end of each path."""
        last = block[-1] if block else None
        if isinstance(last, ast.If):
            return self._if(block, last, jump)
        if isinstance(last, (ast.With, ast.AsyncWith)):
            body = self._tail(last.body, jump)
            return block if body is last.body else [*block[:-1], replaced(last, body=body)]
        if isinstance(last, TRY_STATEMENTS):
            # ``finally`` is left alone: a jump there would swallow an exception.
            field = "orelse" if last.orelse else "body"
            old = last.orelse or last.body
            inner = self._tail(old, jump)
            handlers = [replaced(each, body=self._tail(each.body, jump)) for each in last.handlers]
            if inner is old and all(new.body is each.body for new, each in zip(handlers, last.handlers)):
                return block
            return [*block[:-1], replaced(last, handlers=handlers, **{field: inner})]
        if last is not None and is_match(last):
            cases = [replaced(each, body=self._tail(each.body, jump)) for each in last.cases]
            if all(new.body is each.body for new, each in zip(cases, last.cases)):
                return block
            return [*block[:-1], replaced(last, cases=cases)]
        return block

    def _if(self, block: Block, last: ast.If, jump: _Jump) -> Block:
        # From the last ``elif`` to the ``if``: the ``else`` of each link is done before the link, without recursion.
        chain = [last]
        while is_elif(chain[-1].orelse):
            inner = chain[-1].orelse[0]
            assert isinstance(inner, ast.If)
            chain.append(inner)
        found = self._tail(chain[-1].orelse, jump)
        for link in reversed(chain):
            around: Block = block if link is last else [link]
            found = self._link(around, link if found == link.orelse else replaced(link, orelse=found), jump)
        return block if found == block else found

    def _link(self, block: Block, last: ast.If, jump: _Jump) -> Block:
        """Return ``block`` with its last statement replaced by ``last``, whose ``else`` clause is done."""
        orelse = last.orelse
        # if a: b()             if a: b(); return
        # else: c()             c()                     where ``c()`` is in the column of ``if``
        if orelse and not self._leaving.leaves(last.body) and self._clauses.is_after(last, orelse[0], block):
            return [*block[:-1], replaced(last, body=[*last.body, _made(jump)], orelse=[]), *orelse]
        # if a: return          if not a: c()           where lines have no room for the ``return`` and the ``else``
        # else: c()
        if orelse and not is_elif(orelse) and _is_only(last.body, jump) and _is_below(orelse[0], last.test):
            return [*block[:-1], replaced(last, test=negate(last.test), body=orelse, orelse=[])]
        # if a: b()             if not a: return
        #                       b()                     where ``b()`` is in the column of ``if``
        if not orelse and self._is_not_deeper(last, block):
            turned = replaced(last, test=negate(last.test), body=[_made(jump)])
            return [*block[:-1], turned, *self._tail(last.body, jump)]
        body = self._tail(last.body, jump)
        return [*block[:-1], last if body is last.body else replaced(last, body=body)]

    def _is_not_deeper(self, statement: ast.If, block: Block) -> bool:
        """Return whether the body of ``statement``, the last one of ``block``, is not to the right of ``statement``:
        the source has the opposite test, and the body after it."""
        start, inner = start_of(statement), start_of(statement.body[0])
        around = self._clauses.indentation.column_of(block[:-1])
        if around is None and start is not None and start.exact:
            around = start.column
        if around is None or inner is None or inner.column is None:
            return False
        return inner.exact and inner.column <= around


def _is_only(block: Block, jump: _Jump) -> bool:
    """Return whether ``block`` is a ``jump`` that is not in the source."""
    statement = block[0]
    returns = isinstance(statement, ast.Return) and statement.value is not None
    return len(block) == 1 and isinstance(statement, jump) and not returns and span_of(statement) is None


def _is_below(statement: ast.stmt, test: ast.expr) -> bool:
    """Return whether ``statement`` is too close to ``test`` for two lines between them."""
    start, place = start_of(statement), first_span(test)
    return start is not None and place is not None and place.line < start.line <= place.line + 2


def _made(jump: _Jump) -> ast.stmt:
    return ast.Return(None) if jump is ast.Return else ast.Continue()
