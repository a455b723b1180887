"""Statements for any lifted graph: jumps without syntax go through a state variable.

After Bahmann, Reissmann, Jahre, Meyer, "Perfect Reconstructability of Control Flow from Demand Dependence Graphs" (TACO
2015): loops are the strongly connected components, restructured to one entry and one exit; a branch is written where
the last jump to its join is known; other jumps are tests of the state variable. Python adds contexts (``try``,
handlers, ``with``, ``for``) that control can't jump into or out of: the graph is restructured inside of each, level by
level. Every jump is written once, so that the size of the result is linear in that of the graph.
"""

from __future__ import annotations

import ast
from typing import List

from depyf.flow.graph import FlowGraph
from depyf.lift.nodes import LiftedGraph
from depyf.structure.dispatch_contexts import Context
from depyf.structure.dispatch_edges import Element
from depyf.structure.dispatch_nodes import write_node
from depyf.structure.dispatch_regions import write_try
from depyf.structure.dispatch_scope import Scope
from depyf.structure.dispatch_states import Arrival, Live
from depyf.structure.dispatch_tidy import Tidy
from depyf.structure.dispatch_writer import Writer, Written
from depyf.structure.unstructured import Unstructured


def dispatch(lifted: LiftedGraph, flow: FlowGraph) -> List[ast.stmt]:
    """Return the statements of a whole code object with arbitrary jumps.

    Raises ``Unstructured`` where protected regions overlap or have an exit without Python syntax, and where a class or
    module body (whose variables are visible) would need a state variable.
    """
    return _Dispatcher(lifted, flow).run()


class _Dispatcher(Writer):
    def run(self) -> List[ast.stmt]:
        statements, live = self.sequence((), {self.edges.entry: Arrival()}, 0)
        if live:
            raise Unstructured("control reaches a handler without a protected region")
        return Tidy(self.states).whole(statements, self.code)

    def element(self, element: Element, here: Live, scope: Scope, depth: int) -> Written:
        if isinstance(element, Context):
            return write_try(self, element, here, scope, depth)
        return write_node(self, element, scope, depth)
