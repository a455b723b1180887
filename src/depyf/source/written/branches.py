"""The branch of an ``if`` that was written first comes first."""

from __future__ import annotations

import ast
from typing import Optional

from depyf.lift.build import negate
from depyf.lift.places import start_of
from depyf.source.passes.blocks import Block
from depyf.source.rewriting import replaced


def with_written_branches(block: Block) -> Block:
    """Return ``block`` with the branches of each ``if`` in the order of the source."""
    return [_in_order(each) if isinstance(each, ast.If) and each.orelse else each for each in block]


def _in_order(statement: ast.If) -> ast.If:
    one, two = _line(statement.body), _line(statement.orelse)
    if one is None or two is None or one <= two:
        return statement
    return replaced(statement, test=negate(statement.test), body=statement.orelse, orelse=statement.body)


def _line(block: Block) -> Optional[int]:
    start = start_of(block[0])
    return None if start is None else start.line
