"""Find the spans of returns in ``with`` statements, whose instructions have the span of the ``with``.

    with a:
        if b:
            return              the NOP of this line, the call of the exit method, RETURN_VALUE
        c()

A ``return`` or its constant on such a line only leaves a NOP in front of the exit.
"""

from __future__ import annotations

import ast
from typing import AbstractSet, Dict, List, Optional, Set, Tuple

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.bytecode.syntax_trees import block_fields, children
from depyf.decompiler.flow.graph import FlowGraph
from depyf.decompiler.flow.managers import spans_of_managers
from depyf.decompiler.lift.node_attributes import attributes_of
from depyf.decompiler.lift.spans import put, span_of, start_of


def mark_break(jump: ast.Break) -> ast.Break:
    """Return ``jump``, recorded as one after which the function returns None."""
    attributes_of(jump)["leaves"] = True
    return jump


def restore_returns(block: List[ast.stmt], flow: FlowGraph) -> Set[Optional[Span]]:
    """Record the own spans of the returns in ``block`` that have the spans of managers; write ``return`` for ``break``.
    Return the spans that were used."""
    returns = _Returns(flow, spans_of_managers(flow))
    if returns.managers and flow.written_jumps.quiet:
        returns.restore(block)
    return returns.used


class _Returns:
    def __init__(self, flow: FlowGraph, managers: Set[Optional[Span]]) -> None:
        self.written, self.managers = flow.written_jumps, managers
        self.used: Set[Optional[Span]] = set()
        self.copies: Dict[Tuple[type, str], List[ast.Return]] = {}
        """The returns of each value so far whose span is not found."""
        self.line, self.column = 0, 0
        """The last line so far, and the column of the enclosing statement."""

    def restore(self, block: List[ast.stmt]) -> None:
        """Give the returns in ``block`` their spans, in the order of the source."""
        for index, statement in enumerate(block):
            if isinstance(statement, ast.Return) and (_jumps(statement) or _span_of(statement) in self.managers):
                block[index] = self._return(statement)
            # for x in y:
            #     with a: return        if the end of the function follows the loop, this was found as ``break``
            elif isinstance(statement, ast.Break) and attributes_of(statement).get("leaves"):
                block[index] = self._return(ast.Return(ast.Constant(None))) if self._find("return") else statement
            else:
                self._within(statement)
                continue
            self._pass(block[index])

    def _within(self, statement: ast.stmt) -> None:
        column, start = self.column, start_of(statement)
        self.column = column if start is None or start.column is None else start.column
        self._restore_parts(statement)
        self.column = column

    def _restore_parts(self, owner: ast.AST) -> None:
        """Restore the returns in a statement or clause."""
        blocks, clauses = block_fields(owner.__class__)
        inner = {field: getattr(owner, field, None) or [] for field in (*blocks, *clauses)}
        held = {id(each) for parts in inner.values() for each in parts}
        self._pass(owner, but=held)
        for field, parts in inner.items():
            if field in blocks:
                self.restore(parts)
            for part in parts if field in clauses else ():
                self._restore_parts(part)

    def _pass(self, node: ast.AST, but: AbstractSet[int] = frozenset()) -> None:
        """Note the lines on which ``node`` and its parts start, without the parts with an id in ``but``."""
        todo = [node]
        for each in todo:  # its parts are appended meanwhile
            span = span_of(each)
            if span is not None and span.line is not None:
                self.line = max(self.line, span.line)
            todo.extend([child for child in children(each) if id(child) not in but])

    def _return(self, statement: ast.Return) -> ast.Return:
        """Return ``statement``, or a copy with its own span."""
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
        # Each ``return`` of the source leaves one NOP. Returns of the same value before it that found none are copies
        # that the compiler made of this one.
        for each in self.copies.pop(key, ()):
            each.value = ast.Constant(known)
            attributes_of(each)["span"] = attributes_of(each.value)["span"] = span
        copy = ast.Return(None if bare else ast.Constant(known))
        for node in (copy, *([] if copy.value is None else [copy.value])):
            put(node, span)
        return copy

    def _find(self, text: str, *, exact: bool = True) -> Optional[Span]:
        """Return the next span that only leaves a NOP, if it may be the span of ``text``; ``None`` otherwise."""
        # A ``return`` is one indentation to the right of the enclosing statement, its value is seven columns further to
        # the right. ``break`` and ``pass`` have another length than ``return``.
        span = self.written.idle_behind(self.line)
        if span is None or span.column is None or span.end_column is None:
            return None
        after = span.column - self.column > len("return ") + 1
        if after != (text != "return") or (exact and span.end_column - span.column != len(text)):
            return None
        return span


def _jumps(statement: ast.Return) -> bool:
    """Return whether ``statement`` was made of a jump to the end of the function."""
    return statement.value is None and span_of(statement) is None


def _span_of(statement: ast.Return) -> Optional[Span]:
    return span_of(statement) or (None if statement.value is None else span_of(statement.value))
