"""``"%s: %s" % (a, b)``, which compilers since 3.11 turn into ``f"{a!s}: {b!s}"``: nobody writes that."""

from __future__ import annotations

import ast
from typing import List, Optional

from depyf.lift.places import place_of
from depyf.source.printing.fstrings import percent_field
from depyf.source.rewriting import Node, Rewriter

# Asked of the compiler that the source will be given to: elsewhere the two are not the same.
_IS_COMPILED_TO_FSTRING = "%s" not in compile("'%s' % (a,)", "<percent>", "eval").co_consts


def restore_percent(tree: Node) -> Node:
    """``tree`` with ``%`` in the place of f-strings that format everything by a conversion, and something by ``!s``."""
    return _Percent().visit(tree) if _IS_COMPILED_TO_FSTRING else tree


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
        # A tuple of constants is one constant, and the compiler leaves ``%`` alone.
        if not any(isinstance(each, ast.Name) for argument in arguments for each in ast.walk(argument)):
            return changed
        return ast.BinOp(ast.Constant(template), ast.Mod(), ast.Tuple(arguments, ast.Load()))


def _was_percent(fields: List[ast.FormattedValue]) -> Optional[bool]:
    """Whether columns show that ``%`` was written: then each field has the place of its value, and no braces."""
    places = [(place_of(part), place_of(part.value)) for part in fields]
    if not all(field is not None and field.column is not None and value is not None for field, value in places):
        return None
    return all(field == value for field, value in places)
