"""Protected regions: where they start, the nodes inside of them, and the targets of their exits behind marks."""

from __future__ import annotations

from typing import List, Optional, Set

from depyf.flow.graph import Region
from depyf.lift.items import Value
from depyf.lift.nodes import BindException, Goto, Node, PopException, Statement, WithExit
from depyf.structure.place import Place
from depyf.structure.structurer import Structurer


def is_outside(structurer: Structurer, id: int, place: Place) -> bool:
    """Return whether node ``id`` is outside of a region or handler that is open at ``place``."""
    node = structurer.nodes[id]
    if any(handler not in node.handling for handler in place.handlers):
        return True
    return any(region not in structurer.shape.regions_of(id) for region in place.regions)


def region_opened_at(structurer: Structurer, id: int, place: Place) -> Optional[Region]:
    """Return the outermost region around node ``id`` that is not open yet; ``None`` if all are."""
    node = structurer.nodes[id]
    if node.region is None:
        return None
    if (
        node.silent
        and not node.statements
        and not isinstance(node.terminator, Goto)
        and not structurer.shape.builds_inside(id)
    ):
        return None
    return first_closed_region(structurer, id, place)


def first_closed_region(structurer: Structurer, id: int, place: Place) -> Optional[Region]:
    """Return the outermost region around node ``id`` that is not open at ``place``, also if nothing in it can raise."""
    for region in reversed(structurer.shape.regions_of(id)):
        if region not in place.regions and region.entry not in place.handlers:
            return region
    return None


def destination(structurer: Structurer, id: int, region: Region, place: Place) -> int:
    """Return the target of an exit of ``region`` whose first node is ``id``. Marks of outer regions are skipped
    only if a known target follows them."""
    final = past_marks(structurer, id, place)
    if place.known(final) or structurer.shape.is_copyable(final):
        return final
    return behind_marks(structurer, id, region)


def past_marks(structurer: Structurer, id: int, place: Place) -> int:
    """Return the first node from ``id`` on that is known at ``place``, starts a loop or is not only a mark."""
    seen: Set[int] = set()
    while id not in seen:
        seen.add(id)
        node = structurer.nodes[id]
        if place.known(id) or id in structurer.shape.loops or not is_mark(node):
            break
        assert isinstance(node.terminator, Goto)
        id = node.terminator.target
    return id


def behind_marks(structurer: Structurer, id: int, region: Region) -> int:
    """Return the first node from ``id`` on that starts a loop or is not only a mark that ends ``region``."""
    seen: Set[int] = set()
    while id not in seen and id not in structurer.shape.loops:
        seen.add(id)
        node = structurer.nodes[id]
        if not isinstance(node.terminator, Goto) or any(other != region for other in node.leaves):
            break
        if not all(_ends_region(structurer, statement, region) for statement in node.statements):
            break
        if not node.statements and not node.silent:  # it evaluates an iterable
            break
        id = node.terminator.target
    return id


def _ends_region(structurer: Structurer, statement: Statement, region: Region) -> bool:
    if isinstance(statement, WithExit):
        return structurer.shape.with_region.get(statement.origin) == region
    if isinstance(statement, PopException):
        return statement.handler == region.entry
    return isinstance(statement, BindException) and statement.handler == region.entry


def nodes_inside(structurer: Structurer, region: Region) -> Set[int]:
    """Return the nodes that ``region`` guards, and the marks that end it."""
    members = set(structurer.shape.guarded.get(region, ()))
    marks = {
        target
        for id in members
        for target in structurer.shape.successors[id]
        if target not in members and structurer.shape.exits_region(target, region)
    }
    return members | marks


def exits_of(structurer: Structurer, members: Set[int]) -> List[int]:
    exits: List[int] = []
    for id in sorted(members, key=structurer.shape.index.__getitem__):
        for target in structurer.shape.successors[id]:
            if target not in members and target not in exits:
                exits.append(target)
    return exits


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
    """Return whether the value that is returned behind the marks of ``node`` is computed in it, not before it."""
    before = [item.expr for item in node.base if isinstance(item, Value)]
    pending = [expr for mark in node.marks if mark in node.statements for expr in mark.pending]
    return any(all(expr is not other for other in before) for expr in pending)
