"""Statements at the end of a branch, a case, a clause or a loop that were written after the whole statement.

    match a:                    match a:
        case [b]:                   case [b]:
            c(b)                        pass
        case _:                     case _:
            return                      return
                                c(b)

Where a statement has only one exit, its successor looks like the end of that path. ``return`` and a constant are copied
to each path that leads there: copies have one span. Columns show its position.
"""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from depyf.bytecode.syntax_trees import TRY_STATEMENTS, equal, has_blocks
from depyf.lift.build import negate
from depyf.lift.places import Start, start_of
from depyf.source.passes.blocks import Block, Leaving, is_loop, rewrite_blocks, same
from depyf.source.passes.loops import breaks_in, own_statements
from depyf.source.rewriting import replaced
from depyf.source.written.indentation import Indentation
from depyf.structure.leaving import is_match, leaves

_Loop = Union[ast.For, ast.AsyncFor, ast.While]
_Clause = Union[ast.ExceptHandler, "ast.match_case"]
_WITHS = (ast.With, ast.AsyncWith)


class _Part(NamedTuple):
    """A block in a statement from whose end control continues after the statement.

    ``field`` holds it; ``clause`` is the index of its clause or case. ``guarded``: exceptions in it have another
    handler than those after the statement.
    """

    field: str
    clause: Optional[int]
    block: Block
    guarded: bool = False


class _Following:
    """The statements behind one, and where they are by their start, which copies share: counted from the end, since
    they are added and removed at the beginning. What is there no longer is not the same."""

    def __init__(self) -> None:
        self.statements: Block = []
        self._ends: Dict[Optional[Start], List[int]] = {}
        self._known = 0
        """How many of the statements, from the end, are in ``_ends``."""

    def become(self, statements: Block) -> None:
        """Replace the statements by others: new ones, and what is left of them."""
        new = 1 + max(1, len(statements) - len(self.statements))
        self.statements = statements
        self._known = min(self._known, len(statements) - new)

    def index_of(self, tail: Block) -> Optional[int]:
        """Return the index of the first copy of ``tail``, whose start is known; ``None`` if there is none."""
        count = len(self.statements)
        for end in range(max(self._known, 0) + 1, count + 1):
            self._ends.setdefault(start_of(self.statements[count - end]), []).append(end)
        self._known = count
        for end in sorted(self._ends.get(start_of(tail[0]), []), reverse=True):
            if len(tail) <= end <= count and all(
                map(_is_same, self.statements[count - end : count - end + len(tail)], tail)
            ):
                return count - end
        return None


