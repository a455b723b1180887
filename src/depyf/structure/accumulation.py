"""A statement that only the body of a comprehension contains, before it is an expression."""

from __future__ import annotations

import ast
from typing import Optional


class AccumulateStatement(ast.stmt):
    """A comprehension adds an element; only inside comprehensions that are not expressions yet."""

    _fields = ("key", "element")
    kind: str
    key: Optional[ast.expr]
    element: ast.expr
