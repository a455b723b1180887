"""Simplify the dispatcher's statements: drop empty branches and redundant jumps."""

from __future__ import annotations

import ast
import inspect
from typing import Callable, List, Optional

from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.bytecode.syntax_trees import TRY_STATEMENTS, TryStatement
from depyf.decompiler.lift import build
from depyf.decompiler.structure.dispatch.states import Assignment, States
from depyf.decompiler.structure.leaving import is_match, leaves
from depyf.decompiler.structure.unstructured import Unstructured


class Tidy:
    """Rewrites lists of statements, innermost first."""

    def __init__(self, states: States) -> None:
        self.states = states
        self.keeps_state = False

    def whole(self, statements: List[ast.stmt], code: Code) -> List[ast.stmt]:
        """Return the body of ``code``. Raises ``Unstructured`` for what a class or module body can't hold."""
        result = self.block(statements)
        if code.co_name != "<lambda>":
            result = _without_last(result, _returns_none)
        if not code.co_flags & inspect.CO_OPTIMIZED:
            if self.keeps_state:
                raise Unstructured("a state variable would become an attribute of the class or module")
            if any(isinstance(node, ast.Return) for statement in result[:-1] for node in ast.walk(statement)):
                raise Unstructured("a class or module returns before the end of its body")
        return result

    def block(self, statements: List[ast.stmt]) -> List[ast.stmt]:
        """Return ``statements`` without dropped assignments, each simplified."""
        result: List[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, Assignment):
                left = self.states.finish(statement)
                self.keeps_state = self.keeps_state or bool(left)
                result.extend(left)
            elif isinstance(statement, ast.If):
                result.extend(self._if(statement))
            elif isinstance(statement, TRY_STATEMENTS):
                result.append(self._try(statement))
            elif is_match(statement):
                result.append(self._match(statement))
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
        """Simplify an ``if``: an ``assert`` for a failed one, no empty body, no ``else`` after a body that leaves."""
        test, body, orelse = statement.test, self.block(statement.body), self.block(statement.orelse)
        failed = [_failed_assertion(arm) for arm in (body, orelse)]
        if failed[1] is not None:
            return [ast.Assert(test, failed[1].msg), *body]
        if failed[0] is not None:
            return [ast.Assert(build.negate(test), failed[0].msg), *orelse]
        if not body and not orelse:
            return [ast.If(test, [ast.Pass()], [])]
        if not body or (leaves(orelse) and (len(orelse) < len(body) or not leaves(body))):
            test, body, orelse = build.negate(test), orelse, body
        if orelse and leaves(body):
            return [ast.If(test, body, []), *orelse]
        return [ast.If(test, body, orelse)]

    def _match(self, statement: ast.Match) -> ast.stmt:
        for case in statement.cases:
            case.body = self.block(case.body) or [ast.Pass()]
        return statement

    def _loop(self, statement: ast.stmt) -> ast.stmt:
        """Simplify a loop: ``while True: if not a: break`` becomes ``while a``."""
        assert isinstance(statement, (ast.While, ast.For, ast.AsyncFor))
        statement.body = _without_last(self.block(statement.body), _continues) or [ast.Pass()]
        statement.orelse = self.block(statement.orelse)
        first = statement.body[0]
        if isinstance(statement, ast.While) and isinstance(first, ast.If) and not first.orelse:
            if len(first.body) == 1 and isinstance(first.body[0], ast.Break):
                return ast.While(build.negate(first.test), statement.body[1:] or [ast.Pass()], [])
        return statement

    def _try(self, statement: TryStatement) -> ast.stmt:
        """Simplify a ``try``: one that is the whole body of ``try``/``finally`` is joined with it."""
        body: List[ast.stmt] = self.block(statement.body) or [ast.Pass()]
        for handler in statement.handlers:
            handler.body = self.block(handler.body) or [ast.Pass()]
        if statement.handlers:
            statement.body = body
            return statement
        final = self.block(statement.finalbody) or [ast.Pass()]
        inner = body[0]
        if len(body) == 1 and isinstance(inner, ast.Try) and not inner.finalbody:
            return ast.Try(inner.body, inner.handlers, inner.orelse, final)
        return ast.Try(body, [], [], final)


def _without_last(statements: List[ast.stmt], happens_anyway: Callable[[ast.stmt], bool]) -> List[ast.stmt]:
    """Return ``statements`` without redundant jumps at their end, also at the end of branches there."""
    if not statements:
        return statements
    last = statements[-1]
    if happens_anyway(last):
        return _without_last(statements[:-1], happens_anyway)
    if isinstance(last, ast.Try) and not last.finalbody:
        handlers = [_without_last_in(handler, happens_anyway) for handler in last.handlers]
        body = _without_last(last.body, happens_anyway) or [ast.Pass()]
        return [*statements[:-1], ast.Try(body, handlers, [], [])]
    if not isinstance(last, ast.If):
        return statements
    body, orelse = _without_last(last.body, happens_anyway), _without_last(last.orelse, happens_anyway)
    if not body and orelse:
        return [*statements[:-1], ast.If(build.negate(last.test), orelse, [])]
    return [*statements[:-1], ast.If(last.test, body or [ast.Pass()], orelse)]


def _without_last_in(handler: ast.ExceptHandler, happens_anyway: Callable[[ast.stmt], bool]) -> ast.ExceptHandler:
    return ast.ExceptHandler(handler.type, handler.name, _without_last(handler.body, happens_anyway) or [ast.Pass()])


def _continues(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Continue)


def _returns_none(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Return):
        return False
    return statement.value is None or (isinstance(statement.value, ast.Constant) and statement.value.value is None)


def _assertion(test: Optional[ast.expr], statement: ast.stmt) -> Optional[ast.Assert]:
    """Return the ``assert`` for a raise of the ``AssertionError`` that is not looked up; ``None`` otherwise."""
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
    """Return the ``assert False`` that is the whole ``arm``; ``None`` if it is not one."""
    if len(arm) != 1 or not isinstance(arm[0], ast.Assert):
        return None
    test = arm[0].test
    return arm[0] if isinstance(test, ast.Constant) and test.value is False else None