class Behind:
    """Moves statements out of a statement that they were written after. ``indentation``: the indentation of blocks in
    columns."""

    def __init__(self, indentation: Indentation) -> None:
        self.indentation = indentation

    def written(self, block: Block) -> Block:
        """Return ``block`` with such statements after the one that contains them."""
        following = _Following()
        for statement in reversed(block):
            moved = self._behind_loop(statement, following, block) if is_loop(statement) else None
            if moved is None and has_blocks[statement.__class__]:
                moved = self._behind(statement, following, block)
            following.become([statement, *following.statements] if moved is None else moved)
        return following.statements

    # --- statements whose parts end alike ----------------------------------------------------------------------------

    def _behind(self, statement: ast.stmt, behind: _Following, block: Block) -> Optional[Block]:
        """Return ``statement`` and those ``behind`` it with the common end of its parts in between. ``None`` if it has
        none."""
        parts = list(_parts(statement))
        tail = self._tail(statement, parts, block)
        if not tail or any(part.guarded and _ends_in(part.block, tail) and not _is_idle(tail) for part in parts):
            return None
        falling = [part for part in parts if not _ends_in(part.block, tail) and not _leaves(part.block)]
        shared = [part for part in parts if _ends_in(part.block, tail)]
        following, at = behind.statements, behind.index_of(tail)
        changes: Dict[Tuple[str, Optional[int]], Block] = {
            (part.field, part.clause): part.block[: len(part.block) - len(tail)] for part in shared
        }
        if falling or _falls_past(statement):
            if at is None and _is_only_else(falling, statement) and self._are_deeper(following, statement, tail):
                changes["orelse", None] = following  # it leaves: no path gets from there to what is behind
                return [_with_parts(statement, changes), *tail]
            if at is None:
                return None
            if at > 0:  # the code before it is executed on only one path
                if not _is_only_else(falling, statement):
                    return None
                changes["orelse", None] = following[:at]
            rest = following[at:]
        elif at is not None:  # no path gets there: it was an else clause
            if not isinstance(statement, ast.If) or statement.orelse:
                return None
            changes["orelse", None], rest = following[:at], following[at:]
        else:
            rest = [*tail, *following]
            if following and not _leaves(tail):
                return None
        return [_with_parts(statement, changes), *rest]

    def _are_deeper(self, following: Block, statement: ast.stmt, tail: Block) -> bool:
        """Return whether columns show that all of ``following``, which leaves, is in an ``else`` clause that was
        written between ``statement`` and ``tail``."""
        end = start_of(tail[0])
        starts = [start for start in map(start_of, following) if start is not None and start.column is not None]
        if not starts or end is None or not isinstance(statement, ast.If) or not _leaves(following):
            return False
        return all(start < end and not self._is_outside(start, end.column) for start in starts)

    def _tail(self, statement: ast.stmt, parts: List[_Part], block: Block) -> Block:
        """Return the end of a part that was written after ``statement``."""
        if not parts:
            return []
        start = start_of(statement)
        tail = self._outside(parts, self._column(start, block))
        if tail and isinstance(statement, ast.If):
            moved = self.indentation.start_of(statement)
            return tail if moved is start else self._outside(parts, self._column(moved, block))
        return tail

    def _outside(self, parts: List[_Part], column: Optional[int]) -> Block:
        """Return the statements at the end of a part that are not indented by more than ``column``."""
        if column is None:
            return []
        limit = column + self.indentation.columns / 2
        for part in parts:
            count = 0
            for statement in reversed(part.block):
                start = start_of(statement)
                if start is None or start.column is None or start.column >= limit:
                    break
                count += 1
            if count:
                return part.block[-count:]
        return []

    def _column(self, start: Optional[Start], block: Block) -> Optional[int]:
        """Return the column of the statement in ``block`` with this start."""
        around = self.indentation.column_of(block)
        if start is None or start.column is None:
            return around
        if start.exact or around is None:
            return start.column
        return min(start.column, around)  # the block may contain statements of an else clause

    def _is_outside(self, start: Optional[Start], column: Optional[int]) -> bool:
        if start is None or start.column is None or column is None:
            return False
        return start.column - column < self.indentation.columns / 2

    # --- loops -------------------------------------------------------------------------------------------------------

    def _behind_loop(self, loop: _Loop, behind: _Following, block: Block) -> Optional[Block]:
        """Return ``loop`` with ``break`` for a ``return`` that was written after it; ``None`` if there is none."""
        column = self._column(start_of(loop), block)
        returns = [
            each
            for each in own_statements(loop.body)
            if isinstance(each, ast.Return) and self._is_outside(start_of(each), column)
        ]
        if not returns or not all(_is_same(each, returns[0]) for each in returns):
            return None
        tail: Block = [returns[0]]
        following = behind.statements
        orelse = loop.orelse
        endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)
        if _ends_in(orelse, tail):
            orelse, rest = orelse[:-1], [*tail, *following]
        elif endless or _leaves(orelse):
            rest = [*tail, *following]
            if following and (not endless or breaks_in(loop.body)) and not _ends_in(following[:1], tail):
                return None
            if endless and following:
                rest = following if _ends_in(following[:1], tail) else rest
        elif not orelse and not breaks_in(loop.body) and following:
            at = behind.index_of(tail)
            if at is None and not _leaves(following):
                return None
            orelse = following[:at]
            rest = tail if at is None else following[at:]
        elif _ends_in(following[:1], tail):
            rest = following
        else:
            return None
        found = {id(each) for each in returns}

        def broken(inner: Block) -> Block:
            return [ast.Break() if id(each) in found else each for each in inner]

        changed = rewrite_blocks(replaced(loop, orelse=[]), same, broken)
        return [replaced(changed, orelse=orelse), *rest]


