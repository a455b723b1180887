"""Fewer parentheses than ``ast.unparse`` writes.

``a and (not b)`` becomes ``a and not b``, ``return (a, b)`` becomes ``return a, b``.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Callable, Optional, TypeVar

from depyf.source.printing.literals import verbatim
from depyf.source.rewriting import Rewriter, replaced

if TYPE_CHECKING:
    from typing import TypeGuard  # new in 3.10

PARENTHESISED = (ast.BoolOp, ast.Tuple, ast.Yield, ast.YieldFrom)
"""The nodes that there is something to do about."""


def drop_parentheses(tree: ast.Module, unparse: Callable[[ast.AST], str]) -> ast.Module:
    """``tree`` with some expressions as atoms that hold their text, where that needs no parentheses around it."""
    result: ast.Module = _Parentheses(unparse).visit(tree)
    return result


_Assignment = TypeVar("_Assignment", ast.Assign, ast.AugAssign, ast.AnnAssign)


class _Parentheses(Rewriter):
    def __init__(self, unparse: Callable[[ast.AST], str]) -> None:
        super().__init__()
        self._unparse = unparse

    def _atom(self, node: ast.expr) -> ast.Name:
        return verbatim(self._unparse(node).strip("\n"))

    def visit_BoolOp(self, node: ast.BoolOp) -> object:
        node = self.rewrite_children(node)
        return replaced(node, values=[self._operand(value) for value in node.values])

    def _operand(self, value: ast.expr) -> ast.expr:
        negation = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
        return self._atom(value) if negation or isinstance(value, ast.Compare) else value

    def visit_Return(self, node: ast.Return) -> object:
        node = self.rewrite_children(node)
        return replaced(node, value=self._bare_tuple(node.value)) if _is_tuple(node.value) else node

    def visit_Yield(self, node: ast.Yield) -> object:
        node = self.rewrite_children(node)
        return replaced(node, value=self._atom(node.value)) if isinstance(node.value, ast.Await) else node

    def _visit_assignment(self, node: _Assignment) -> _Assignment:
        node = self.rewrite_children(node)
        if isinstance(node.value, (ast.Yield, ast.YieldFrom)):
            # "(yield x)": alone on the right side it needs none
            return replaced(node, value=verbatim(self._atom(node.value).id[1:-1]))
        return node

    visit_AugAssign = _visit_assignment
    visit_AnnAssign = _visit_assignment

    def visit_Assign(self, node: ast.Assign) -> object:
        node = self._visit_assignment(node)
        if not _is_tuple(node.value) or not _is_tuple(node.targets[-1]):
            return node
        return replaced(node, value=self._bare_tuple(node.value))

    def _bare_tuple(self, node: ast.Tuple) -> ast.Name:
        return verbatim(", ".join(self._unparse(element).strip("\n") for element in node.elts))


def _is_tuple(node: Optional[ast.AST]) -> TypeGuard[ast.Tuple]:
    return isinstance(node, ast.Tuple) and len(node.elts) > 1
