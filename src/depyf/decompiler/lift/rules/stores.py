"""Stores and deletions of names, attributes and items; patterns give augmented assignments and annotations."""

from __future__ import annotations

import ast
from typing import List, Optional, Sequence, Tuple

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.lift import build
from depyf.decompiler.lift.containers import constant_key
from depyf.decompiler.lift.followed import delete_from_container, store_into_container
from depyf.decompiler.lift.items import GENERIC_BASE, Augmented, Container, Copy, Function, Item, Retry, Target, Value
from depyf.decompiler.lift.simulator import Simulator, stored_on_the_way
from depyf.decompiler.lift.spans import put
from depyf.decompiler.lift.stored_items import store
from depyf.decompiler.normal.ops import Instr, Op


def _store(sim: Simulator, instr: Instr) -> None:
    scope, name = instr.arg
    if name == GENERIC_BASE:
        sim.pop()
        return
    if scope == "fast" and _store_tuple(sim, instr):
        return
    top = sim.stack[-1] if sim.stack else None
    if scope == "fast" and name in sim.context.hints.droppable and isinstance(top, Container) and top.offset >= 0:
        sim.node.containers[name] = top
        sim.stack.pop()
        return
    if scope == "fast":
        sim.node.containers.pop(name, None)
    store(sim, ast.Name(name, ast.Store()), sim.pop(), name if scope == "fast" else None)


def _store_tuple(sim: Simulator, instr: Instr) -> bool:
    """Emit ``a, b = x, y`` for ``x; y; STORE b; STORE a``: with local names the stores are swapped, not the values."""
    # Two or three stores to different local names in a row; more are compiled as a tuple that is unpacked.
    names = [instr.arg[1]]
    for following in sim.ahead(2):
        if following.op is not Op.STORE or following.arg[0] != "fast" or following.arg[1] in names:
            break
        names.append(following.arg[1])
    # As many values from the top as are values alone: a lambda, or an expression without copies and pending targets.
    count = 0
    for item in reversed(sim.stack[-len(names) :]):
        if isinstance(item, Function) and item.is_lambda:
            count += 1
            continue
        if not isinstance(item, Value) or item.copies or item.tests or item.augments:
            break
        if not all(isinstance(target, ast.Name) for target in item.chain):
            break
        count += 1
    if count < 2 or not _keep_their_order(sim.stack[-count:]) or instr.offset in sim.context.decisions.plain_swap:
        return False
    # Values that are not evaluated in the order of the stack are no swap; the next attempt stores them one by one.
    values = sim.pop_values(count)
    try:
        sim.check_order(values)
    except Retry:
        raise Retry("plain_swap", instr.offset) from None
    targets: List[ast.expr] = []
    for position, name in enumerate(names[:count]):
        targets.insert(0, ast.Name(name, ast.Store()))
        if sim.context.records_spans:
            put(targets[0], _span_of_store(sim, sim.index - 1 + position))
    sim.index += count - 1
    stored = ast.Tuple([value.expr for value in values], ast.Load())
    sim.emit(ast.Assign([ast.Tuple(targets, ast.Store())], stored), "*")
    return True


def _span_of_store(sim: Simulator, index: int) -> Optional[Span]:
    """Return the span of the target that the operation at ``index`` stores. For two stores in one instruction (3.13)
    the line table only has the span of the first, which in ``a, b = ...`` is on the right of the other."""
    instr = sim.ops[index]
    if not index or sim.ops[index - 1].offset != instr.offset or instr.span is None or instr.span.column is None:
        return instr.span
    end = instr.span.column - len(", ")
    return instr.span._replace(column=end - len(instr.arg[1]), end_line=instr.span.line, end_column=end)


def _keep_their_order(items: Sequence[Item]) -> bool:
    """Return whether each load of a variable that a pending value stores stays on its side of that store."""
    changed = stored_on_the_way(items)
    if not changed:
        return True
    positions = {item.order: index for index, item in enumerate(items) if isinstance(item, Value) and item.chain}
    return all(
        (index < positions[changed[item.local]]) == (item.order < changed[item.local])
        for index, item in enumerate(items)
        if isinstance(item, Value) and item.local in changed and not item.chain
    )


def _delete(sim: Simulator, instr: Instr) -> None:
    scope, name = instr.arg
    if scope == "fast" and name in sim.node.containers:
        sim.drop_container(name)
        return
    sim.emit(ast.Delete([ast.Name(name, ast.Del())]), name if scope == "fast" else None)


def _store_attr(sim: Simulator, instr: Instr) -> None:
    base = sim.pop()
    item = sim.pop()
    target = ast.Attribute(_expr_of(base), instr.arg, ast.Store())
    _store_at(sim, item, (base,), target)


