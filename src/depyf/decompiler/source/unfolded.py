"""Operations on constants that the compiler folds everywhere except in the value of ``:=``.

Up to Python 3.9 its optimizer does not visit ``(n := f(-1))``. A value that is stored twice there has the bytecode of
``n = x = f(-1)``, except that ``-1`` is an operation on 1.

It stands alone: nothing here is needed from 3.10 on.
"""

from __future__ import annotations

import ast

from depyf.decompiler.bytecode.opcode_table import running_version
from depyf.decompiler.lift.not_folded import is_not_folded

_LOOKS_INTO_WALRUSES = (3, 10)


def keep_unfolded(tree: ast.Module) -> None:
    """Write ``x = (n := value)`` for ``n = x = value``, in place, where operations of ``value`` would be folded. Both
    forms have the same operations otherwise, in the same order. Elsewhere ``lift.not_folded`` keeps the operations."""
    if running_version() >= _LOOKS_INTO_WALRUSES:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) > 1:
            if any(map(_would_be_folded, ast.walk(node.value))):
                while len(node.targets) > 1:
                    target = node.targets[0]
                    if not isinstance(target, ast.Name):
                        break
                    node.value = ast.NamedExpr(target, node.value)
                    del node.targets[0]
        if isinstance(node, ast.NamedExpr):
            _fold_operands(node.value)


def _fold_operands(value: ast.expr) -> None:
    """Replace what ``lift.not_folded`` has made in ``value``, in place, by constants."""
    for node in ast.walk(value):
        for field in ("left", "value", "operand"):
            operand = getattr(node, field, None)
            if isinstance(operand, ast.IfExp) and is_not_folded(operand):
                setattr(node, field, operand.body)


def _would_be_folded(node: ast.AST) -> bool:
    """Return whether ``node``, which was made of operations, may be compiled to fewer."""
    if is_not_folded(node):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, (ast.Constant, ast.Compare)) or _would_be_folded(node.operand)
    if isinstance(node, ast.BinOp):
        return all(isinstance(each, ast.Constant) or _would_be_folded(each) for each in (node.left, node.right))
    if isinstance(node, ast.Tuple):
        return all(isinstance(each, ast.Constant) or _would_be_folded(each) for each in node.elts)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[-1], (ast.In, ast.NotIn)) and isinstance(node.comparators[-1], (ast.List, ast.Set))
    return False
