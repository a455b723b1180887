"""What the writers of the dispatcher's statements share: the graph level by level, jumps, and loops."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import AbstractSet, Dict, FrozenSet, List, Optional, Set, Tuple

from depyf.flow.graph import FlowGraph
from depyf.lift.nodes import LiftedGraph, Loop
from depyf.structure.dispatch_bodies import with_bodies
from depyf.structure.dispatch_contexts import Context, Contexts, Kind, Path
from depyf.structure.dispatch_edges import Edge, Edges, Element
from depyf.structure.dispatch_order import Order
from depyf.structure.dispatch_scope import LoopFrame, Scope
from depyf.structure.dispatch_states import Arrival, End, Live, States, Target, as_one_jump, drop_all, keep_all, merged

DEEPEST = 20
"""The nesting depth of branches at which the rest becomes a separate state (Python allows 100 levels)."""

Written = Tuple[List[ast.stmt], Live]
"""Statements, and the possible targets after them. If there are several, the state variable selects one."""


class Writer(ABC):
    """Writes one level after the other; how a single element is written is the subclass's."""

    def __init__(self, lifted: LiftedGraph, flow: FlowGraph) -> None:
        lifted = with_bodies(lifted, flow)
        self.code, self.nodes = flow.code.code, lifted.nodes
        self.contexts = Contexts(lifted, flow)
        self.edges = Edges(self.contexts, lifted.entry)
        self.states = States(self.contexts)
        self.written: Set[int] = set()
        self.by_source: Dict[Path, Dict[Element, List[Edge]]] = {}
        for level, edges in self.edges.levels.items():
            for edge in edges:
                self.by_source.setdefault(level, {}).setdefault(edge.source, []).append(edge)

    # --- one level ---------------------------------------------------------------------------------------------------

    def sequence(
        self,
        level: Path,
        live: Live,
        depth: int,
        frame: Optional[LoopFrame] = None,
        cut: FrozenSet[int] = frozenset(),
        allowed: Optional[AbstractSet[Element]] = None,
        outer: Optional[Scope] = None,
    ) -> Written:
        """Return everything reachable from ``live`` inside of ``level`` and ``allowed``."""
        starts = [element for element in (self._element(target, level) for target in live) if element is not None]
        order = Order(self.by_source.get(level, {}), starts, cut, allowed)
        scope = Scope(level, order, cut, frame, outer)
        result: List[ast.stmt] = []
        for index in range(len(order.components)):
            here = {target: live[target] for target in live if self._component(target, scope) == index}
            if not here:
                continue
            rest = {target: arrival for target, arrival in live.items() if target not in here}
            if rest or len(here) > 1:
                keep_all(live)
            else:
                drop_all(here)
            part, falls = self._component_at(index, here, scope, depth + bool(rest))
            result.extend([ast.If(self.states.test(level, here), part, [])] if rest else part)
            live = merged(rest, falls)
        if frame is None:
            return result, live
        return result + self._end_of_loop(live, scope, frame), {}

    def _element(self, target: Target, level: Path) -> Optional[Element]:
        return None if isinstance(target, End) else self.edges.element(target, level)

    def _component(self, target: Target, scope: Scope) -> Optional[int]:
        element = self._element(target, scope.level)
        return None if element is None else scope.order.component.get(element)

    def _end_of_loop(self, live: Live, scope: Scope, frame: LoopFrame) -> List[ast.stmt]:
        """Return the statements at the end of a loop body, from which control goes to one of ``live``."""
        again = {target: arrival for target, arrival in live.items() if target in frame.again}
        out = {target: arrival for target, arrival in live.items() if target not in frame.again}
        frame.breaks = merged(frame.breaks, out)
        if not out:
            if len(frame.again) == 1:
                drop_all(again)
            return []
        if not again:
            return [ast.Break()]
        keep_all(live)
        if len(out) < len(again):
            return [ast.If(self.states.test(scope.level, out), [ast.Break()], [])]
        return [ast.If(self.states.test(scope.level, again), [ast.Continue()], []), ast.Break()]

    # --- sequences ---------------------------------------------------------------------------------------------------

    def jump(self, target: Target, scope: Scope, depth: int) -> Written:
        """Return a jump to ``target`` or, if it is the only one, the code at the target."""
        return self._go_on([], {target: Arrival()}, scope, depth)

    def _component_at(self, index: int, here: Live, scope: Scope, depth: int) -> Written:
        statements, falls = self._write(index, here, scope, depth)
        return self._go_on(statements, falls, scope, depth)

    def _go_on(self, statements: List[ast.stmt], falls: Live, scope: Scope, depth: int) -> Written:
        """Return ``statements`` and their successors as long as those have no other predecessor."""
        result = list(statements)
        while len(falls) == 1:
            ((target, arrival),) = falls.items()
            index = self._component(target, scope)
            if index is None or target in scope.cut or arrival.count < scope.order.ways_in[index] or depth > DEEPEST:
                part, falls = self.leave(target, arrival, scope)
                return result + part, falls
            arrival.drop()
            part, falls = self._write(index, falls, scope, depth)
            result.extend(part)
        return result, falls

    def leave(self, target: Target, arrival: Arrival, scope: Scope) -> Written:
        """Return a jump to a target that is written elsewhere."""
        frame = self.frame_left(target, scope)
        result: List[ast.stmt] = []
        if frame is not None and frame.again == {target}:
            arrival.drop()
            return [ast.Continue()], {}
        if not arrival.assignments:
            arrival = Arrival(arrival.count, [self.states.assignment(scope.level, target)])
            result.extend(arrival.assignments)
        if frame is not None and target in frame.again:
            return [*result, ast.Continue()], {}
        if frame is not None:
            frame.leave(target, arrival, scope.level)
            return [*result, ast.Break()], {}
        return result, {target: arrival}

    def frame_left(self, target: Target, scope: Scope) -> Optional[LoopFrame]:
        """Return the loop that a jump to ``target`` continues or breaks; ``None`` if the target is inside the loop."""
        here: Optional[Scope] = scope
        while here is not None:
            if here.frame is not None and target in here.frame.again:
                return here.frame
            if self._component(target, here) is not None:
                return None
            if here.frame is not None:
                return here.frame
            if isinstance(target, End) and here.level[-1:] == (Context(Kind.HANDLER, target.anchor),):
                return None
            here = here.outer
        return None

    def _write(self, index: int, here: Live, scope: Scope, depth: int) -> Written:
        members = scope.order.components[index]
        if scope.order.is_loop[index]:
            return self._loop(members, here, scope, depth)
        return self.element(members[0], here, scope, depth)

    @abstractmethod
    def element(self, element: Element, here: Live, scope: Scope, depth: int) -> Written:
        """Write a node, or the ``try`` statement of a context that is entered at ``here``."""

    # --- loops -------------------------------------------------------------------------------------------------------

    def _loop(self, members: List[Element], here: Live, scope: Scope, depth: int) -> Written:
        """Write ``while True`` around a strongly connected component; the state variable selects one of several."""
        entries = {self._element(target, scope.level) for target in here}
        again = {target for target in here if isinstance(target, int)}
        for element in members:
            again.update(edge.node for edge in scope.order.out(element) if edge.target in entries)
        before: List[ast.stmt] = []
        live: Live = {target: here.get(target, Arrival()) for target in sorted(again)}
        if len(again) > 1:
            if len(here) == 1:  # the state variable was not needed before
                before = [self.states.assignment(scope.level, target) for target in here]
            keep_all(live)
        frame = LoopFrame(scope.level, frozenset(again))
        body, _ = self.sequence(scope.level, live, depth + 1, frame, scope.cut | again, frozenset(members))
        return [*before, ast.While(ast.Constant(True), body, [])], frame.breaks

    def write_for(self, id: int, term: Loop, scope: Scope, depth: int) -> Written:
        path = self.edges.path_behind(id, term.body)
        body_way, end_way = self.edges.way(path, term.body), self.edges.way(scope.level, term.exhausted)
        frame = LoopFrame(path, frozenset({id}))
        if body_way.returned is not None:
            body: List[ast.stmt] = [ast.Return(body_way.returned)]
        else:
            body, _ = self.sequence(path, {body_way.target: Arrival()}, depth + 1, frame)
        falls = as_one_jump(frame.breaks)
        orelse: List[ast.stmt]
        if end_way.returned is not None:
            orelse = [ast.Return(end_way.returned)]
        else:
            assignment = self.states.assignment(scope.level, end_way.target)
            orelse = [assignment]
            falls = as_one_jump(merged(falls, {end_way.target: Arrival(1, [assignment])}))
        assert term.iterable is not None
        assert term.target is not None
        kind = ast.AsyncFor if term.async_ else ast.For
        if frame.breaks:
            return [kind(target=term.target, iter=term.iterable, body=body, orelse=orelse)], falls
        return [kind(target=term.target, iter=term.iterable, body=body, orelse=[]), *orelse], falls
