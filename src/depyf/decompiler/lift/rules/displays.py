"""Displays of containers, unpacking, formatted values."""

from __future__ import annotations

import ast
from typing import Callable, Dict, Type

from depyf.decompiler.lift import build, display_expressions
from depyf.decompiler.lift.followed import build_container, extend_container
from depyf.decompiler.lift.items import Container, Copy, Emitter, Item, Target, Value
from depyf.decompiler.lift.nodes import Accumulate, AnnotationMark
from depyf.decompiler.lift.rules.operators import load_augmented_slice
from depyf.decompiler.lift.rules.stores import store_augmented_slice
from depyf.decompiler.lift.simulator import Simulator
from depyf.decompiler.lift.spans import put
from depyf.decompiler.lift.stored_items import store
from depyf.decompiler.lift.unpacking import Unpacking
from depyf.decompiler.normal.ops import Instr, Op


def _build(sim: Simulator, instr: Instr) -> None:
    kind, count = instr.arg
    if sim.context.follows_containers and build_container(sim, kind, count):
        return
    if kind == "slice" and count == 2 and (load_augmented_slice(sim) or store_augmented_slice(sim)):
        return
    if kind == "const_key_map":
        keys = build.constant(sim.pop_value().expr)
        if not isinstance(keys, tuple):
            raise ValueError(f"the keys of a dict are {keys!r}, which is not a tuple")
        values = sim.pop_values(count)
        sim.combine(lambda *exprs: ast.Dict([ast.Constant(key) for key in keys], list(exprs)), values)
    elif kind == "map":
        values = sim.pop_values(2 * count)
        sim.combine(lambda *exprs: ast.Dict(list(exprs[::2]), list(exprs[1::2])), values)
    else:
        make = display_expressions.DISPLAYS[kind]
        values = sim.pop_values(count)
        constant = kind == "slice" and all(isinstance(value.expr, ast.Constant) for value in values)
        sim.combine(lambda *exprs: make(list(exprs)), values, stable=constant).whole = kind in ("tuple_of", "map_of")


def _add(sim: Simulator, instr: Instr) -> None:
    kind, depth = instr.arg
    key = None
    # A list whose elements are followed as stack items.
    if isinstance(sim.stack[-depth - 1], Container) and kind == "list":
        element = sim.pop()
        sim.stack[-depth].elements.append(element)
        return
    element = sim.pop_value()
    operands = [element]
    if kind == "map":
        key = sim.pop_value()
        operands.insert(0, key)
    sim.check_order(operands)
    container = sim.stack[-depth]
    # 3.14 marks in a set which annotations of a class have been reached: no code of the author's.
    if _is_set_of_marks(container):
        mark, number = AnnotationMark(), build.constant(element.expr)
        if not isinstance(number, int):
            raise ValueError(f"the mark of an annotation at offset {instr.offset} is not a number")
        mark.number = number
        sim.stack[-depth] = Value(ast.Constant(None), stable=True)
        sim.emit(mark)
        return
    # ``{**a, 'k': v}`` and large displays: an empty display that is filled element by element.
    if isinstance(container, Value) and _grows_display(container, kind):
        keyed = key.expr if key else None
        container.expr = display_expressions.add_to_display(container.expr, element.expr, keyed)
        container.order = sim.context.next_order()
        return
    # What is left is the element of a comprehension; elsewhere another attempt follows containers in locals.
    if not sim.context.is_comprehension:
        sim.wants_containers()
        raise ValueError(f"an element is added to a {kind} that is not a display at offset {instr.offset}")
    _accumulate(sim, depth, Accumulate(kind, element.expr, key.expr if key else None))


def _accumulate(sim: Simulator, depth: int, addition: Accumulate) -> None:
    """Add to the result of a comprehension, which is the ``depth``-th value."""
    sim.stack[-depth] = kept = sim.as_value(sim.stack[-depth])
    if not kept.stable:
        sim.keep(kept)
    sim.emit(addition)


def _is_set_of_marks(container: Item) -> bool:
    """Return whether ``container`` is the set of annotations (3.14) that collects the numbers of those that are
    executed."""
    expr = container.expr if isinstance(container, Value) else None
    return isinstance(expr, ast.Name) and expr.id == "__conditional_annotations__"


def _grows_display(container: Value, kind: str) -> bool:
    shapes: Dict[str, Type[ast.expr]] = {"list": ast.List, "set": ast.Set, "map": ast.Dict}
    return not container.copies and isinstance(container.expr, shapes[kind])


