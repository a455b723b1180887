"""The expressions that a statement evaluates first, in CPython's evaluation order, up to the first effect."""

from __future__ import annotations

import ast
from typing import Any, Callable, Container, Dict, Iterator, List, Union

# CPython builds longer displays step by step, so that adding to a set or dict comes between evaluating its elements.
_SMALL_DISPLAY = 15


class _Stop:
    """An effect that a value computed before and a value computed after could observe."""


_STOP = _Stop()


def leading_names(statement: ast.stmt, wanted: Callable[[str], bool], stable: Container[str]) -> List[str]:
    """Return the names fulfilling ``wanted`` that ``statement`` loads before its first effect. They are loaded in this
    order, each unconditionally and once per execution of the statement. Before and between them only constants and
    ``stable`` names are evaluated: names whose value no other code can change."""
    # Depth first in evaluation order. ``_STOP`` is what a node with an effect of its own yields after its parts.
    found: List[str] = []
    pending: List[object] = list(_first_evaluated(statement))
    pending.reverse()
    while pending:
        node = pending.pop()
        if node is _STOP:
            break
        if isinstance(node, ast.Name):
            if wanted(node.id):
                found.append(node.id)
            elif node.id not in stable:
                break
            continue
        expand = _EXPRESSIONS.get(node.__class__)
        if expand is None:
            break
        parts = list(expand(node))
        parts.reverse()
        pending.extend(parts)
    return found


def header_fields(statement: ast.stmt) -> List[str]:
    """Return the fields of ``statement`` with the expressions that it evaluates first."""
    return _HEADERS.get(statement.__class__, [])


_HEADERS: Dict[type, List[str]] = {
    ast.Expr: ["value"],
    ast.Assign: ["value", "targets"],
    ast.AugAssign: ["target", "value"],
    ast.AnnAssign: ["value"],
    ast.Return: ["value"],
    ast.Raise: ["exc", "cause"],
    ast.Delete: ["targets"],
    ast.If: ["test"],
    ast.Assert: ["test"],
    ast.For: ["iter"],
    ast.AsyncFor: ["iter"],
    ast.With: ["items"],
    ast.AsyncWith: ["items"],
    ast.FunctionDef: ["decorator_list", "args"],
    ast.AsyncFunctionDef: ["decorator_list", "args"],
    ast.ClassDef: ["decorator_list", "bases", "keywords"],
}
if hasattr(ast, "Match"):
    _HEADERS[ast.Match] = ["subject"]


def _first_evaluated(statement: ast.stmt) -> Iterator[object]:
    # ``a[i] = v``: the value, then the parts of the first target. ``a[i] += v``: first the parts of the target.
    if isinstance(statement, ast.Assign):
        yield statement.value
        yield from _target(statement.targets[0])
    elif isinstance(statement, ast.AugAssign):
        if isinstance(statement.target, ast.Name):
            yield statement.target
            yield statement.value
        else:
            yield from _target(statement.target)
    elif isinstance(statement, ast.Delete):
        yield from _target(statement.targets[0])
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        yield statement.items[0].context_expr
    # Of a definition decorators and defaults (or bases) come first.
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from statement.decorator_list
        yield from statement.args.defaults
    elif isinstance(statement, ast.ClassDef):
        yield from statement.decorator_list
        yield from statement.bases
    # ``if``, ``for``, ``match`` and the like: their headers. Of all others nothing is known.
    elif statement.__class__ in _HEADERS:
        for field in _HEADERS[statement.__class__]:
            value = getattr(statement, field)
            if value is not None:
                yield value
    yield _STOP


def _target(target: ast.expr) -> Iterator[object]:
    if isinstance(target, ast.Subscript):
        yield target.value
        yield target.slice
    elif isinstance(target, ast.Attribute):
        yield target.value
    yield _STOP


_Expand = Callable[[Any], Iterator[object]]
"""A function that yields the parts of a node of one class in evaluation order."""


def _nothing(node: ast.AST) -> Iterator[object]:
    return iter(())


def _then_stop(*fields: str) -> _Expand:
    def expand(node: ast.AST) -> Iterator[object]:
        for field in fields:
            value = getattr(node, field)
            if isinstance(value, list):
                yield from value
            elif value is not None:
                yield value
        yield _STOP

    return expand


def _members(node: Union[ast.Tuple, ast.List]) -> Iterator[object]:
    yield from node.elts


def _slice(node: ast.Slice) -> Iterator[object]:
    yield from (part for part in (node.lower, node.upper, node.step) if part is not None)


def _set(node: ast.Set) -> Iterator[object]:
    if len(node.elts) <= _SMALL_DISPLAY:
        yield from node.elts
    yield _STOP


def _dict(node: ast.Dict) -> Iterator[object]:
    if len(node.keys) <= _SMALL_DISPLAY:
        for key, value in zip(node.keys, node.values):
            if key is None:
                break
            yield key
            yield value
    yield _STOP


def _first_of(field: str) -> _Expand:
    """Return the expansion of nodes that always evaluate one part, and others depending on it."""

    def expand(node: ast.AST) -> Iterator[object]:
        value = getattr(node, field)
        yield value[0] if isinstance(value, list) else value
        yield _STOP

    return expand


def _compare(node: ast.Compare) -> Iterator[object]:
    yield node.left
    yield node.comparators[0]
    yield _STOP


def _call(node: ast.Call) -> Iterator[object]:
    yield node.func
    yield from node.args
    for keyword in node.keywords:
        yield keyword.value
        if keyword.arg is None:
            yield _STOP
    yield _STOP


def _comprehension(node: Union[ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp]) -> Iterator[object]:
    yield node.generators[0].iter
    yield _STOP


def _lambda(node: ast.Lambda) -> Iterator[object]:
    yield from node.args.defaults
    yield _STOP


_EXPRESSIONS: Dict[type, _Expand] = {
    ast.Constant: _nothing,
    ast.Tuple: _members,
    ast.List: _members,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.Slice: _slice,
    ast.Starred: _then_stop("value"),
    ast.BinOp: _then_stop("left", "right"),
    ast.UnaryOp: _then_stop("operand"),
    ast.Compare: _compare,
    ast.Call: _call,
    ast.Attribute: _then_stop("value"),
    ast.Subscript: _then_stop("value", "slice"),
    ast.BoolOp: _first_of("values"),
    ast.IfExp: _first_of("test"),
    ast.NamedExpr: _then_stop("value"),
    ast.Await: _then_stop("value"),
    ast.Yield: _then_stop("value"),
    ast.YieldFrom: _then_stop("value"),
    ast.JoinedStr: _then_stop("values"),
    ast.FormattedValue: _then_stop("value"),
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
}
for _kind, _fields in (("TemplateStr", "values"), ("Interpolation", "value")):
    if hasattr(ast, _kind):
        _EXPRESSIONS[getattr(ast, _kind)] = _then_stop(_fields)
