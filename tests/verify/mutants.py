"""Makes mutants: copies of a function with one change that matters."""

from __future__ import annotations

import ast
import copy
import random
from types import CodeType
from typing import Callable, Iterator, List, Optional, Tuple

Change = Callable[[ast.AST], bool]
"""Changes a node in place; says whether it did."""

STATEMENTS = (ast.Expr, ast.AugAssign, ast.Assign, ast.Raise, ast.Delete, ast.Assert, ast.Import, ast.ImportFrom)


def _swap_operands(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and ast.dump(node.left) != ast.dump(node.right):
        node.left, node.right = node.right, node.left
        return True
    return False


def _other_operator(node: ast.AST) -> bool:
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        node.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        return True
    return False


def _other_comparison(node: ast.AST) -> bool:
    others = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
              ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}  # fmt: skip
    if isinstance(node, ast.Compare):
        node.ops[-1] = others[type(node.ops[-1])]()
        return True
    return False


def _flip_test(node: ast.AST) -> bool:
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return True
    return False


def _and_or(node: ast.AST) -> bool:
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return True
    return False


def _other_constant(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant) and type(node.value) in (int, str, float):
        node.value = node.value + ("x" if isinstance(node.value, str) else 1)
        return True
    return False


def _other_attribute(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        node.attr += "_other"
        return True
    return False


def _other_handler_type(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        node.type = ast.Name("AnotherError", ast.Load()) if node.name or node.type is None else None
        return True
    return False


def _drop_handler(node: ast.AST) -> bool:
    if isinstance(node, ast.Try) and len(node.handlers) > 1:
        del node.handlers[0]
        return True
    return False


def _drop_finally(node: ast.AST) -> bool:
    if isinstance(node, ast.Try) and node.handlers and node.finalbody:
        node.finalbody = []
        return True
    return False


def _drop_loop_else(node: ast.AST) -> bool:
    if isinstance(node, (ast.For, ast.While)) and node.orelse:
        node.body, node.orelse = node.body + node.orelse, []
        return True
    return False


def _swap_arguments(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and len(node.args) > 1 and ast.dump(node.args[0]) != ast.dump(node.args[1]):
        node.args[0], node.args[1] = node.args[1], node.args[0]
        return True
    return False


def _drop_argument(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and node.args:
        node.args.pop()
        return True
    return False


def _other_keyword(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword) and node.arg is not None:
        node.arg += "_other"
        return True
    return False


def _no_longer_in_place(node: ast.AST) -> bool:
    for index, statement in enumerate(getattr(node, "body", None) or [] if isinstance(node, ast.stmt) else []):
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            value = ast.BinOp(ast.Name(statement.target.id, ast.Load()), statement.op, statement.value)
            node.body[index] = ast.Assign([statement.target], value)  # type: ignore[attr-defined]
            return True
    return False


def _calls(statement: ast.stmt) -> bool:
    """Whether it is a simple statement with a call, so that it can't be missing or moved unnoticed."""
    return isinstance(statement, STATEMENTS) and any(isinstance(inner, ast.Call) for inner in ast.walk(statement))


def _drop_statement(node: ast.AST) -> bool:
    body = getattr(node, "body", None)
    if not isinstance(node, ast.stmt) or not isinstance(body, list):
        return False
    for index, statement in enumerate(body):
        if _calls(statement):
            body[index] = ast.Pass()
            return True
    return False


def _swap_statements(node: ast.AST) -> bool:
    body = getattr(node, "body", None)
    if not isinstance(node, ast.stmt) or not isinstance(body, list):
        return False
    for index in range(len(body) - 1):
        pair = body[index : index + 2]
        if all(_calls(item) for item in pair) and ast.dump(pair[0]) != ast.dump(pair[1]):
            body[index], body[index + 1] = pair[1], pair[0]
            return True
    return False


def _break_continue(node: ast.AST) -> bool:
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return False
    for index, statement in enumerate(body):
        if isinstance(statement, (ast.Break, ast.Continue)):
            body[index] = ast.Continue() if isinstance(statement, ast.Break) else ast.Break()
            return True
    return False


def _return_nothing(node: ast.AST) -> bool:
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        node.value = None
        return True
    return False


CHANGES: Tuple[Change, ...] = (
    _swap_operands, _other_operator, _other_comparison, _flip_test, _and_or, _other_constant, _other_attribute,
    _other_handler_type, _drop_handler, _drop_finally, _drop_loop_else, _swap_arguments, _drop_argument,
    _other_keyword, _no_longer_in_place, _drop_statement, _swap_statements, _break_continue, _return_nothing,
)  # fmt: skip


def functions_of(source: str) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            yield node


def compiled(function: ast.FunctionDef) -> Optional[CodeType]:
    """The code object of ``function`` alone; ``None`` if it does not compile."""
    lonely = copy.deepcopy(function)
    lonely.decorator_list = []
    module = ast.fix_missing_locations(ast.Module([lonely], []))
    try:
        code = compile(module, "<mutant>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return next(const for const in code.co_consts if isinstance(const, CodeType) and const.co_name == function.name)


def mutate(function: ast.FunctionDef, change: Change, chooser: random.Random) -> Optional[ast.FunctionDef]:
    """A copy of ``function`` in which ``change`` was applied to one place; ``None`` if there is none."""
    mutant = copy.deepcopy(function)
    nodes: List[ast.AST] = [node for statement in mutant.body for node in ast.walk(statement)]
    chooser.shuffle(nodes)
    return mutant if any(change(node) for node in nodes) else None
