"""Stores: pending values, functions and imports become statements here only."""

from __future__ import annotations

import ast
from typing import Optional

from depyf.decompiler.lift import build
from depyf.decompiler.lift.containers import as_display, references, replaced
from depyf.decompiler.lift.items import (
    Augmented,
    Container,
    Copy,
    Function,
    ImportMarker,
    Item,
    Mark,
    Marker,
    Retry,
    Target,
    Value,
)
from depyf.decompiler.lift.node_attributes import attributes_of
from depyf.decompiler.lift.nodes import BindException
from depyf.decompiler.lift.simulator import Simulator
from depyf.decompiler.lift.spans import put


def store(sim: Simulator, target: ast.expr, item: Item, local: Optional[str] = None) -> None:
    """Add ``target = item`` in the form that the kind of item requires."""
    sim.check_latest(item)
    if sim.context.records_spans:
        put(target, sim.ops[sim.index - 1].span)
    # ``a = b = value``: COPY, STORE a, STORE b. The copy's store joins the chain of the value, which is emitted later.
    if isinstance(item, Copy):
        item.of.chain.append(target)
        item.of.copies -= 1
    # The place of ``for target in``, ``with ... as target`` or of an unpacking: the statement waits for its target.
    elif isinstance(item, Target):
        sim.fill(item, target)
    elif isinstance(item, Function):
        sim.emit(_definition(item, target), local)
    elif isinstance(item, Container):
        _store_container(sim, item, target, local)
    elif isinstance(item, ImportMarker):
        _store_import(sim, item, target, local)
    # ``except E as target``: the handler stores the exception that is on its stack.
    elif isinstance(item, Marker) and item.kind is Mark.EXC:
        sim.emit(BindException(item.origin, target), local)
    # ``target += value`` is a load, an in-place operator and a store to the same name.
    elif isinstance(item, Value) and isinstance(item.augments, Augmented) and _is_name(target, item.augments.target):
        sim.emit(build.augmented(target, item.augments), local)
    else:
        if isinstance(item, Value):
            # The iterator that ITER has made is stored and not taken by a loop: the next attempt writes it as a value.
            if item.iterated_at >= 0:
                raise Retry("iterators", item.iterated_at)
            # A value with copies on the stack, or inside of a chain of comparisons, needs a temporary at the copy.
            if item.copies or item.tests is not None:
                raise Retry("spill", item.copied_at)
            chain, item.chain = item.chain, []
            sim.emit(ast.Assign([*chain, target], item.expr), local)
        else:
            sim.emit(ast.Assign([target], sim.as_value(item).expr), local)


def _is_name(target: ast.expr, name: object) -> bool:
    """Return whether ``target`` is the variable ``name``."""
    return isinstance(name, ast.Name) and isinstance(target, ast.Name) and name.id == target.id


def _store_container(sim: Simulator, item: Container, target: ast.expr, local: Optional[str]) -> None:
    """Store a display; other references to it get the name of a temporary."""
    expr, values = as_display(item, sim.as_value)
    sim.check_order(values)
    if references(sim.stack, item):
        name = sim.context.temporary()
        replaced(sim.stack, item, Value(ast.Name(name, ast.Load()), stable=True))
        sim.emit(ast.Assign([ast.Name(name, ast.Store()), target], expr), local)
    else:
        sim.emit(ast.Assign([target], expr), local)


def _store_import(sim: Simulator, item: ImportMarker, target: ast.expr, local: Optional[str]) -> None:
    """Add ``import a``, ``import a.b as c`` or one name of ``from a import b as c``."""
    if not isinstance(target, ast.Name):
        raise ValueError("the target of an import is not a name")
    request, name = item.request, item.name
    if name is None:
        top = request.name.partition(".")[0]
        sim.emit(request.statement(ast.alias(request.name, None if target.id == top else target.id)), local)
        return
    if request.names is None:
        sim.emit(request.statement(ast.alias(request.name, target.id)), local)
        return
    alias = ast.alias(name, None if name == target.id else target.id)
    last = sim.node.statements[-1] if sim.node.statements else None
    if isinstance(last, ast.ImportFrom) and attributes_of(last).get("request") is request:
        last.names.append(alias)
        return
    statement = request.statement(alias)
    attributes_of(statement)["request"] = request
    sim.emit(statement, local)


def _definition(function: Function, target: ast.expr) -> ast.stmt:
    """Return the ``def`` of a function, or an assignment if it is stored under another name."""
    name = target.id if isinstance(target, ast.Name) else None
    if name is None or function.is_lambda or not build.names_match(function.name, name):
        return ast.Assign([target], build.function_expression(function))
    return build.function_statement(function, name)
