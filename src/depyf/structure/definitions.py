"""Functions, classes, lambdas and comprehensions: each nested code object becomes the syntax it was made from.

``Definer`` is given a function that turns a code object into structured statements, and puts the results where
lifting left placeholders.
"""

from __future__ import annotations

import ast
import inspect
from types import CodeType
from typing import Any, Callable, List, Optional

from depyf.lift.items import Function
from depyf.lift.nodes import ComprehensionExpression, FunctionExpression, FunctionStatement
from depyf.structure.comprehension import as_expression, comprehension
from depyf.structure.signature import arguments
from depyf.structure.structurer import Unstructured

Body = Callable[[CodeType], List[ast.stmt]]


class Definer(ast.NodeTransformer):
    """Replaces placeholders below the statements it visits; ``body`` decompiles a nested code object."""

    def __init__(self, body: Body) -> None:
        self.body = body

    def statements(self, statements: List[ast.stmt]) -> List[ast.stmt]:
        return [self.visit(statement) for statement in statements]

    # --- placeholders ------------------------------------------------------------------------------------------------

    def visit_FunctionExpression(self, node: FunctionExpression) -> ast.expr:
        function: Function = node.function
        if function.code.co_name != "<lambda>":
            raise Unstructured(f"the function {function.code.co_name} is used without a name")
        signature = self._arguments(function)
        return ast.Lambda(signature, as_expression(self.body(function.code)))

    def visit_ComprehensionExpression(self, node: ComprehensionExpression) -> ast.expr:
        code: CodeType = node.function.code
        return comprehension(code.co_name, self.body(code), self.visit(node.iterable))

    def visit_FunctionStatement(self, node: FunctionStatement) -> ast.stmt:
        function: Function = node.function
        if function.class_arguments is not None:
            return self._class(function, node.name)
        name = function.code.co_name if function.code.co_name.isidentifier() else node.name
        decorators = [self.visit(decorator) for decorator in function.decorators]
        signature = self._arguments(function)
        returns = function.annotations.get("return")
        kind = ast.AsyncFunctionDef if _is_async(function.code) else ast.FunctionDef
        return kind(
            name=name,
            args=signature,
            body=self.body(function.code) or [ast.Pass()],
            decorator_list=decorators,
            returns=self.visit(returns) if returns is not None else None,
        )

    def _class(self, function: Function, name: str) -> ast.stmt:
        assert function.class_arguments is not None
        bases, keywords = function.class_arguments
        body = class_body(self.body(function.code))
        return ast.ClassDef(
            name=function.code.co_name if function.code.co_name.isidentifier() else name,
            bases=[self.visit(base) for base in bases],
            keywords=[ast.keyword(keyword.arg, self.visit(keyword.value)) for keyword in keywords],
            body=body or [ast.Pass()],
            decorator_list=[self.visit(decorator) for decorator in function.decorators],
        )

    def _arguments(self, function: Function) -> ast.arguments:
        return arguments(
            function.code,
            [self.visit(default) for default in function.defaults],
            {name: self.visit(default) for name, default in function.kw_defaults.items()},
            {name: self.visit(value) for name, value in function.annotations.items()},
        )


def _is_async(code: CodeType) -> bool:
    return bool(code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE))


def class_body(statements: List[ast.stmt]) -> List[ast.stmt]:
    """A class body without what the compiler adds: ``__module__``, ``__qualname__``, ``__classcell__``."""
    result: List[ast.stmt] = []
    for index, statement in enumerate(statements):
        if index < 2 and _assigns(statement, ("__module__", "__qualname__")):
            continue
        if _assigns(statement, ("__classcell__",)) or isinstance(statement, ast.Return):
            continue
        result.append(statement)
    return docstring_first(result)


def docstring_first(statements: List[ast.stmt]) -> List[ast.stmt]:
    """``__doc__ = "..."`` at the start of a class or module is its docstring."""
    first = statements[0] if statements else None
    if isinstance(first, ast.Assign) and _assigns(first, ("__doc__",)):
        if isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            return [ast.Expr(first.value), *statements[1:]]
    return statements


def _assigns(statement: ast.stmt, names: Any) -> bool:
    if not isinstance(statement, ast.Assign):
        return False
    return any(isinstance(target, ast.Name) and target.id in names for target in statement.targets)


def module_body(statements: List[ast.stmt]) -> List[ast.stmt]:
    """A module body without the ``return None`` at its end."""
    result = list(statements)
    if result and isinstance(result[-1], ast.Return):
        result.pop()
    return docstring_first(result)
