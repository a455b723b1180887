"""Mutators of control flow: branches, loops, jumps, exceptions, context managers."""

from __future__ import annotations

import ast
from typing import Any, Callable, Iterator, List

from mutators.places import (
    DEFINITIONS,
    FUNCTIONS,
    LEAVES,
    LOOPS,
    TRIES,
    Change,
    Mutator,
    Place,
    constant,
    falls_through,
    is_loud,
    load,
    same,
    swap,
)

FLOW: List[Mutator] = []
_BODIES = (*FUNCTIONS, ast.ClassDef)


def mutator(function: Mutator) -> Mutator:
    FLOW.append(function)
    return function


def _swap_fields(node: Any, one: str, other: str) -> Change:
    def change() -> None:
        first, second = getattr(node, one), getattr(node, other)
        setattr(node, one, second)
        setattr(node, other, first)

    return change


def _both(first: Callable[[], Any], then: Callable[[], Any]) -> Change:
    def change() -> None:
        first()
        then()

    return change


# --- branches


def _does_nothing(body: List[ast.stmt]) -> bool:
    return all(isinstance(statement, ast.Pass) for statement in body)


def _branches_differ(node: ast.If) -> bool:
    return not (_does_nothing(node.body) and _does_nothing(node.orelse))


@mutator
def negate_test(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.While, ast.IfExp)) or (isinstance(node, ast.If) and _branches_differ(node)):
        yield lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield lambda: node.ifs.__setitem__(0, ast.UnaryOp(ast.Not(), node.ifs[0]))


@mutator
def drop_test(place: Place) -> Iterator[Change]:
    """``if t: a`` becomes ``a``; what is tested silently must have branches that can be told."""
    node = place.node
    if isinstance(node, ast.If) and _branches_differ(node):
        if is_loud(node.test) or any(is_loud(statement) for statement in node.body[:1]):
            yield lambda: place.put(node.body)


@mutator
def drop_else(place: Place) -> Iterator[Change]:
    """``else`` dropped with what is in it."""
    node = place.node
    if isinstance(node, (ast.If, *LOOPS, *TRIES)) and node.orelse and is_loud(node.orelse[0]):
        yield lambda: setattr(node, "orelse", [])


@mutator
def else_for_all(place: Place) -> Iterator[Change]:
    """What stands in ``else`` is done in any case."""
    node = place.node
    if isinstance(node, ast.If) and node.orelse and is_loud(node.orelse[0]) and falls_through(node.body):
        rest = node.orelse
        yield _both(lambda: setattr(node, "orelse", []), lambda: place.put([node, *rest]))


@mutator
def separate_elif(place: Place) -> Iterator[Change]:
    """``elif`` becomes ``if``: its test is made in any case."""
    node = place.node
    if isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        second = node.orelse[0]
        if falls_through(node.body) and is_loud(second.test):
            yield _both(lambda: setattr(node, "orelse", []), lambda: place.put([node, second]))


@mutator
def move_out_of_branch(place: Place) -> Iterator[Change]:
    """The last statement of a branch is done in any case, or the next one only in the branch."""
    node = place.node
    if not isinstance(node, ast.If):
        return
    last = node.body[-1]
    if len(node.body) > 1 and is_loud(last) and not isinstance(last, LEAVES) and falls_through(node.orelse):
        yield _both(node.body.pop, lambda: place.put([node, last]))
    if place.following and is_loud(place.following[0]) and falls_through(node.body):
        following = place.following[0]
        yield _both(lambda: place.siblings.remove(following), lambda: node.body.append(following))


# --- loops and jumps


@mutator
def loop_or_branch(place: Place) -> Iterator[Change]:
    """``while t`` becomes ``if t``, and the other way round."""
    node = place.node
    if isinstance(node, ast.While) and is_loud(node.test) and falls_through(node.body):
        yield lambda: place.replace(ast.If(node.test, node.body, node.orelse))
    elif isinstance(node, ast.If) and is_loud(node.test) and falls_through(node.body):
        yield lambda: place.replace(ast.While(node.test, node.body, node.orelse))


@mutator
def loop_for_ever(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.While) and not isinstance(node.test, ast.Constant) and is_loud(node):
        yield lambda: setattr(node, "test", constant(True))


