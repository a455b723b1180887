"""Where in the source the nodes of a tree were written, as far as line tables say; nodes of a pass may have no place.

Places say which of several texts with the same operations was written. They never say what an operation does: a tree
means the same without them.
"""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple, cast

from depyf.bytecode.lines import Span
from depyf.bytecode.syntax_trees import children, walk


def put(node: ast.AST, span: Optional[Span]) -> None:
    """Note that ``node`` was compiled to an instruction with this span; what is known already stays."""
    if span is not None:
        node.__dict__.setdefault("place", span)


def place_of(node: ast.AST) -> Optional[Span]:
    """The span of the instruction that computes ``node``, or ends it if it is a statement."""
    place: Optional[Span] = node.__dict__.get("place")
    return place


def has_columns(node: ast.AST) -> bool:
    """Whether the very text of ``node`` is known, not only its line."""
    place = place_of(node)
    return place is not None and place.column is not None


def put_jump(test: ast.expr, span: Optional[Span]) -> None:
    """Note the span of the jump that depends on ``test``: of the statement that tests it (up to 3.11), of ``test``
    itself (since 3.12)."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if span is not None:
        test.__dict__.setdefault("jump", span)


def jump_of(test: ast.expr) -> Optional[Span]:
    """The span of the jump that depends on ``test``."""
    jump: Optional[Span] = test.__dict__.get("jump")
    return jump


def moved(new: ast.expr, old: ast.expr) -> ast.expr:
    """``new``, which is written in place of ``old``."""
    for name in ("place", "jump"):
        if name in old.__dict__:
            new.__dict__.setdefault(name, old.__dict__[name])
    return new


# --- where statements begin ------------------------------------------------------------------------------------------


class Start(NamedTuple):
    """Where a statement begins; ``exact``: the table says so, and it is no guess."""

    line: int
    column: Optional[int]
    exact: bool = True


def first_place(node: ast.AST) -> Optional[Span]:
    """The place that begins first of those in ``node``."""
    return min(
        (place for each in _walked(node) for place in [place_of(each)] if place is not None),
        key=lambda place: (place.line, -1 if place.column is None else place.column),
        default=None,
    )


def _walked(node: ast.AST) -> Iterator[ast.AST]:
    """``node`` and what is in it, without the texts in f-strings: what was ``%`` gives them wrong places (3.11)."""
    todo = [node]
    while todo:
        each = todo.pop()
        yield each
        if isinstance(each, ast.JoinedStr):
            todo.extend(part for part in each.values if not isinstance(part, ast.Constant))
        else:
            todo.extend(children(each))


def first_operand(test: ast.expr) -> Tuple[ast.expr, int]:
    """The expression that a condition tests first, and how many characters of the condition stand before it."""
    before = 0
    while True:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test = test.operand
            before += 4 + isinstance(test, ast.BoolOp)
        elif isinstance(test, ast.BoolOp) and type(test).__name__ == "BoolOp":
            first = test.values[0]
            opened = isinstance(test.op, ast.And) and isinstance(first, ast.BoolOp) and isinstance(first.op, ast.Or)
            test, before = first, before + opened
        else:
            return test, before


def statement_of(test: ast.expr) -> Optional[Span]:
    """The span of the statement that tests ``test``, if one of its jumps has that."""
    for each in walk(test):
        jump, place = jump_of(each) if isinstance(each, ast.expr) else None, place_of(each)
        if jump is not None and place is not None and jump.column is not None and jump[:2] < place[:2]:
            if jump[2:] >= place[2:]:
                return jump
    return None


def place_of_assert(statement: ast.Assert) -> Optional[Span]:
    """The place of a whole ``assert`` statement. Up to 3.11 what raises may have that of a comparison in the test."""
    place = place_of(statement)
    if place is None or place.column is None or _begins(statement.test, place):
        return None
    return place


def _begins(test: ast.expr, place: Span) -> bool:
    """Whether something in ``test`` begins where ``place`` does."""
    places = (place_of(each) for each in walk(test))
    return any(each is not None and each[:2] == place[:2] for each in places)


_KEYWORDS = {
    ast.While: 6, ast.For: 4, ast.AsyncFor: 10, ast.With: 5, ast.AsyncWith: 11, ast.Delete: 4, ast.If: 3, ast.Assert: 7,
}  # fmt: skip
"""How many characters stand before the first expression."""


def start_of(statement: ast.stmt) -> Optional[Start]:
    """Where ``statement`` begins, ``None`` if nothing in it shows it. Remembered in the statement."""
    facts = statement.__dict__
    if "start" not in facts:
        facts["start"] = _start(statement)
    start: Optional[Start] = facts["start"]
    return start


def _start(statement: ast.stmt) -> Optional[Start]:
    if isinstance(statement, ast.Assert):
        place = place_of_assert(statement)
        if place is not None:
            return Start(place.line, place.column)
    if isinstance(statement, (ast.If, ast.While, ast.Assert)):
        operand, before = first_operand(statement.test)
        place, jump = first_place(operand), statement_of(statement.test)
        if jump is not None and place is not None and jump[:2] < place[:2]:
            return Start(jump.line, jump.column)
        return None if place is None else _before(place, _KEYWORDS[type(statement)] + before)
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        place, target = place_of(statement), first_place(statement.target) or first_place(statement.iter)
        if place is not None and place.column is not None and (target is None or place < target):
            return Start(place.line, place.column)
        return None if target is None else _before(target, _KEYWORDS[type(statement)])
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        place = first_place(statement.items[0].context_expr)
        return None if place is None else _before(place, _KEYWORDS[type(statement)])
    if type(statement).__name__ == "Match":
        place = first_place(statement.subject)  # type: ignore[attr-defined]
        return None if place is None else _before(place, len("match "))
    if hasattr(statement, "body"):  # try, definitions
        place = place_of(statement)
    elif isinstance(statement, ast.Delete):
        place = first_place(statement)
        return None if place is None else _before(place, 4)
    else:
        place = first_place(statement)
        value = statement.value if isinstance(statement, ast.Return) else None
        if place is not None and isinstance(value, ast.Constant) and place == place_of(value):
            return _before(place, len("return "))._replace(exact=True)
        if value is not None and _is_of_with(place_of(statement), first_place(value)):
            return _before(cast(Span, first_place(value)), len("return "))
    return None if place is None else Start(place.line, place.column)


def _is_of_with(own: Optional[Span], value: Optional[Span]) -> bool:
    """Return whether the place of a ``return`` is that of a ``with`` around it, whose exit methods are called before.

    It is another line, and the value is further to the right than one in parentheses on the next line would be.
    """
    if own is None or value is None or own.column is None or value.column is None or own.line == value.line:
        return False
    return own.line > value.line or own.end_line < value.line or value.column - own.column > len("return ")


def _before(place: Span, count: int) -> Start:
    return Start(place.line, None if place.column is None else place.column - count, False)


def column_of(block: Sequence[ast.stmt]) -> Optional[int]:
    """The column that the statements of ``block`` begin at, if one of them shows it."""
    starts = [start for start in map(start_of, block) if start is not None and start.column is not None]
    exact = [start.column for start in starts if start.exact]
    return min(exact or [start.column for start in starts], default=None)  # type: ignore[type-var]
