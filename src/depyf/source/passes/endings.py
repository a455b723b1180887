"""Returns as one writes them: none at the end of a function, ``return`` alone where nothing else is ever returned."""

from __future__ import annotations

import ast
from typing import Iterator, List

from depyf.lift.build import negate
from depyf.lift.places import has_columns, place_of
from depyf.source.passes.blocks import FIELDS, Block, is_definition, rewrite_blocks, same, trim
from depyf.source.rewriting import Node, replaced


def tidy_returns(tree: ast.AST) -> object:
    """``tree`` with its functions, nested ones and itself, without a ``return None`` that nobody would write."""
    return _tidied(rewrite_blocks(tree, same, lambda block: [_tidied(statement) for statement in block]))


def _tidied(function: Node) -> Node:
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return function
    body: Block = trim(function.body, _is_redundant, negate) or [ast.Pass()]
    if any(not _returns_none(statement) for statement in _returns(body)):
        return replaced(function, body=body)
    return replaced(function, body=[_bare(statement) for statement in body])


def _is_redundant(statement: ast.stmt) -> bool:
    return _returns_none(statement) and place_of(statement) is None


def _returns_none(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Return):
        return False
    value = statement.value
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _returns(block: Block) -> Iterator[ast.Return]:
    """The return statements of the function around ``block``."""
    pending: List[ast.stmt] = list(block)
    while pending:
        statement = pending.pop()
        if isinstance(statement, ast.Return):
            yield statement
        elif not is_definition(statement):
            for field in FIELDS:
                pending.extend(getattr(statement, field, ()))
            for field in ("handlers", "cases"):
                for part in getattr(statement, field, ()):
                    pending.extend(part.body)


def _bare(statement: ast.stmt) -> object:
    if is_definition(statement):
        return statement

    def bare_block(block: Block) -> Block:
        return [ast.Return(value=None) if _returns_none(item) and not has_columns(item) else item for item in block]

    return bare_block([rewrite_blocks(statement, same, bare_block)])[0]
