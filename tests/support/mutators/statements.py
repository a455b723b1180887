"""Mutators of statements: dropped, doubled, moved, assigned to something else."""

from __future__ import annotations

import ast
import copy
from typing import Any, Iterator, List

from mutators.places import (
    DEFINITIONS,
    LEAVES,
    Change,
    Mutator,
    Place,
    constant,
    is_loud,
    load,
    same,
    simple_name,
    swap,
)

STATEMENTS: List[Mutator] = []


def mutator(function: Mutator) -> Mutator:
    STATEMENTS.append(function)
    return function


def _matters(place: Place) -> bool:
    """Whether running the statement can be told: anything in a class or module is, as names are looked up there."""
    node = place.node
    if isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal)):
        return False
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return False
    return is_loud(node) or not place.is_local


@mutator
def drop_statement(place: Place) -> Iterator[Change]:
    if isinstance(place.node, ast.stmt) and _matters(place):
        yield place.remove


@mutator
def drop_silent_store(place: Place) -> Iterator[Change]:
    """``x = y`` with something behind it in the same body that can be told, while which ``x`` is seen to be bound."""
    node = place.node
    if isinstance(node, ast.Assign) and place.is_local and not is_loud(node) and place.shows:
        yield place.remove


@mutator
def double_statement(place: Place) -> Iterator[Change]:
    node = place.node
    kinds = (ast.Expr, ast.Assign, ast.AugAssign, ast.Assert, ast.Delete, ast.Import, ast.ImportFrom, ast.For, ast.With)
    if isinstance(node, kinds) and _matters(place):
        yield lambda: place.put([node, copy.deepcopy(node)])


@mutator
def swap_statements(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.stmt) and place.following:
        other = place.following[0]
        leaves = isinstance(node, LEAVES) or isinstance(other, LEAVES)
        if is_loud(node) and is_loud(other) and not leaves and not same(node, other):
            assert place.index is not None
            yield swap(place.siblings, place.index, place.index + 1)


@mutator
def leave_earlier(place: Place) -> Iterator[Change]:
    """``f(); return x`` becomes ``return x; f()``: what stands behind is lost."""
    node = place.node
    if isinstance(node, ast.stmt) and place.following and isinstance(place.following[0], LEAVES) and is_loud(node):
        if not isinstance(node, LEAVES):
            assert place.index is not None
            yield swap(place.siblings, place.index, place.index + 1)


@mutator
def evaluate_only(place: Place) -> Iterator[Change]:
    """``x = f()`` becomes ``f()``, with something behind it that can be told."""
    node = place.node
    if isinstance(node, ast.Assign) and place.shows:
        yield lambda: place.replace(ast.Expr(node.value))


@mutator
def assign_elsewhere(place: Place) -> Iterator[Change]:
    """Another variable takes the value, with something behind it that can be told."""
    node = place.node
    if isinstance(node, ast.Assign) and place.shows:
        target = node.targets[0]
        if isinstance(target, ast.Name):
            yield lambda: setattr(target, "id", simple_name(target.id))


@mutator
def swap_targets(place: Place) -> Iterator[Change]:
    """``a.x = b.y = v`` becomes ``b.y = a.x = v``; where at most one is loud the order shows to nobody."""
    node = place.node
    if isinstance(node, ast.Assign):
        for at in range(len(node.targets) - 1):
            one, other = node.targets[at], node.targets[at + 1]
            if not same(one, other) and ((is_loud(one) and is_loud(other)) or not place.is_local):
                yield swap(node.targets, at, at + 1)


@mutator
def drop_target(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Assign) and len(node.targets) > 1:
        for at, target in enumerate(node.targets):
            if is_loud(target) or not place.is_local:
                yield lambda at=at: node.targets.pop(at)  # type: ignore[misc]


@mutator
def target_first(place: Place) -> Iterator[Change]:
    """``f().x = g()`` becomes ``t = f(); t.x = g()``: the target before the value."""
    node = place.node
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and is_loud(node.value):
        target = node.targets[0]
        if isinstance(target, (ast.Attribute, ast.Subscript)) and is_loud(target.value):
            first = ast.Assign([ast.Name("first_target", ast.Store())], target.value)

            def change(target: Any = target, first: ast.Assign = first) -> None:
                target.value = load("first_target")
                place.put([first, node])

            yield change


