"""``and`` and ``or`` as operands of each other where the bytecode tests the truth of the same value twice.

    return (
        a and b             a false ``a`` is tested by ``and``, and once more by ``or``
    ) or c

On one line the compiler makes one jump of both tests (up to 3.11), and a ``__bool__`` could observe it. So the inner
expression stands on a line of its own; where the tests are one jump, both have to stay on one line.
"""

from __future__ import annotations

import ast
from typing import Any, Callable, List, Set

from depyf.bytecode.syntax_trees import walk
from depyf.lift.build import TestedAgain
from depyf.source.printing.literals import verbatim
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

    def visit(self, node: ast.AST) -> Any:
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


def unbreakable_lines(tree: ast.Module) -> Set[int]:
    """The lines (1-based) with an ``and`` or ``or`` that is an operand of another one whose value is used."""
    lines: Set[int] = set()
    if not _LINES_MATTER:
        return lines
    conditions: Set[int] = set()
    for node in walk(tree):  # what is around comes first
        if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            _add_condition(node.test, conditions)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                _add_condition(test, conditions)
        elif isinstance(node, ast.BoolOp) and id(node) not in conditions:
            if any(isinstance(value, ast.BoolOp) for value in node.values):
                lines.add(node.lineno)
    return lines


def _add_condition(test: ast.expr, conditions: Set[int]) -> None:
    """Put the ids of the expressions into ``conditions`` that only decide where ``test`` jumps."""
    todo: List[ast.expr] = [test]
    while todo:
        node = todo.pop()
        conditions.add(id(node))
        if isinstance(node, ast.BoolOp):
            todo.extend(node.values)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            todo.append(node.operand)
        elif isinstance(node, ast.IfExp):
            todo.extend((node.test, node.body, node.orelse))
