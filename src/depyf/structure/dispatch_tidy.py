"""Makes plain statements of what the dispatcher wrote: drops empty branches and jumps that happen anyway."""

from __future__ import annotations

import ast
from typing import List, Optional

from depyf.lift import build
from depyf.structure.dispatch_states import Assignment, States
from depyf.structure.leaving import leaves


class Tidy:
    """Rewrites lists of statements, innermost first."""

    def __init__(self, states: States) -> None:
        self.states = states
        self.keeps_state = False

    def block(self, statements: List[ast.stmt]) -> List[ast.stmt]:
        result: List[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, Assignment):
                left = self.states.finish(statement)
                self.keeps_state = self.keeps_state or bool(left)
                result.extend(left)
            elif isinstance(statement, ast.If):
                result.extend(self._if(statement))
            elif isinstance(statement, ast.Try):
                result.append(self._try(statement))
            elif isinstance(statement, (ast.While, ast.For, ast.AsyncFor)):
                result.append(self._loop(statement))
            elif isinstance(statement, (ast.With, ast.AsyncWith)):
                statement.body = self.block(statement.body) or [ast.Pass()]
                result.append(statement)
            elif isinstance(statement, ast.Raise):
                result.append(_assertion(None, statement) or statement)
            else:
                result.append(statement)
        return result

    def _if(self, statement: ast.If) -> List[ast.stmt]:
        test, body, orelse = statement.test, self.block(statement.body), self.block(statement.orelse)
        failed = [_failed_assertion(arm) for arm in (body, orelse)]
        if failed[1] is not None:
            return [ast.Assert(test, failed[1].msg), *body]
        if failed[0] is not None:
            return [ast.Assert(build.negate(test), failed[0].msg), *orelse]
        if not body and not orelse:
            return [ast.If(test, [ast.Pass()], [])]
        if not body or leaves(orelse) and (len(orelse) < len(body) or not leaves(body)):
            test, body, orelse = build.negate(test), orelse, body
        if orelse and leaves(body):
            return [ast.If(test, body, []), *orelse]
        return [ast.If(test, body, orelse)]

    def _loop(self, statement: ast.stmt) -> ast.stmt:
        assert isinstance(statement, (ast.While, ast.For, ast.AsyncFor))
        statement.body = _without_last_continue(self.block(statement.body)) or [ast.Pass()]
        statement.orelse = self.block(statement.orelse)
        first = statement.body[0]
        if isinstance(statement, ast.While) and isinstance(first, ast.If) and not first.orelse:
            if len(first.body) == 1 and isinstance(first.body[0], ast.Break):
                return ast.While(build.negate(first.test), statement.body[1:] or [ast.Pass()], [])
        return statement

    def _try(self, statement: ast.Try) -> ast.stmt:
        body = self.block(statement.body) or [ast.Pass()]
        for handler in statement.handlers:
            handler.body = self.block(handler.body) or [ast.Pass()]
        if statement.handlers:
            return ast.Try(body, statement.handlers, [], [])
        final = self.block(statement.finalbody) or [ast.Pass()]
        inner = body[0]
        if len(body) == 1 and isinstance(inner, ast.Try) and not inner.finalbody:
            return ast.Try(inner.body, inner.handlers, inner.orelse, final)
        return ast.Try(body, [], [], final)


def _without_last_continue(statements: List[ast.stmt]) -> List[ast.stmt]:
    if statements and isinstance(statements[-1], ast.Continue):
        return statements[:-1]
    last = statements[-1] if statements else None
    if isinstance(last, ast.If):
        body, orelse = _without_last_continue(last.body), _without_last_continue(last.orelse)
        if body != last.body or orelse != last.orelse:
            if not body:
                last = ast.If(build.negate(last.test), orelse, []) if orelse else ast.If(last.test, [ast.Pass()], [])
            else:
                last = ast.If(last.test, body, orelse)
            return [*statements[:-1], last]
    return statements


def _assertion(test: Optional[ast.expr], statement: ast.stmt) -> Optional[ast.Assert]:
    """What raises ``AssertionError`` without looking the name up is an ``assert``."""
    if not isinstance(statement, ast.Raise) or statement.cause is not None:
        return None
    raised = statement.exc
    test = test if test is not None else ast.Constant(False)
    if isinstance(raised, build.Special):
        return ast.Assert(test, None)
    if isinstance(raised, ast.Call) and isinstance(raised.func, build.Special) and len(raised.args) == 1:
        return ast.Assert(test, raised.args[0])
    return None


def _failed_assertion(arm: List[ast.stmt]) -> Optional[ast.Assert]:
    """The ``assert False`` that ``arm`` consists of."""
    if len(arm) != 1 or not isinstance(arm[0], ast.Assert):
        return None
    test = arm[0].test
    return arm[0] if isinstance(test, ast.Constant) and test.value is False else None
