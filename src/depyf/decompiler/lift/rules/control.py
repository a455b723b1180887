"""Iteration, generators, the end of blocks, exceptions and ``with``."""

from __future__ import annotations

import ast
import inspect
from typing import Any, cast

from depyf.decompiler.lift.items import Mark, Marker, Target
from depyf.decompiler.lift.nodes import ComprehensionExpression, PopException, Raise, Reraise, Return, WithEnter
from depyf.decompiler.lift.not_folded import iterated
from depyf.decompiler.lift.simulator import Simulator
from depyf.decompiler.lift.spans import has_columns, put, span_of
from depyf.decompiler.normal.inlined import InlinedCode
from depyf.decompiler.normal.ops import Instr, Op


def _iter(sim: Simulator, instr: Instr) -> None:
    """Make an iterator. Only a call of the builtin itself makes one that is a plain value, as Dynamo has (2.11)."""
    value = sim.pop_value()
    if instr.offset in sim.context.decisions.iterators:
        sim.combine(lambda iterable: ast.Call(ast.Constant(cast(Any, iter)), [iterable], []), [value])
    else:
        sim.push(iterated(value.expr)).iterated_at = instr.offset


def _aiter(sim: Simulator, instr: Instr) -> None:
    value = sim.pop_value()
    sim.push(value.expr)


def _yield_from_iter(sim: Simulator, instr: Instr) -> None:
    value = sim.pop_value()
    sim.push(ast.YieldFrom(value.expr))


def _awaitable(sim: Simulator, instr: Instr) -> None:
    if isinstance(sim.stack[-1], Marker):  # the result of an async exit
        return
    if isinstance(sim.stack[-1], Target):  # the result of an async enter
        return
    value = sim.pop_value()
    if isinstance(value.expr, ComprehensionExpression) and _awaits_itself(value.expr):
        value.expr.awaited = True
        sim.stack.append(value)
        return
    sim.push(ast.Await(value.expr))


def _awaits_itself(expr: ComprehensionExpression) -> bool:
    """Return whether the next await is part of an asynchronous comprehension. It is none of an inlined loop (3.12),
    else the first. ``await [x async for x in xs]`` has one more."""
    code = expr.function.code
    return bool(code.co_flags & inspect.CO_COROUTINE) and not isinstance(code, InlinedCode) and not expr.awaited


def _yield_from(sim: Simulator, instr: Instr) -> None:
    sim.pop()
    if isinstance(sim.stack[-1], (Marker, Target)):
        return
    value = sim.pop_value()
    if isinstance(value.expr, ComprehensionExpression) and value.expr.awaited:
        sim.stack.append(value)
        return
    if not isinstance(value.expr, (ast.Await, ast.YieldFrom)):
        raise ValueError(f"the operand of YIELD_FROM at offset {instr.offset} is not an iterator")
    sim.push(value.expr)


def _yield(sim: Simulator, instr: Instr) -> None:
    value = sim.pop_value()
    nothing = isinstance(value.expr, ast.Constant) and value.expr.value is None
    if nothing and has_columns(value.expr) and span_of(value.expr) != instr.span:
        nothing = False  # ``None`` was written: it has a span of its own
    sim.push(ast.Yield(None if nothing else value.expr))


def _return(sim: Simulator, instr: Instr) -> None:
    sim.node.terminator = Return(sim.pop_value().expr, instr.span if sim.context.records_spans else None)


def _raise(sim: Simulator, instr: Instr) -> None:
    values = sim.pop_values(instr.arg)
    sim.check_order(values)
    sim.settle_exit()
    exprs = [value.expr for value in values]
    statement = ast.Raise(*exprs, *[None] * (2 - len(exprs)))
    if sim.context.records_spans:
        put(statement, instr.span)
    sim.node.terminator = Raise(statement)


def _reraise(sim: Simulator, instr: Instr) -> None:
    item = sim.pop()
    if isinstance(item, Marker) and item.kind is Mark.EXC:
        sim.node.terminator = Reraise(item.origin)
    else:
        sim.node.terminator = Reraise(None, sim.as_value(item).expr)


def _push_exc(sim: Simulator, instr: Instr) -> None:
    exc = sim.pop()
    if not isinstance(exc, Marker):
        raise ValueError(f"the value handled at offset {instr.offset} is not an exception")
    sim.stack.append(Marker(Mark.PREV, exc.origin))
    sim.stack.append(exc)


def _pop_exc(sim: Simulator, instr: Instr) -> None:
    prev = sim.pop()
    if not (isinstance(prev, Marker) and prev.kind is Mark.PREV):
        raise ValueError(f"POP_EXCEPT without a handled exception at offset {instr.offset}")
    sim.settle_exit()
    sim.node.leave(PopException(prev.origin, sim.pending(), instr.offset))


def _check_exc(sim: Simulator, instr: Instr) -> None:
    type_ = sim.pop_value()
    exc = sim.stack[-1]
    if not (isinstance(exc, Marker) and exc.kind is Mark.EXC):
        raise ValueError(f"the exception tested at offset {instr.offset} is not the handled one")
    sim.stack.append(Marker(Mark.MATCHED, exc.origin, type_.expr))


def _check_group(sim: Simulator, instr: Instr) -> None:
    """Execute ``exc type -> exc matched``. Raises ``ValueError`` if the value split is not the handled exception."""
    type_ = sim.pop_value()
    exc = sim.stack[-1] if sim.stack else None
    if not (isinstance(exc, Marker) and exc.kind is Mark.EXC):
        raise ValueError(f"the exception group split at offset {instr.offset} is not the handled exception")
    sim.stack.append(Marker(Mark.MATCHED_GROUP, exc.origin, type_.expr))


def _end_groups(sim: Simulator, instr: Instr) -> None:
    """Execute ``exc ->`` after the last clause."""
    exc = sim.pop()
    if not (isinstance(exc, Marker) and exc.kind is Mark.EXC):
        raise ValueError(f"PREP_RERAISE_STAR at offset {instr.offset} is outside of an except* statement")


def _with(sim: Simulator, instr: Instr) -> None:
    manager = sim.pop_value()
    enter = WithEnter(instr.offset, manager.expr, instr.op is Op.ASYNC_WITH)
    sim.emit(enter)
    sim.stack.append(Marker(Mark.EXIT, instr.offset))

    def fill(target: ast.expr) -> None:
        enter.target = target

    sim.stack.append(Target(fill))


def _with_except(sim: Simulator, instr: Instr) -> None:
    leave = sim.stack[-4] if len(sim.stack) >= 4 else None
    if not (isinstance(leave, Marker) and leave.kind in (Mark.EXIT, Mark.EXIT_RESULT)):
        raise ValueError(f"the callable at offset {instr.offset} is not the exit method of a with statement")
    sim.stack.append(Marker(Mark.WITH_RESULT, leave.origin))


def _unsupported(sim: Simulator, instr: Instr) -> None:
    raise ValueError(f"{instr.op.name} at offset {instr.offset} is not part of any pattern with syntax")
