"""Mutators of functions and classes: how they can be called, what they are made with."""

from __future__ import annotations

import ast
from typing import Any, Iterator, List

from mutators.places import DEFINITIONS as KINDS
from mutators.places import FUNCTIONS, Change, Mutator, Place, constant, is_loud, same, simple_name, swap

DEFINITIONS: List[Mutator] = []


def mutator(function: Mutator) -> Mutator:
    DEFINITIONS.append(function)
    return function


@mutator
def change_decorators(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, KINDS):
        for at in range(len(node.decorator_list)):
            yield lambda at=at: node.decorator_list.pop(at)  # type: ignore[misc]
        for at in range(len(node.decorator_list) - 1):
            if not same(node.decorator_list[at], node.decorator_list[at + 1]):
                yield swap(node.decorator_list, at, at + 1)


@mutator
def other_definition_name(place: Place) -> Iterator[Change]:
    """Another name for a function or class, which its ``__name__`` and ``__qualname__`` show."""
    node = place.node
    if isinstance(node, KINDS):
        yield lambda: setattr(node, "name", simple_name(node.name))


def _all(arguments: ast.arguments) -> List[ast.arg]:
    more = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]


@mutator
def other_argument_name(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.arguments):
        for argument in _all(node):
            yield lambda argument=argument: setattr(argument, "arg", simple_name(argument.arg))  # type: ignore[misc]


@mutator
def swap_argument_names(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.arguments):
        for arguments in (node.posonlyargs, node.args, node.kwonlyargs):
            for at in range(len(arguments) - 1):
                yield swap(arguments, at, at + 1)


@mutator
def other_argument_kind(place: Place) -> Iterator[Change]:
    """Positional-only, keyword-only, ``*args`` and ``**kwargs``: one kind for another."""
    node = place.node
    if not isinstance(node, ast.arguments):
        return
    if node.args:
        yield lambda: node.posonlyargs.append(node.args.pop(0))
    if node.posonlyargs:
        yield lambda: node.args.insert(0, node.posonlyargs.pop())
    if node.args and not node.defaults:

        def only_by_keyword() -> None:
            node.kwonlyargs.insert(0, node.args.pop())
            node.kw_defaults.insert(0, None)

        yield only_by_keyword
    if node.vararg is not None:

        def no_star() -> None:
            node.args.append(node.vararg)
            node.vararg = None
            node.defaults = []

        yield no_star
    if node.kwarg is not None:
        yield lambda: setattr(node, "kwarg", None)


@mutator
def change_defaults(place: Place) -> Iterator[Change]:
    """A default changed, dropped, evaluated in another order, given to another parameter."""
    node = place.node
    if not isinstance(node, ast.arguments):
        return
    for values in (node.defaults, node.kw_defaults):
        for at, value in enumerate(values):
            if value is not None:
                yield lambda values=values, at=at: values.__setitem__(at, constant("other"))  # type: ignore[misc]
    if node.defaults:
        yield lambda: node.defaults.pop(0)
        yield lambda: node.defaults.pop()
        for at in range(len(node.defaults) - 1):
            if not same(node.defaults[at], node.defaults[at + 1]):
                yield swap(node.defaults, at, at + 1)
    for at, value in enumerate(node.kw_defaults):
        if value is not None:
            yield lambda at=at: node.kw_defaults.__setitem__(at, None)  # type: ignore[misc]
        else:
            yield lambda at=at: node.kw_defaults.__setitem__(at, constant("other"))  # type: ignore[misc]


@mutator
def change_argument_annotations(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        for owner, field in [*((each, "annotation") for each in _all(node.args)), (node, "returns")]:
            if getattr(owner, field) is None:
                yield lambda owner=owner, field=field: setattr(owner, field, constant("new"))  # type: ignore[misc]
            else:
                yield lambda owner=owner, field=field: setattr(owner, field, None)  # type: ignore[misc]
                yield lambda owner=owner, field=field: setattr(owner, field, constant("other"))  # type: ignore[misc]


@mutator
def change_bases(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.ClassDef):
        yield lambda: node.bases.append(ast.Name("AnotherBase", ast.Load()))
        for at in range(len(node.bases)):
            yield lambda at=at: node.bases.pop(at)  # type: ignore[misc]
        for at in range(len(node.bases) - 1):
            yield swap(node.bases, at, at + 1)


@mutator
def other_function_kind(place: Place) -> Iterator[Change]:
    """``def`` and ``async def``, one for the other; a function becomes a generator."""
    node = place.node
    for kind, made in ((ast.FunctionDef, ast.AsyncFunctionDef), (ast.AsyncFunctionDef, ast.FunctionDef)):
        if type(node) is kind:
            fields = dict(ast.iter_fields(node))
            yield lambda made=made, fields=fields: place.replace(made(**fields))  # type: ignore[misc]
            if not _yields(node.body):  # else it is a generator already
                yield lambda: node.body.append(ast.If(constant(False), [ast.Expr(ast.Yield(None))], []))


def _yields(body: List[Any]) -> bool:
    """Return whether a function with this body is a generator."""
    inside: List[ast.AST] = list(body)
    for node in inside:  # grows while it is walked
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*FUNCTIONS, ast.Lambda)):
            inside += ast.iter_child_nodes(node)
    return False


@mutator
def move_into_class(place: Place) -> Iterator[Change]:
    """The statement before a class or function stands at its start, the last one of a class stands behind it."""
    node = place.node
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and place.index:
        before: Any = place.siblings[place.index - 1]
        if isinstance(before, (ast.Assign, ast.Expr)) and is_loud(before) and isinstance(node, FUNCTIONS):

            def change() -> None:
                node.body.insert(0, before)
                place.siblings.remove(before)

            yield change
    if isinstance(node, ast.ClassDef) and len(node.body) > 1 and isinstance(node.body[-1], (ast.Assign, *FUNCTIONS)):

        def out() -> None:
            last = node.body.pop()
            place.put([node, last])

        yield out


@mutator
def change_type_parameters(place: Place) -> Iterator[Change]:
    """Type parameters (3.12): one renamed, without its bound or default, two in the other order."""
    parameters: List[Any] = getattr(place.node, "type_params", [])
    for parameter in parameters:
        yield lambda parameter=parameter: setattr(parameter, "name", simple_name(parameter.name))  # type: ignore[misc]
        for field in ("bound", "default_value"):
            if getattr(parameter, field, None) is not None:
                yield lambda parameter=parameter, field=field: setattr(parameter, field, None)  # type: ignore[misc]
    for at in range(len(parameters) - 1):
        yield swap(parameters, at, at + 1)
