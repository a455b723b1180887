"""A loop that another one starts with.

    while True:                 while True:
        while a:                    if a:
            b()                         b()
        c()                             continue
                                    c()

Both loops have the same first instruction. The column of the test shows which keyword precedes it.
"""

from __future__ import annotations

import ast

from depyf.lift.places import first_operand, first_place
from depyf.source.passes.blocks import Block, Leaving
from depyf.source.passes.loops import breaks_in, is_endless
from depyf.source.rewriting import replaced
from depyf.source.written.indentation import Indentation


class Loops:
    """Finds such loops. ``indentation``: the indentation of blocks in columns."""

    def __init__(self, indentation: Indentation) -> None:
        self.indentation, self._leaving = indentation, Leaving()

    def written(self, block: Block) -> Block:
        """Return ``block`` with the loops that its endless loops start with."""
        return [self._with_inner_loop(each) if is_endless(each) else each for each in block]

    def _with_inner_loop(self, loop: ast.While) -> ast.While:
        first, rest = loop.body[0], loop.body[1:]
        if not isinstance(first, ast.If) or bool(first.orelse) == bool(rest):
            return loop
        if rest and not self._leaving.leaves(first.body):
            return loop
        rest = rest or first.orelse
        column, (operand, opens) = self.indentation.column_of(rest), first_operand(first.test)
        place = first_place(operand)
        if place is None or place.column is None or place.column - opens - len("while ") != column:
            return loop
        if breaks_in(first.body):
            return loop
        body = first.body[:-1] if isinstance(first.body[-1], ast.Continue) else first.body
        return replaced(loop, body=[ast.While(first.test, body or [ast.Pass()], []), *rest])
