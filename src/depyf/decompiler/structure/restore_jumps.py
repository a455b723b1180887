"""Restore redundant ``continue`` and ``pass`` statements of the source."""

from __future__ import annotations

import ast
from bisect import bisect_right
from typing import Dict, Generic, List, Optional, Sequence, Tuple, TypeVar

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.bytecode.syntax_trees import children, fields_of
from depyf.decompiler.flow.written_jumps import Written
from depyf.decompiler.lift.build import negate
from depyf.decompiler.lift.spans import column_of, first_operand, first_span, put, span_of, start_of
from depyf.decompiler.lift.split_tests import are_apart, operands, parts
from depyf.decompiler.structure.leaving import always_matches, is_match

Block = List[ast.stmt]
_WITH_LINES = (ast.stmt, ast.ExceptHandler)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def restore_jumps(block: Block, jumps: Sequence[Tuple[Span, Written]], wildcards: Sequence[Span] = ()) -> None:
    """Insert each of ``jumps`` into ``block`` where its span says, if it does not change control flow. ``wildcards``:
    the spans of ``_`` in ``case _``, which such a jump may be in."""
    if jumps and block:
        restorer = _Restorer(block, wildcards)
        for span, kind in jumps:
            restorer.restore(block, span, kind, tail=False)


class _Restorer:
    """Finds the block that contains the line of a jump, from the outermost block inwards.

    for x in y:
        if a:
            b()
            continue        the jump back has this line; without ``continue`` it has the line of b()
    """

    def __init__(self, block: Block, wildcards: Sequence[Span]) -> None:
        self.wildcards = wildcards
        self.lines: Dict[int, Tuple[int, int]] = {}  # first and last line of each statement, by id
        self._starts: Dict[int, Tuple[Block, LeastFrom[int]]] = {}  # the first lines in each block, by its id
        self._columns: Dict[int, Tuple[Block, LeastFrom[Tuple[bool, int]]]] = {}
        self._chains: Dict[int, List[Block]] = {}  # of else clauses, each in the one before, by the id of the first
        for statement in block:
            self._measure(statement)

    def _measure(self, node: ast.AST) -> Tuple[int, int]:
        span = span_of(node)
        if isinstance(node, ast.Return) and node.value is not None and span_of(node.value) is not None:
            span = None  # in ``with`` it has the span of the exit methods, which are called first
        first, last = (_UNKNOWN, -1) if span is None else (span.line, span.line)
        if span is not None and not isinstance(node, ast.stmt):
            last = span.end_line
        todo = children(node)
        for child in todo:  # the parts of expressions are appended meanwhile
            if isinstance(child, _WITH_LINES) or type(child).__name__ == "match_case":
                one, two = self._measure(child)
                first, last = min(first, one), max(last, two)
                continue
            span = span_of(child)
            if span is not None:
                first, last = min(first, span.line), max(last, span.end_line)
            if fields_of[child.__class__]:
                todo.extend(children(child))
        self.lines[id(node)] = first, last
        return first, last

    def _first(self, node: ast.AST) -> int:
        return self.lines.get(id(node), (_UNKNOWN, -1))[0]

    def _last(self, node: ast.AST) -> int:
        return self.lines.get(id(node), (_UNKNOWN, -1))[1]

    # --- where it belongs --------------------------------------------------------------------------------------------

    def restore(self, block: Block, span: Span, kind: Written, *, tail: bool) -> None:
        """Insert one jump. ``tail``: the end of ``block`` has the same successor as ``continue``."""
        block = self._innermost_else(block, span)
        # A ``continue`` that structuring found has no span yet: this is its span. An empty block gets the jump.
        if _is_continue_without_span(block):
            put(block[0], span)
            self.lines[id(block[0])] = span.line, span.line
            return
        if all(isinstance(each, ast.Pass) and span_of(each) is None for each in block):
            if kind is Written.PASS or tail:
                self._replace(block, 0, len(block), [self._jump(span, kind)])
            return
        # Otherwise it is in the last statement that starts before it, or follows that statement.
        index = self._last_from(block, span.line)
        if index < 0:
            return
        statement = block[index]
        last = index == len(block) - 1
        if isinstance(statement, ast.If):
            if kind is Written.PASS and tail and _is_continue_without_span(statement.body) and not statement.orelse:
                self._pass_before(block, index, statement, span)
                return
            if self._within_if(block, index, statement, span, kind, tail=tail and last):
                return
        elif self._last(statement) >= span.line or self._is_deeper(block, span):
            # ``case _: pass`` at the end of a ``match`` leaves no trace but the NOP of its body.
            if is_match(statement) and self._is_after_wildcard(statement, span):
                if kind is Written.PASS or (tail and last):
                    case = ast.match_case(ast.MatchAs(None, None), None, [self._jump(span, kind)])
                    self.lines[id(case)] = span.line, span.line
                    statement.cases.append(case)
                return
            part = self._part(statement, span)
            if part is not None:
                loops = isinstance(statement, _LOOPS) and part is statement.body
                self.restore(part, span, kind, tail=loops or (tail and last and not isinstance(statement, _LOOPS)))
                return
        # A ``continue`` at the end of a loop's body. Elsewhere it would change control flow.
        if last and tail and kind is not Written.PASS:
            self._append(block, span, kind)

    def _is_after_wildcard(self, statement: ast.Match, span: Span) -> bool:
        """Return whether ``span`` is in a ``case _`` that follows all cases of ``statement``, not of an inner one."""
        last, end = max(self._last(case) for case in statement.cases), statement.cases[-1]
        if last >= span.line or (end.guard is None and always_matches(end.pattern)):
            return False
        columns = [column for column in (column_of(case.body) for case in statement.cases) if column is not None]
        inner = min(columns) + len("case") if columns else None
        return any(
            last < each.line <= span.line and (inner is None or each.column is None or each.column < inner)
            for each in self.wildcards
        )

    def _last_from(self, block: Block, line: int) -> int:
        """Return the index of the last statement of ``block`` that starts on ``line`` or before; -1 if none does."""
        if id(block) not in self._starts:
            self._starts[id(block)] = block, LeastFrom([*map(self._first, block)])
        return bisect_right(self._starts[id(block)][1].least, line) - 1

    def _innermost_else(self, block: Block, span: Span) -> Block:
        """Return ``block``, or the else clause in it that contains ``span``, through any number of ``elif``. Jumps come
        in the order of their lines, so the search continues where the last one ended."""
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
        """Return the else clause of the ``if`` at the end of ``block`` if it contains ``span``; ``None`` otherwise."""
        branch = block[-1] if block else None
        if not isinstance(branch, ast.If):
            return None
        inside = branch.orelse and self._first(branch.orelse[0]) <= span.line <= self._last(branch)
        return branch.orelse if inside and self._first(branch) <= span.line else None

    def _is_deeper(self, block: Block, span: Span) -> bool:
        """Return whether ``span`` is further to the right than the statements of ``block``."""
        if span.column is None:
            return False
        if id(block) not in self._columns:
            self._columns[id(block)] = block, LeastFrom([*map(_column_key, block)])
        column = self._columns[id(block)][1].least[0][1]
        return column == _UNKNOWN or span.column > column

    def _part(self, statement: ast.stmt, span: Span) -> Optional[Block]:
        """Return the block in ``statement`` that contains a statement at ``span``; ``None`` if no block does."""
        found: Optional[Block] = None
        for field in ("body", "handlers", "cases", "orelse", "finalbody"):
            inner = getattr(statement, field, None) or []
            if field in ("handlers", "cases"):
                for part in inner:
                    if found is None or self._first(part) <= span.line:
                        found = part.body
            elif inner and (
                found is None
                or any(self._first(each) <= span.line for each in inner)
                or (_is_continue_without_span(inner) and all(self._last(each) < span.line for each in found))
            ):
                found = inner
        return found if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else None

    def _within_if(self, block: Block, index: int, branch: ast.If, span: Span, kind: Written, *, tail: bool) -> bool:
        """Return whether the jump at ``span`` is done: it is in the ``if`` at ``index``, or can't be inserted there."""
        body, orelse = branch.body, branch.orelse
        if span.line > self._last(branch) and not self._is_deeper(block, span):
            return False  # it follows the statement
        if orelse and span.line >= self._first(orelse[0]):
            self.restore(orelse, span, kind, tail=tail)
        elif all(isinstance(each, (ast.Pass, ast.Continue)) and span_of(each) is None for each in body):
            self._mark(branch, span, kind, tail=tail)
        elif span.line < self._first(body[0]) or (span.line == self._first(body[0]) and _is_before(span, body[0])):
            # Between the test and the body: it was the body, and the body follows the statement or is its ``else``.
            if not orelse:
                self._turn(block, index, branch, span, kind, tail=tail)
        elif tail and not orelse and kind is not Written.PASS and (begin := self._after_else(branch, span)):
            # if a: b()             lifted as ``if a: b(); c()``; c() is further to the left than the jump
            # else: continue
            # c()
            branch.orelse = [self._jump(span, kind)]
            self.lines[id(branch)] = self._first(branch), span.line
            self._replace(block, len(block), len(block), body[begin:])
            self._replace(body, begin, len(body), [])
        elif kind is Written.CONTINUE_ALONE and span.line > self._last(branch) and not orelse:
            self._put_into_else(branch, span, kind, tail=tail)
        else:
            self.restore(body, span, kind, tail=tail)
        return True

    def _put_into_else(self, branch: ast.If, span: Span, kind: Written, *, tail: bool) -> None:
        """Write the jump that follows the whole ``branch`` into its ``else``, or into the ``else`` of the ``if`` at the
        end of its body."""
        column, start = span.column, start_of(branch)
        inner = branch.body[-1]
        if isinstance(inner, ast.If) and start is not None and column is not None and column_of(branch.body) != column:
            if self._within_if(branch.body, len(branch.body) - 1, inner, span, kind, tail=tail):
                return
        if tail:
            branch.orelse = [self._jump(span, kind)]

    def _after_else(self, branch: ast.If, span: Span) -> int:
        """Return the index of the first statement in the body of ``branch`` that was written after an ``else`` with a
        jump at ``span``; 0 if no statement was."""
        found = next((index for index, each in enumerate(branch.body) if self._first(each) > span.line), 0)
        inner, after = start_of(branch.body[0]), start_of(branch.body[found])
        if not found or inner is None or inner.column is None or after is None or after.column is None:
            return 0
        return found if after.column < inner.column == span.column else 0

    # --- insertion ---------------------------------------------------------------------------------------------------

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
            around = ast.If(outer, [within], [])
            self.lines[id(around)] = self.lines[id(within)] = self.lines[id(branch)]
            self._replace(block, index, index + 1, [around])
            self._turn(around.body, 0, within, span, kind, tail=tail)
            return
        jump = self._jump(span, kind)
        apart = kind is not Written.PASS
        turned = ast.If(negate(branch.test), [jump], [] if apart else branch.body)
        self.lines[id(turned)] = self.lines[id(branch)]
        self._replace(block, index, len(block) if apart else index + 1, [turned, *(branch.body if apart else ())])

    def _pass_before(self, block: Block, index: int, branch: ast.If, span: Span) -> None:
        """Write ``pass`` for the ``continue`` of the ``branch`` at ``index``, and what follows into an ``else``."""
        passing = ast.If(branch.test, [self._jump(span, Written.PASS)], block[index + 1 :])
        _, last = self.lines[id(branch)]
        self.lines[id(passing)] = self._first(branch), max([last, *map(self._last, passing.orelse)])
        self._replace(block, index, len(block), [passing])

    def _split(self, branch: ast.If, span: Span) -> int:
        """Return the number of operands of the test that belong to an ``if`` around the one of the jump at ``span``."""
        # if a:                     lifted as ``if a and not b: c()``; the jump belongs to the inner ``if`` alone
        #     if b: continue
        #     c()
        values = operands(branch.test)
        start = start_of(branch)
        for index in range(1, len(values)):
            apart = are_apart(values[index - 1], values[index])
            if apart is None and start is not None and start.column is not None and span.column is not None:
                operand, opens = first_operand(negate(values[index]))
                own = first_span(operand)
                begins = None if own is None or own.column is None else own.column - opens - len("if ")
                apart = begins is not None and start.column < begins < span.column
            if apart:
                return index
        return 0

    def _mark(self, branch: ast.If, span: Span, kind: Written, *, tail: bool) -> None:
        """Mark a branch that is empty so far, or already jumps."""
        if branch.body and isinstance(branch.body[0], ast.Continue):
            put(branch.body[0], span)
        elif kind is Written.PASS or tail:
            self._replace(branch.body, 0, len(branch.body), [self._jump(span, kind)])

    def _append(self, block: Block, span: Span, kind: Written) -> None:
        if isinstance(block[-1], (ast.Continue, ast.Return, ast.Raise, ast.Break)):
            return
        self._replace(block, len(block), len(block), [self._jump(span, kind)])

    def _replace(self, block: Block, start: int, stop: int, statements: Block) -> None:
        """Replace the statements of ``block`` from ``start`` to ``stop``. No block is changed in another way, so that
        the recorded lines and columns stay true."""
        block[start:stop] = statements
        if id(block) in self._starts:
            self._starts[id(block)][1].replace(start, stop, [*map(self._first, statements)])
        if id(block) in self._columns:
            self._columns[id(block)][1].replace(start, stop, [*map(_column_key, statements)])

    def _jump(self, span: Span, kind: Written) -> ast.stmt:
        jump: ast.stmt = ast.Pass() if kind is Written.PASS else ast.Continue()
        put(jump, span)
        self.lines[id(jump)] = span.line, span.line
        return jump


