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

from depyf.decompiler.bytecode.syntax_trees import TRY_STATEMENTS, equal, has_blocks
from depyf.decompiler.lift.build import negate
from depyf.decompiler.lift.node_attributes import Start
from depyf.decompiler.lift.spans import start_of
from depyf.decompiler.source.author_form.indentation import Indentation
from depyf.decompiler.source.passes.blocks import Block, Leaving, is_loop, rewrite_blocks, same
from depyf.decompiler.source.passes.loops import breaks_in, own_statements
from depyf.decompiler.source.rewriting import replaced
from depyf.decompiler.structure.leaving import is_match, leaves

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
    """The statements that follow, indexed by their start, which copies of a statement share. Positions count from the
    end, because the list changes at its front; stale entries are detected by comparison."""

    def __init__(self) -> None:
        self.statements: Block = []
        self._ends: Dict[Optional[Start], List[int]] = {}
        self._known = 0
        """How many of the statements, from the end, are in ``_ends``."""

    def become(self, statements: Block) -> None:
        """Replace the statements by ``statements``: new ones, then the end of the old list."""
        # One entry more than was added is indexed again: the first of the old ones may have been replaced.
        new = 1 + max(1, len(statements) - len(self.statements))
        self.statements = statements
        self._known = min(self._known, len(statements) - new)

    def index_of(self, tail: Block) -> Optional[int]:
        """Return the index of the first copy of ``tail``, whose start is known; ``None`` if no copy follows."""
        count = len(self.statements)
        for end in range(max(self._known, 0) + 1, count + 1):
            self._ends.setdefault(start_of(self.statements[count - end]), []).append(end)
        self._known = count
        # ``end`` statements from the end on: the largest is the first in the source.
        for end in sorted(self._ends.get(start_of(tail[0]), []), reverse=True):
            if len(tail) <= end <= count and all(
                map(_is_same, self.statements[count - end : count - end + len(tail)], tail)
            ):
                return count - end
        return None


