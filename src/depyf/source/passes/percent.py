"""``"%s: %s" % (a, b)``, which compilers since 3.11 turn into ``f"{a!s}: {b!s}"``: nobody writes that."""

from __future__ import annotations

import ast
import re
from typing import Any, List, Optional

from depyf.source.rewriting import Rewriter

# Asked of the compiler that the source will be given to: elsewhere the two are not the same.
_IS_COMPILED_TO_FSTRING = "%s" not in compile("'%s' % (a,)", "<percent>", "eval").co_consts

_SPECIFICATION = re.compile(r"(>?)(\d*)((?:\.\d+)?)")


def restore_percent(tree: Any) -> Any:
    """``tree`` with ``%`` in the place of f-strings that format everything by a conversion, and something by ``!s``."""
    return _Percent().visit(tree) if _IS_COMPILED_TO_FSTRING else tree


class _Percent(Rewriter):
    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        changed = self.rewrite_children(node)
        template = ""
        arguments: List[ast.expr] = []
        for part in changed.values:
            if isinstance(part, ast.FormattedValue):
                field = _field(part)
                if field is None:
                    return changed
                template += field
                arguments.append(part.value)
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                template += part.value.replace("%", "%%")
            else:
                return changed
        fields = [part for part in changed.values if isinstance(part, ast.FormattedValue)]
        if not any(part.conversion == ord("s") for part in fields):
            return changed
        # A tuple of constants is one constant, and the compiler leaves ``%`` alone.
        if not any(isinstance(each, ast.Name) for argument in arguments for each in ast.walk(argument)):
            return changed
        return ast.BinOp(ast.Constant(template), ast.Mod(), ast.Tuple(arguments, ast.Load()))


def _field(part: ast.FormattedValue) -> Optional[str]:
    """The ``%`` form of a replacement field, if it has one."""
    if part.conversion not in (ord("s"), ord("r"), ord("a")):
        return None
    specification = _text(part.format_spec)
    found = None if specification is None else _SPECIFICATION.fullmatch(specification)
    if found is None or (found.group(1) and not found.group(2)) or found.group(2).startswith("0"):
        return None
    right, width, precision = found.groups()
    left = "-" if width and not right else ""
    return f"%{left}{width}{precision}{chr(part.conversion)}"


def _text(specification: Optional[ast.expr]) -> Optional[str]:
    """A format specification without replacement fields in it."""
    if specification is None:
        return ""
    if not isinstance(specification, ast.JoinedStr) or len(specification.values) != 1:
        return None
    only = specification.values[0]
    return only.value if isinstance(only, ast.Constant) and isinstance(only.value, str) else None
