"""At which columns blocks begin, and by how many they are indented."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Iterator, List, Optional, Tuple

from depyf.lift.places import column_of, start_of
from depyf.lift.split_tests import operands
from depyf.source.passes.blocks import FIELDS, Block

_USUAL = 4


class Indentation:
    """The most frequent difference of the columns of a block and those of the block around it, when it is asked for."""

    def __init__(self, tree: ast.AST) -> None:
        self._tree: Optional[ast.AST] = tree
        self._columns = 0
        self._measured: Tuple[Block, Optional[int]] = ([], None)

    def column_of(self, block: Block) -> Optional[int]:
        """The column that the statements of ``block`` begin at. Remembered for the last block that was asked for."""
        if self._measured[0] is not block:
            self._measured = block, column_of(block)
        return self._measured[1]

    @property
    def columns(self) -> int:
        """By how many columns a block is indented."""
        if self._tree is not None:
            self._columns, self._tree = _most_frequent(self._tree), None
        return self._columns


def _most_frequent(tree: ast.AST) -> int:
    found: Counter[int] = Counter()
    todo: List[Tuple[Block, int, bool]] = [(block, -1, False) for block in _blocks(tree)]
    while todo:
        block, around, may_be_elif = todo.pop()
        column = _sure_column(block, may_be_elif=may_be_elif)
        if column > around >= 0:
            found[column - around] += 1
        for statement in block:
            if isinstance(statement, ast.If) and operands(statement.test):
                continue  # it may be two, one in the other
            orelse = statement.orelse if isinstance(statement, ast.If) else None
            todo.extend((inner, column, inner is orelse) for inner in _blocks(statement))
    return min(found, key=lambda columns: (-found[columns], columns), default=_USUAL)


def _blocks(node: ast.AST) -> Iterator[Block]:
    for field in FIELDS:
        inner = getattr(node, field, None)
        if isinstance(inner, list) and inner:
            yield inner
    for field in ("handlers", "cases"):
        for part in getattr(node, field, ()):
            yield part.body


def _sure_column(block: Block, *, may_be_elif: bool) -> int:
    """The column of the first statement in ``block`` that shows it surely; -1 if there is none."""
    for statement in block:
        start = start_of(statement)
        if start is not None and start.column is not None:
            if start.exact or not may_be_elif or not isinstance(statement, ast.If):
                return start.column
        may_be_elif = True
    return -1
