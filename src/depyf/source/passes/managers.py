"""Merge context managers that are entered together into one ``with``."""

from __future__ import annotations

import ast
from typing import Union

from depyf.lift.places import first_place
from depyf.source.inventory import UNKNOWN, Contents, bits_of
from depyf.source.passes.blocks import Block, rewrite_blocks, same
from depyf.source.rewriting import replaced

_With = Union[ast.With, ast.AsyncWith]
WITHS = bits_of(ast.With, ast.AsyncWith)


def merge_withs(tree: ast.AST, contents: Contents = UNKNOWN) -> object:
    """Merge a ``with`` that is the only statement of a ``with``."""
    return rewrite_blocks(tree, same, _merged, contents, WITHS)


def _merged(block: Block) -> Block:
    return [_merged_with(statement) for statement in block]


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
    places = [first_place(each.items[0].context_expr) for each in (outer, inner)]
    if places[0] is None or places[1] is None or places[0].line == places[1].line:
        return False
    if places[0].column is None or places[1].column is None:
        return True
    return places[0].column < places[1].column
