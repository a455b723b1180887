"""Operations on constants that the compiler did not fold, since it folds first and removes tests of constants then.

-(1 or b)       is an operation on 1
"""

from __future__ import annotations

import ast
from typing import Callable

from depyf.bytecode.parsing import parse
from depyf.lift import build
from depyf.lift.places import moved
from depyf.normal.lowering import lower
from depyf.normal.ops import Op
from depyf.without_warnings import without_warnings


def not_folded(value: ast.Constant, operation: Callable[[ast.expr], ast.expr]) -> ast.expr:
    """Return an expression of constants, which the compiler makes ``value`` of when it is too late to fold
    ``operation`` on it; ``value`` where it is not folded."""
    if not folds(operation(value)):
        return value
    copies = [ast.Constant(value.value) for _ in range(2)]
    operator: ast.boolop = ast.Or() if value.value else ast.And()
    forms = [ast.BoolOp(operator, list(copies)), ast.IfExp(ast.Constant(True), *copies)]  # 3.8 tests the operand
    for form in forms:
        if _length(operation(form)) == _length(operation(ast.Name("operand", ast.Load()))):
            return moved(form, value)
    return value


def item_of(base: ast.expr, key: ast.expr) -> ast.expr:
    """Return ``base[key]`` as the parser makes it, for ``not_folded``: before 3.9 the key is in a node of its own."""
    key = build.subscript(base, key, ast.Load()).slice
    subscript, parts = parse("base[key]", mode="eval").body, {"base": base, "key": key}
    for node in list(ast.walk(subscript)):
        for field, child in ast.iter_fields(node):
            if isinstance(child, ast.Name):
                setattr(node, field, parts[child.id])
    return subscript


def is_not_folded(expr: ast.AST) -> bool:
    """Return whether ``expr`` was made by ``not_folded`` before Python 3.10."""
    if not isinstance(expr, ast.IfExp) or build.constant(expr.test) is not True:
        return False
    return isinstance(expr.body, ast.Constant) and build.constant(expr.body) is build.constant(expr.orelse)


def folds(operation: ast.expr) -> bool:
    """Return whether the compiler folds ``operation`` on constants."""
    return _length(operation) == 1


def _length(operation: ast.expr) -> int:
    """Return the number of operations that ``operation`` is compiled to."""
    with without_warnings():
        compiled = compile(ast.fix_missing_locations(ast.Expression(operation)), "<operation>", "eval")
    return sum(instr.op not in (Op.JUMP, Op.RETURN) for instr in lower(compiled).ops)
