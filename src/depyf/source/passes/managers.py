"""Context managers that are entered together in one ``with``."""

from __future__ import annotations

import ast
from typing import Any

from depyf.source.passes.blocks import Block, rewrite_blocks, same
from depyf.source.rewriting import replaced


def merge_withs(tree: Any) -> Any:
    """No ``with`` as the only thing in a ``with``."""
    return rewrite_blocks(tree, same, _merged)


def _merged(block: Block) -> Block:
    return [_merged_with(statement) for statement in block]


def _merged_with(outer: Any) -> Any:
    # with a as b:              with a as b, c as d:
    #     with c as d:              e()
    #         e()
    if not isinstance(outer, (ast.With, ast.AsyncWith)) or len(outer.body) != 1:
        return outer
    inner = outer.body[0]
    if inner.__class__ is not outer.__class__ or not isinstance(inner, (ast.With, ast.AsyncWith)):
        return outer
    return replaced(outer, items=[*outer.items, *inner.items], body=inner.body)
