"""Trees to plain text: ``ast.unparse``, and where Python has none yet (3.8) what ``unparsing_38`` has.

The first versions of ``ast.unparse`` (3.9 and 3.10) wrote ``lambda : x`` and ``for (a, b) in c``; here they write what
later ones do.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any, Callable, cast

from depyf.bytecode.parsing import parse
from depyf.source.printing.unparsing_38 import unparse_38


def unparse(node: ast.AST) -> str:
    """The text of any node."""
    function = getattr(ast, "unparse", None)
    if function is None:
        return unparse_38(node)
    if _is_early(function):
        return cast(str, _early_printer()().visit(node))
    return cast(Callable[[ast.AST], str], function)(node)


@lru_cache(maxsize=None)
def _is_early(function: Callable[[ast.AST], str]) -> bool:
    """Whether this ``ast.unparse`` is one of those that write spaces and parentheses that nobody does."""
    return function(parse("lambda: 0")) != "lambda: 0"


@lru_cache(maxsize=None)
def _early_printer() -> Any:
    """The class that makes ``ast.unparse`` of 3.9 and 3.10, corrected."""
    base: Any = getattr(ast, "_Unparser")  # noqa: B009  (not in every version)
    tightness: Any = getattr(ast, "_Precedence")  # noqa: B009

    class Printer(base):  # type: ignore[misc]
        """Writes tuples that are assigned to without parentheses, and no space behind ``lambda`` without parameters."""

        _bare: object = None

        def _with_bare(self, target: ast.AST, write: Callable[[object], None], node: ast.AST) -> None:
            self._bare = target
            write(node)

        def visit_Assign(self, node: ast.Assign) -> None:
            self.fill()
            for target in node.targets:
                self._bare = target
                self.traverse(target)
                self.write(" = ")
            self.traverse(node.value)

        def visit_For(self, node: ast.For) -> None:
            self._with_bare(node.target, super().visit_For, node)

        def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
            self._with_bare(node.target, super().visit_AsyncFor, node)

        def visit_comprehension(self, node: ast.comprehension) -> None:
            self._with_bare(node.target, super().visit_comprehension, node)

        def visit_Tuple(self, node: ast.Tuple) -> None:
            if node is self._bare and node.elts:
                self.items_view(self.traverse, node.elts)
            else:
                super().visit_Tuple(node)

        def visit_Lambda(self, node: ast.Lambda) -> None:
            parameters = node.args
            named = [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs]
            with self.require_parens(tightness.TEST, node):
                self.write("lambda " if named or parameters.vararg or parameters.kwarg else "lambda")
                self.traverse(parameters)
                self.write(": ")
                self.set_precedence(tightness.TEST, node.body)
                self.traverse(node.body)

    return Printer
