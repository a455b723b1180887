"""``and`` and ``or`` as operands of each other where the bytecode tests the truth of the same value twice.

    return (
        a and b             a false ``a`` is tested by ``and``, and once more by ``or``
    ) or c

On one line the compiler makes one jump of both tests (up to 3.11), and who has a ``__bool__`` could tell. So the inner
expression stands on a line of its own.
"""

from __future__ import annotations

import ast
from typing import Any, Callable

from depyf.lift.build import TestedAgain
from depyf.source.literals import verbatim
from depyf.source.rewriting import Rewriter

_LINES_MATTER = len({compile(text, "", "eval").co_code for text in ("(a and b) or c", "((\n a and b) or c)")}) == 2
"""Whether the compiler of this Python joins tests that stand on one line."""


def print_repeated_tests(tree: ast.Module, unparse: Callable[[ast.AST], str]) -> ast.Module:
    """``tree`` without ``TestedAgain``: in place of each an atom that holds its text, or an ordinary operand."""
    result: ast.Module = _RepeatedTests(unparse).visit(tree)
    return result


class _RepeatedTests(Rewriter):
    def __init__(self, unparse: Callable[[ast.AST], str]) -> None:
        super().__init__()
        self._unparse = unparse
        self._depth = 0

    def visit(self, node: Any) -> Any:
        if not isinstance(node, ast.stmt):
            return super().visit(node)
        self._depth += 1
        try:
            return super().visit(node)
        finally:
            self._depth -= 1

    def visit_TestedAgain(self, node: TestedAgain) -> ast.expr:
        inner = self.rewrite_children(ast.BoolOp(node.op, node.values))
        if not _LINES_MATTER:
            return inner
        outer = "    " * (self._depth - 1)
        return verbatim(f"(\n{outer}    {self._unparse(inner).strip()}\n{outer})")
