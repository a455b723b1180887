"""The base of passes that need the uses of the names of a function."""

from __future__ import annotations

import ast
from typing import Any, Dict, List

from depyf.decompiler.source.passes.blocks import FIELDS, Block, is_definition
from depyf.decompiler.source.passes.counting import Usage
from depyf.decompiler.source.rewriting import replaced


class PerFunction:
    """Rewrites the statement lists of one function, class or module, and of nested definitions on their own.
    Subclasses define ``block``, which iterates over a list and calls ``inside`` for each statement."""

    def __init__(self, function: object) -> None:
        self.usage = Usage(function)

    def definition(self, function: Any) -> object:
        """Return ``function`` with its body rewritten."""
        return replaced(function, body=self.block(function.body) or [ast.Pass()])

    def block(self, statements: Block) -> Block:
        """Return a rewritten statement list; an empty one if no statement is left."""
        raise NotImplementedError

    def inside(self, statement: ast.stmt) -> Any:
        """Return ``statement`` with its inner blocks rewritten."""
        if is_definition(statement):
            return type(self)(statement).definition(statement)
        changes: Dict[str, object] = {}
        for field in FIELDS:
            block: List[ast.stmt] = getattr(statement, field, [])
            if block:
                changes[field] = self.block(block) or ([] if field != "body" else [ast.Pass()])
        for field in ("handlers", "cases"):
            parts = getattr(statement, field, None)
            if parts:
                changes[field] = [replaced(part, body=self.block(part.body) or [ast.Pass()]) for part in parts]
        return replaced(statement, **changes) if changes else statement