@mutator
def first_item_only(place: Place) -> Iterator[Change]:
    """``break`` at the end of the body of a ``for``."""
    node = place.node
    if isinstance(node, (ast.For, ast.AsyncFor)) and falls_through(node.body):
        yield lambda: node.body.append(ast.Break())


def _has_break(body: List[Any]) -> bool:
    """Whether a ``break`` in ``body`` leaves the loop that it is the body of."""
    for statement in body:
        if isinstance(statement, ast.Break):
            return True
        if isinstance(statement, LOOPS):
            if _has_break(statement.orelse):
                return True
        elif not isinstance(statement, DEFINITIONS):
            inner = [child for child in ast.walk(statement) if child is not statement]
            lists = [getattr(child, field, None) for child in [statement, *inner] for field in ("body", "orelse")]
            if any(isinstance(each, list) and each and _has_break(each) for each in lists):
                return True
    return False


@mutator
def drop_loop_else(place: Place) -> Iterator[Change]:
    """``else`` of a loop is done after a ``break``, too; or at the end of every round."""
    node = place.node
    if isinstance(node, LOOPS) and node.orelse and is_loud(node.orelse[0]):
        rest = node.orelse
        if _has_break(node.body):
            yield _both(lambda: setattr(node, "orelse", []), lambda: place.put([node, *rest]))
        if falls_through(node.body):
            yield _both(lambda: setattr(node, "orelse", []), lambda: node.body.extend(rest))


@mutator
def add_loop_else(place: Place) -> Iterator[Change]:
    """What follows a loop is skipped after a ``break``."""
    node = place.node
    if isinstance(node, LOOPS) and not node.orelse and place.following and _has_break(node.body):
        following = place.following[0]
        if is_loud(following):
            yield _both(lambda: place.siblings.remove(following), lambda: node.orelse.append(following))


@mutator
def move_out_of_loop(place: Place) -> Iterator[Change]:
    """The first statement of a body is done once, before the loop; the last one once, behind it."""
    node = place.node
    if isinstance(node, LOOPS) and len(node.body) > 1:
        first, last = node.body[0], node.body[-1]
        if is_loud(first) and falls_through([first]):
            yield _both(lambda: node.body.pop(0), lambda: place.put([first, node]))
        if is_loud(last) and falls_through([last]):
            yield _both(node.body.pop, lambda: place.put([node, last]))


@mutator
def move_into_loop(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, LOOPS) and place.following and is_loud(place.following[0]) and falls_through(node.body):
        following = place.following[0]
        yield _both(lambda: place.siblings.remove(following), lambda: node.body.append(following))


@mutator
def other_jump(place: Place) -> Iterator[Change]:
    """``break``, ``continue``, ``return`` and going on, one for another."""
    node = place.node
    if isinstance(node, (ast.Break, ast.Continue)):
        yield lambda: place.replace(ast.Continue() if isinstance(node, ast.Break) else ast.Break())
        yield lambda: place.replace(ast.Pass())
        yield lambda: place.replace(ast.Return(constant("other")))
    elif isinstance(node, ast.Return) and node.value is not None and is_loud(node.value):
        yield lambda: place.replace(ast.Expr(node.value))
        if place.inside(LOOPS, _BODIES):
            yield lambda: place.replace(ast.Break())
            yield lambda: place.replace(ast.Continue())


@mutator
def other_result(place: Place) -> Iterator[Change]:
    """``return x`` becomes ``return`` and ``return x()`` becomes ``x(); return``."""
    node = place.node
    if isinstance(node, ast.Return):
        if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield lambda: setattr(node, "value", constant(0))
        else:
            yield lambda: setattr(node, "value", None)
            if is_loud(node.value):
                yield lambda: place.put([ast.Expr(node.value), ast.Return(None)])


@mutator
def jump_earlier(place: Place) -> Iterator[Change]:
    """A ``break``, ``continue`` or ``return`` at the end of a branch stands behind it."""
    node = place.node
    if isinstance(node, ast.If) and len(node.body) > 1 and not node.orelse and isinstance(node.body[-1], LEAVES):
        jump = node.body[-1]
        if place.following and is_loud(place.following[0]):
            yield _both(node.body.pop, lambda: place.put([node, jump]))


