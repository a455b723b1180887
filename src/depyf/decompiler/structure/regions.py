"""Protected regions: where they start, the nodes inside, their exits, and the nodes that control reaches there."""

from __future__ import annotations

from typing import List, Optional, Set

from depyf.decompiler.flow.graph import Region
from depyf.decompiler.lift.items import Value
from depyf.decompiler.lift.nodes import BindException, Goto, Node, PopException, Statement, WithExit
from depyf.decompiler.structure.shape import Shape
from depyf.decompiler.structure.targets import Targets
from depyf.decompiler.structure.unstructured import Unstructured


class Regions:
    """The regions of one graph, seen from a list of statements under construction."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.nodes = shape, shape.nodes

    # --- what is open ------------------------------------------------------------------------------------------------

    def check_inside(self, node: Node, targets: Targets) -> None:
        """Check that ``node`` does not move into a region that does not guard it, or into a handler that it does not
        run under, nor past the mark that ends one. Raises ``Unstructured``."""
        if node.silent:
            return  # it can't raise, so nothing shows in which region it runs
        if targets.left:
            raise Unstructured(f"node {node.id} (offset {node.offset}) follows the end of the enclosing region")
        guards = self.shape.chain(node.region)
        for region in targets.regions:
            if region not in guards and not self.shape.exits_region(node.id, region):
                raise Unstructured(f"node {node.id} (offset {node.offset}) is outside of the enclosing region")
        for handler in targets.handlers:
            if handler not in node.handling:
                raise Unstructured(f"node {node.id} (offset {node.offset}) is outside of the enclosing handler")

    def is_outside(self, id: int, targets: Targets) -> bool:
        """Return whether node ``id`` is outside of a region or handler that is open in ``targets``."""
        node = self.nodes[id]
        if any(handler not in node.handling for handler in targets.handlers):
            return True
        return any(region not in self.shape.regions_of(id) for region in targets.regions)

    def opened_at(self, id: int, targets: Targets) -> Optional[Region]:
        """Return the outermost region around node ``id`` that is not open yet; ``None`` if all are."""
        node = self.nodes[id]
        if node.region is None:
            return None
        # ``try: f(); return 1``: POP_BLOCK comes before the constant is loaded or after it, and the exception table
        # (3.11) has no entry for what can't raise. So a ``return`` of a constant opens no ``try``. A display (``return
        # [1]``) does: no compiler moves it out of its region.
        moves = node.silent and not node.statements and not isinstance(node.terminator, Goto)
        return None if moves and not self.shape.builds_inside(id) else self.first_closed(id, targets)

    def first_closed(self, id: int, targets: Targets) -> Optional[Region]:
        """Return the outermost region around node ``id`` that is not open yet, also if nothing in it can raise."""
        for region in reversed(self.shape.regions_of(id)):
            if region not in targets.regions and region.entry not in targets.handlers:
                return region
        return None

    def nodes_inside(self, region: Region) -> Set[int]:
        """Return the nodes that ``region`` guards, and the marks that end it."""
        members = set(self.shape.guarded.get(region, ()))
        marks = {
            target
            for id in members
            for target in self.shape.successors[id]
            if target not in members and self.shape.exits_region(target, region)
        }
        return members | marks

    # --- exits -------------------------------------------------------------------------------------------------------

    def exits_of(self, members: Set[int], region: Region, targets: Targets) -> List[int]:
        """Return the destinations of the edges that leave ``members``, which belong to the statement of ``region``."""
        exits: List[int] = []
        for id in sorted(members, key=self.shape.index.__getitem__):
            for target in self.shape.successors[id]:
                if target not in members and target not in exits:
                    exits.append(target)
        return [self.destination(exit, region, targets) for exit in exits]

    def destination(self, id: int, region: Region, targets: Targets) -> int:
        """Return the target of an exit of ``region`` whose first node is ``id``."""
        # ``break`` out of two ``with`` statements passes the marks of both:
        #
        #     call of the inner exit; call of the outer exit; JUMP to the node after the loop
        #
        # Marks of outer regions are skipped only if a known target follows. Otherwise the outer mark is itself the node
        # after the statement of ``region``.
        final = self.past_marks(id, targets)
        if targets.known(final) or self.shape.is_copyable(final):
            return final
        return self.past_end(id, region)

    def past_marks(self, id: int, targets: Targets) -> int:
        """Return the first node from ``id`` on that is known in ``targets``, starts a loop or is not only a mark."""
        seen: Set[int] = set()
        while id not in seen:
            seen.add(id)
            node = self.nodes[id]
            if targets.known(id) or id in self.shape.loops or not is_mark(node):
                break
            assert isinstance(node.terminator, Goto)
            id = node.terminator.target
        return id

    def past_end(self, id: int, region: Region) -> int:
        """Return the first node from ``id`` on that starts a loop or is not only a mark that ends ``region``."""
        seen: Set[int] = set()
        while id not in seen and id not in self.shape.loops:
            seen.add(id)
            node = self.nodes[id]
            if not isinstance(node.terminator, Goto) or any(other != region for other in node.leaves):
                break
            if not all(self._ends(region, statement) for statement in node.statements):
                break
            if not node.statements and not node.silent:  # it evaluates an iterable
                break
            id = node.terminator.target
        return id

    def _ends(self, region: Region, statement: Statement) -> bool:
        """Return whether ``statement`` is a mark where ``region`` or its handler ends."""
        if isinstance(statement, WithExit):
            return self.shape.with_region.get(statement.origin) == region
        return isinstance(statement, (PopException, BindException)) and statement.handler == region.entry

    # --- the node after a statement ----------------------------------------------------------------------------------

    def latest_exit(self, exits: List[int], targets: Targets) -> Optional[int]:
        """Return the last of ``exits`` that is written after the statement: not around it, nor as a copy at each jump;
        ``None`` if each exit has such a form."""
        fresh = [exit for exit in exits if not targets.known(exit) and not self.shape.is_copyable(exit)]
        return max(fresh, key=self.shape.index.__getitem__, default=None)

    def follow_of(self, exits: List[int], targets: Targets) -> Optional[int]:
        """Return the node after a part of a statement with ``exits``; ``None`` if control does not leave it at its
        end."""
        latest = self.latest_exit(exits, targets)
        return targets.follow if latest is None and targets.follow in exits else latest


def is_mark(node: Node) -> bool:
    """Return whether ``node`` only ends regions: no statement is written for it."""
    if not isinstance(node.terminator, Goto):
        return False
    if not all(isinstance(s, (WithExit, PopException, BindException)) for s in node.statements):
        return False
    if not node.silent and _evaluates(node):
        return False
    return bool(node.statements) or bool(node.leaves) or node.silent


def _evaluates(node: Node) -> bool:
    """Return whether ``node`` computes the value that is pending at its marks, as in ``with a: return f()``."""
    before = [item.expr for item in node.base if isinstance(item, Value)]
    pending = [expr for mark in node.marks if mark in node.statements for expr in mark.pending]
    return any(all(expr is not other for other in before) for expr in pending)