def _parts(statement: ast.stmt) -> Iterator[_Part]:
    if isinstance(statement, ast.If):
        yield _Part("body", None, statement.body)
        yield _Part("orelse", None, statement.orelse)
    elif is_loop(statement):
        if statement.orelse:
            yield _Part("orelse", None, statement.orelse)
    elif isinstance(statement, _WITHS):
        yield _Part("body", None, statement.body, guarded=True)
    elif isinstance(statement, TRY_STATEMENTS):
        guarded = bool(statement.finalbody)
        if statement.orelse or not _leaves(statement.body):
            yield _Part("orelse", None, statement.orelse, guarded)
        else:
            yield _Part("body", None, statement.body, guarded=True)
        for index, handler in enumerate(statement.handlers):
            yield _Part("handlers", index, handler.body, guarded=True)  # an exception is being handled there
    elif is_match(statement):
        for index, case in enumerate(statement.cases):
            yield _Part("cases", index, case.body)


def _falls_past(statement: ast.stmt) -> bool:
    """Return whether control may get past ``statement`` without any of its parts."""
    if isinstance(statement, _WITHS):
        return True  # it may suppress an exception
    if is_loop(statement):
        return breaks_in(statement.body)
    return is_match(statement) and not leaves([replaced(statement, cases=[_left(each) for each in statement.cases])])


def _left(case: ast.match_case) -> ast.match_case:
    return replaced(case, body=[ast.Return(None)])


def _is_only_else(falling: List[_Part], statement: ast.stmt) -> bool:
    """Return whether control gets past ``statement`` only because it has no ``else`` clause."""
    return len(falling) == 1 and falling[0].field == "orelse" and not falling[0].block and not _falls_past(statement)


def _with_parts(statement: ast.stmt, changes: Dict[Tuple[str, Optional[int]], Block]) -> ast.stmt:
    """Return ``statement`` with other blocks in the parts that ``changes`` names."""
    fields: Dict[str, Block] = {}
    clauses: Dict[str, List[_Clause]] = {}
    for (field, index), block in changes.items():
        if index is None:
            fields[field] = block if block or field == "orelse" else [ast.Pass()]
        else:
            inner = clauses.setdefault(field, list(getattr(statement, field)))
            inner[index] = replaced(inner[index], body=block or [ast.Pass()])
    changed = replaced(statement, **fields, **clauses)
    if isinstance(changed, ast.If) and changed.orelse and changes.get(("body", None)) == []:
        return replaced(changed, test=negate(changed.test), body=changed.orelse, orelse=[])
    return changed


def _ends_in(block: Block, tail: Block) -> bool:
    if len(block) < len(tail):
        return False
    return all(_is_same(one, two) for one, two in zip(block[len(block) - len(tail) :], tail))


def _is_same(one: ast.stmt, two: ast.stmt) -> bool:
    """Return whether both are copies of one statement."""
    if one is two:
        return True
    start = start_of(one)
    return type(one) is type(two) and start is not None and start == start_of(two) and equal(one, two)


def _leaves(block: Block) -> bool:
    return leaves(block) or Leaving().leaves(block)


def _is_idle(tail: Block) -> bool:
    """Return whether ``tail`` has no effect except to return."""
    return len(tail) == 1 and isinstance(tail[0], ast.Return) and isinstance(tail[0].value, (ast.Constant, type(None)))