# --- exceptions


@mutator
def change_raise(place: Place) -> Iterator[Change]:
    node = place.node
    if not isinstance(node, ast.Raise):
        return
    if node.exc is None:
        yield lambda: setattr(node, "exc", load("AnotherError"))
        yield lambda: place.replace(ast.Pass())
        return
    yield lambda: place.replace(ast.Return(node.exc))
    yield lambda: place.replace(ast.Expr(node.exc))
    yield lambda: setattr(node, "cause", constant(None) if node.cause is None else None)
    if node.cause is not None:
        yield lambda: setattr(node, "cause", load("another_cause"))
    if place.inside(ast.ExceptHandler, _BODIES):
        yield lambda: place.replace(ast.Raise(None, None))


@mutator
def other_handler_type(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.ExceptHandler):
        yield lambda: setattr(node, "type", load("AnotherError"))
        if isinstance(node.type, ast.Tuple) and len(node.type.elts) > 1:
            elements = node.type.elts
            yield lambda: elements.pop()
            yield swap(elements, 0, 1)
        if node.type is not None and not place.following and node.name is None:
            yield lambda: setattr(node, "type", None)
        if node.type is not None:
            yield lambda: setattr(node, "type", ast.Tuple([node.type, load("AnotherError")], ast.Load()))


@mutator
def change_handler_name(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.ExceptHandler) and node.name is not None and node.body and is_loud(node.body[0]):
        yield lambda: setattr(node, "name", f"{node.name}_other")
        yield lambda: setattr(node, "name", None)


@mutator
def change_handlers(place: Place) -> Iterator[Change]:
    """A handler dropped, two in the other order, the bodies of two exchanged, an empty one."""
    node = place.node
    if not isinstance(node, TRIES):
        return
    for at, handler in enumerate(node.handlers):
        if len(node.handlers) > 1 or node.finalbody:
            yield lambda at=at: node.handlers.pop(at)  # type: ignore[misc]
        if is_loud(handler.body[0]):
            yield lambda handler=handler: setattr(handler, "body", [ast.Pass()])  # type: ignore[misc]
    for at in range(len(node.handlers) - 1):
        one, other = node.handlers[at], node.handlers[at + 1]
        if other.type is not None and not same(one, other):
            yield swap(node.handlers, at, at + 1)
        bodies = (ast.Module(one.body, []), ast.Module(other.body, []))
        if not same(*bodies):

            def change(one: Any = one, other: Any = other) -> None:
                one.body, other.body = other.body, one.body

            yield change


@mutator
def add_handler(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, TRIES) and node.handlers and node.handlers[-1].type is not None:
        handler = ast.ExceptHandler(load("AnotherError"), None, [ast.Pass()])
        yield lambda: node.handlers.append(handler)
        yield lambda: node.handlers.insert(0, handler)


@mutator
def other_protection(place: Place) -> Iterator[Change]:
    """``finally`` becomes ``except`` or ``else`` or is dropped, ``except`` becomes ``finally``, all is unprotected."""
    node = place.node
    if not isinstance(node, TRIES):
        return
    if any(is_loud(statement) for statement in node.body):
        yield lambda: place.put([*node.body, *node.orelse, *node.finalbody])
    if node.finalbody and is_loud(node.finalbody[0]):
        final = node.finalbody
        if node.handlers:
            yield lambda: setattr(node, "finalbody", [])
            yield _both(lambda: setattr(node, "finalbody", []), lambda: place.put([node, *final]))
        elif type(node) is ast.Try:
            handler = ast.ExceptHandler(None, None, final)
            yield _both(lambda: setattr(node, "finalbody", []), lambda: node.handlers.append(handler))
    elif len(node.handlers) == 1 and not node.finalbody and is_loud(node.handlers[0].body[0]):
        body = node.handlers[0].body
        if type(node) is ast.Try and not node.orelse:
            yield _both(lambda: setattr(node, "finalbody", body), lambda: setattr(node, "handlers", []))


