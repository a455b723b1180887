"""The inverse of folding temporaries: every operation of an expression in a separate statement."""

from __future__ import annotations

import ast
from typing import Any

from depyf.decompiler.source.passes.blocks import Block, rewrite_blocks, same
from depyf.decompiler.source.rewriting import Rewriter, replaced


class _Unfolding(Rewriter):
    """Takes expressions apart in the order in which CPython evaluates them; what is evaluated conditionally stays."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self.statements: Block = []
        self.count = first

    def temporary(self, value: ast.expr) -> ast.expr:
        if isinstance(value, ast.Constant):
            return value
        name = f"__temp_{self.count}"
        self.count += 1
        self.statements.append(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value))
        return ast.Name(id=name, ctx=ast.Load())

    def visit_Call(self, node: ast.Call) -> Any:
        if any(isinstance(argument, ast.Starred) for argument in node.args) or isinstance(node.func, ast.Attribute):
            return node
        if any(keyword.arg is None for keyword in node.keywords):
            return node
        function = self.temporary(self.visit(node.func))
        arguments = [self.temporary(self.visit(argument)) for argument in node.args]
        keywords = [replaced(item, value=self.temporary(self.visit(item.value))) for item in node.keywords]
        return ast.Call(func=function, args=arguments, keywords=keywords)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        left = self.temporary(self.visit(node.left))
        return replaced(node, left=left, right=self.temporary(self.visit(node.right)))

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        return replaced(node, value=self.temporary(self.visit(node.value)))

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.slice, (ast.Slice, ast.Tuple)):
            return node
        value = self.temporary(self.visit(node.value))
        return replaced(node, value=value, slice=self.temporary(self.visit(node.slice)))

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) > 1:
            return node
        left = self.temporary(self.visit(node.left))
        return replaced(node, left=left, comparators=[self.temporary(self.visit(node.comparators[0]))])

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        test = self.temporary(self.visit(node.test))
        name = f"__temp_{self.count}"
        self.count += 1
        outer, self.statements = self.statements, []
        body = self._arm(name, node.body)
        orelse = self._arm(name, node.orelse)
        self.statements = outer
        self.statements.append(ast.If(test=test, body=body, orelse=orelse))
        return ast.Name(id=name, ctx=ast.Load())

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        name = f"__temp_{self.count}"
        self.count += 1
        block = outer = self.statements
        for number, value in enumerate(node.values):
            self.statements = block
            block.append(self._store(name, self.visit(value)))
            if number + 1 < len(node.values):
                test: ast.expr = ast.Name(id=name, ctx=ast.Load())
                if isinstance(node.op, ast.Or):
                    test = ast.UnaryOp(op=ast.Not(), operand=test)
                branch = ast.If(test=test, body=[], orelse=[])
                block.append(branch)
                block = branch.body
        self.statements = outer
        return ast.Name(id=name, ctx=ast.Load())

    def _arm(self, name: str, value: ast.expr) -> Block:
        self.statements = []
        result = self.visit(value)
        return [*self.statements, self._store(name, result)]

    def _store(self, name: str, value: ast.expr) -> ast.stmt:
        return ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value)

    def _as_it_is(self, node: Any) -> Any:
        return node

    # Evaluated later, elsewhere, or not at all.
    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _as_it_is
    visit_Dict = visit_Set = visit_List = visit_Tuple = visit_Starred = visit_JoinedStr = visit_NamedExpr = _as_it_is
    visit_Await = visit_Yield = visit_YieldFrom = _as_it_is


def unfold(function: Any) -> Any:
    """``function`` with the values of its simple statements taken apart into temporaries."""
    count = 0

    def block(statements: Block) -> Block:
        nonlocal count
        result: Block = []
        for statement in statements:
            unfolding = _Unfolding(count)
            field = {ast.Return: "value", ast.Expr: "value", ast.Assign: "value", ast.If: "test"}.get(type(statement))
            old = getattr(statement, field) if field else None
            if old is not None and field is not None:
                statement = replaced(statement, **{field: unfolding.visit(old)})
            count = unfolding.count
            result.extend([*unfolding.statements, statement])
        return result

    return rewrite_blocks(function, same, block)
