"""The source spans of tree nodes, as far as line tables give them; nodes that a pass adds may have none.

Spans select between texts that compile to the same operations. They never define an operation: a tree means the same
without them.
"""

from __future__ import annotations

import ast
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.bytecode.syntax_trees import TRY_STATEMENTS, children, fields_of, walk
from depyf.decompiler.lift.node_attributes import Start, attributes_of


def put(node: ast.AST, span: Optional[Span]) -> None:
    """Record that ``node`` was compiled to an instruction with this span, unless it has one."""
    if span is not None:
        attributes_of(node).setdefault("span", span)


def span_of(node: ast.AST) -> Optional[Span]:
    """Return the span of the instruction that computes ``node`` (the last one of a statement); ``None`` if unknown."""
    return attributes_of(node).get("span")


def has_columns(node: ast.AST) -> bool:
    """Return whether the columns of ``node`` are known, not only its line."""
    span = span_of(node)
    return span is not None and span.column is not None


def put_jump(test: ast.expr, span: Optional[Span]) -> None:
    """Record the span of the jump that depends on ``test``: up to 3.11 the span of the statement, since 3.12 the span
    of the test."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if span is not None:
        attributes_of(test).setdefault("jump", span)


def jump_of(test: ast.expr) -> Optional[Span]:
    """Return the span of the jump that depends on ``test``; ``None`` if unknown."""
    return attributes_of(test).get("jump")


def moved(new: ast.expr, old: ast.expr) -> ast.expr:
    """Return ``new`` with the spans of ``old``, which it replaces."""
    put(new, span_of(old))
    jump = jump_of(old)
    if jump is not None:
        attributes_of(new).setdefault("jump", jump)
    return new


# --- starts of statements --------------------------------------------------------------------------------------------


_FIRST_OPERAND: Dict[type, str] = {
    ast.Call: "func", ast.Attribute: "value", ast.Subscript: "value", ast.Compare: "left", ast.BinOp: "left",
}  # fmt: skip
"""The field of a node with a span that may hold nodes with a smaller start. The span of an attribute starts at its name
where the name is on a line of its own, and so does the span of a call of the attribute. The span of a comparison by
``match`` is the span of the pattern."""


def first_span(node: ast.AST) -> Optional[Span]:
    """Return the span with the smallest start in ``node``; ``None`` if there is none."""
    first: Optional[Span] = None
    begin = (0, 0)
    todo: List[Any] = [node]
    while todo:
        each = todo.pop()
        span = attributes_of(each).get("span")
        while span is not None:
            start = _begin(span)
            if first is None or start < begin:
                first, begin = span, start
            field = _FIRST_OPERAND.get(each.__class__)
            if field is None:
                break
            each = each.__dict__[field]
            span = attributes_of(each).get("span")
        if span is None or not isinstance(each, _WITH_SPAN_AROUND):
            todo += _parts_in_front(each)
    return first


def _begin(span: Span) -> Tuple[int, int]:
    """Return a key by which spans are ordered by their starts; one without a column begins with its line."""
    return span[0], -1 if span[1] is None else span[1]


_WITH_SPAN_AROUND = (ast.expr, *TRY_STATEMENTS)


def _parts_in_front(node: ast.AST) -> List[ast.AST]:
    if isinstance(node, ast.JoinedStr):  # texts in those made of ``%`` have wrong spans (3.11)
        return [part for part in node.values if not isinstance(part, ast.Constant)]
    return children(node)


def first_operand(test: ast.expr) -> Tuple[ast.expr, int]:
    """Return the operand that a condition tests first, and the number of characters in front of it."""
    before, inner = 0, False
    while True:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test = test.operand
            before += 4 + isinstance(test, ast.BoolOp)
        elif isinstance(test, ast.BoolOp) and type(test).__name__ == "BoolOp":
            first = test.values[0]
            opened = isinstance(test.op, ast.And) and isinstance(first, ast.BoolOp) and isinstance(first.op, ast.Or)
            test, before = first, before + opened
        else:
            return test, before + (_opens(test) if inner or not isinstance(test, ast.NamedExpr) else 0)
        inner = True


def _opens(test: ast.expr) -> bool:
    """Return whether ``test`` begins with ``(a := b)``, and has no span that begins with its parenthesis."""
    first: ast.expr = test
    while first.__class__ in _FIRST_OPERAND:
        first = first.__dict__[_FIRST_OPERAND[first.__class__]]
    if not isinstance(first, ast.NamedExpr):
        return False
    whole, named = first_span(test), first_span(first)
    return whole is None or named is None or whole[:2] == named[:2]


def statement_of(test: ast.expr) -> Optional[Span]:
    """Return the span of the statement that tests ``test``, if one of its jumps has that span. Cached in ``test``."""
    known = attributes_of(test)
    if "tested_by" not in known:
        known["tested_by"] = _statement_of(test)
    return known["tested_by"]


def _statement_of(test: ast.expr) -> Optional[Span]:
    todo: List[Any] = [test]
    for each in todo:  # what is in it is appended meanwhile
        if not isinstance(each, ast.AST):
            continue  # in a list of names
        known = attributes_of(each)
        jump = known.get("jump")
        if jump is not None:
            span = known.get("span")
            if span is not None and jump.column is not None and jump[:2] < span[:2] and jump[2:] >= span[2:]:
                return jump
        values = each.__dict__
        for field in fields_of[each.__class__]:
            value = values.get(field)
            if value.__class__ is list:
                todo.extend(value)
            elif value is not None:
                todo.append(value)
    return None


def span_of_assert(statement: ast.Assert) -> Optional[Span]:
    """Return the span of a whole ``assert``; ``None`` if the raise has the span of a comparison (up to 3.11)."""
    span = span_of(statement)
    if span is None or _begins(statement.test, span):
        return None
    return span


def _begins(test: ast.expr, span: Span) -> bool:
    """Return whether an expression in ``test`` starts where ``span`` does."""
    spans = (span_of(each) for each in walk(test))
    return any(each is not None and each[:2] == span[:2] for each in spans)


_KEYWORDS: Dict[type, int] = {
    ast.While: 6, ast.For: 4, ast.AsyncFor: 10, ast.With: 5, ast.AsyncWith: 11, ast.Delete: 4, ast.If: 3, ast.Assert: 7,
}  # fmt: skip
"""The number of characters in front of the first expression."""


def start_of(statement: ast.stmt) -> Optional[Start]:
    """Return the start of ``statement``, ``None`` if no span in it shows it. Cached in the statement."""
    known = attributes_of(statement)
    if "start" not in known:
        known["start"] = _start(statement)
    return known["start"]


def _start(statement: ast.stmt) -> Optional[Start]:
    find = _STARTS.get(statement.__class__)
    if find is not None:
        return find(statement)
    span = span_of(statement) if hasattr(statement, "body") else first_span(statement)  # try, definitions
    return None if span is None else Start(span.line, span.column)


def _start_of_test(statement: Union[ast.If, ast.While, ast.Assert]) -> Optional[Start]:
    if isinstance(statement, ast.Assert):
        span = span_of_assert(statement)
        if span is not None:
            return Start(span.line, span.column)
    operand, before = first_operand(statement.test)
    span, jump = first_span(operand), statement_of(statement.test)
    if jump is not None and span is not None and jump[:2] < span[:2]:
        return Start(jump.line, jump.column)
    return None if span is None else _before(span, _KEYWORDS[type(statement)] + before)


def _start_of_for(statement: Union[ast.For, ast.AsyncFor]) -> Optional[Start]:
    span, target = span_of(statement), first_span(statement.target) or first_span(statement.iter)
    if span is not None and span.column is not None and (target is None or span < target):
        return Start(span.line, span.column)
    return None if target is None else _before(target, _KEYWORDS[type(statement)])


def _start_of_return(statement: ast.Return) -> Optional[Start]:
    span, value = span_of(statement), statement.value
    first = None if value is None else first_span(value)
    if first is not None and (span is None or _begin(first) < _begin(span)):
        span = first
    if span is not None and isinstance(value, ast.Constant) and span == first:
        if _may_span(span, value.value):
            return _before(span, len("return "), exact=True)
        return _before(span, len("with ") if span.line == span.end_line else 0)  # it is further to the right
    if first is not None and _is_of_with(span_of(statement), first):
        return _before(first, len("return "))
    return None if span is None else Start(span.line, span.column)


def _start_of_with(statement: Union[ast.With, ast.AsyncWith]) -> Optional[Start]:
    return _start_behind(statement, statement.items[0].context_expr)


def _start_of_delete(statement: ast.Delete) -> Optional[Start]:
    return _start_behind(statement, statement)


def _start_of_match(statement: ast.Match) -> Optional[Start]:
    return _start_behind(statement, statement.subject)


def _start_behind(statement: ast.stmt, first: ast.AST) -> Optional[Start]:
    """Return the start of a statement that begins with a keyword, which ``first`` follows."""
    span = first_span(first)
    return None if span is None else _before(span, _KEYWORDS[type(statement)])


_STARTS: Dict[type, Callable[[Any], Optional[Start]]] = {
    ast.If: _start_of_test, ast.While: _start_of_test, ast.Assert: _start_of_test,
    ast.For: _start_of_for, ast.AsyncFor: _start_of_for, ast.Return: _start_of_return,
    ast.With: _start_of_with, ast.AsyncWith: _start_of_with, ast.Delete: _start_of_delete,
}  # fmt: skip
if hasattr(ast, "Match"):
    _KEYWORDS[ast.Match] = len("match ")
    _STARTS[ast.Match] = _start_of_match


def _may_span(span: Span, value: object) -> bool:
    """Return whether ``span`` may be the span of the constant ``value``. It may also be the span of the ``with`` around
    the return, whose exit methods are called first. A constant that is no text is on one line, as long as its text."""
    if span.column is None or span.end_column is None or isinstance(value, (str, bytes, tuple)):
        return True
    if span.line != span.end_line:
        return False
    known = value is None or isinstance(value, (bool, int))
    return not known or span.end_column - span.column == len(repr(value))


def _is_of_with(own: Optional[Span], value: Optional[Span]) -> bool:
    """Return whether the span of a ``return`` is the span of an enclosing ``with``, whose exit methods are called
    first. It is then on another line, and the value is further right than one in parentheses on the next line would
    be."""
    if own is None or value is None or own.column is None or value.column is None or own.line == value.line:
        return False
    return own.line > value.line or own.end_line < value.line or value.column - own.column > len("return ")


def _before(span: Span, count: int, *, exact: bool = False) -> Start:
    return Start(span.line, None if span.column is None else span.column - count, exact)


def column_of(block: Sequence[ast.stmt]) -> Optional[int]:
    """Return the column of the statements of ``block``, ``None`` if no statement shows it."""
    exact: List[int] = []
    estimated: List[int] = []
    for _, column, is_exact in filter(None, map(start_of, block)):
        if column is not None:
            (exact if is_exact else estimated).append(column)
    return min(exact or estimated, default=None)