@mutator
def move_boundary_of_try(place: Place) -> Iterator[Change]:
    """A statement moves across an edge: into ``try`` or out of it, between body, ``else`` and ``finally``."""
    node = place.node
    if not isinstance(node, TRIES):
        return
    first, last = node.body[0], node.body[-1]
    if len(node.body) > 1 and is_loud(first) and not isinstance(first, LEAVES):
        yield _both(lambda: node.body.pop(0), lambda: place.put([first, node]))
    if len(node.body) > 1 and is_loud(last) and not isinstance(last, LEAVES):
        if node.handlers:
            yield _both(node.body.pop, lambda: node.orelse.insert(0, last))
        if not node.orelse:
            yield _both(node.body.pop, lambda: place.put([node, last]))
        if node.finalbody:
            yield _both(node.body.pop, lambda: node.finalbody.insert(0, last))
    if node.orelse and is_loud(node.orelse[0]) and falls_through(node.body):
        moved = node.orelse[0]
        yield _both(lambda: node.orelse.pop(0), lambda: node.body.append(moved))
        if not node.finalbody and len(node.orelse) == 1 and any(falls_through(each.body) for each in node.handlers):
            yield _both(lambda: setattr(node, "orelse", []), lambda: place.put([node, moved]))
    following = place.following[0] if place.following else None
    if following is not None and is_loud(following) and not isinstance(following, LEAVES) and falls_through(node.body):
        if not node.orelse:
            yield _both(lambda: place.siblings.remove(following), lambda: node.body.append(following))
        if node.finalbody:
            yield _both(lambda: place.siblings.remove(following), lambda: node.finalbody.append(following))
    if place.index:
        before = place.siblings[place.index - 1]
        if is_loud(before) and not isinstance(before, DEFINITIONS):
            yield _both(lambda: node.body.insert(0, before), lambda: place.siblings.remove(before))


@mutator
def group_or_plain(place: Place) -> Iterator[Change]:
    """``except`` and ``except*``, one for the other."""
    node = place.node
    other = [kind for kind in TRIES if not isinstance(node, kind)]
    if isinstance(node, TRIES) and other and node.handlers and all(each.type is not None for each in node.handlers):
        yield lambda: place.replace(other[0](node.body, node.handlers, node.orelse, node.finalbody))


# --- context managers and asynchronous statements


@mutator
def change_with(place: Place) -> Iterator[Change]:
    """Unprotected, without a manager, two managers in the other order, without the variable."""
    node = place.node
    if not isinstance(node, (ast.With, ast.AsyncWith)):
        return
    yield lambda: place.put([*(ast.Expr(item.context_expr) for item in node.items), *node.body])
    for at, item in enumerate(node.items):
        if len(node.items) > 1:
            yield lambda at=at: node.items.pop(at)  # type: ignore[misc]
        if item.optional_vars is not None and is_loud(node.body[0]):
            yield lambda item=item: setattr(item, "optional_vars", None)  # type: ignore[misc]
    for at in range(len(node.items) - 1):
        if not same(node.items[at], node.items[at + 1]):
            yield swap(node.items, at, at + 1)


@mutator
def move_boundary_of_with(place: Place) -> Iterator[Change]:
    node = place.node
    if not isinstance(node, (ast.With, ast.AsyncWith)):
        return
    last = node.body[-1]
    if len(node.body) > 1 and is_loud(last) and not isinstance(last, LEAVES):
        yield _both(node.body.pop, lambda: place.put([node, last]))
    if place.following and is_loud(place.following[0]) and falls_through(node.body):
        following = place.following[0]
        yield _both(lambda: place.siblings.remove(following), lambda: node.body.append(following))
    if place.index:
        before = place.siblings[place.index - 1]
        if is_loud(before) and not isinstance(before, DEFINITIONS):
            yield _both(lambda: node.body.insert(0, before), lambda: place.siblings.remove(before))


@mutator
def asynchronous_or_not(place: Place) -> Iterator[Change]:
    node = place.node
    for one, other in ((ast.For, ast.AsyncFor), (ast.With, ast.AsyncWith)):
        for kind, made in ((one, other), (other, one)):
            if type(node) is kind:
                fields = dict(ast.iter_fields(node))
                yield lambda made=made, fields=fields: place.replace(made(**fields))  # type: ignore[misc]