class TrailingStatements:
    """Moves statements out of the statement that they were written after. ``indentation``: the indentation of blocks,
    in columns."""

    def __init__(self, indentation: Indentation) -> None:
        self.indentation = indentation

    def restored(self, block: Block) -> Block:
        """Return ``block`` with trailing statements moved after the statement that contains them."""
        following = _Following()
        # Backwards: what is moved out of a statement follows the statements before it.
        for statement in reversed(block):
            moved = self._moved_out_of_loop(statement, following, block) if is_loop(statement) else None
            if moved is None and has_blocks[statement.__class__]:
                moved = self._moved_out(statement, following, block)
            following.become([statement, *following.statements] if moved is None else moved)
        return following.statements

    # --- statements whose parts end alike ----------------------------------------------------------------------------

    def _moved_out(self, statement: ast.stmt, following: _Following, block: Block) -> Optional[Block]:
        """Return ``statement``, the common end of its parts, and the statements that follow; ``None`` if columns show
        no such end, or if it can't be moved."""
        parts = list(_parts(statement))
        tail = self._tail(statement, parts, block)
        # In a ``with`` or ``try``, the tail's exceptions are handled; after the statement they would not be.
        if not tail or any(part.guarded and _ends_in(part.block, tail) and not _is_idle(tail) for part in parts):
            return None
        # Three kinds of parts: "shared" ones end in a copy of the tail, "falling" ones continue after the statement,
        # all others leave in another way (``return``, ``raise``) and do not matter.
        falling = [part for part in parts if not _ends_in(part.block, tail) and not _leaves(part.block)]
        shared = [part for part in parts if _ends_in(part.block, tail)]
        after, at = following.statements, following.index_of(tail)
        changes: Dict[Tuple[str, Optional[int]], Block] = {
            (part.field, part.clause): part.block[: len(part.block) - len(tail)] for part in shared
        }
        if falling or _falls_past(statement):
            # Control reaches ``after``, so the tail has to be there, too:
            #
            #     if a:                   if a:
            #         b()                     b()
            #         return c            else:
            #     d()                         d()
            #     return c                return c
            #
            # Here ``at`` is 1: ``d()`` is executed on one path only, the missing ``else``.
            if at is None and _is_only_else(falling, statement) and self._are_deeper(after, statement, tail):
                changes["orelse", None] = after  # it leaves, so no path gets from there to the tail
                return [_with_parts(statement, changes), *tail]
            if at is None:
                return None
            if at > 0:
                if not _is_only_else(falling, statement):
                    return None
                changes["orelse", None] = after[:at]
            rest = after[at:]
        elif at is not None or (after and not _leaves(tail)):
            return None  # no path falls to ``after`` today, and the shared parts would
        else:
            rest = [*tail, *after]
        return [_with_parts(statement, changes), *rest]

    def _are_deeper(self, following: Block, statement: ast.stmt, tail: Block) -> bool:
        """Return whether columns show that all of ``following``, which leaves, is an ``else`` clause between
        ``statement`` and ``tail``."""
        end = start_of(tail[0])
        starts = [start for start in map(start_of, following) if start is not None and start.column is not None]
        if not starts or end is None or not isinstance(statement, ast.If) or not _leaves(following):
            return False
        return all(start < end and not self._is_outside(start, end.column) for start in starts)

    def _tail(self, statement: ast.stmt, parts: List[_Part], block: Block) -> Block:
        """Return the end of a part of ``statement`` that was written after the statement."""
        if not parts:
            return []
        start = start_of(statement)
        tail = self._outside(parts, self._column(start, block))
        # An ``if`` may be an ``elif``, which starts two columns further left than its test suggests: look once more.
        if tail and isinstance(statement, ast.If):
            moved = self.indentation.start_of(statement)
            return tail if moved is start else self._outside(parts, self._column(moved, block))
        return tail

    def _outside(self, parts: List[_Part], column: Optional[int]) -> Block:
        """Return the statements at the end of a part that are not indented by more than ``column``, half an indentation
        aside; of the first part that has some."""
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

    def _moved_out_of_loop(self, loop: _Loop, following: _Following, block: Block) -> Optional[Block]:
        """Return ``loop`` with ``break`` for a ``return`` that was written after it; ``None`` if it has none.

        for a in b:                 for a in b:
            if a:                       if a:
                return c                    break
        return c                    return c
        """
        column = self._column(start_of(loop), block)
        returns = [
            each
            for each in own_statements(loop.body)
            if isinstance(each, ast.Return) and self._is_outside(start_of(each), column)
        ]
        if not returns or not all(_is_same(each, returns[0]) for each in returns):
            return None
        tail: Block = [returns[0]]
        after = following.statements
        orelse = loop.orelse
        endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)
        # ``break`` skips the ``else`` clause, so the ``return`` has to follow the loop directly.
        if _ends_in(orelse, tail):
            orelse, rest = orelse[:-1], [*tail, *after]
        elif endless or _leaves(orelse):
            # Only ``break`` gets past this loop. One that is there already goes to ``after``, which must then begin
            # with the same ``return``.
            rest = [*tail, *after]
            if after and (not endless or breaks_in(loop.body)) and not _ends_in(after[:1], tail):
                return None
            if endless and after:
                rest = after if _ends_in(after[:1], tail) else rest
        elif not orelse and not breaks_in(loop.body) and after:
            # Only the exhausted loop reaches ``after``: up to the ``return`` it is an ``else`` clause.
            at = following.index_of(tail)
            if at is None and not _leaves(after):
                return None
            orelse = after[:at]
            rest = tail if at is None else after[at:]
        elif _ends_in(after[:1], tail):
            rest = after
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
        # try: a            after ``a`` comes ``else``, whose exceptions the clauses do not handle; ``finally`` runs
        # except b: c       after all of them
        # else: d
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
    if not is_match(statement):
        return False
    # Whether some case always matches: with ``return`` in all of them, the statement must leave.
    return not leaves(
        [replaced(statement, cases=[replaced(each, body=[ast.Return(None)]) for each in statement.cases])]
    )


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
    # if a: pass        if not a: b()
    # else: b()
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