def _store_subscr(sim: Simulator, instr: Instr) -> None:
    key = sim.pop()
    base = sim.pop()
    item = sim.pop()
    if isinstance(base, Container):
        store_into_container(base, key, item)
        return
    if isinstance(base, Copy) and isinstance(base.of.expr, (ast.List, ast.Tuple)) and constant_key(key) is not None:
        sim.wants_containers()
    if _annotates(sim, base, key, item):
        return
    target = build.subscript(_expr_of(base), _expr_of(key), ast.Store())
    _store_at(sim, item, (base, key), target)


def _expr_of(item: Item) -> ast.expr:
    if isinstance(item, Value) and not item.chain:
        return item.expr
    return ast.Constant(None) if not isinstance(item, Value) else item.expr


def _store_at(sim: Simulator, item: Item, operands: Tuple[Item, ...], target: ast.expr) -> None:
    if isinstance(item, Value) and isinstance(item.augments, Augmented) and isinstance(item.augments.target, tuple):
        known = item.augments.target
        if len(known) != len(operands) or not all(a is b for a, b in zip(known, operands)):
            raise Retry("spill", item.copied_at)
        for base in known:
            base.copies = 0
        sim.check_order(known)
        _put_together(target, [sim.as_value(base).expr for base in known])
        sim.emit(build.augmented(target, item.augments), "*")
        return
    values = [sim.as_value(base) for base in operands]
    _put_together(target, [value.expr for value in values])
    if isinstance(item, Value):
        sim.check_order([item, *values])
    store(sim, target, item, "*" if not isinstance(item, (Copy, Target)) else None)


def _put_together(target: ast.expr, exprs: List[ast.expr]) -> None:
    """Make ``exprs`` the base and key of ``target``; values that were stored while pending are walruses in them."""
    if isinstance(target, ast.Subscript):
        key = exprs[1] if len(exprs) == 2 else build.slice_of(exprs[1:])
        target.value, target.slice = exprs[0], build.subscript(exprs[0], key, target.ctx).slice
    elif isinstance(target, ast.Attribute):
        target.value = exprs[0]


def store_augmented_slice(sim: Simulator) -> bool:
    """End ``base[low:high] += value`` (since 3.12). Return False unless the top three items were copied for it."""
    if len(sim.stack) < 4 or [instr.op for instr in sim.ahead(1)] != [Op.STORE_SUBSCR]:
        return False
    item, *operands = sim.stack[-4:]
    if not isinstance(item, Value) or not isinstance(item.augments, Augmented):
        return False
    del sim.stack[-4:]
    sim.index += 1
    target = ast.Subscript(ast.Constant(None), ast.Constant(None), ast.Store())
    _store_at(sim, item, tuple(operands), target)
    return True


def _annotates(sim: Simulator, base: Item, key: Item, item: Item) -> bool:
    """Emit ``name: annotation = value`` of a class or module, which ends with ``__annotations__['name'] = annotation``.
    Return False for other stores."""
    if not (
        isinstance(base, Value)
        and isinstance(base.expr, ast.Name)
        and base.expr.id == "__annotations__"
        and isinstance(key, Value)
        and isinstance(key.expr, ast.Constant)
        and isinstance(key.expr.value, str)
        and isinstance(item, Value)
        and item.order <= base.order
    ):
        return False
    name = key.expr.value
    if not name.isidentifier():
        return False
    # The value was stored by the statement before, ``name = value``: both are one annotated assignment. That statement
    # is only taken back if settling the annotation has emitted nothing after it.
    value = None
    statements = sim.node.statements
    annotation = sim.as_value(item).expr
    if statements and isinstance(statements[-1], ast.Assign) and len(statements[-1].targets) == 1:
        target = statements[-1].targets[0]
        if isinstance(target, ast.Name) and target.id == name:
            value = statements[-1].value
            sim.settle()
            if statements[-1] is sim.node.statements[-1]:
                sim.node.statements.pop()
            else:
                value = None
    sim.emit(ast.AnnAssign(ast.Name(name, ast.Store()), annotation, value, 1))
    return True


def _delete_subscr(sim: Simulator, instr: Instr) -> None:
    base, key = sim.stack[-2:]
    if isinstance(base, Container):
        delete_from_container(sim, base, key)
        return
    values = sim.pop_values(2)
    sim.check_order(values)
    sim.emit(ast.Delete([build.subscript(values[0].expr, values[1].expr, ast.Del())]))


def _delete_attr(sim: Simulator, instr: Instr) -> None:
    sim.emit(ast.Delete([ast.Attribute(sim.pop_value().expr, instr.arg, ast.Del())]))
