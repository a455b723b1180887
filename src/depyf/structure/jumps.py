"""Jumps as statements: none, ``continue``, ``break``, ``return``, ``raise``; and what shows that they were written."""

from __future__ import annotations

import ast
from typing import List, Optional

from depyf.flow.written_jumps import Written
from depyf.lift import build
from depyf.lift.nodes import Overridden, Return
from depyf.lift.places import place_of, put
from depyf.structure.place import Place
from depyf.structure.regions import past_marks
from depyf.structure.returns_in_with import mark_break
from depyf.structure.structurer import Structurer


def jump_to(structurer: Structurer, target: int, place: Place) -> Optional[List[ast.stmt]]:
    """Return the statements of a jump to ``target``; ``None`` if the target must be written here."""
    if target == place.follow:
        return _written_continue(structurer, place.left_by) if target == place.continues else []
    if target == place.continues:
        return [ast.Continue()]
    if target == place.breaks:
        return [mark_break(ast.Break()) if _returns_none(structurer, target) else ast.Break()]
    if structurer.shape.is_copyable(target):
        term = structurer.nodes[target].terminator
        structurer.written.add(target)
        if isinstance(term, Overridden):
            return [ast.Return(None)]
        assert isinstance(term, Return)
        return [return_statement(structurer, term)]
    return None


def _returns_none(structurer: Structurer, target: int) -> bool:
    """Return whether the function returns None from ``target`` on, out of the statements around."""
    end = past_marks(structurer, target, Place())
    term = structurer.nodes[end].terminator
    return structurer.shape.is_copyable(end) and isinstance(term, Return) and build.is_none(term.value)


def _written_continue(structurer: Structurer, left_by: Optional[int]) -> List[ast.stmt]:
    """Return the ``continue`` to a node that follows anyway, if the bytecode shows that it was written; else
    nothing."""
    if left_by is None or left_by not in structurer.flow.clause_jumps:
        return []
    jump = ast.Continue()
    put(jump, structurer.flow.clause_jumps[left_by])
    return [jump]


def return_statement(structurer: Structurer, term: Return) -> ast.stmt:
    """Return the ``return`` statement, without a span if it is implicit."""
    value = term.value
    statement: ast.stmt = ast.Return(value)
    if not (isinstance(value, ast.Constant) and value.value is None):
        put(statement, term.span)
        return statement
    written = structurer.flow.written_jumps.of_return(place_of(value))
    if written is Written.PASS:
        statement = ast.Return(ast.Constant(None))
        return statement
    if written is Written.RETURN:
        statement = ast.Return(None)
    if written is not None:
        put(statement, place_of(value))
    return statement


def raise_statement(statement: ast.Raise) -> ast.stmt:
    """Return ``raise``, or ``assert False`` for the exception that only ``assert`` loads without a lookup."""
    raised, message = statement.exc, None
    call = raised if isinstance(raised, ast.Call) and isinstance(raised.func, build.Special) else None
    if call is not None and len(call.args) == 1:
        raised, message = call.func, call.args[0]
    if not isinstance(raised, build.Special):
        return statement
    failed = ast.Assert(ast.Constant(False), message)
    put(failed, place_of(raised))
    return failed
