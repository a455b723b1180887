"""Returns in idiomatic form: none at the end of a function, ``return`` alone where no other value is returned."""

from __future__ import annotations

import ast

from depyf.decompiler.bytecode.syntax_trees import own_returns
from depyf.decompiler.lift.build import negate
from depyf.decompiler.lift.spans import has_columns, span_of
from depyf.decompiler.source.inventory import UNKNOWN, Contents, bits_of
from depyf.decompiler.source.passes.blocks import Block, is_definition, rewrite_blocks, same, trim
from depyf.decompiler.source.rewriting import Node, replaced

FUNCTIONS = bits_of(ast.FunctionDef, ast.AsyncFunctionDef)


def tidy_returns(tree: ast.AST, contents: Contents = UNKNOWN) -> object:
    """Return ``tree`` with its functions, nested ones and itself, without redundant ``return None``."""
    tidied = rewrite_blocks(tree, same, lambda block: [_tidied(statement) for statement in block], contents, FUNCTIONS)
    return _tidied(tidied)


def _tidied(function: Node) -> Node:
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return function
    # A ``return None`` at the end of a path that has no span of its own is the compiler's.
    body: Block = trim(function.body, _is_redundant, negate) or [ast.Pass()]
    if returns_only_none(body):
        body = [_bare(statement) for statement in body]
    return function if body == function.body else replaced(function, body=body)


def _is_redundant(statement: ast.stmt) -> bool:
    return returns_none(statement) and span_of(statement) is None


def returns_only_none(statements: Block) -> bool:
    """Return whether the function with these statements has returns, all of them without another value."""
    returns = own_returns(statements)
    first = next(returns, None)
    return first is not None and returns_none(first) and all(map(returns_none, returns))


def returns_none(statement: ast.stmt) -> bool:
    """Return whether ``statement`` is ``return`` or ``return None``."""
    if not isinstance(statement, ast.Return):
        return False
    value = statement.value
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _bare(statement: ast.stmt) -> ast.stmt:
    if is_definition(statement):
        return statement

    def bare_block(block: Block) -> Block:
        return [ast.Return(value=None) if returns_none(item) and not has_columns(item) else item for item in block]

    return bare_block([rewrite_blocks(statement, same, bare_block)])[0]
