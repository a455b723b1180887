"""``import a, b`` and ``del a, b``: one statement, whose parts are compiled one after the other.

It stands alone: the other modules choose between forms of statements with blocks.
"""

from __future__ import annotations

import ast
from typing import Optional

from depyf.decompiler.lift.spans import first_span, has_columns, span_of
from depyf.decompiler.source.passes.blocks import Block
from depyf.decompiler.source.rewriting import replaced


def join_lists(block: Block) -> Block:
    """Return ``block`` with consecutive imports, or deletions, joined where they are parts of one statement."""
    result: Block = []
    for statement in block:
        joined = _joined(result[-1], statement) if result else None
        if joined is None:
            result.append(statement)
        else:
            result[-1] = joined
    return result


def _joined(before: ast.stmt, statement: ast.stmt) -> Optional[ast.stmt]:
    """Return ``before`` and ``statement`` as one statement; ``None`` if they were two."""
    if isinstance(before, ast.Import) and isinstance(statement, ast.Import):
        # Both IMPORT_NAME have the span of the whole statement.
        if has_columns(statement) and span_of(before) == span_of(statement):
            return replaced(before, names=[*before.names, *statement.names])
    elif isinstance(before, ast.Delete) and isinstance(statement, ast.Delete):
        if _is_one_deletion(before, statement):
            return replaced(before, targets=[*before.targets, *statement.targets])
    return None


def _is_one_deletion(before: ast.Delete, statement: ast.Delete) -> bool:
    """Return whether both are on one line: two statements with a semicolon in between are uncommon."""
    one, two = span_of(before.targets[-1]) or span_of(before), first_span(statement)
    return one is not None and two is not None and one.end_line == two.line
