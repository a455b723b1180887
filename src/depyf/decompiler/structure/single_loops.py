"""Loops that never go back, which a ``finally`` leaves by ``break``. The graph has no cycle to find them by.

while a():              a: POP_JUMP_IF_FALSE c; ...; b()
    try:                c: ...
        ...             handler: b(); POP_TOP; POP_EXCEPT; JUMP c
    finally:
        b()
        break
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Set, Tuple

from depyf.decompiler.flow.graph import FlowGraph, Region
from depyf.decompiler.lift.items import Mark, Marker
from depyf.decompiler.lift.nodes import BindException, Condition, Goto, LiftedGraph, PopException, WithExit
from depyf.decompiler.structure.shape import Shape


def shape_of(lifted: LiftedGraph, flow: FlowGraph) -> Shape:
    """Return the facts of a graph, with the loops that never go back."""
    shape = Shape(lifted, flow)
    if flow.finally_regions:
        shape.single_loops = _single_loops(shape)
        shape.loops.update(shape.single_loops)
    return shape


def _single_loops(shape: Shape) -> Dict[int, Set[int]]:
    """Return the nodes of each such loop, by its header: the test before the ``try``, or the start of the ``try``."""
    # A jump out of a ``finally`` body needs a loop to break. If no known loop begins or ends where the jump leads, the
    # jump itself shows that there is one.
    found: Dict[int, Set[int]] = {}
    for region in sorted(shape.flow.finally_regions, key=lambda region: region.entry):
        guarded = shape.guarded.get(region)
        for target in _jumps_out(shape, region):
            start = guarded[0] if guarded else region.entry
            final = _behind_marks(shape, target)
            if not shape.is_copyable(final) and not _is_loop_jump(shape, {**shape.loops, **found}, start, final):
                header, inside = _header(shape, start, region)
                found.setdefault(header, set()).update(_members(shape, header, inside, target))
    return found


def _jumps_out(shape: Shape, region: Region) -> Iterator[int]:
    """Yield the targets of the jumps out of the ``finally`` body of ``region``."""
    for id in shape.handled.get(region.entry, ()):
        node = shape.nodes[id]
        if any(isinstance(mark, PopException) and mark.handler == region.entry for mark in node.statements):
            if isinstance(node.terminator, Goto):
                yield node.terminator.target


def _behind_marks(shape: Shape, id: int) -> int:
    """Return the first node from ``id`` on that is not only a mark that ends regions and handlers."""
    for _ in range(len(shape.order)):
        node = shape.nodes[id]
        if not isinstance(node.terminator, Goto) or not (node.silent or node.statements):
            break
        if not all(isinstance(mark, (BindException, PopException, WithExit)) for mark in node.statements):
            break
        id = node.terminator.target
    return id


def _is_loop_jump(shape: Shape, loops: Dict[int, Set[int]], start: int, target: int) -> bool:
    """Return whether a loop around node ``start`` begins or ends at ``target``. A ``for`` that never goes back ends
    where its iterator is dropped."""
    if _iterators(shape, start) != _iterators(shape, target):
        return True
    return any(start in members and (target == header or target not in members) for header, members in loops.items())


def _iterators(shape: Shape, id: int) -> List[int]:
    """Return the headers of the ``for`` loops around node ``id``."""
    return [item.origin for item in shape.nodes[id].base if isinstance(item, Marker) and item.kind is Mark.ITER]


def _header(shape: Shape, start: int, region: Region) -> Tuple[int, int]:
    """Return the header of the loop around node ``start``, and the first node of its body."""
    # Climb the dominator tree from the ``try`` to the nearest test of which one result leads to the ``try``, in the
    # same regions and loops: the test of ``while a()``. Without one the loop is ``while True``.
    regions = shape.regions_of(start)
    outer = regions[regions.index(region) + 1 :]
    around = {header for header, members in shape.loops.items() if start in members}
    below, test = start, shape.dominator.get(start)
    while test is not None and test != below:
        node, term = shape.nodes[test], shape.nodes[test].terminator
        if shape.regions_of(test) != outer or around != {h for h, members in shape.loops.items() if test in members}:
            break
        if isinstance(term, Condition):
            leads = [id for id in (term.fall, term.target) if shape.dominates(id, start)]
            if len(leads) == 1 and not node.statements and not term.keep:
                return test, leads[0]
            break
        below, test = test, shape.dominator.get(test)
    return start, start


def _members(shape: Shape, header: int, inside: int, target: int) -> Set[int]:
    """Return the nodes that are reached from node ``inside`` before ``target``."""
    members, todo = {header, inside}, [inside]
    while todo:
        node = shape.nodes[todo.pop()]
        ends = [*node.successors(), *([node.region.entry] if node.region is not None else [])]
        for id in ends:
            if id not in members and id != target and id in shape.index and shape.dominates(header, id):
                members.add(id)
                todo.append(id)
    return members
