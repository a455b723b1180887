"""``and`` and ``or`` as operands of each other where the bytecode tests the truth of the same value twice.

    return (
        a and b             a false ``a`` is tested by ``and``, and once more by ``or``
    ) or c

On one line the compiler makes one jump of both tests (up to 3.11), which ``__bool__`` could observe. So the inner
expression is put on a separate line; where the tests are one jump, both have to stay on one line. Up to 3.9, and from
3.14 on, lines do not matter, but an arm of a choice does: ``(a and b if True else None) or c``.
"""

from __future__ import annotations

import ast
from collections import deque
from typing import Deque, List, Set

from depyf.decompiler.bytecode.parsing import parse
from depyf.decompiler.bytecode.syntax_trees import children, has_blocks

LINES_MATTER = len({compile(text, "", "eval").co_code for text in ("(a and b) or c", "((\n a and b) or c)")}) == 2
"""Whether the compiler of this Python joins tests on one line."""
ARMS_MATTER = (
    len({compile(text, "", "eval").co_code for text in ("(a and b) or c", "(a and b if True else 0) or c")}) == 2
)
"""Whether ``TestedAgain.chosen`` is recognised: by a jump over the dead arm (3.8, 3.9), or since tests elsewhere skip
the next test of the same value (3.14)."""


def is_unbreakable(line: str, cls: type) -> bool:
    """Return whether ``line``, a statement of class ``cls`` or its header, has an ``and`` or ``or`` that is an operand
    of another one whose value is used, or an arm of such an operand."""
    if not LINES_MATTER or line.count(" and ") + line.count(" or ") < 2:
        return False
    body = "\n    case _: pass" if cls.__name__ == "Match" else " pass" if has_blocks[cls] else ""
    conditions: Set[int] = set()
    todo: Deque[ast.AST] = deque(parse(("if" + line[4:] if line.startswith("elif ") else line) + body).body)
    while todo:  # outer nodes come first
        node = todo.popleft()
        todo.extend(each for each in children(node) if not isinstance(each, ast.stmt))
        if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            _add_condition(node.test, conditions)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                _add_condition(test, conditions)
        elif isinstance(node, ast.BoolOp) and id(node) not in conditions:
            if any(map(_ends_in_tests, node.values)):
                return True
    return False


def _ends_in_tests(operand: ast.expr) -> bool:
    """Return whether an arm of ``operand``, or all of it, is an ``and`` or ``or``."""
    if isinstance(operand, ast.IfExp):
        return _ends_in_tests(operand.body) or _ends_in_tests(operand.orelse)
    return isinstance(operand, ast.BoolOp)


def _add_condition(test: ast.expr, conditions: Set[int]) -> None:
    """Add the ids of the expressions that only decide where ``test`` jumps to ``conditions``."""
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
