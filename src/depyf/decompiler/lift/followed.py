"""The operations on containers that are tracked element by element (see ``containers``)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Dict, List, Tuple

from depyf.decompiler.lift import build, call_expressions, display_expressions
from depyf.decompiler.lift.containers import as_display, constant_key
from depyf.decompiler.lift.items import BoundMethod, Container, Display, Item, Value

if TYPE_CHECKING:
    from depyf.decompiler.lift.simulator import Simulator


_DISPLAYS: Dict[str, Display] = {"list": "list", "tuple": "tuple"}
"""The display that BUILD makes of the stack items, by its kind."""


def build_container(sim: Simulator, kind: str, count: int) -> bool:
    """Build a list, tuple or dict display with the top items as elements. Return False for other kinds."""
    display = _DISPLAYS.get(kind)
    if display is not None:
        elements = sim.stack[len(sim.stack) - count :] if count else []
        del sim.stack[len(sim.stack) - count :]
        sim.stack.append(Container(display, elements))
        return True
    if kind == "const_key_map":
        top = sim.stack[-1]
        keys = build.constant(top.expr) if isinstance(top, Value) else None
        if not isinstance(keys, tuple):
            return False
        elements = sim.stack[len(sim.stack) - count - 1 : -1]
        del sim.stack[len(sim.stack) - count - 1 :]
        sim.stack.append(Container("dict", elements, list(keys)))
        return True
    return False


def take_result_apart(sim: Simulator, offset: int) -> None:
    """Unpack the call on top into temporaries, if the hints give the length of the tuple that it returns."""
    call = sim.stack[-1]
    if not (isinstance(call, Value) and isinstance(call.expr, ast.Call) and isinstance(call.expr.func, ast.Name)):
        return
    count = sim.context.hints.tuple_results.get(call.expr.func.id)
    if count is None or offset in sim.context.decisions.kept_results:
        return
    sim.wants_containers()
    sim.stack.pop()
    names = [sim.context.temporary() for _ in range(count)]
    if count == 0:
        sim.emit(ast.Expr(call.expr))
    elif count == 1:
        first = ast.Subscript(call.expr, ast.Constant(0), ast.Load())
        sim.emit(ast.Assign([ast.Name(names[0], ast.Store())], first))
    else:
        sim.emit(ast.Assign([ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())], call.expr))
    elements = [Value(ast.Name(name, ast.Load()), True) for name in names]
    sim.stack.append(Container("tuple", list(elements), None, offset))


def subscript_container(sim: Simulator, container: Container, key: Item) -> bool:
    """Execute ``container[key]`` for a constant int or slice. Return False if the container must become a value."""
    position = constant_key(key)
    if (
        isinstance(position, int)
        and container.kind != "dict"
        and -len(container.elements) <= position < len(container.elements)
    ):
        element = container.elements[position]
        if isinstance(element, Value) and not element.stable:
            sim.settle()
        del sim.stack[-2:]
        if isinstance(element, Value):
            element = element.again()
        sim.stack.append(element)
        return True
    if isinstance(position, slice) and container.kind != "dict":
        if any(isinstance(element, Value) and not element.stable for element in container.elements):
            sim.settle()
        del sim.stack[-2:]
        sim.stack.append(Container(container.kind, list(container.elements[position])))
        return True
    return False


def store_into_container(container: Container, key: Item, item: Item) -> None:
    """Execute ``container[key] = item`` for a constant int or slice. Raises ``ValueError`` for other keys."""
    position = constant_key(key)
    if container.kind == "list" and isinstance(position, slice) and isinstance(item, Container):
        container.elements[position] = list(item.elements)
    elif container.kind == "list" and isinstance(position, int):
        container.elements[position] = item
    else:
        raise ValueError("an item that is not constant is stored in a list display")


def delete_from_container(sim: Simulator, container: Container, key: Item) -> None:
    position = constant_key(key)
    if container.kind != "list" or position is None:
        raise ValueError("an item that is not constant is deleted from a list display")
    if any(isinstance(element, Value) and not element.stable for element in container.elements):
        sim.settle()
    del sim.stack[-2:]
    del container.elements[position]


def extend_container(sim: Simulator, container: Container) -> None:
    """Execute LIST_EXTEND and similar operations with a tracked container, a constant tuple or another value."""
    item = sim.stack[-1]
    constants = build.constant(item.expr) if isinstance(item, Value) else None
    if isinstance(item, Container) and item.kind != "dict":
        added = list(item.elements)
    elif isinstance(item, Container):
        sim.stack.pop()
        container.elements.extend(item.elements)
        container.keys = [*(container.keys or ()), *(item.keys or ())]
        return
    elif isinstance(constants, tuple):
        added = [Value(ast.Constant(element), True) for element in constants]
    else:
        value = sim.pop_value()
        expr, values = as_display(container, sim.as_value)
        sim.check_order([*values, value])
        extended = display_expressions.extend_display(expr, value.expr)
        index = sim.stack.index(container)
        sim.stack[index] = Value(extended, order=sim.context.next_order(), born=sim.node.id)
        return
    sim.stack.pop()
    container.elements.extend(added)


def pop_container(sim: Simulator, container: Container) -> None:
    """Drop a container: its unevaluated elements are evaluated at this point."""
    pending = [element for element in _leaves(container) if isinstance(element, Value) and not element.stable]
    if pending:
        sim.stack.append(container)
        sim.settle()
        sim.stack.pop()


def _leaves(container: Container) -> List[Item]:
    found: List[Item] = []
    for element in container.elements:
        found.extend(_leaves(element) if isinstance(element, Container) else [element])
    return found


def call_container_method(sim: Simulator, method: BoundMethod, arguments: List[Item]) -> None:
    """Execute ``[...].pop()`` and ``[...].pop(i)``. Raises ``ValueError`` for other methods."""
    container = method.container
    position = constant_key(arguments[0]) if arguments else -1
    if method.name == "pop" and container.kind == "list" and isinstance(position, int) and container.elements:
        element = container.elements[position]
        if isinstance(element, Value) and not element.stable:
            sim.stack.append(container)
            sim.settle()
            sim.stack.pop()
        sim.stack.append(container.elements.pop(position))
        return
    raise ValueError(f"the method {method.name} of a list display is called")


def call_with_containers(sim: Simulator, null: str, *, has_keywords: bool) -> bool:
    """Execute ``f(*[...], **{...})`` with tracked containers as a plain call. Return False if they are not tracked."""
    keywords = sim.stack[-1] if has_keywords else None
    positional = sim.stack[-2 if has_keywords else -1]
    if not isinstance(positional, Container) and not isinstance(keywords, Container):
        return False
    if keywords is not None and not isinstance(keywords, Container):
        return False
    if not isinstance(positional, Container):
        constant = build.constant(positional.expr) if isinstance(positional, Value) else None
        if not isinstance(constant, tuple):
            return False
        positional = Container("tuple", [Value(ast.Constant(element), True) for element in constant])
    del sim.stack[-2 if has_keywords else -1 :]
    callee, more = sim.pop_callee(null)
    if more:
        raise ValueError("no NULL beside the callable of a call with unpacked arguments")
    names: Tuple[str, ...] = tuple(keywords.keys or ()) if keywords is not None else ()
    arguments = [*positional.elements, *(keywords.elements if keywords is not None else [])]
    sim.stack.extend([callee, *arguments])
    values = sim.pop_values(1 + len(arguments))
    sim.combine(lambda *exprs: call_expressions.call(exprs, names), values)
    take_result_apart(sim, sim.ops[sim.index - 1].offset)
    return True
