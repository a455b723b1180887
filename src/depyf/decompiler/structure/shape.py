"""Facts about a lifted graph that structuring needs: order, dominators, loops, the nodes of each region."""

from __future__ import annotations

from functools import cached_property
from typing import Dict, Iterable, List, Optional, Set, Tuple

from depyf.decompiler.flow.graph import Chains, End, FlowGraph, Region
from depyf.decompiler.lift.nodes import Goto, LiftedGraph, Loop, Overridden, Return, WithEnter, WithExit
from depyf.decompiler.normal.modes import has_returns
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.structure.dominators import DepthFirstTree


class Shape:
    """The facts of one graph. ``guarded`` and ``handled`` are the nodes in each region and under each handler.
    Dominators include an edge from every guarded node to its handler."""

    def __init__(self, lifted: LiftedGraph, flow: FlowGraph) -> None:
        self.nodes, self.flow, self.entry = lifted.nodes, flow, lifted.entry
        self._has_returns = has_returns(flow.code)
        self._chains = Chains(flow)
        self.successors: Dict[int, Tuple[int, ...]] = {}
        self._tree = DepthFirstTree(self.entry, self._out)
        self.order = self._tree.postorder[::-1]
        self.index = dict(zip(self.order, range(len(self.order))))
        self.predecessors: Dict[int, List[int]] = {id: [] for id in self.order}
        self._going_back: Set[int] = set()  # the nodes with a back edge
        for at, id in enumerate(self.order):
            for successor in self.successors[id]:
                self.predecessors[successor].append(id)
                if self.index[successor] <= at:
                    self._going_back.add(id)
        self.guarded: Dict[Region, List[int]] = {}
        self.handled: Dict[int, List[int]] = {}
        for node in [self.nodes[id] for id in self.order]:
            if node.region is not None:
                for region in self.chain(node.region):
                    self.guarded.setdefault(region, []).append(node.id)
            for handler in node.handling:
                self.handled.setdefault(handler, []).append(node.id)
        self.with_region = self._with_regions() if self.guarded else {}
        self.loops = self._loops()
        self.single_loops: Dict[int, Set[int]] = {}
        """The loops that never go back, which no cycle shows; ``loops`` contains them, too."""

    # --- regions -----------------------------------------------------------------------------------------------------

    def chain(self, region: Optional[Region]) -> Tuple[Region, ...]:
        """Return ``region`` and its enclosing regions, innermost first."""
        return self._chains[region]

    def regions_of(self, id: int) -> Tuple[Region, ...]:
        """Return the regions that guard node ``id``, innermost first."""
        return self.chain(self.nodes[id].region)

    def exits_region(self, id: int, region: Region) -> bool:
        """Return whether node ``id`` is the mark that ends ``region`` on a normal exit."""
        node = self.nodes[id]
        if region in node.leaves:
            return True
        return any(
            isinstance(mark, WithExit) and self.with_region.get(mark.origin) == region for mark in node.statements
        )

    def _with_regions(self) -> Dict[int, Region]:
        """Return the region of each ``with`` by the origin of its marks: it starts at the node that follows
        WithEnter."""
        result: Dict[int, Region] = {}
        for id in self.order:
            node = self.nodes[id]
            if node.statements and isinstance(node.statements[-1], WithEnter) and isinstance(node.terminator, Goto):
                region = self.nodes[node.terminator.target].region
                if region is not None and region != node.region:
                    result[node.statements[-1].origin] = region
        return result

    # --- order and dominance -----------------------------------------------------------------------------------------

    def _out(self, id: int) -> Tuple[int, ...]:
        """Return the successors of node ``id`` in the order of the depth-first search. What is visited first comes last
        in reverse postorder: the handler follows the code that it guards, a target follows the code that is jumped
        over."""
        node = self.nodes[id]
        successors = self.successors[id] = node.successors()
        if node.region is not None and node.region.entry in self.nodes:
            return (node.region.entry, *reversed(successors))
        return successors[::-1]

    @cached_property
    def dominator(self) -> Dict[int, int]:
        """The immediate dominator of each node. Code without branches and loops needs none."""
        return self._tree.dominators()

    @cached_property
    def children(self) -> Dict[int, List[int]]:
        """The children of each node in the dominator tree."""
        children: Dict[int, List[int]] = {id: [] for id in self.order}
        for id in self.order[1:]:
            children[self.dominator[id]].append(id)
        return children

    @cached_property
    def _intervals(self) -> Tuple[Dict[int, int], Dict[int, int]]:
        """The steps at which a walk of the dominator tree enters and leaves each node."""
        enter: Dict[int, int] = {}
        leave: Dict[int, int] = {}
        clock = 0
        todo: List[Tuple[int, bool]] = [(self.entry, False)]
        while todo:
            id, done = todo.pop()
            clock += 1
            if done:
                leave[id] = clock
                continue
            enter[id] = clock
            todo.append((id, True))
            todo.extend((child, False) for child in self.children[id])
        return enter, leave

    def dominates(self, one: int, two: int) -> bool:
        enter, leave = self._intervals
        return enter[one] <= enter[two] and leave[two] <= leave[one]

    def forward_predecessors(self, id: int) -> List[int]:
        return [source for source in self.predecessors[id] if self.index[source] < self.index[id]]

    # --- loops -------------------------------------------------------------------------------------------------------

    def _loops(self) -> Dict[int, Set[int]]:
        """Return the natural loop of each header: the nodes that reach a back edge to it without passing it."""
        loops: Dict[int, Set[int]] = {}
        for id in self.order:
            if isinstance(self.nodes[id].terminator, Loop):  # also if it always exits in its first iteration
                loops.setdefault(id, {id})
            for header in self.successors[id] if id in self._going_back else ():
                if self.index[header] <= self.index[id]:
                    # Walk back from the jump to the header. A handler is reached from any node that it guards.
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
        """Return the nodes whose handler has the entry ``entry``."""
        if not hasattr(self, "_by_handler"):
            self._by_handler: Dict[int, List[int]] = {}
            for id in self.order:
                region = self.nodes[id].region
                if region is not None:
                    self._by_handler.setdefault(region.entry, []).append(id)
        return self._by_handler.get(entry, [])

    def overridden_end(self, ids: Iterable[int], region: Region) -> Optional[int]:
        """Return the end of the body of ``region`` with the nodes ``ids`` if its ``finally`` never ends normally, else
        ``None``. The compiler copies the ``finally`` body to each jump to the end, so that several nodes qualify: the
        last one is the end."""
        ends = [
            id for id in ids if isinstance(self.nodes[id].terminator, Overridden) and region in self.nodes[id].leaves
        ]
        return max(ends, key=self.index.__getitem__, default=None)

    # --- small tails -------------------------------------------------------------------------------------------------

    @cached_property
    def end(self) -> Optional[int]:
        """The implicit return at the end of a function; ``None`` if it has none."""
        implicit = {id for id, block in self.flow.blocks.items() if block.implicit}
        ends = (node.id for id, node in self.nodes.items() if id in implicit and not node.statements)
        return next((id for id in ends if isinstance(self.nodes[id].terminator, Return)), None)

    def is_copyable(self, id: int) -> bool:
        """Return whether node ``id`` may be duplicated at every jump to it: it returns a value that needs no
        evaluation."""
        if not self._has_returns:
            return False
        node = self.nodes[id]
        if not isinstance(node.terminator, (Return, Overridden)) or node.statements or not node.silent:
            return False
        return (not node.leaves or self._never_gets_out(id)) and not self.builds_inside(id)

    def builds_inside(self, id: int) -> bool:
        """Return whether node ``id`` makes a new object in a region (``return [1]``). That runs no code, like a return
        of a constant, but the compiler never moves it out of its region."""
        block = self.flow.blocks.get(id) if self.nodes[id].region is not None else None
        return block is not None and any(instr.op is Op.BUILD for instr in block.ops)

    def _never_gets_out(self, id: int) -> bool:
        """Return whether node ``id`` returns through a ``finally`` that never ends normally: nothing follows it."""
        block = self.flow.blocks.get(id)
        return block is not None and not block.ops and isinstance(block.term, End)

    def is_one_statement(self, id: int) -> bool:
        """Return whether the ``return`` at node ``id`` was written once for all its predecessors: after a statement."""
        block = self.flow.blocks.get(id)
        if block is None or not block.ops or block.implicit:
            return False
        return block.ops[0].line is not None and len(self.forward_predecessors(id)) > 1
