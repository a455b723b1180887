"""Jumps as statements: ``continue``, ``return``, ``raise``; and what shows that a redundant one was written."""

from __future__ import annotations

import ast
from typing import List, Optional

from depyf.decompiler.flow.written_jumps import Written
from depyf.decompiler.lift import build
from depyf.decompiler.lift.nodes import Return
from depyf.decompiler.lift.spans import put, span_of
from depyf.decompiler.structure.regions import Regions
from depyf.decompiler.structure.targets import Targets


class Jumps:
    """The jumps of one graph, with the spans that its line table has for them."""

    def __init__(self, regions: Regions) -> None:
        self.regions, self.shape, self.nodes = regions, regions.shape, regions.nodes
        self.flow = regions.shape.flow

    def returns_none(self, target: int) -> bool:
        """Return whether the function returns None from ``target`` on, out of the statements around."""
        end = self.regions.past_marks(target, Targets())
        term = self.nodes[end].terminator
        return self.shape.is_copyable(end) and isinstance(term, Return) and build.is_none(term.value)

    def explicit_continue(self, left_by: Optional[int]) -> List[ast.stmt]:
        """Return the ``continue`` to a node that follows anyway, if the bytecode shows that it was written; else
        nothing. ``left_by``: the offset of the POP_EXC before the jump."""
        if left_by is None or left_by not in self.flow.clause_jumps:
            return []
        jump = ast.Continue()
        put(jump, self.flow.clause_jumps[left_by])
        return [jump]

    def explicit_jump(self, target: int, targets: Targets, *, rest_leaves: bool) -> Optional[ast.stmt]:
        """Return the jump to ``target`` that was written although control falls through to it; ``None`` if none was."""
        target = self.regions.past_marks(target, targets)
        if target == targets.follow == targets.continues and rest_leaves:
            return ast.Continue()
        if target == targets.follow == self.shape.end:
            return self._written_pass(target) or ast.Return(None)
        return None

    def _written_pass(self, end: int) -> Optional[ast.stmt]:
        """Return the ``pass`` whose span the implicit return at node ``end`` has; ``None`` if it has another span."""
        term = self.nodes[end].terminator
        span = span_of(term.value) if isinstance(term, Return) else None
        if span is None or self.flow.written_jumps.of_return(span) is not Written.PASS:
            return None
        statement = ast.Pass()
        put(statement, span)
        return statement

    def return_statement(self, term: Return) -> ast.stmt:
        """Return the ``return`` statement, without a span if it is implicit."""
        value = term.value
        statement: ast.stmt = ast.Return(value)
        if not build.is_none(value):
            put(statement, term.span)
            return statement
        # LOAD_CONST None; RETURN_VALUE is a ``return``, ``return None`` or the end of the function. The span of the
        # constant tells: it is the span of ``return``, of ``None``, or of the last statement, which may be a ``pass``.
        written = self.flow.written_jumps.of_return(span_of(value))
        if written is Written.PASS:
            return ast.Return(ast.Constant(None))
        if written is Written.RETURN:
            statement = ast.Return(None)
        if written is not None:
            put(statement, span_of(value))
        return statement


def raise_statement(statement: ast.Raise) -> ast.stmt:
    """Return ``raise``, or ``assert False`` for the exception that only ``assert`` loads without a lookup."""
    # LOAD_ASSERTION_ERROR; RAISE_VARARGS 1                       assert False
    # LOAD_ASSERTION_ERROR; LOAD_CONST 'text'; CALL; RAISE_VARARGS 1    assert False, 'text'
    raised, message = statement.exc, None
    call = raised if isinstance(raised, ast.Call) and isinstance(raised.func, build.Special) else None
    if call is not None and len(call.args) == 1:
        raised, message = call.func, call.args[0]
    if not isinstance(raised, build.Special):
        return statement
    failed = ast.Assert(ast.Constant(False), message)
    put(failed, span_of(raised))
    return failed
