"""Insert empty bodies for ``try`` ... ``finally`` statements whose own code was moved in front of them.

Code that can't raise is lifted together with its predecessor. If the body has no other code, control would reach the
``finally`` part without having entered the statement.
"""

from __future__ import annotations

import copy
from dataclasses import replace

from depyf.flow.graph import FlowGraph
from depyf.lift.nodes import Goto, LiftedGraph, Node


def with_bodies(lifted: LiftedGraph, flow: FlowGraph) -> LiftedGraph:
    """Return ``lifted``, or a copy with an empty node in each region that is exited without having been entered."""
    nodes = lifted.nodes
    fresh = min([*nodes, 0]) - 1
    result = dict(nodes)
    for id, node in nodes.items():
        for target in sorted(set(node.successors())):
            missing = [region for region in nodes[target].leaves if region not in flow.chain(node.region)]
            if not missing:
                continue
            if result[id] is node:
                result[id] = replace(node, terminator=copy.copy(node.terminator))
            behind = nodes[target]
            result[fresh] = Node(
                fresh,
                missing[0],
                [],
                Goto(target),
                handling=behind.handling,
                offset=behind.offset,
                base=list(behind.base),
                stack=list(behind.base),
            )
            result[id].redirect(target, fresh)
            fresh -= 1
    return replace(lifted, nodes=result)
