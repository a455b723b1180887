"""Branches and context managers in the form with the least nesting."""

from __future__ import annotations

import ast
from typing import List, Optional, Union

from depyf.decompiler.lift.build import negate
from depyf.decompiler.lift.spans import first_span, span_of
from depyf.decompiler.source.inventory import UNKNOWN, Contents, bits_of
from depyf.decompiler.source.passes.blocks import Block, Leaving, rewrite_blocks, same
from depyf.decompiler.source.rewriting import replaced

# A condition with more operands is easier to read as two nested branches.
_MOST_CONDITIONS = 4

IFS, PASS_STATEMENTS = bits_of(ast.If), bits_of(ast.Pass)


def flatten_branches(tree: ast.AST, contents: Contents = UNKNOWN) -> object:
    """Remove ``else`` after a branch that always exits, empty branches, and an ``if`` that is the only statement of an
    ``if``."""
    leaving = Leaving()
    return rewrite_blocks(
        tree,
        lambda block: _without_else(block, leaving),
        lambda block: [_merged_if(each) or each for each in block],
        contents,
        IFS,
    )


def remove_passes(tree: ast.AST, contents: Contents = UNKNOWN) -> object:
    """Remove ``pass`` beside other statements."""
    return rewrite_blocks(tree, same, _without_pass, contents, PASS_STATEMENTS)


def _without_pass(block: Block) -> Block:
    return [statement for statement in block if not isinstance(statement, ast.Pass)] or block[:1]


def _without_else(block: Block, leaving: Leaving) -> Block:
    result: Block = []
    pending = list(reversed(block))
    while pending:
        statement = pending.pop()
        if isinstance(statement, ast.If) and statement.orelse:
            statement = _normal(statement)
            if leaving.leaves(statement.body):
                # if a: return 1        if a: return 1
                # else: b()             b()
                pending.extend(reversed(statement.orelse))
                statement = _if(statement.test, statement.body)
        result.append(statement)
    return result


def _normal(statement: ast.If) -> ast.If:
    """Return ``statement`` without empty branches."""
    if _is_empty(statement.orelse):
        return _if(statement.test, statement.body)
    if not statement.body:
        return _if(negate(statement.test), statement.orelse)
    return statement


def _merged_if(outer: ast.stmt) -> Optional[ast.stmt]:
    # if a:                     if a and b:
    #     if b: c()                 c()
    if not isinstance(outer, ast.If) or outer.orelse or len(outer.body) != 1:
        return None
    inner = outer.body[0]
    if not isinstance(inner, ast.If) or inner.orelse:
        return None
    values = [*_conditions(outer.test), *_conditions(inner.test)]
    if len(values) > _MOST_CONDITIONS:
        return None
    return _if(ast.BoolOp(op=ast.And(), values=values), inner.body)


def _conditions(test: ast.expr) -> List[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _is_empty(block: Block) -> bool:
    return all(isinstance(statement, ast.Pass) and span_of(statement) is None for statement in block)


def _if(test: ast.expr, body: Block) -> ast.If:
    return ast.If(test=test, body=body, orelse=[])


# --- context managers ------------------------------------------------------------------------------------------------


_With = Union[ast.With, ast.AsyncWith]
WITHS = bits_of(ast.With, ast.AsyncWith)


def merge_withs(tree: ast.AST, contents: Contents = UNKNOWN) -> object:
    """Merge a ``with`` that is the only statement of a ``with``."""
    return rewrite_blocks(tree, same, lambda block: [_merged_with(each) for each in block], contents, WITHS)


def _merged_with(outer: ast.stmt) -> ast.stmt:
    # with a as b:              with a as b, c as d:
    #     with c as d:              e()
    #         e()
    if not isinstance(outer, (ast.With, ast.AsyncWith)) or len(outer.body) != 1:
        return outer
    inner = outer.body[0]
    if inner.__class__ is not outer.__class__ or not isinstance(inner, (ast.With, ast.AsyncWith)):
        return outer
    if _is_nested(outer, inner):
        return outer
    return replaced(outer, items=[*outer.items, *inner.items], body=inner.body)


def _is_nested(outer: _With, inner: _With) -> bool:
    """Return whether lines and columns show that ``inner`` is a separate statement."""
    places = [first_span(each.items[0].context_expr) for each in (outer, inner)]
    if places[0] is None or places[1] is None or places[0].line == places[1].line:
        return False
    if places[0].column is None or places[1].column is None:
        return True
    return places[0].column < places[1].column
