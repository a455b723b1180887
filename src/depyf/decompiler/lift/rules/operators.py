"""Operators, comparisons, subscripts and attributes that are read."""

from __future__ import annotations

import ast
from itertools import islice
from typing import Callable, List

from depyf.decompiler.lift import build
from depyf.decompiler.lift.containers import constant_key
from depyf.decompiler.lift.followed import subscript_container
from depyf.decompiler.lift.items import Augmented, BoundMethod, Container, Copy, Item, ReadAt, Retry, Value
from depyf.decompiler.lift.not_folded import folds, item_of, not_folded, searched
from depyf.decompiler.lift.simulator import Simulator
from depyf.decompiler.normal.ops import Instr, Op


def _unary(sim: Simulator, instr: Instr) -> None:
    operator = build.UNARY[instr.arg]()
    value = sim.pop_value()
    if isinstance(value.expr, ast.Constant):
        value.expr = not_folded(value.expr, lambda operand: ast.UnaryOp(operator, operand))
    sim.combine(lambda operand: ast.UnaryOp(operator, operand), [value])


def _binary(sim: Simulator, instr: Instr) -> None:
    operator = build.BINARY[instr.arg]()
    values = sim.pop_values(2)
    left, right = (value.expr for value in values)
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        if "" in (left.value, right.value) and folds(ast.BinOp(left, operator, right)):
            # One of the two was an empty ``f""``, which is not a constant before it is compiled (3.13).
            for value in values:
                value.expr = ast.JoinedStr([]) if build.constant(value.expr) == "" else value.expr
        elif not (_are_integers(left, right) and isinstance(operator, _PROVED_FOLDED)):
            values[0].expr = not_folded(left, lambda operand: ast.BinOp(operand, operator, right))
    sim.combine(lambda one, two: ast.BinOp(one, operator, two), values)


_PROVED_FOLDED = (ast.Add, ast.Sub, ast.Mult)
"""The operators on integers that the verifier folds, too: 3.14 does not fold them everywhere."""


def _are_integers(*constants: ast.Constant) -> bool:
    return all(type(each.value) is int for each in constants)


def _inplace(sim: Simulator, instr: Instr) -> None:
    """Combine ``left += right``. The value is marked ``Augmented``, and the store that follows writes the statement."""
    # a.b += 1      LOAD a; COPY 1; ATTR b; LOAD 1; INPLACE +; SWAP 2; STORE_ATTR b
    # a += 1        LOAD a; LOAD 1; INPLACE +; STORE a
    operator = build.BINARY[instr.arg]()
    right = sim.pop_value()
    left = sim.pop()
    if isinstance(left, Value) and isinstance(left.augments, ReadAt):
        if _is_stored_back(sim, left.expr):
            value = sim.push(left.expr)
            value.augments, value.copied_at = Augmented(left.augments.bases, operator, right.expr), left.copied_at
            return
        if left.copied_at >= 0:
            raise Retry("spill", left.copied_at)
        left.augments = None
    left = sim.as_value(left)
    sim.check_order([left, right])
    following = sim.ahead(1)
    if isinstance(left.expr, ast.Name) and following and following[0].op is Op.STORE:
        if following[0].arg[1] == left.expr.id:
            sim.push(left.expr).augments = Augmented(left.expr, operator, right.expr)
            return
    # The result is not stored where it came from, as in bytecode of other tools.
    name = sim.context.temporary()
    sim.emit(ast.Assign([ast.Name(name, ast.Store())], left.expr))
    sim.emit(ast.AugAssign(ast.Name(name, ast.Store()), operator, right.expr))
    sim.push_temporary(name)


def _is_stored_back(sim: Simulator, read: ast.expr) -> bool:
    """Return whether the next store is to the attribute or item that ``read`` has read."""
    following = next((instr for instr in islice(sim.ops, sim.index, None) if instr.op is not Op.SWAP), None)
    if following is None:
        return False
    if following.op is Op.BUILD:
        return following.arg == ("slice", 2) and isinstance(read, ast.Subscript) and isinstance(read.slice, ast.Slice)
    if isinstance(read, ast.Attribute):
        return following.op is Op.STORE_ATTR and following.arg == read.attr
    return following.op is Op.STORE_SUBSCR


def _compare(sim: Simulator, instr: Instr) -> None:
    operator = build.comparison(instr)
    left = sim.stack[-2]
    chain = left.tests if isinstance(left, Value) else None
    values = sim.pop_values(2 if chain is None else 1)
    if instr.op is Op.IN:
        values[-1].expr = searched(values[-1].expr)
    if chain is not None:
        sim.pop()
        sim.push(build.chain_expression(build.longer(chain, operator, values[0].expr)))
        return
    sim.combine(lambda one, two: ast.Compare(one, [operator], [two]), values)


