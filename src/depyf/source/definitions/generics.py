"""The syntax of type parameters and type aliases (PEP 695, 3.12; defaults since 3.13)."""

from __future__ import annotations

import ast
from typing import Callable, Dict, List, Optional

from depyf.bytecode.code import parameter_names
from depyf.lift.build import names_match
from depyf.lift.display_expressions import elements, string_pairs
from depyf.lift.items import DEFAULTS, KW_DEFAULTS, Function
from depyf.lift.nodes import FunctionExpression, TypeParameter
from depyf.source.compiling.scaffold import TYPE_PARAMS
from depyf.source.definitions.annotations import without_format_test
from depyf.source.definitions.comprehension import as_expression
from depyf.structure.unstructured import Unstructured


def with_parameters(outer: Function, statements: List[ast.stmt]) -> Function:
    """Return the function, class or alias with type parameters that ``statements`` return. They are the body of
    ``outer``, which was called with its defaults and has its decorators."""
    last = statements[-1] if statements else None
    if not isinstance(last, ast.Return) or not isinstance(last.value, FunctionExpression):
        raise Unstructured(f"{outer.code.co_name} does more than make type parameters")
    inner: Function = last.value.function
    for statement in statements[:-1]:
        if not _stores_parameters(statement):
            raise Unstructured(f"{outer.code.co_name} does more than make type parameters")
        inner.type_parameters = elements(statement.value)  # type: ignore[attr-defined]
    given = dict(zip(parameter_names(outer.code), outer.generic or ()))
    if DEFAULTS in inner.inherits:
        inner.defaults = elements(given[inner.inherits[DEFAULTS]])
    if KW_DEFAULTS in inner.inherits:
        inner.kw_defaults = string_pairs(given[inner.inherits[KW_DEFAULTS]])
    inner.decorators = outer.decorators
    return inner


def _stores_parameters(statement: ast.stmt) -> bool:
    """Return whether ``statement`` stores type parameters in the variable where a class finds them."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    return isinstance(target, ast.Name) and target.id == TYPE_PARAMS


def type_parameter(expr: ast.expr, evaluated: Callable[[Function], ast.expr]) -> ast.AST:
    """Return ``T``, ``T: bound``, ``*T``, ``**T``, each with or without a default. ``evaluated`` gives the result of
    the functions that make bounds and defaults."""
    name: Optional[ast.expr] = None
    if isinstance(expr, ast.NamedExpr):
        name, expr = expr.target, expr.value
    stored = getattr(name, "id", None)
    if not isinstance(expr, TypeParameter) or (stored is not None and not names_match(expr.name, stored)):
        raise Unstructured("an object among type parameters is not one")
    fields: Dict[str, object] = {"name": expr.name}
    if expr.bound is not None:
        fields["bound"] = evaluated(expr.bound)
    if expr.default is not None:
        fields["default_value"] = evaluated(expr.default)
    node: ast.AST = getattr(ast, expr.kind)(**fields)
    return node


def evaluated(body: List[ast.stmt]) -> ast.expr:
    """Return the expression whose value a function with ``body`` returns. ``*Ts = *default`` unpacks the default."""
    body = without_format_test(body)
    if len(body) == 2 and isinstance(body[0], ast.Assign) and isinstance(body[1], ast.Return):
        target = body[0].targets[0]
        if isinstance(target, ast.Tuple) and len(target.elts) == 1 and isinstance(body[1].value, ast.Name):
            return ast.Starred(body[0].value, ast.Load())
    return as_expression(body)


def type_alias(name: str, parameters: List[ast.AST], value: ast.expr) -> ast.stmt:
    """Return ``type name[parameters] = value``."""
    make = getattr(ast, "TypeAlias")  # noqa: B009
    alias: ast.stmt = make(name=ast.Name(name, ast.Store()), type_params=parameters, value=value)
    return alias
