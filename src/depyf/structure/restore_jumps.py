"""Restore redundant ``continue`` and ``pass`` statements of the source."""

from __future__ import annotations

import ast
from typing import Dict, List, Optional, Sequence, Tuple

from depyf.bytecode.lines import Span
from depyf.bytecode.syntax_trees import children
from depyf.flow.written_jumps import Written
from depyf.lift.build import negate
from depyf.lift.places import column_of, first_operand, first_place, place_of, put, start_of
from depyf.lift.split_tests import are_apart, operands, parts

Block = List[ast.stmt]
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def restore_jumps(block: Block, jumps: Sequence[Tuple[Span, Written]]) -> None:
    """Put each of ``jumps`` into ``block`` where its place says, if nothing changes by it."""
    if jumps and block:
        restorer = _Restorer(block)
        for span, kind in jumps:
            restorer.restore(block, span, kind, tail=False)


class _Restorer:
    def __init__(self, block: Block) -> None:
        self.lines: Dict[int, Tuple[int, int]] = {}  # first and last line of each statement, by id
        self._chains: Dict[int, List[Block]] = {}  # of else clauses, each in the one before, by the id of the first
        self._columns: Dict[int, Tuple[Block, int, Optional[int]]] = {}  # with the lengths of blocks, by their ids
        for statement in block:
            self._measure(statement)

    def _measure(self, node: ast.AST) -> Tuple[int, int]:
        place = place_of(node)
        if isinstance(node, ast.Return) and node.value is not None and place_of(node.value) is not None:
            place = None  # in ``with`` it has the place of the exit methods, which are called before it
        first, last = (1 << 30, -1) if place is None else (place.line, place.line)
        if place is not None and not isinstance(node, ast.stmt):
            last = place.end_line
        for child in children(node):
            one, two = self._measure(child)
            first, last = min(first, one), max(last, two)
        if isinstance(node, (ast.stmt, ast.ExceptHandler)) or type(node).__name__ == "match_case":
            self.lines[id(node)] = first, last
        return first, last

    def _first(self, node: ast.AST) -> int:
        return self.lines.get(id(node), (1 << 30, -1))[0]

    def _last(self, node: ast.AST) -> int:
        return self.lines.get(id(node), (1 << 30, -1))[1]

    # --- where it belongs --------------------------------------------------------------------------------------------

    def restore(self, block: Block, span: Span, kind: Written, *, tail: bool) -> None:
        """``tail``: from the end of ``block`` control goes where ``continue`` would."""
        block = self._innermost_else(block, span)
        if all(isinstance(each, ast.Pass) and place_of(each) is None for each in block):
            if kind is Written.PASS or tail:
                block[:] = [self._jump(span, kind)]
            return
        index = len(block) - 1  # jumps come in the order of their lines: the statement is mostly the last one so far
        while index >= 0 and self._first(block[index]) > span.line:
            index -= 1
        if index < 0:
            return
        statement = block[index]
        last = index == len(block) - 1
        if isinstance(statement, ast.If):
            if self._within_if(block, index, statement, span, kind, tail=tail and last):
                return
        elif self._last(statement) >= span.line or self._is_deeper(block, span):
            part = self._part(statement, span)
            if part is not None:
                loops = isinstance(statement, _LOOPS) and part is statement.body
                self.restore(part, span, kind, tail=loops or (tail and last and not isinstance(statement, _LOOPS)))
                return
        if last and tail and kind is not Written.PASS:
            self._append(block, span, kind)

    def _innermost_else(self, block: Block, span: Span) -> Block:
        """``block``, or the else clause in it that ``span`` stands in, over as many ``elif`` as there are.

        Jumps come in the order of their lines: where the last one stood, the search for the next goes on.
        """
        if not _ends_in_if(block):
            return block
        chain = self._chains.setdefault(id(block), [block])
        while len(chain) > 1 and self._else_with(chain[-2], span) is not chain[-1]:
            chain.pop()
        while True:
            inner = self._else_with(chain[-1], span)
            if inner is None:
                return chain[-1]
            chain.append(inner)

    def _else_with(self, block: Block, span: Span) -> Optional[Block]:
        """The else clause of the ``if`` at the end of ``block``, if ``span`` stands in it."""
        branch = block[-1] if block else None
        if not isinstance(branch, ast.If):
            return None
        inside = branch.orelse and self._first(branch.orelse[0]) <= span.line <= self._last(branch)
        return branch.orelse if inside and self._first(branch) <= span.line else None

    def _is_deeper(self, block: Block, span: Span) -> bool:
        """Whether ``span`` stands further to the right than the statements of ``block``."""
        column = self._column_of(block)
        return span.column is not None and (column is None or span.column > column)

    def _column_of(self, block: Block) -> Optional[int]:
        """The column of ``block``, which is looked for again when it has become longer or shorter."""
        known = self._columns.get(id(block))
        if known is None or known[1] != len(block):
            known = self._columns[id(block)] = block, len(block), column_of(block)
        return known[2]

    def _part(self, statement: ast.stmt, span: Span) -> Optional[Block]:
        """The block in ``statement`` that a statement at ``span`` stands in."""
        found: Optional[Block] = None
        for field in ("body", "handlers", "cases", "orelse", "finalbody"):
            inner = getattr(statement, field, None) or []
            if field in ("handlers", "cases"):
                for part in inner:
                    if found is None or self._first(part) <= span.line:
                        found = part.body
            elif inner and (found is None or any(self._first(each) <= span.line for each in inner)):
                found = inner
        return found if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else None

    def _within_if(self, block: Block, index: int, branch: ast.If, span: Span, kind: Written, *, tail: bool) -> bool:
        """Whether a jump at ``span`` was dealt with: it stands in the ``if`` at ``index``, or can't be put there."""
        body, orelse = branch.body, branch.orelse
        if span.line > self._last(branch) and not self._is_deeper(block, span):
            return False
        if orelse and span.line >= self._first(orelse[0]):
            self.restore(orelse, span, kind, tail=tail)
        elif all(isinstance(each, (ast.Pass, ast.Continue)) and place_of(each) is None for each in body):
            self._mark(branch, span, kind, tail=tail)
        elif span.line < self._first(body[0]) or (span.line == self._first(body[0]) and _is_before(span, body[0])):
            if not orelse:
                self._turn(block, index, branch, span, kind, tail=tail)
        elif kind is Written.CONTINUE_ALONE and span.line > self._last(branch) and not orelse:
            self._put_into_else(branch, span, kind, tail=tail)
        else:
            self.restore(body, span, kind, tail=tail)
        return True

    def _put_into_else(self, branch: ast.If, span: Span, kind: Written, *, tail: bool) -> None:
        column, start = span.column, start_of(branch)
        inner = branch.body[-1]
        if isinstance(inner, ast.If) and start is not None and column is not None and column_of(branch.body) != column:
            if self._within_if(branch.body, len(branch.body) - 1, inner, span, kind, tail=tail):
                return
        if tail:
            branch.orelse = [self._jump(span, kind)]

    # --- putting it there --------------------------------------------------------------------------------------------

    def _turn(self, block: Block, index: int, branch: ast.If, span: Span, kind: Written, *, tail: bool) -> None:
        # if not a:         if a:
        #     b()               continue
        #                   b()
        if kind is not Written.PASS and not tail:
            return
        split = self._split(branch, span)
        if split:
            outer, inner = parts(operands(branch.test), split)
            within = ast.If(inner, branch.body, [])
            around = block[index] = ast.If(outer, [within], [])
            self.lines[id(around)] = self.lines[id(within)] = self.lines[id(branch)]
            self._turn(around.body, 0, within, span, kind, tail=tail)
            return
        jump = self._jump(span, kind)
        if kind is not Written.PASS:
            turned = ast.If(negate(branch.test), [jump], [])
            block[index:] = [turned, *branch.body]
        else:
            turned = ast.If(negate(branch.test), [jump], branch.body)
            block[index] = turned
        self.lines[id(turned)] = self.lines[id(branch)]

    def _split(self, branch: ast.If, span: Span) -> int:
        """How many operands of the test belong to an ``if`` around the one that the jump at ``span`` stands in."""
        values = operands(branch.test)
        start = start_of(branch)
        for index in range(1, len(values)):
            apart = are_apart(values[index - 1], values[index])
            if apart is None and start is not None and start.column is not None and span.column is not None:
                operand, opens = first_operand(negate(values[index]))
                place = first_place(operand)
                begins = None if place is None or place.column is None else place.column - opens - len("if ")
                apart = begins is not None and start.column < begins < span.column
            if apart:
                return index
        return 0

    def _mark(self, branch: ast.If, span: Span, kind: Written, *, tail: bool) -> None:
        """The branch is empty so far, or jumps."""
        if branch.body and isinstance(branch.body[0], ast.Continue):
            put(branch.body[0], span)
        elif kind is Written.PASS or tail:
            branch.body[:] = [self._jump(span, kind)]

    def _append(self, block: Block, span: Span, kind: Written) -> None:
        if isinstance(block[-1], (ast.Continue, ast.Return, ast.Raise, ast.Break)):
            return
        block.append(self._jump(span, kind))

    def _jump(self, span: Span, kind: Written) -> ast.stmt:
        jump: ast.stmt = ast.Pass() if kind is Written.PASS else ast.Continue()
        put(jump, span)
        self.lines[id(jump)] = span.line, span.line
        return jump


def _ends_in_if(block: Block) -> bool:
    return bool(block) and isinstance(block[-1], ast.If)


def _is_before(span: Span, statement: ast.stmt) -> bool:
    start = start_of(statement)
    return start is not None and start.column is not None and span[:2] < start[:2]
