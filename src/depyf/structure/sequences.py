"""Nested statements from a lifted graph.

Follows control from the entry. The join node of a branch (a child in the dominator tree with several predecessors;
Ramsey, "Beyond Relooper", ICFP 2022) follows the statement; loops and regions are opened where they are entered. The
target of a jump decides its form: nothing, ``break``, ``continue``, a copied ``return``. Other jumps have no structured
form here, and ``Unstructured`` is raised.
"""

from __future__ import annotations

import ast
from typing import List, Optional

from depyf.flow.graph import FlowGraph
from depyf.lift.nodes import (
    Condition,
    ExceptionTest,
    Goto,
    LiftedGraph,
    MatchTest,
    Node,
    Overridden,
    Raise,
    Reraise,
    Return,
    WithDecision,
    WithEnter,
)
from depyf.structure.branches import if_statement
from depyf.structure.jumps import jump_to, raise_statement, return_statement
from depyf.structure.loops import loop_is_next, write_loop
from depyf.structure.match import match_statement
from depyf.structure.place import Place
from depyf.structure.regions import is_mark, region_opened_at
from depyf.structure.restore_jumps import restore_jumps
from depyf.structure.returns_in_with import place_returns
from depyf.structure.structurer import Structurer
from depyf.structure.try_statements import write_try
from depyf.structure.unstructured import Unstructured
from depyf.structure.with_statements import write_with


def structure(lifted: LiftedGraph, flow: FlowGraph) -> List[ast.stmt]:
    """Return the statements of a whole code object. Raises ``Unstructured``."""
    return _Sequences(lifted, flow).run()


class _Sequences(Structurer):
    def run(self) -> List[ast.stmt]:
        statements = self.sequence(self.shape.entry, Place(follow=self.end))
        used = self.constants | place_returns(statements, self.flow)
        jumps = [jump for jump in self.flow.written_jumps.jumps if jump[0] not in used]
        restore_jumps(statements, jumps, self.flow.written_jumps.wildcards)
        return statements

    def sequence(self, start: Optional[int], place: Place, *, entering: bool = False) -> List[ast.stmt]:
        result: List[ast.stmt] = []
        current = start
        while current is not None:
            jump = None if entering else jump_to(self, current, place)
            entering = False
            if jump is not None:
                result.extend(jump)
                break
            if current in self.shape.loops and current not in self.open_loops and loop_is_next(self, current, place):
                current = write_loop(self, current, place, result)
                continue
            region = region_opened_at(self, current, place)
            if region is not None:
                current = write_try(self, current, region, place, result)
                continue
            node = self.nodes[current]
            if not is_mark(node):
                self.check_place(node, place)
                if current in self.written:
                    raise Unstructured(f"node {current} (offset {node.offset}) is reached a second time")
            self.written.add(current)
            place = self.statements(node, place, result)
            current = self.terminate(node, place, result)
        return result

    def terminate(self, node: Node, place: Place, result: List[ast.stmt]) -> Optional[int]:
        term = node.terminator
        if isinstance(term, Goto):
            if node.statements and isinstance(node.statements[-1], WithEnter):
                return write_with(self, node, node.statements[-1], term.target, place, result)
            return term.target
        if isinstance(term, Condition):
            return if_statement(self, node, term, place, result)
        if isinstance(term, MatchTest):
            return match_statement(self, node, term, place, result)
        if isinstance(term, Return):
            result.append(return_statement(self, term))
        elif isinstance(term, Raise):
            result.append(raise_statement(term.statement))
        elif isinstance(term, Reraise):
            if term.value is not None:
                raise Unstructured(f"node {node.id} raises a value that is not the handled exception")
            if term.handler != place.finalizer:
                result.append(ast.Raise(None, None))
        elif isinstance(term, Overridden):
            result.append(ast.Return(None))
        elif isinstance(term, WithDecision):
            raise Unstructured(f"node {node.id}: the end of a with statement is outside of its handler")
        elif isinstance(term, ExceptionTest):
            raise Unstructured(f"node {node.id}: an exception is tested outside of an except clause")
        else:
            raise Unstructured(f"node {node.id}: a loop is entered in its middle")
        return None