_UNKNOWN = 1 << 30
"""The line or column of a statement that shows none: it sorts last."""


def _column_key(statement: ast.stmt) -> Tuple[bool, int]:
    """Return a key for the column of ``statement``. The least key in a block shows the block's column: exact columns
    come before estimates."""
    start = start_of(statement)
    return (True, _UNKNOWN) if start is None or start.column is None else (not start.exact, start.column)


def _ends_in_if(block: Block) -> bool:
    return bool(block) and isinstance(block[-1], ast.If)


def _is_continue_without_span(block: Block) -> bool:
    """Return whether ``block`` is a ``continue`` that was found as a jump, and whose span is not known yet."""
    return len(block) == 1 and isinstance(block[0], ast.Continue) and span_of(block[0]) is None


def _is_before(span: Span, statement: ast.stmt) -> bool:
    start = start_of(statement)
    return start is not None and start.column is not None and span[:2] < start[:2]


Key = TypeVar("Key", int, Tuple[bool, int])


class LeastFrom(Generic[Key]):
    """``least[i]`` is the least of the ``keys`` from ``i`` on."""

    def __init__(self, keys: List[Key]) -> None:
        self.keys: List[Key] = []
        self.least: List[Key] = []
        self.replace(0, 0, keys)

    def replace(self, start: int, stop: int, keys: List[Key]) -> None:
        """Replace the keys from ``start`` to ``stop``, in time proportional to the number of new or changed results."""
        self.keys[start:stop] = keys
        self.least[start:stop] = keys
        for index in reversed(range(start + len(keys))):
            least = min(self.keys[index : index + 1] + self.least[index + 1 : index + 2])
            if index < start and least == self.least[index]:
                break
            self.least[index] = least
