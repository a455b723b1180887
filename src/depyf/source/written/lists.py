"""``import a, b`` and ``del a, b``: one statement, whose parts are compiled one after the other."""

from __future__ import annotations

import ast
from typing import Any

from depyf.lift.places import first_place, has_columns, place_of
from depyf.source.passes.blocks import Block
from depyf.source.rewriting import replaced


def with_written_lists(block: Block) -> Block:
    """``block`` with imports and deletions joined that were written as one statement."""
    result: Block = []
    for statement in block:
        before: Any = result[-1] if result else None
        if _is_one_import(before, statement):
            result[-1] = replaced(before, names=[*before.names, *statement.names])  # type: ignore[attr-defined]
        elif _is_one_deletion(before, statement):
            result[-1] = replaced(before, targets=[*before.targets, *statement.targets])  # type: ignore[attr-defined]
        else:
            result.append(statement)
    return result


def _is_one_import(before: object, statement: ast.stmt) -> bool:
    if not isinstance(before, ast.Import) or not isinstance(statement, ast.Import):
        return False
    return has_columns(statement) and place_of(before) == place_of(statement)


def _is_one_deletion(before: object, statement: ast.stmt) -> bool:
    """Two statements on one line, with a semicolon between them, are not what people write."""
    if not isinstance(before, ast.Delete) or not isinstance(statement, ast.Delete):
        return False
    one, two = place_of(before.targets[-1]) or place_of(before), first_place(statement)
    return one is not None and two is not None and one.end_line == two.line