def _subscr(sim: Simulator, instr: Instr) -> None:
    """Read ``base[key]``, perhaps as the first half of ``base[key] += value``."""
    # base[key] += 1    LOAD base; LOAD key; COPY 2; COPY 2; SUBSCR; LOAD 1; INPLACE +; SWAP 3; SWAP 2; STORE_SUBSCR
    base, key = sim.stack[-2:]
    if isinstance(base, Container) and subscript_container(sim, base, key):
        return
    if isinstance(base, Copy) and isinstance(base.of.expr, (ast.List, ast.Tuple)) and constant_key(key) is not None:
        sim.wants_containers()
    if isinstance(base, Copy) or isinstance(key, Copy):
        _augmented_load(sim, [base, key], lambda exprs: build.subscript(exprs[0], exprs[1], ast.Load()))
        return
    if _augments_stable(sim, 2):
        return
    values = sim.pop_values(2)
    left, right = (value.expr for value in values)
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        values[0].expr = not_folded(left, lambda operand: item_of(operand, right))
    sim.combine(lambda one, two: build.subscript(one, two, ast.Load()), values)


def load_augmented_slice(sim: Simulator) -> bool:
    """Start ``base[low:high] += value``, which copies all operands since 3.12. Return False for any other slice."""
    if len(sim.stack) < 6 or [instr.op for instr in sim.ahead(1)] != [Op.SUBSCR]:
        return False
    items, below = sim.stack[-3:], sim.stack[-6:-3]
    if not all(map(_is_copy, items, below)):
        return False

    def read(exprs: List[ast.expr]) -> ast.expr:
        return build.subscript(exprs[0], build.slice_of(exprs[1:]), ast.Load())

    if any(isinstance(item, Copy) for item in items):
        _augmented_load(sim, items, read)
    else:
        bases = [base for base in below if isinstance(base, Value)]
        del sim.stack[-3:]
        sim.push(read([base.expr for base in bases])).augments = ReadAt(tuple(bases))
    sim.index += 1
    return True


def _is_copy(item: Item, base: Item) -> bool:
    if isinstance(item, Copy):
        return item.of is base
    return isinstance(item, Value) and isinstance(base, Value) and item.stable and item.expr is base.expr


def _augmented_load(sim: Simulator, items: List[Item], make: Callable[[List[ast.expr]], ast.expr]) -> None:
    """Read the value of ``a[i] += v`` through copies of ``a`` and ``i``, and record its location."""
    copied = [item.offset for item in items if isinstance(item, Copy)]
    bases: List[Value] = []
    for item, base in zip(items, sim.stack[-2 * len(items) : -len(items)]):
        if isinstance(item, Copy) and item.of is base:
            bases.append(item.of)
        elif isinstance(item, Value) and isinstance(base, Value) and item.stable and item.expr is base.expr:
            bases.append(base)
        else:
            raise Retry("spill", copied[0])
    if len(bases) != len(items):
        raise Retry("spill", copied[0])
    del sim.stack[-len(items) :]
    value = sim.push(make([base.expr for base in bases]))
    value.augments, value.copied_at = ReadAt(tuple(bases)), max(copied)


def _augments_stable(sim: Simulator, count: int) -> bool:
    """Read it through stable operands, which COPY duplicates as plain values: only if a store follows."""
    stack = sim.stack
    if len(stack) < 2 * count:
        return False
    bases: List[Value] = []
    for item, base in zip(stack[-count:], stack[-2 * count : -count]):
        if not (isinstance(item, Value) and isinstance(base, Value) and item.stable and item.expr is base.expr):
            return False
        bases.append(base)
    exprs = [base.expr for base in bases]
    del stack[-count:]
    if count == 2:
        sim.push(build.subscript(exprs[0], exprs[1], ast.Load())).augments = ReadAt(tuple(bases))
    return True


def _attr(sim: Simulator, instr: Instr) -> None:
    item = sim.stack[-1]
    if isinstance(item, Container):
        sim.stack[-1] = BoundMethod(item, instr.arg)
        return
    if isinstance(item, Copy):
        _augmented_load(sim, [item], lambda exprs: ast.Attribute(exprs[0], instr.arg, ast.Load()))
        return
    below = sim.stack[-2] if len(sim.stack) > 1 else None
    if isinstance(item, Value) and isinstance(below, Value) and item.stable and item.expr is below.expr:
        sim.pop()
        sim.push(ast.Attribute(item.expr, instr.arg, ast.Load())).augments = ReadAt((below,))
        return
    sim.combine(lambda value: ast.Attribute(value, instr.arg, ast.Load()), [sim.pop_value()])


def _super_attr(sim: Simulator, instr: Instr) -> None:
    """Build ``super().name``: without arguments, ``super`` finds the other two values itself."""
    name, has_arguments = instr.arg

    def attribute(callee: ast.expr, *arguments: ast.expr) -> ast.expr:
        call = ast.Call(callee, list(arguments) if has_arguments else [], [])
        return ast.Attribute(call, name, ast.Load())

    sim.combine(attribute, sim.pop_values(3))
