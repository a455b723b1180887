"""``import a, b`` and ``del a, b``: one statement, whose parts are compiled one after the other."""

from __future__ import annotations

import ast
from typing import Optional

from depyf.lift.places import first_place, has_columns, place_of
from depyf.source.passes.blocks import Block
from depyf.source.rewriting import replaced


def with_written_lists(block: Block) -> Block:
    """Return ``block`` with imports and deletions joined that were written as one statement."""
    result: Block = []
    for statement in block:
        joined = _joined(result[-1], statement) if result else None
        if joined is None:
            result.append(statement)
        else:
            result[-1] = joined
    return result


def _joined(before: ast.stmt, statement: ast.stmt) -> Optional[ast.stmt]:
    """Return both as the one statement that was written; ``None`` if they were two."""
    if isinstance(before, ast.Import) and isinstance(statement, ast.Import):
        if has_columns(statement) and place_of(before) == place_of(statement):
            return replaced(before, names=[*before.names, *statement.names])
    elif isinstance(before, ast.Delete) and isinstance(statement, ast.Delete):
        if _is_one_deletion(before, statement):
            return replaced(before, targets=[*before.targets, *statement.targets])
    return None


def _is_one_deletion(before: ast.Delete, statement: ast.Delete) -> bool:
    """Return whether both are on one line: two statements with a semicolon in between are uncommon."""
    one, two = place_of(before.targets[-1]) or place_of(before), first_place(statement)
    return one is not None and two is not None and one.end_line == two.line
