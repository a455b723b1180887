"""The columns at which blocks start, and the width of the indentation."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Dict, Iterator, List, Optional, Tuple

from depyf.decompiler.bytecode.syntax_trees import block_fields
from depyf.decompiler.lift.node_attributes import Start
from depyf.decompiler.lift.spans import column_of, start_of
from depyf.decompiler.lift.split_tests import operands
from depyf.decompiler.source.passes.blocks import Block, is_elif

_USUAL, _MOST = 4, 8


class Indentation:
    """The most frequent difference between the columns of a block and of the enclosing block, computed on demand."""

    def __init__(self, tree: ast.AST) -> None:
        self._tree: Optional[ast.AST] = tree
        self._columns = 0
        self._measured: Dict[int, Tuple[Block, Optional[int]]] = {}

    def column_of(self, block: Block) -> Optional[int]:
        """Return the column at which the statements of ``block`` start. Cached."""
        known = self._measured.get(id(block))
        if known is None:
            known = self._measured[id(block)] = block, column_of(_without_copy(block))
        return known[1]

    def start_of(self, statement: ast.stmt) -> Optional[Start]:
        """Return the start of ``statement``. An ``elif`` starts two columns before the position computed from its
        test."""
        start = start_of(statement)
        if isinstance(statement, ast.If) and start is not None and start.column is not None and not start.exact:
            inner = self.column_of(statement.body)
            if inner is None and not is_elif(statement.orelse):
                inner = self.column_of(statement.orelse)
            if inner is not None and inner - start.column == self.columns - len("el"):
                return start._replace(column=start.column - len("el"))
        return start

    @property
    def columns(self) -> int:
        """The number of columns by which a block is indented."""
        if self._tree is not None:
            self._columns, self._tree = _most_frequent(self._tree), None
        return self._columns


def _without_copy(body: Block) -> Block:
    """Return ``body`` without the last statement if that is a copy of the ``return`` after an enclosing statement."""
    # Another statement is further left than the first one where the start of that is estimated: ``if not a in b`` has
    # the columns of ``if a not in b``.
    if not body or not isinstance(body[-1], ast.Return):
        return body
    first, last = start_of(body[0]), start_of(body[-1])
    if first is None or last is None or first.column is None or last.column is None:
        return body
    return body[:-1] if last.column < first.column else body


def _most_frequent(tree: ast.AST) -> int:
    found: Counter[int] = Counter()
    # (a block, the column of the block around it, whether it is an ``else`` clause that may be an ``elif``)
    todo: List[Tuple[Block, int, bool]] = [(block, -1, False) for block in _blocks(tree)]
    while todo:
        block, around, may_be_elif = todo.pop()
        column = _sure_column(block, may_be_elif=may_be_elif)
        if 0 <= around < column <= around + _MOST:  # a test may stand below its parenthesis
            found[column - around] += 1
        for statement in block:
            if isinstance(statement, ast.If) and operands(statement.test):
                continue  # if a and b: it may be ``if a: if b:``, whose body is indented twice
            orelse = statement.orelse if isinstance(statement, ast.If) else None
            todo.extend((inner, column, inner is orelse) for inner in _blocks(statement))
    return min(found, key=lambda columns: (-found[columns], columns), default=_USUAL)


def _blocks(node: ast.AST) -> Iterator[Block]:
    blocks, clauses = block_fields(node.__class__)
    for field in blocks:
        inner = getattr(node, field, None)
        if inner:
            yield inner
    for field in clauses:
        for part in getattr(node, field):
            yield part.body


def _sure_column(block: Block, *, may_be_elif: bool) -> int:
    """Return the column of the first statement in ``block`` whose start is certain; -1: unknown."""
    for statement in block:
        start = start_of(statement)
        if start is not None and start.column is not None:
            if start.exact or not may_be_elif or not isinstance(statement, ast.If):
                return start.column
        may_be_elif = True
    return -1
