"""``try`` statements: the node after them, their clauses, and ``try`` inside of ``try``/``finally``."""

from __future__ import annotations

import ast
from typing import List, Optional, Tuple, Type

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.bytecode.syntax_trees import TRY_STATEMENTS, TryStatement
from depyf.decompiler.flow.graph import Jump, Region
from depyf.decompiler.lift.nodes import BindException, ExceptionTest, Goto, Node, PopException
from depyf.decompiler.lift.spans import first_span, put, span_of
from depyf.decompiler.structure.regions import Regions
from depyf.decompiler.structure.targets import Targets
from depyf.decompiler.structure.unstructured import Unstructured


class TryEnds:
    """Where the ``try`` statements of one graph end, and which have an ``else`` clause."""

    def __init__(self, regions: Regions) -> None:
        self.regions, self.shape, self.nodes = regions, regions.shape, regions.nodes
        self.flow = regions.shape.flow

    def after(self, region: Region, body_exits: List[int], targets: Targets) -> Tuple[Optional[int], Optional[int]]:
        """Return the node after the statement of ``region``, and the first node of its else clause; ``None`` for each
        that does not exist."""
        if handles_groups(self.nodes[region.entry]):
            return self._after_groups(region, body_exits, targets)
        handler_exits = self.regions.exits_of(set(self.shape.handled.get(region.entry, ())), region, targets)
        normal = self.regions.follow_of(body_exits, targets)
        handled = self.regions.follow_of(handler_exits, targets)
        if normal is None and handled is None:
            return targets.follow, None
        if handled is None or normal is None or normal == handled:
            return (normal if normal is not None else handled), None
        # The body leads to one node and the clauses lead to another: either the body goes on in ``else``, or the
        # clauses jump away.
        #
        #     for x in y:                 for x in y:
        #         try:                        try:
        #             a()                         a()
        #         except E:                   except E:
        #             b()                         b()
        #         else:                           continue
        #             c()                     c()
        #
        # Since 3.11 c() of ``else`` is placed before the handler, and c() after the statement is placed after it.
        # Before 3.11 both are after it; then only the way in which the clause ends can show which was written.
        after_handler = self.nodes[normal].offset > self.nodes[region.entry].offset
        if handled == targets.follow and after_handler and not self._runs_to_its_end(region):
            if handled == targets.continues or self.shape.is_copyable(handled):
                return normal, None
        if handled == targets.follow or self.shape.index[handled] > self.shape.index[normal]:
            return (handled, None) if normal == targets.follow else (handled, normal)
        return normal, None

    def _runs_to_its_end(self, region: Region) -> bool:
        """Return whether the bytecode shows that the end of an ``except`` clause is reached, and not a jump."""
        for id in self.shape.handled.get(region.entry, ()):
            node = self.nodes[id]
            marks = [
                each for each in node.statements if isinstance(each, PopException) and each.handler == region.entry
            ]
            if any(mark.offset in self.flow.clause_ends for mark in marks):
                return True
            # POP_EXCEPT; JUMP_FORWARD to the implicit return (3.8, 3.9): a ``return`` would return where it is.
            block = self.flow.blocks.get(node.last_block)
            term = block.term if marks and block is not None else None
            if isinstance(term, Jump) and term.offset >= 0 and term.target == self.shape.end:
                return True
        return False

    def _after_groups(
        self, region: Region, body_exits: List[int], targets: Targets
    ) -> Tuple[Optional[int], Optional[int]]:
        """Return ``after`` of a statement with ``except*``. Raises ``Unstructured``."""
        # ``break``, ``continue`` and ``return`` are syntax errors in ``except*``, so a clause can only reach its end or
        # raise. The tests form a chain, and the end of this chain leads to the node after the statement.
        current, seen = region.entry, set()
        term = self.nodes[current].terminator
        while isinstance(term, ExceptionTest) and current not in seen:
            seen.add(current)
            current = term.other
            term = self.nodes[current].terminator
        if not isinstance(term, Goto):
            raise Unstructured(f"node {current} does not end an except* statement")
        follow = self.regions.destination(term.target, region, targets)
        normal = self.regions.follow_of(body_exits, targets)
        return follow, normal if normal not in (follow, targets.follow) else None

    def with_start(self, statement: TryStatement) -> TryStatement:
        """Return a ``try`` statement with the span of its start."""
        first = first_span(statement.body[0])
        if first is not None:
            put(statement, self.flow.written_jumps.around(first, _span_of_clause(statement) or first))
        return statement

    def try_finally(self, body: List[ast.stmt], final: List[ast.stmt]) -> ast.stmt:
        """Return one statement for ``try`` inside of ``try``/``finally``, unless two of them start there."""
        outer = ast.Try(body or [ast.Pass()], [], [], final or [ast.Pass()])
        inner = outer.body[0]
        first = first_span(inner.body[0] if isinstance(inner, TRY_STATEMENTS) else inner)
        if first is not None:
            put(outer, self.flow.written_jumps.around(first, first_span(outer.finalbody[0]) or first))
        return joined_try(outer) or outer


def _span_of_clause(statement: TryStatement) -> Optional[Span]:
    """Return a span in ``statement`` outside of its body; ``None`` if it has none. The body is excluded because ``while
    True`` also starts with a NOP."""
    if not statement.handlers:
        return first_span(statement.finalbody[0])
    handler = statement.handlers[0]
    if handler.type is None and not isinstance(statement.body[0], ast.While):
        return None  # the clause may contain only what follows the statement
    return first_span(handler.type or handler)


def joined_try(outer: ast.stmt) -> Optional[TryStatement]:
    """Return ``outer``, which has a ``finally`` clause only, with the clauses of the ``try`` that is its whole body;
    ``None`` if it has another body, or line tables show two statements."""
    if not isinstance(outer, ast.Try) or outer.handlers or len(outer.body) != 1:
        return None
    inner, span = outer.body[0], span_of(outer)
    if not isinstance(inner, TRY_STATEMENTS) or inner.finalbody or span_of(inner) not in (None, span):
        return None
    joined = type(inner)(inner.body, inner.handlers, inner.orelse, outer.finalbody)
    put(joined, span)
    return joined


def handles_groups(handler: Node) -> bool:
    """Return whether ``handler`` is the first node of an ``except*`` clause."""
    return isinstance(handler.terminator, ExceptionTest) and handler.terminator.group


def try_statement(
    handler: Node, body: List[ast.stmt], clauses: List[ast.ExceptHandler], orelse: List[ast.stmt]
) -> TryStatement:
    """Return ``try`` with the clauses of ``handler``."""
    kind: Type[TryStatement] = ast.TryStar if handles_groups(handler) else ast.Try
    return kind(body=body or [ast.Pass()], handlers=clauses, orelse=orelse, finalbody=[])


def bound_name(node: Node, region: Region) -> Optional[str]:
    """Return ``name`` of the clause ``except ... as name`` of ``region`` that starts with ``node``; ``None`` if the
    clause has no name."""
    first = node.statements[0] if node.statements else None
    if isinstance(first, BindException) and first.handler == region.entry and isinstance(first.target, ast.Name):
        return first.target.id
    return None
