"""A statement that only the body of a comprehension contains, before it is an expression."""

from __future__ import annotations

import ast
from typing import Optional

from depyf.decompiler.lift.nodes import Accumulate


class AccumulateStatement(ast.stmt):
    """A comprehension adds an element; only inside comprehensions that are not expressions yet."""

    _fields = ("key", "element")
    kind: str
    key: Optional[ast.expr]
    element: ast.expr

    @classmethod
    def of(cls, addition: Accumulate) -> AccumulateStatement:
        """Return the statement for ``addition``."""
        statement = cls()
        statement.kind, statement.key, statement.element = addition.kind, addition.key, addition.element
        return statement