@mutator
def not_in_place(place: Place) -> Iterator[Change]:
    """``x += v`` becomes ``x = x + v``, and the other way round."""
    node = place.node
    if isinstance(node, ast.AugAssign):
        loaded = copy.deepcopy(node.target)
        loaded.ctx = ast.Load()
        yield lambda: place.replace(ast.Assign([node.target], ast.BinOp(loaded, node.op, node.value)))
        yield lambda: place.replace(ast.Assign([node.target], node.value))
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name) and isinstance(value.left, ast.Name) and value.left.id == target.id:
            yield lambda: place.replace(ast.AugAssign(target, value.op, value.right))


@mutator
def change_assert(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Assert):
        yield lambda: place.replace(ast.Expr(node.test))
        yield lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
        yield lambda: setattr(node, "msg", constant("other") if node.msg is None else None)


@mutator
def change_delete(place: Place) -> Iterator[Change]:
    """A ``del`` dropped where that shows: of an attribute or item, in a class or module, or before something loud."""
    node = place.node
    if isinstance(node, ast.Delete):
        if is_loud(node) or place.shows:
            yield place.remove
        if len(node.targets) > 1:
            if all(is_loud(target) for target in node.targets[:2]):
                yield swap(node.targets, 0, 1)
            yield lambda: node.targets.pop()


@mutator
def change_import(place: Place) -> Iterator[Change]:
    """Another module, level, name or alias; two names in the other order."""
    node = place.node
    if isinstance(node, ast.ImportFrom):
        yield lambda: setattr(node, "level", node.level + 1)
        if node.level > 1 or (node.level == 1 and node.module):
            yield lambda: setattr(node, "level", node.level - 1)
        yield lambda: setattr(node, "module", f"{node.module}.other" if node.module else "other")
    if isinstance(node, (ast.Import, ast.ImportFrom)) and getattr(node, "module", "") != "__future__":
        for at, alias in enumerate(node.names):
            if alias.name != "*":
                yield lambda alias=alias: setattr(alias, "name", simple_name(alias.name))  # type: ignore[misc]
                if len(node.names) > 1:
                    yield lambda at=at: node.names.pop(at)  # type: ignore[misc]
            if "." in alias.name and alias.asname is not None:
                # import a.b as c: c is a.b. import a.b: a is a.
                yield lambda alias=alias: setattr(alias, "asname", None)  # type: ignore[misc]
            elif "." in alias.name:
                yield lambda alias=alias: setattr(alias, "asname", alias.name.split(".")[0])  # type: ignore[misc]
        for at in range(len(node.names) - 1):
            yield swap(node.names, at, at + 1)


@mutator
def change_scope(place: Place) -> Iterator[Change]:
    """``global`` or ``nonlocal`` dropped, or one for the other."""
    node = place.node
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        yield place.remove
        other = ast.Nonlocal if isinstance(node, ast.Global) else ast.Global
        yield lambda: place.replace(other(node.names))
        if len(node.names) > 1:
            yield lambda: node.names.pop()


@mutator
def declare_global(place: Place) -> Iterator[Change]:
    """A local variable becomes a global."""
    node = place.node
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        names = {
            target.id
            for statement in node.body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        for name in sorted(names)[:2]:
            yield lambda name=name: node.body.insert(0, ast.Global([name]))  # type: ignore[misc]


@mutator
def change_annotation(place: Place) -> Iterator[Change]:
    """The annotation of a variable of a class or module: another one, none, no value."""
    node = place.node
    if isinstance(node, ast.AnnAssign) and not place.is_local:
        yield lambda: setattr(node, "annotation", constant("other"))
        if node.value is not None:
            yield lambda: place.replace(ast.Assign([node.target], node.value))
            yield lambda: setattr(node, "value", None)


@mutator
def change_docstring(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (*DEFINITIONS, ast.Module)) and ast.get_docstring(node, clean=False) is not None:
        first = node.body[0]

        def drop() -> None:
            node.body[0] = ast.Pass()

        yield drop
        yield lambda: setattr(first, "value", constant("Other."))
    elif isinstance(node, DEFINITIONS):
        yield lambda: node.body.insert(0, ast.Expr(constant("New.")))
