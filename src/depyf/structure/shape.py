"""Facts about a lifted graph that structuring needs: order, dominators, loops, the nodes of each region."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Set, Tuple

from depyf.flow.graph import FlowGraph, Region
from depyf.lift.nodes import Goto, LiftedGraph, Loop, Return, WithEnter, WithExit
from depyf.normal.modes import has_returns
from depyf.structure.dominators import immediate_dominators


class Shape:
    """Computed once; nothing here changes the graph. ``guarded`` and ``handled`` are the nodes in each region and
    under each handler.

    Dominators are those of the graph with an edge from every guarded node to its handler.
    """

    def __init__(self, lifted: LiftedGraph, flow: FlowGraph) -> None:
        self.nodes, self.flow, self.entry = lifted.nodes, flow, lifted.entry
        self._has_returns = has_returns(flow.code)
        self._chains: Dict[Optional[Region], Tuple[Region, ...]] = {None: ()}
        self.order = self._reverse_postorder()
        self.index = {id: position for position, id in enumerate(self.order)}
        self.predecessors: Dict[int, List[int]] = {id: [] for id in self.order}
        for id in self.order:
            for successor in self.nodes[id].successors():
                self.predecessors[successor].append(id)
        self.dominator = immediate_dominators(self.entry, lambda id: tuple(self._out(id)))
        self.children: Dict[int, List[int]] = {id: [] for id in self.order}
        for id in self.order[1:]:
            self.children[self.dominator[id]].append(id)
        self._number_dominator_tree()
        self.guarded: Dict[Region, List[int]] = {}
        self.handled: Dict[int, List[int]] = {}
        for id in self.order:
            for region in self.regions_of(id):
                self.guarded.setdefault(region, []).append(id)
            for handler in self.nodes[id].handling:
                self.handled.setdefault(handler, []).append(id)
        self.with_region = self._with_regions()
        self.loops = self._loops()

    # --- regions -----------------------------------------------------------------------------------------------------

    def chain(self, region: Optional[Region]) -> Tuple[Region, ...]:
        if region not in self._chains:
            self._chains[region] = self.flow.chain(region)
        return self._chains[region]

    def regions_of(self, id: int) -> Tuple[Region, ...]:
        """The regions that guard node ``id``, innermost first."""
        return self.chain(self.nodes[id].region)

    def exits_region(self, id: int, region: Region) -> bool:
        """Whether node ``id`` is the mark that ends ``region`` on a normal way out."""
        node = self.nodes[id]
        if region in node.leaves:
            return True
        return any(
            isinstance(mark, WithExit) and self.with_region.get(mark.origin) == region for mark in node.statements
        )

    def _with_regions(self) -> Dict[int, Region]:
        result: Dict[int, Region] = {}
        for id in self.order:
            node = self.nodes[id]
            if node.statements and isinstance(node.statements[-1], WithEnter) and isinstance(node.terminator, Goto):
                region = self.nodes[node.terminator.target].region
                if region is not None and region != node.region:
                    result[node.statements[-1].origin] = region
        return result

    # --- order and dominance -----------------------------------------------------------------------------------------

    def _out(self, id: int) -> Iterator[int]:
        node = self.nodes[id]
        if node.region is not None and node.region.entry in self.nodes:
            yield node.region.entry
        yield from reversed(node.successors())

    def _reverse_postorder(self) -> List[int]:
        seen = {self.entry}
        postorder: List[int] = []
        todo = [(self.entry, self._out(self.entry))]
        while todo:
            id, successors = todo[-1]
            for successor in successors:
                if successor not in seen:
                    seen.add(successor)
                    todo.append((successor, self._out(successor)))
                    break
            else:
                postorder.append(id)
                todo.pop()
        postorder.reverse()
        return postorder

    def _number_dominator_tree(self) -> None:
        self._enter: Dict[int, int] = {}
        self._leave: Dict[int, int] = {}
        clock = 0
        todo: List[Tuple[int, bool]] = [(self.entry, False)]
        while todo:
            id, done = todo.pop()
            clock += 1
            if done:
                self._leave[id] = clock
                continue
            self._enter[id] = clock
            todo.append((id, True))
            todo.extend((child, False) for child in self.children[id])

    def dominates(self, one: int, two: int) -> bool:
        return self._enter[one] <= self._enter[two] and self._leave[two] <= self._leave[one]

    def forward_predecessors(self, id: int) -> List[int]:
        return [source for source in self.predecessors[id] if self.index[source] < self.index[id]]

    # --- loops -------------------------------------------------------------------------------------------------------

    def _loops(self) -> Dict[int, Set[int]]:
        """The natural loop of each header: what reaches a jump back to it without passing it."""
        loops: Dict[int, Set[int]] = {}
        for id in self.order:
            if isinstance(self.nodes[id].terminator, Loop):  # a ``for`` that is left in its first turn is one, too
                loops.setdefault(id, {id})
            for header in self.nodes[id].successors():
                if self.index[header] <= self.index[id]:
                    body = loops.setdefault(header, {header})
                    todo = [id]
                    while todo:
                        member = todo.pop()
                        if member not in body:
                            body.add(member)
                            todo.extend(self.predecessors[member])
                            todo.extend(self._guarded_by(member))
        return loops

    def _guarded_by(self, entry: int) -> List[int]:
        """The nodes whose handler begins at ``entry``."""
        if not hasattr(self, "_by_handler"):
            self._by_handler: Dict[int, List[int]] = {}
            for id in self.order:
                region = self.nodes[id].region
                if region is not None:
                    self._by_handler.setdefault(region.entry, []).append(id)
        return self._by_handler.get(entry, [])

    # --- small tails -------------------------------------------------------------------------------------------------

    def is_copyable(self, id: int) -> bool:
        """Whether node ``id`` may be written at every jump to it: it returns something that costs nothing."""
        if not self._has_returns:
            return False
        node = self.nodes[id]
        return isinstance(node.terminator, Return) and not node.statements and node.silent and not node.leaves

    def is_one_statement(self, id: int) -> bool:
        """Whether the ``return`` at node ``id`` was written once, for all that come there: behind a statement."""
        block = self.flow.blocks.get(id)
        if block is None or not block.ops or block.implicit:
            return False
        return block.ops[0].line is not None and len(self.forward_predecessors(id)) > 1
