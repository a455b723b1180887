"""Find the places of returns in ``with`` statements, whose instructions have the span of the ``with``.

    with a:
        if b:
            return              the NOP of this line, the call of the exit method, RETURN_VALUE
        c()

What is on such a line, a ``return`` or its constant, only leaves a NOP in front of the exit.
"""

from __future__ import annotations

import ast
from typing import AbstractSet, Dict, List, Optional, Set, Tuple

from depyf.bytecode.lines import Span
from depyf.bytecode.syntax_trees import block_fields, children
from depyf.flow.graph import FlowGraph
from depyf.flow.managers import spans_of_managers
from depyf.lift.places import place_of, put, start_of

_LEAVES = "leaves"


def mark_break(jump: ast.Break) -> ast.Break:
    """Return ``jump``, out of a loop behind which the function returns None, recorded as such."""
    jump.__dict__[_LEAVES] = True
    return jump


def place_returns(block: List[ast.stmt], flow: FlowGraph) -> Set[Optional[Span]]:
    """Record the places of the returns in ``block`` that have those of managers; write ``return`` for ``break``. Return
    the spans that were used."""
    placer = _Placer(flow, spans_of_managers(flow))
    if placer.managers and flow.written_jumps.quiet:
        placer.place(block)
    return placer.used


class _Placer:
    def __init__(self, flow: FlowGraph, managers: Set[Optional[Span]]) -> None:
        self.written, self.managers = flow.written_jumps, managers
        self.used: Set[Optional[Span]] = set()
        self.copies: Dict[Tuple[type, str], List[ast.Return]] = {}
        """The returns of a value so far whose place is not found."""
        self.line, self.column = 0, 0
        """The last line so far, and the column of the statement around."""

    def place(self, block: List[ast.stmt]) -> None:
        for index, statement in enumerate(block):
            if isinstance(statement, ast.Return) and (_jumps(statement) or _span_of(statement) in self.managers):
                block[index] = self._return(statement)
            elif isinstance(statement, ast.Break) and statement.__dict__.get(_LEAVES):
                block[index] = self._return(ast.Return(ast.Constant(None))) if self._find("return") else statement
            else:
                self._within(statement)
                continue
            self._pass(block[index])

    def _within(self, statement: ast.stmt) -> None:
        column, start = self.column, start_of(statement)
        self.column = column if start is None or start.column is None else start.column
        self._place_parts(statement)
        self.column = column

    def _place_parts(self, owner: ast.AST) -> None:
        """Place the returns in a statement, or in a clause of it."""
        blocks, clauses = block_fields(owner.__class__)
        inner = {field: getattr(owner, field, None) or [] for field in (*blocks, *clauses)}
        held = {id(each) for parts in inner.values() for each in parts}
        self._pass(owner, but=held)
        for field, parts in inner.items():
            if field in blocks:
                self.place(parts)
            for part in parts if field in clauses else ():
                self._place_parts(part)

    def _pass(self, node: ast.AST, but: AbstractSet[int] = frozenset()) -> None:
        """Note the lines on which ``node`` and its parts start, without those of the ids in ``but``."""
        todo = [node]
        for each in todo:  # its parts are appended meanwhile
            place = place_of(each)
            if place is not None and place.line is not None:
                self.line = max(self.line, place.line)
            todo.extend([child for child in children(each) if id(child) not in but])

    def _return(self, statement: ast.Return) -> ast.Return:
        """Return ``statement``, or a copy of it with its own place."""
        value = statement.value
        if value is not None and not isinstance(value, ast.Constant):
            return statement
        known = None if value is None else value.value
        bare = self._find("return") if known is None else None
        span = bare or self._find(repr(known), exact=not isinstance(known, (str, bytes, tuple, float, complex)))
        key = known.__class__, repr(known)
        if span is None:
            if value is not None:
                self.copies.setdefault(key, []).append(statement)
            return statement
        self.used.add(span)
        for each in self.copies.pop(key, ()):  # each return has its own NOP: these are copies of this one
            each.value = ast.Constant(known)
            each.__dict__["place"] = each.value.__dict__["place"] = span
        copy = ast.Return(None if bare else ast.Constant(known))
        for node in (copy, *([] if copy.value is None else [copy.value])):
            put(node, span)
        return copy

    def _find(self, text: str, *, exact: bool = True) -> Optional[Span]:
        """Return the span of what is on the next line, if it only leaves a NOP, and may be ``text``: a value is
        behind ``return``, and ``break`` and ``pass`` are not."""
        span = self.written.idle_behind(self.line)
        if span is None or span.column is None or span.end_column is None:
            return None
        behind = span.column - self.column > len("return ") + 1
        if behind != (text != "return") or (exact and span.end_column - span.column != len(text)):
            return None
        return span


def _jumps(statement: ast.Return) -> bool:
    """Return whether ``statement`` was made of a jump to the end of the function."""
    return statement.value is None and place_of(statement) is None


def _span_of(statement: ast.Return) -> Optional[Span]:
    return place_of(statement) or (None if statement.value is None else place_of(statement.value))
