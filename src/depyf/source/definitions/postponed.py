"""Annotations that ``from __future__ import annotations`` made strings, back to expressions."""

from __future__ import annotations

import ast
from copy import deepcopy

from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.lift.build import constant

_IMPORT = "from __future__ import annotations\n"


def postpones_annotations(statement: ast.stmt) -> bool:
    """Return whether ``statement`` is that import. The text of a function does not have it: there, strings stay
    strings."""
    if not isinstance(statement, ast.ImportFrom) or statement.module != "__future__":
        return False
    return any(alias.name == "annotations" for alias in statement.names)


def as_written(annotation: ast.expr) -> ast.expr:
    """Return the expression whose text the compiler stored, or ``annotation`` itself if it is not one."""
    text = constant(annotation)
    if not isinstance(text, str):
        return annotation
    try:
        parsed = parse(f"({text}\n,)", mode="eval").body  # a tuple, because there may be a star
    except synchronous(SyntaxError, ValueError):
        return annotation
    assert isinstance(parsed, ast.Tuple)
    if len(parsed.elts) != 1:
        return annotation
    return _with_ellipses(parsed.elts[0], text) if "Ellipsis" in text else parsed.elts[0]


def _with_ellipses(expr: ast.expr, text: str) -> ast.expr:
    """Return ``expr`` with ``...`` for the name ``Ellipsis``, where only that compiles to ``text``. 3.8 folds a tuple
    of constants first: ``Callable[..., None]`` becomes ``Callable[(Ellipsis, None)]``."""
    dotted = _Dots().visit(deepcopy(expr))
    return dotted if _gives(dotted, text) and not _gives(expr, text) else expr


class _Dots(ast.NodeTransformer):
    """Replaces ``Ellipsis`` by ``...`` in the tuples of subscripts, and in tuples in those."""

    def __init__(self) -> None:
        self._inside = False

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        before, self._inside = self._inside, False
        node.value = self.visit(node.value)
        self._inside = True
        node.slice = self.visit(node.slice)
        self._inside = before
        return node

    def visit_Tuple(self, node: ast.Tuple) -> ast.Tuple:
        if self._inside and any(map(_is_the_name, node.elts)):
            node.elts = [ast.Constant(...) if _is_the_name(each) else each for each in node.elts]
        return self.generic_visit(node)  # type: ignore[return-value]


def _is_the_name(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Name) and expr.id == "Ellipsis"


def _gives(expr: ast.expr, text: str) -> bool:
    """Return whether the running compiler stores ``text`` for the annotation ``expr``."""
    tree = parse(_IMPORT + "x: 0")
    (statement,) = [each for each in tree.body if isinstance(each, ast.AnnAssign)]
    statement.annotation = expr
    return text in compile(ast.fix_missing_locations(tree), "<annotation>", "exec", dont_inherit=True).co_consts
