"""What the writers of single statements share while a lifted graph becomes nested statements.

``sequences.py`` follows control through the graph, and calls a writer for each statement; these call back for what is
inside of the statement.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from functools import cached_property
from typing import List, Optional, Set

from depyf.bytecode.lines import Span
from depyf.flow.graph import FlowGraph
from depyf.lift.nodes import Accumulate, LiftedGraph, Node, PopException, Return, WithExit
from depyf.structure.accumulation import AccumulateStatement
from depyf.structure.leaving import Known
from depyf.structure.place import Place
from depyf.structure.single_loops import shape_of
from depyf.structure.unstructured import Unstructured


class Structurer(ABC):
    """The graph, which of its nodes are written, and which loops are open."""

    def __init__(self, lifted: LiftedGraph, flow: FlowGraph) -> None:
        self.shape = shape_of(lifted, flow)
        self.nodes, self.flow = lifted.nodes, flow
        self.written: Set[int] = set()
        self.open_loops: Set[int] = set()
        self.constants: Set[Optional[Span]] = set()
        """The spans of the constants of the endless loops that are written."""
        self.leaving: Known = {}
        self.end = self._end()

    @cached_property
    def offsets(self) -> List[int]:
        """The offset of each operation."""
        return [instr.offset for instr in self.flow.code.ops]

    def _end(self) -> Optional[int]:
        """Return the implicit return at the end of a function; ``None`` if it has none."""
        implicit = {id for id, block in self.flow.blocks.items() if block.implicit}
        nodes = [node for id, node in self.nodes.items() if id in implicit] if implicit else []
        return next((node.id for node in nodes if isinstance(node.terminator, Return) and not node.statements), None)

    @abstractmethod
    def sequence(self, start: Optional[int], place: Place, *, entering: bool = False) -> List[ast.stmt]:
        """Return the statements from node ``start`` until control reaches a node that ``place`` names. ``entering``:
        ``start`` follows without a jump, even if a jump to it would be a ``continue``."""

    @abstractmethod
    def terminate(self, node: Node, place: Place, result: List[ast.stmt]) -> Optional[int]:
        """Write the terminator of ``node``; return the node that follows, ``None`` if control does not fall through."""

    def check_place(self, node: Node, place: Place) -> None:
        """Check that ``node`` does not move into a region that does not guard it, or into a handler it does not run
        under: also not behind the mark that ends it. Raises ``Unstructured``."""
        if node.silent:
            return
        if place.left:
            raise Unstructured(f"node {node.id} (offset {node.offset}) is behind the end of the enclosing region")
        guards = self.shape.chain(node.region)
        for region in place.regions:
            if region not in guards and not self.shape.exits_region(node.id, region):
                raise Unstructured(f"node {node.id} (offset {node.offset}) is outside of the enclosing region")
        for handler in place.handlers:
            if handler not in node.handling:
                raise Unstructured(f"node {node.id} (offset {node.offset}) is outside of the enclosing handler")

    def statements(self, node: Node, place: Place, result: List[ast.stmt]) -> Place:
        """Write the statements of ``node``; return the place after them, since marks end regions."""
        for region in node.leaves:
            place = place._replace(regions=tuple(other for other in place.regions if other != region), left=True)
        for statement in node.statements:
            if isinstance(statement, ast.stmt):
                result.append(statement)
            elif isinstance(statement, WithExit):
                left = self.shape.with_region.get(statement.origin)
                place = place._replace(regions=tuple(other for other in place.regions if other != left), left=True)
            elif isinstance(statement, PopException):
                left_handler = statement.handler
                handlers = tuple(other for other in place.handlers if other != left_handler)
                place = place._replace(handlers=handlers, left=True, left_by=statement.offset)
            elif isinstance(statement, Accumulate):
                add = AccumulateStatement()
                add.kind, add.key, add.element = statement.kind, statement.key, statement.element
                result.append(add)
        return place
