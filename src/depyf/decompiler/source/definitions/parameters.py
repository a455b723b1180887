"""Parameters of functions, and the syntax of type parameters and type aliases (PEP 695, 3.12; defaults since 3.13).

Parameters come from the code object and the operands of MAKE_FUNCTION.
"""

from __future__ import annotations

import ast
import inspect
from typing import Callable, Dict, List, Mapping, Optional, Sequence

from depyf.decompiler.bytecode.code import Code, parameter_names
from depyf.decompiler.lift.build import names_match
from depyf.decompiler.lift.display_expressions import elements, string_pairs
from depyf.decompiler.lift.items import DEFAULTS, KW_DEFAULTS, Function
from depyf.decompiler.lift.nodes import FunctionExpression, TypeParameter
from depyf.decompiler.source.compiling.scaffold import TYPE_PARAMS
from depyf.decompiler.source.definitions.annotations import without_format_test
from depyf.decompiler.source.definitions.comprehension import as_expression
from depyf.decompiler.structure.unstructured import Unstructured


def arguments(
    code: Code,
    defaults: Sequence[ast.expr] = (),
    kw_defaults: Optional[Mapping[str, ast.expr]] = None,
    annotations: Optional[Mapping[str, ast.expr]] = None,
) -> ast.arguments:
    """Return the parameter list of ``code``.

    ``defaults`` belong to the last positional parameters, ``kw_defaults`` and ``annotations`` go by parameter name. The
    annotation of the returned value (``"return"``) is not part of ``ast.arguments``: the caller puts it into the
    function definition. Raises ``ValueError`` when there are more defaults than positional parameters.
    """
    kw_defaults, annotations = kw_defaults or {}, annotations or {}
    positional = code.co_argcount
    if len(defaults) > positional:
        raise ValueError(f"{code.co_name}: {len(defaults)} defaults for {positional} positional parameters")

    def parameter(name: str) -> ast.arg:
        return ast.arg(arg=name, annotation=annotations.get(name), type_comment=None)

    parameters: List[ast.arg] = [parameter(name) for name in parameter_names(code)]
    keyword_end = positional + code.co_kwonlyargcount
    rest = parameters[keyword_end:]
    vararg = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else None
    kwarg = rest.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else None
    keyword_only = parameters[positional:keyword_end]
    return ast.arguments(
        posonlyargs=parameters[: code.co_posonlyargcount],
        args=parameters[code.co_posonlyargcount : positional],
        vararg=vararg,
        kwonlyargs=keyword_only,
        kw_defaults=[kw_defaults.get(argument.arg) for argument in keyword_only],
        kwarg=kwarg,
        defaults=list(defaults),
    )


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
    # Defaults are evaluated outside, and passed to ``outer`` as its parameters ``.defaults`` and ``.kwdefaults``.
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
