"""Loops: the test, the nodes of the body, and the node after the loop."""

from __future__ import annotations

import ast
from typing import List, Optional, Set, Tuple

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.flow.graph import Jump
from depyf.decompiler.lift import build
from depyf.decompiler.lift.nodes import (
    BindException,
    Condition,
    Loop,
    Node,
    PopException,
    Raise,
    Reraise,
    Return,
    Terminator,
    WithDecision,
    WithExit,
)
from depyf.decompiler.lift.spans import column_of, first_span, put, start_of
from depyf.decompiler.structure.jumps import Jumps
from depyf.decompiler.structure.regions import is_mark
from depyf.decompiler.structure.targets import Targets


class LoopShapes:
    """The loops of one graph."""

    def __init__(self, jumps: Jumps) -> None:
        self.jumps, self.regions, self.shape, self.nodes = jumps, jumps.regions, jumps.shape, jumps.nodes
        self.flow = jumps.flow

    def is_next(self, header: int, targets: Targets) -> bool:
        """Return whether the loop is opened next: not before a region that starts with it and contains it."""
        region = self.regions.opened_at(header, targets)
        if region is None:
            return True
        return not all(region in self.shape.regions_of(id) for id in self.shape.loops[header])

    def test(self, header: int) -> Tuple[Optional[ast.expr], Optional[int], Optional[int]]:
        """Return the test, the first node of the body, and the node after the loop; no test for ``for`` and ``while
        True``."""
        node, members = self.nodes[header], self.shape.loops[header]
        term = node.terminator
        if isinstance(term, Loop):
            return None, term.body, term.exhausted
        if not isinstance(term, Condition) or node.statements or term.keep:
            return None, None, None
        # while a: b()              while True:
        #                               if not a: break
        #                               b()
        #
        # Where the compiler copies the test of a loop (3.10 to 3.13), the flow layer has joined two copies of a on the
        # left, and none on the right. Elsewhere, spans of the constant of ``while True`` decide.
        may_test = header in self.flow.copied_tests or not self.flow.code.copies_loop_tests
        may_test = may_test or header in self.shape.single_loops
        copies = bool(self.flow.finally_regions)  # jumps of a finally body may hide that the test had a copy
        span = first_span(term.test)
        if not may_test and (copies or self.flow.written_jumps.may_loop_before(span)):
            return None, None, None
        if self.flow.written_jumps.loops_before(span):
            return None, None, None
        if term.fall in members and term.target not in members:
            return term.test, term.fall, term.target
        if term.target in members and term.fall not in members:
            return build.negate(term.test), term.target, term.fall
        return None, None, None

    # --- the body ----------------------------------------------------------------------------------------------------

    def members(self, header: int, out: Optional[int], targets: Targets) -> Set[int]:
        """Return the nodes of the body: the cycle, and the nodes that leave it and were written inside. ``out``: the
        node that the test of the loop leads to."""
        # while a:              1: a; POP_JUMP_IF_FALSE 3
        #     if b:                b; POP_JUMP_IF_FALSE 2
        #         c()              c; LOAD_CONST 1; RETURN_VALUE      not in the cycle, placed inside
        #         return 1
        #     d()               2: d; JUMP 1
        # e()                   3: e                                  placed after it
        members = set(self.shape.loops[header])
        last = max(self.nodes[id].extent for id in members)
        if out is not None and self.nodes[out].offset > self.nodes[header].offset:
            last = self.nodes[out].offset - 1
        todo = self._ways_out(members, targets)
        broken: Set[int] = set()
        while todo:
            target = todo.pop()
            if target in members or target == out or targets.known(target) or self.shape.is_copyable(target):
                continue
            if _ends_finally(self.nodes[target], targets) or not self.shape.dominates(header, target):
                continue
            # Offsets show where the code is. In an endless loop, which has no ``out``, columns show more.
            if out is None and self._is_written_after(target, header):
                continue
            if self.nodes[target].offset > last and not self._is_deeper(target, header):
                if out is not None or not self._is_written_inside(target, header):
                    continue
            sources = self.shape.forward_predecessors(target)
            if not members.issuperset(sources):
                continue
            # If all edges are jumps out of a ``with`` or ``try`` inside, only ``break`` makes them. What such a jump
            # passes belongs to the loop, where it leads does not.
            if sources and all(source in broken or self._breaks_out(source, target, header) for source in sources):
                final = self.regions.past_marks(target, targets)
                jumps = final in (out, header) or targets.known(final) or self.shape.is_copyable(final)
                if not jumps and not self._only_ends(self.nodes[target], header):
                    continue
                broken.add(target)
            members.add(target)
            todo.extend(self.shape.successors[target])
            region = self.nodes[target].region
            if region is not None and region not in self.shape.regions_of(header):
                todo.append(region.entry)
        return members

    def _ways_out(self, members: Set[int], targets: Targets) -> List[int]:
        """Return the targets of the edges in ``members``, and the handlers of the ``try`` statements there, to which
        bytecode has no edge."""
        handlers = {
            region.entry
            for id in members
            for region in self.shape.regions_of(id)
            if region not in targets.regions and region.entry not in targets.handlers and region.entry not in members
        }
        return [*(target for id in members for target in self.shape.successors[id]), *handlers]

    def _is_written_inside(self, target: int, header: int) -> bool:
        """Return whether the column of ``target`` shows that it is in the endless loop at ``header``. Nothing of the
        loop needs to follow: since 3.14 there are several jumps back. The first node of another loop is in that one."""
        column = column_of(self._statements(self.nodes[target]))
        if column is None or target in self.shape.loops:
            return False
        start = self._column_of_loop(header)
        if start is not None:
            return column > start
        inside = (column_of(self._statements(self.nodes[id])) for id in self.shape.loops[header])
        return column >= min((each for each in inside if each is not None), default=column + 1)

    def _is_written_after(self, target: int, header: int) -> bool:
        """Return whether the column of ``target`` shows that it follows the endless loop at ``header``. The compiler
        copies a short exit to each ``break`` (3.12), so it may have an offset in the loop."""
        first = self._statements(self.nodes[target])[:1]
        column, start = column_of(first), self._column_of_loop(header)
        return column is not None and start is not None and column <= start

    def _column_of_loop(self, header: int) -> Optional[int]:
        """Return the column of the endless loop at ``header``; ``None`` if it is unknown."""
        first = self._statements(self.nodes[header])
        constant = self.constant_before(first[0]) if first else None
        return None if constant is None or constant.column is None else constant.column - len("while ")

    def constant_before(self, first: ast.stmt) -> Optional[Span]:
        """Return the span of ``True`` in the ``while True`` whose first statement is ``first``; ``None`` if unknown."""
        start = start_of(first) if first_span(first) is not None else None
        return None if start is None else self.flow.written_jumps.constant_of_loop(start.line, start.column)

    def _statements(self, node: Node) -> List[ast.stmt]:
        """Return the statements that start in ``node``."""
        term = node.terminator
        statements = [each for each in node.statements if isinstance(each, ast.stmt)]
        if isinstance(term, Condition) and not term.keep:
            statements.append(ast.If(term.test, [], []))
        elif isinstance(term, Return):
            statements.append(self.jumps.return_statement(term))
        elif isinstance(term, Raise):
            statements.append(term.statement)
        return statements

    def _breaks_out(self, source: int, target: int, header: int) -> bool:
        """Return whether node ``source`` jumps to ``target`` out of a statement in the loop at ``header`` that ends
        elsewhere. No code can be written between the end of such a statement and the jump."""
        # while a:
        #     with b:           b's exit is called in two nodes: before the jump to d (the break), and before the jump
        #         if c: break   back (the end of the statement)
        # d()
        node, loop = self.nodes[source], self.shape.loops[header]
        exits = [self.shape.with_region.get(mark.origin) for mark in node.statements if isinstance(mark, WithExit)]
        for region in (*exits, *node.leaves):
            if region is None or region in self.shape.regions_of(header):
                continue
            # A ``with`` ends where control continues when its manager suppresses an exception.
            decision = self.nodes[region.entry].terminator
            if isinstance(decision, WithDecision):
                if self.regions.past_end(decision.suppressed, region) != target:
                    return True
                continue
            # A ``try`` ends at the last of its marks in the bytecode.
            marks = self.regions.nodes_inside(region).difference(self.shape.guarded.get(region, ()))
            last = max(marks, key=self._last_way_to)
            if last != source and self.regions.past_end(last, region) in loop:
                return True
        return False

    def _only_ends(self, node: Node, header: int) -> bool:
        """Return whether ``node`` only ends regions and handlers that were opened in the loop at ``header``, if any: so
        it is part of a jump out of the loop, wherever that leads."""
        regions, handlers = self.shape.regions_of(header), self.nodes[header].handling
        ended = [self.shape.with_region.get(mark.origin) for mark in node.statements if isinstance(mark, WithExit)]
        handled = [mark.handler for mark in node.statements if isinstance(mark, (PopException, BindException))]
        if any(each in regions for each in (*ended, *node.leaves)) or any(each in handlers for each in handled):
            return False
        return is_mark(node)

    def _last_way_to(self, id: int) -> Tuple[int, bool]:
        """Return the offset of the last edge to node ``id``, and whether it is the jump of a branch."""
        before = [self.nodes[source] for source in self.shape.predecessors[id]]
        jumps = [isinstance(node.terminator, Condition) and node.terminator.target == id for node in before]
        return max(zip([node.extent for node in before], jumps), default=(-1, False))

    def _is_deeper(self, target: int, header: int) -> bool:
        """Return whether ``target`` is in a region or handler that was opened inside of the loop."""
        node, outer = self.nodes[target], self.nodes[header]
        if any(handler not in outer.handling for handler in node.handling):
            return True
        return any(region not in self.shape.regions_of(header) for region in self.shape.regions_of(target))

    # --- the node after the loop -------------------------------------------------------------------------------------

    def after(self, members: Set[int], out: Optional[int], targets: Targets) -> Optional[int]:
        """Return the node that ``break`` leads to; ``None`` if no edge leaves the loop. It differs from ``out`` if the
        loop has an ``else`` clause."""
        exits: List[int] = []
        for id in members:
            for target in self.shape.successors[id]:
                if target not in members and target not in exits and target != out:
                    if not self.shape.is_copyable(target) or (target == targets.follow and self._jumps(id)):
                        exits.append(target)
        if out is not None:
            # An edge to ``out`` that the test of the loop does not make is a ``break``: there is no ``else``.
            if any(out in self.shape.successors[id] and not self._is_loop_exit(id, out) for id in members):
                return out
            # ``break`` in a ``for`` drops the iterator before it jumps to ``out``.
            drops = [target for target in exits if _is_empty(self.nodes[target])]
            if drops == exits and all(self.regions.past_marks(target, targets) == out for target in drops):
                return out
            exits = [target for target in exits if not self._only_returns(target, targets)]
        if not exits:
            return out
        # An enclosing target that is not a return can only be reached by an exit of the loop.
        known = [target for target in exits if targets.known(target) and not self.shape.is_copyable(target)]
        fresh = [target for target in exits if not targets.known(target)]
        return max(known or fresh or exits, key=self.shape.index.__getitem__)

    def _jumps(self, id: int) -> bool:
        """Return whether node ``id`` does not end an ``except`` clause with a ``return``. Where the compiler copies the
        last return of a function into its predecessors, that has the same bytecode as ``break``."""
        node, block = self.nodes[id], self.flow.blocks.get(id)
        if self.flow.code.copies_loop_tests or block is None or not isinstance(block.term, Jump):
            return True
        ends_clause = any(isinstance(statement, PopException) for statement in node.statements)
        return not ends_clause or max(block.term.offset, block.jumps_from) >= 0

    def _only_returns(self, id: int, targets: Targets) -> bool:
        """Return whether node ``id`` exits regions and returns, so that it may be duplicated."""
        end = self.regions.past_marks(id, targets)
        return end != id and not targets.known(end) and self.shape.is_copyable(end)

    def _is_loop_exit(self, id: int, out: int) -> bool:
        """Return whether node ``id`` is a loop header whose own test leads to ``out``."""
        term = self.nodes[id].terminator
        return id in self.shape.loops and (
            (isinstance(term, Loop) and term.exhausted == out)
            or (isinstance(term, Condition) and not self.nodes[id].statements and out in (term.fall, term.target))
        )


def _ends_finally(node: Node, targets: Targets) -> bool:
    """Return whether ``node`` is the end of the ``finally`` clause that is written: only ``break`` jumps there out of a
    loop."""
    return isinstance(node.terminator, Reraise) and node.terminator.handler == targets.finalizer


def _is_empty(node: Node) -> bool:
    """Return whether ``node`` only jumps, or drops an iterator."""
    return is_mark(node) and not node.statements and not node.leaves


def loop_statement(
    term: Optional[Terminator], test: Optional[ast.expr], body: List[ast.stmt], orelse: List[ast.stmt]
) -> ast.stmt:
    """Return ``for`` if the header ends in a ``Loop``, else ``while test``; without a test, ``while True``."""
    body = body or [ast.Pass()]
    if isinstance(term, Loop):
        assert term.iterable is not None
        assert term.target is not None
        kind = ast.AsyncFor if term.async_ else ast.For
        loop = kind(target=term.target, iter=term.iterable, body=body, orelse=orelse)
        put(loop, term.span)
        return loop
    return ast.While(test if test is not None else ast.Constant(True), body, orelse)
