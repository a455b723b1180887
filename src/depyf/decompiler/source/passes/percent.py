"""``"%s: %s" % (a, b)``, which compilers since 3.11 turn into ``f"{a!s}: {b!s}"``, a form that is rarely written.

It stands alone: the only pass that rewrites expressions.
"""

from __future__ import annotations

import ast
from typing import List, Optional

from depyf.decompiler.lift.spans import first_span, span_of
from depyf.decompiler.source.inventory import UNKNOWN, Contents, bits_of
from depyf.decompiler.source.printing.fstrings import COMPILER_KNOWS_PERCENT, percent_field
from depyf.decompiler.source.rewriting import Node, Rewriter

FORMATTED = bits_of(ast.JoinedStr)


def restore_percent(tree: Node, contents: Contents = UNKNOWN) -> Node:
    """Return ``tree`` with ``%`` for f-strings in which every field has a conversion, and at least one has ``!s``."""
    return _Percent().visit_holders(tree, contents, FORMATTED) if COMPILER_KNOWS_PERCENT else tree


class _Percent(Rewriter):
    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        changed = self.rewrite_children(node)
        template = ""
        arguments: List[ast.expr] = []
        for part in changed.values:
            if isinstance(part, ast.FormattedValue):
                field = percent_field(part)
                if field is None:
                    return changed
                template += field
                arguments.append(part.value)
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                template += part.value.replace("%", "%%")
            else:
                return changed
        fields = [part for part in changed.values if isinstance(part, ast.FormattedValue)]
        written = _was_percent(fields)
        if written is False or (written is None and not any(part.conversion == ord("s") for part in fields)):
            return changed
        # A tuple of constants is one constant, for which the compiler does not change ``%``.
        if not any(isinstance(each, ast.Name) for argument in arguments for each in ast.walk(argument)):
            return changed
        return ast.BinOp(ast.Constant(template), ast.Mod(), ast.Tuple(arguments, ast.Load()))


def _was_percent(fields: List[ast.FormattedValue]) -> Optional[bool]:
    """Return whether columns show that ``%`` was written; ``None`` if there are none. Each field then has the span of
    its value, without braces. Of ``a or b`` and ``a if b else c`` only the start is known."""
    found = True
    for part in fields:
        field, value = span_of(part), span_of(part.value)
        first = value or (first_span(part.value) if isinstance(part.value, (ast.BoolOp, ast.IfExp)) else None)
        if field is None or field.column is None or first is None:
            return None
        found = found and (field == value if value is not None else field[:2] == first[:2])
    return found
