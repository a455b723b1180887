"""Mutators of what runs code elsewhere: calls, lambdas, comprehensions, ``await`` and ``yield``."""

from __future__ import annotations

import ast
from typing import Any, Iterator, List

from mutators.places import COMPREHENSIONS, FUNCTIONS, Change, Mutator, Place, constant, load, same, simple_name, swap

CALLS: List[Mutator] = []


def mutator(function: Mutator) -> Mutator:
    CALLS.append(function)
    return function


def _set(node: Any, field: str, value: Any) -> Change:
    return lambda: setattr(node, field, value)


# --- calls


@mutator
def swap_arguments(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Call):
        for at in range(len(node.args) - 1):
            if not same(node.args[at], node.args[at + 1]):
                yield swap(node.args, at, at + 1)


@mutator
def drop_argument(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Call) and node.args:
        yield lambda: node.args.pop()
        if len(node.args) > 1:
            yield lambda: node.args.pop(0)


@mutator
def add_argument(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Call):
        yield lambda: node.args.append(constant(None))


@mutator
def change_keywords(place: Place) -> Iterator[Change]:
    """A keyword dropped, renamed, made positional; two in the other order."""
    node = place.node
    keywords: List[ast.keyword] = getattr(node, "keywords", [])
    if not isinstance(node, (ast.Call, ast.ClassDef)):
        return
    for at, keyword in enumerate(keywords):
        yield lambda at=at: keywords.pop(at)  # type: ignore[misc]
        if keyword.arg is None:
            yield _set(keyword, "arg", "other")
        else:
            yield _set(keyword, "arg", simple_name(keyword.arg))
            yield _set(keyword, "arg", None)
    if isinstance(node, ast.Call) and keywords and keywords[0].arg is not None:
        yield lambda: node.args.append(keywords.pop(0).value)
    for at in range(len(keywords) - 1):
        yield swap(keywords, at, at + 1)


@mutator
def drop_call(place: Place) -> Iterator[Change]:
    """``f(x)`` becomes ``f``."""
    node = place.node
    if isinstance(node, ast.Call):
        yield lambda: place.replace(node.func)


@mutator
def argument_first(place: Place) -> Iterator[Change]:
    """``a.method(b())`` becomes ``(first := b(), a.method(first))[1]``: the argument before the method is looked up."""
    node = place.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1 and place.is_local:
        argument = node.args[0]
        if isinstance(argument, ast.Call) and not place.inside(COMPREHENSIONS, FUNCTIONS):
            target = ast.NamedExpr(ast.Name("first_argument", ast.Store()), argument)
            later = ast.Call(node.func, [load("first_argument")], node.keywords)
            both = ast.Tuple([target, later], ast.Load())
            yield lambda: place.replace(ast.Subscript(both, constant(1), ast.Load()))


@mutator
def keep_alive(place: Place) -> Iterator[Change]:
    """``f(g()); h()`` becomes ``f((kept := g())); h()``: what ``g`` gave lives on while ``h`` runs."""
    node = place.node
    following = place.following
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call) or not place.is_local or not following:
        return
    if isinstance(following[0], ast.Expr) and isinstance(following[0].value, ast.Call):
        arguments = node.value.args
        for at, argument in enumerate(arguments):
            if isinstance(argument, ast.Call):
                kept = ast.NamedExpr(ast.Name("kept", ast.Store()), argument)
                yield lambda at=at, kept=kept: arguments.__setitem__(at, kept)  # type: ignore[misc]


# --- comprehensions


@mutator
def drop_filter(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.comprehension) and node.ifs:
        yield lambda: node.ifs.pop()


@mutator
def other_comprehension(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        for kind in (ast.ListComp, ast.SetComp, ast.GeneratorExp):
            if not isinstance(node, kind):
                yield lambda kind=kind: place.replace(kind(node.elt, node.generators))  # type: ignore[misc]
    elif isinstance(node, ast.DictComp) and not same(node.key, node.value):

        def change() -> None:
            node.key, node.value = node.value, node.key

        yield change
        yield lambda: place.replace(ast.SetComp(node.key, node.generators))


@mutator
def other_element(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        yield _set(node, "elt", ast.Tuple([node.elt], ast.Load()))


@mutator
def swap_comprehension_loops(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, COMPREHENSIONS) and len(node.generators) > 1:
        yield swap(node.generators, 0, 1)


@mutator
def move_filter(place: Place) -> Iterator[Change]:
    """The filter of the last loop is asked in the loop around it."""
    node = place.node
    if isinstance(node, COMPREHENSIONS) and len(node.generators) > 1 and node.generators[-1].ifs:
        inner, outer = node.generators[-1], node.generators[-2]
        yield lambda: outer.ifs.append(inner.ifs.pop(0))


@mutator
def asynchronous_comprehension(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.comprehension):
        yield _set(node, "is_async", 1 - node.is_async)


# --- waiting


@mutator
def drop_await(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Await):
        yield lambda: place.replace(node.value)


@mutator
def other_yield(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Yield):
        yield lambda: place.replace(ast.YieldFrom(node.value or constant(None)))
        yield _set(node, "value", None if node.value is not None else constant(0))
    elif isinstance(node, ast.YieldFrom):
        yield lambda: place.replace(ast.Yield(node.value))
    elif isinstance(node, ast.Await):
        yield lambda: place.replace(ast.Yield(node.value))


@mutator
def drop_yield(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.Yield, ast.YieldFrom)):
        yield lambda: place.replace(node.value if node.value is not None else constant(None))


# --- lambdas and walrus


@mutator
def drop_walrus(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.NamedExpr) and not same(node.value, load(node.target.id)):
        yield lambda: place.replace(node.value)
        yield _set(node.target, "id", simple_name(node.target.id))


@mutator
def call_now(place: Place) -> Iterator[Change]:
    """``lambda: x`` becomes ``x``; one that is a statement of its own is what a decompiled lambda looks like."""
    node = place.node
    if isinstance(node, ast.Lambda) and place.parent is not None and not isinstance(place.parent.node, ast.Expr):
        yield lambda: place.replace(node.body)


@mutator
def capture_now(place: Place) -> Iterator[Change]:
    """``lambda: x`` becomes ``lambda x=x: x``."""
    node = place.node
    if isinstance(node, ast.Lambda) and not node.args.defaults and node.args.vararg is None:
        taken = {argument.arg for argument in [*node.args.args, *node.args.kwonlyargs]}
        names = {each.id for each in ast.walk(node.body) if isinstance(each, ast.Name)} - taken
        for name in sorted(names)[:1]:

            def change(name: str = name) -> None:
                node.args.args.append(ast.arg(name, None))
                node.args.defaults.append(load(name))

            yield change
