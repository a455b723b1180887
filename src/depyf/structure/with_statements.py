"""``with`` statements: the body, and the handler that the statement implies."""

from __future__ import annotations

import ast
from typing import List, Optional, Set

from depyf.flow.graph import Region
from depyf.lift.nodes import Node, WithDecision, WithEnter
from depyf.structure.place import Place
from depyf.structure.regions import destination, first_closed_region
from depyf.structure.structurer import Structurer
from depyf.structure.unstructured import Unstructured


def write_with(
    structurer: Structurer, node: Node, enter: WithEnter, target: int, place: Place, result: List[ast.stmt]
) -> Optional[int]:
    """Write the statement; return the node after it."""
    region = first_closed_region(structurer, target, place)
    if region is None:
        raise Unstructured(f"node {node.id}: a with statement guards nothing")
    handler = structurer.nodes[region.entry]
    if not isinstance(handler.terminator, WithDecision):
        raise Unstructured(f"node {region.entry} does not look like the handler of a with statement")
    suppressed = destination(structurer, handler.terminator.suppressed, region, place)
    follow = suppressed
    if structurer.shape.is_copyable(suppressed):  # the successor of the statement when it suppresses an exception
        follow = suppressed
    _write_handler_nodes(structurer, region)
    inner = place._replace(follow=follow, regions=(*place.regions, region))
    body = structurer.sequence(target, inner)
    item = ast.withitem(enter.manager, enter.target)
    kind = ast.AsyncWith if enter.async_ else ast.With
    result.append(kind(items=[item], body=body or [ast.Pass()]))
    return follow


def _write_handler_nodes(structurer: Structurer, region: Region) -> None:
    """Mark the nodes of a ``with`` handler as written: the statement implies them."""
    todo = [region.entry]
    seen: Set[int] = set()
    while todo:
        id = todo.pop()
        if id in seen or region.entry not in structurer.nodes[id].handling:
            continue
        seen.add(id)
        structurer.written.add(id)
        todo.extend(structurer.shape.successors[id])