def _update(sim: Simulator, instr: Instr) -> None:
    kind, depth = instr.arg
    if isinstance(sim.stack[-depth - 1], Container):
        extend_container(sim, sim.stack[-depth - 1])
        return
    if depth > 1 and sim.context.is_comprehension:  # the iterator is in between
        element = sim.pop_value().expr
        _accumulate(sim, depth, Accumulate(kind, element if kind == "map" else ast.Starred(element, ast.Load())))
        return
    more = sim.pop_value()
    container = sim.stack[-depth]
    if not isinstance(container, Value) or not _grows_display(container, "map" if kind == "kwargs" else kind):
        sim.wants_containers()
        raise ValueError(f"a {kind} that is not a display is extended at offset {instr.offset}")
    sim.check_order([container, more])
    container.expr = display_expressions.extend_display(container.expr, more.expr, for_call=kind == "kwargs")
    container.order = sim.context.next_order()


def _list_to_tuple(sim: Simulator, instr: Instr) -> None:
    if isinstance(sim.stack[-1], Container):
        sim.stack[-1] = Container("tuple", list(sim.stack[-1].elements))
        return
    value = sim.pop_value()
    if not isinstance(value.expr, ast.List):
        raise ValueError(f"a value other than a list display becomes a tuple at offset {instr.offset}")
    sim.push(ast.Tuple(value.expr.elts, ast.Load()))


def _annotates_parameter(sim: Simulator) -> bool:
    """Return whether ``def f(*args: *T)`` unpacks ``T`` above the parameter's name; an assignment has nothing below."""
    below = sim.stack[-1] if sim.stack else None
    return isinstance(below, Value) and isinstance(below.expr, ast.Constant) and isinstance(below.expr.value, str)


def _unpack(sim: Simulator, instr: Instr) -> None:
    if instr.op is Op.UNPACK:
        count, star = instr.arg, None
    else:
        before, after = instr.arg
        count, star = before + 1 + after, before
    item = sim.pop()
    # A display whose elements are followed as stack items, and that has one for each target: each is stored alone.
    if isinstance(item, Container) and instr.op is Op.UNPACK and len(item.elements) == count:
        sim.stack.extend(reversed(item.elements))
        return
    if count == 1 and star is None and isinstance(item, Value) and _annotates_parameter(sim):
        sim.push(ast.Starred(sim.as_value(item).expr, ast.Load()))
        return
    done: Callable[[Emitter, ast.expr], None]
    if count == 0:
        store(sim, ast.Tuple([], ast.Store()), item)
        return
    # The targets are collected from the stores that follow. What is done with them depends on the item: the place of a
    # ``for`` or ``with`` is filled, a copy (``x = a, b = value``) joins the chain of its value, all else is assigned.
    if isinstance(item, Target):

        def done(last: Emitter, target: ast.expr) -> None:
            last.fill(item, target)
    elif isinstance(item, Copy):
        of = item.of

        def done(_last: Emitter, target: ast.expr) -> None:
            of.chain.append(target)
            of.copies -= 1
    else:
        value = item if isinstance(item, Value) and not item.copies and item.tests is None else sim.as_value(item)
        chain, value.chain = value.chain, []

        def done(last: Emitter, target: ast.expr) -> None:
            last.emit(ast.Assign([*chain, target], value.expr), "*")

    sim.stack.extend(reversed(Unpacking(sim, count, star, done).parts()))


def _format(sim: Simulator, instr: Instr) -> None:
    conversion, has_spec = instr.arg
    values = sim.pop_values(1 + has_spec)
    value = values[0].converted
    if value is not None and not conversion:
        sim.combine(lambda _, *spec: display_expressions.formatted(value[0], value[1], *spec), values)
    else:
        sim.combine(lambda *exprs: display_expressions.formatted(conversion, *exprs), values)
    _record_field(sim, instr)


def _record_field(sim: Simulator, instr: Instr) -> None:
    """Record the span of a field, in addition to that of its string."""
    made = sim.stack[-1]
    if sim.context.records_spans and isinstance(made, Value) and isinstance(made.expr, ast.JoinedStr):
        put(made.expr.values[0], instr.span)


def _convert(sim: Simulator, instr: Instr) -> None:
    """Convert before the format specification is evaluated (3.13); without one, ``f"{x!r}"`` does the same."""
    value = sim.pop_value()
    sim.combine(lambda expr: display_expressions.formatted(instr.arg, expr), [value]).converted = (
        instr.arg,
        value.expr,
    )
    _record_field(sim, instr)


def _interpolation(sim: Simulator, instr: Instr) -> None:
    conversion, has_spec = instr.arg
    values = sim.pop_values(2 + has_spec)
    sim.combine(lambda *exprs: display_expressions.interpolation(conversion, *exprs), values)


def _template(sim: Simulator, instr: Instr) -> None:
    sim.combine(display_expressions.template, sim.pop_values(2))
