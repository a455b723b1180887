"""Formatted strings as expressions: f-strings and t-strings."""

from __future__ import annotations

import ast
from typing import Callable, List, Optional

from depyf.lift.build import constant
from depyf.lift.display_expressions import elements


def formatted(conversion: str, value: ast.expr, spec: Optional[ast.expr] = None) -> ast.expr:
    return ast.JoinedStr([ast.FormattedValue(value, _conversion(conversion), _format_spec(spec))])


def _conversion(conversion: str) -> int:
    return ord(conversion) if conversion else -1


def _format_spec(spec: Optional[ast.expr]) -> Optional[ast.expr]:
    if spec is None or isinstance(spec, ast.JoinedStr):
        return spec
    return ast.JoinedStr([spec] if isinstance(spec, ast.Constant) else [ast.FormattedValue(spec, -1, None)])


def interpolation(conversion: str, value: ast.expr, text: ast.expr, spec: Optional[ast.expr] = None) -> ast.expr:
    """Return a field of a t-string (3.14); ``text`` is its expression as written in the source."""
    return _node("Interpolation")(value, constant(text), _conversion(conversion), _format_spec(spec))


def template(strings: ast.expr, fields: ast.expr) -> ast.expr:
    """Return a t-string: texts with a field between each two."""
    values: List[ast.expr] = []
    for text, field in zip(elements(strings), [*elements(fields), None]):
        if constant(text):
            values.append(text)
        if field is not None:
            values.append(field)
    return _node("TemplateStr")(values)


def _node(kind: str) -> Callable[..., ast.expr]:
    """Return a class of ``ast`` that some supported Pythons lack."""
    made: Callable[..., ast.expr] = getattr(ast, kind)
    return made
