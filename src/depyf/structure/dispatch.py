"""Statements for any lifted graph: jumps without syntax of their own go through a state variable.

After Bahmann, Reissmann, Jahre, Meyer, "Perfect Reconstructability of Control Flow from Demand Dependence Graphs"
(TACO 2015): loops are the strongly connected components, restructured to one entry and one way out; branches are
written where the last jump to their join is known; what is left is a test of where control wants to go. Python adds
contexts (``try``, handlers, ``with``, ``for``) that control can't jump into or out of: the graph is restructured inside
of each, level by level. Every jump is written once, so that the result is as long as the graph is large.
"""

from __future__ import annotations

import ast
from typing import AbstractSet, Dict, FrozenSet, List, Optional, Set, Tuple

from depyf.flow.graph import FlowGraph
from depyf.lift.nodes import (
    Accumulate,
    BindException,
    Condition,
    Goto,
    LiftedGraph,
    Loop,
    MatchTest,
    Node,
    Overridden,
    PopException,
    Raise,
    Reraise,
    Return,
    WithEnter,
)
from depyf.structure.dispatch_bodies import with_bodies
from depyf.structure.dispatch_contexts import Context, Contexts, Kind, Path
from depyf.structure.dispatch_edges import Clause, Edge, Edges, Element, is_with_enter
from depyf.structure.dispatch_match import cases_of, match_statement
from depyf.structure.dispatch_order import Order
from depyf.structure.dispatch_scope import LoopFrame, Scope
from depyf.structure.dispatch_states import Arrival, Assignment, End, Live, States, Target, as_one_jump, merged
from depyf.structure.dispatch_tidy import Tidy
from depyf.structure.structurer import AccumulateStatement
from depyf.structure.unstructured import Unstructured

DEEPEST = 20
"""How deeply branches are nested before the rest becomes a state of its own (Python allows 100 levels)."""

Written = Tuple[List[ast.stmt], Live]
"""Statements, and where control goes on behind them. If that is more than one place, the variable says which."""


def dispatch(lifted: LiftedGraph, flow: FlowGraph) -> List[ast.stmt]:
    """Return the statements of a whole code object, whatever its jumps are.

    Raises ``Unstructured`` where protected regions overlap or are left in a way that Python has no syntax for, and
    where a class or module body (whose variables others can see) would need a state variable.
    """
    return _Writer(lifted, flow).run()


class _Writer:
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

    def run(self) -> List[ast.stmt]:
        statements, live = self.sequence((), {self.edges.entry: Arrival()}, 0)
        if live:
            raise Unstructured("control gets to a handler that no protected region has")
        return Tidy(self.states).whole(statements, self.code)

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
        """Everything that can be reached from ``live`` without leaving ``level``, nor ``allowed``."""
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
                _keep(live)
            else:
                _drop(here)
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
        """Statements at the end of a loop's body, from which control goes to one of ``live``."""
        again = {target: arrival for target, arrival in live.items() if target in frame.again}
        out = {target: arrival for target, arrival in live.items() if target not in frame.again}
        frame.breaks = merged(frame.breaks, out)
        if not out:
            if len(frame.again) == 1:
                _drop(again)
            return []
        if not again:
            return [ast.Break()]
        _keep(live)
        if len(out) < len(again):
            return [ast.If(self.states.test(scope.level, out), [ast.Break()], [])]
        return [ast.If(self.states.test(scope.level, again), [ast.Continue()], []), ast.Break()]

    # --- straight on -------------------------------------------------------------------------------------------------

    def jump(self, target: Target, scope: Scope, depth: int) -> Written:
        """A jump to ``target`` and, if it is the only one, what stands there."""
        return self._go_on([], {target: Arrival()}, scope, depth)

    def _component_at(self, index: int, here: Live, scope: Scope, depth: int) -> Written:
        statements, falls = self._write(index, here, scope, depth)
        return self._go_on(statements, falls, scope, depth)

    def _go_on(self, statements: List[ast.stmt], falls: Live, scope: Scope, depth: int) -> Written:
        """``statements`` and what follows them as long as that is reached from nowhere else."""
        result = list(statements)
        while len(falls) == 1:
            ((target, arrival),) = falls.items()
            index = self._component(target, scope)
            if index is None or target in scope.cut or arrival.count < scope.order.ways_in[index] or depth > DEEPEST:
                part, falls = self._leave(target, arrival, scope)
                return result + part, falls
            arrival.drop()
            part, falls = self._write(index, falls, scope, depth)
            result.extend(part)
        return result, falls

    def _leave(self, target: Target, arrival: Arrival, scope: Scope) -> Written:
        """A jump to something that stands elsewhere."""
        frame = self._frame_left(target, scope)
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

    def _frame_left(self, target: Target, scope: Scope) -> Optional[LoopFrame]:
        """The loop that a jump to ``target`` continues or breaks; ``None`` if that stands inside of the loop."""
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
        if isinstance(members[0], Context):
            return self._group(members[0], here, scope, depth)
        return self._node(members[0], scope, depth)

    # --- loops -------------------------------------------------------------------------------------------------------

    def _loop(self, members: List[Element], here: Live, scope: Scope, depth: int) -> Written:
        """``while True`` around a strongly connected component; with several entries, the variable says which."""
        entries = {self._element(target, scope.level) for target in here}
        again = {target for target in here if isinstance(target, int)}
        for element in members:
            again.update(edge.node for edge in scope.order.out(element) if edge.target in entries)
        before: List[ast.stmt] = []
        live: Live = {target: here.get(target, Arrival()) for target in sorted(again)}
        if len(again) > 1:
            if len(here) == 1:  # so far nobody needed to know
                before = [self.states.assignment(scope.level, target) for target in here]
            _keep(live)
        frame = LoopFrame(scope.level, frozenset(again))
        body, _ = self.sequence(scope.level, live, depth + 1, frame, scope.cut | again, frozenset(members))
        return [*before, ast.While(ast.Constant(True), body, [])], frame.breaks

    def _for(self, id: int, term: Loop, scope: Scope, depth: int) -> Written:
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

    # --- regions -----------------------------------------------------------------------------------------------------

    def _group(self, context: Context, here: Live, scope: Scope, depth: int) -> Written:
        """A ``try`` statement whose body is entered at ``here``."""
        if self.contexts.is_with(context):
            raise Unstructured(f"the body of the with statement at {context.anchor} is entered from elsewhere")
        if self.contexts.is_finally(context):
            return self._finally(context, here, scope, depth)
        clauses = self.edges.clauses(context)
        inner = scope if clauses and clauses[0].following is None else None
        body, falls = self.sequence(self.contexts.path_of(context), here, depth + 1, outer=inner)
        handler = self.contexts.path_of(Context(Kind.HANDLER, context.anchor))
        written: List[ast.ExceptHandler] = []
        for clause in clauses:
            if clause.following is not None:
                part = self._group_clause(clause, clause.following, handler, depth)
            else:
                part, more = self.sequence(handler, {clause.start: Arrival()}, depth + 1, outer=scope)
                falls = merged(falls, more)
            written.append(ast.ExceptHandler(clause.type, clause.name, part))
        if inner is not None:
            return [ast.Try(body, written, [], [])], as_one_jump(falls)
        return self._after_groups(body, written, falls, context, depth)

    def _finally(self, context: Context, here: Live, scope: Scope, depth: int) -> Written:
        """A ``try`` statement with a ``finally`` clause.

        If a jump leaves the clause, ``break`` and ``continue`` of the loop around the statement say so; where they
        don't lead to its target, the statement stands in a loop of its own, which runs once.
        """
        handler = self.contexts.path_of(Context(Kind.HANDLER, context.anchor))
        jumps = self._jumps_out(handler)
        once = LoopFrame(scope.level, frozenset())
        outer: Optional[Scope] = None
        if jumps and all(self._frame_left(target, scope) for target in jumps):
            outer = scope
        elif jumps:
            outer = Scope(scope.level, Order({}, (), frozenset(), None), frozenset(), once, scope)
        body, falls = self.sequence(self.contexts.path_of(context), here, depth + 1)
        final, ends = self.sequence(handler, {context.anchor: Arrival()}, depth + 1, outer=outer)
        self._leave_finally(final, ends, End(context.anchor), handler, outer)
        statement = ast.Try(body, [], [], final)
        falls = as_one_jump(merged(as_one_jump(falls), once.breaks))
        if outer is None or outer is scope:
            return [statement], falls
        return [ast.While(ast.Constant(True), [statement, ast.Break()], [])], falls

    def _jumps_out(self, handler: Path) -> Set[int]:
        """Where jumps out of the ``finally`` clause at ``handler`` lead to."""
        result: Set[int] = set()
        for id, path in self.contexts.paths.items():
            if path[: len(handler)] == handler:
                for target in self.edges.exits(id):
                    way = self.edges.way(self.edges.path_behind(id, target), target)
                    if way.returned is None and self.contexts.paths[way.target][: len(handler)] != handler:
                        result.add(way.target)
        return result

    def _leave_finally(
        self, final: List[ast.stmt], ends: Live, end: End, handler: Path, outer: Optional[Scope]
    ) -> None:
        """Write the jumps that are left at the end of a ``finally`` clause; what was interrupted goes on at ``end``."""
        jumps = {target: arrival for target, arrival in ends.items() if target != end}
        if not jumps:
            _drop(ends)
            return
        if outer is None:
            raise Unstructured(f"the finally body at {end.anchor} is left by a jump")
        _keep(ends)
        for target, arrival in jumps.items():
            part, _ = self._leave(target, arrival, outer)
            final.append(ast.If(self.states.test(handler, [target]), part, []))

    def _group_clause(self, clause: Clause, following: int, handler: Path, depth: int) -> List[ast.stmt]:
        """The body of an ``except*`` clause, which control leaves at its end only."""
        cut = frozenset({following})
        part, falls = self.sequence(handler, {clause.start: Arrival()}, depth + 1, cut=cut)
        if set(falls) - cut:
            raise Unstructured(f"the except* clause at node {clause.start} is left by a jump")
        _drop(falls)
        return part

    def _after_groups(
        self, body: List[ast.stmt], clauses: List[ast.ExceptHandler], falls: Live, context: Context, depth: int
    ) -> Written:
        end = self.edges.clauses(context)[-1].following
        assert end is not None
        part, more = self.sequence(
            self.contexts.path_of(Context(Kind.HANDLER, context.anchor)), {end: Arrival()}, depth
        )
        falls = merged(falls, more)
        if len(falls) > 1 or any(not isinstance(statement, Assignment) for statement in part):
            raise Unstructured(f"node {end} does more than end a try statement with except*")
        return [ast.TryStar(body=body, handlers=clauses, orelse=[], finalbody=[]), *part], as_one_jump(falls)

    def _with(self, enter: WithEnter, target: int, scope: Scope, depth: int) -> Written:
        context = self.contexts.with_context(enter.origin)
        if context is None:
            raise Unstructured(f"the with statement at offset {enter.origin} guards nothing")
        level = self.contexts.path_of(context)
        body, falls = self.sequence(level, {self.edges.way(level, target).target: Arrival()}, depth + 1)
        swallowed = self.edges.suppressed(context).target
        assignment = self.states.assignment(scope.level, swallowed)
        kind = ast.AsyncWith if enter.async_ else ast.With
        statement = kind(items=[ast.withitem(enter.manager, enter.target)], body=body)
        return [assignment, statement], as_one_jump(merged(falls, {swallowed: Arrival(1, [assignment])}))

    # --- nodes -------------------------------------------------------------------------------------------------------

    def _node(self, id: int, scope: Scope, depth: int) -> Written:
        if id in self.written:
            raise Unstructured(f"node {id} (offset {self.nodes[id].offset}) would be written twice")
        self.written.add(id)
        node = self.nodes[id]
        result = self._statements(node)
        part, falls = self._terminator(node, scope, depth)
        return result + part, falls

    def _statements(self, node: Node) -> List[ast.stmt]:
        result: List[ast.stmt] = []
        for index, statement in enumerate(node.statements):
            if isinstance(statement, ast.stmt):
                result.append(statement)
            elif isinstance(statement, Accumulate):
                add = AccumulateStatement()
                add.kind, add.key, add.element = statement.kind, statement.key, statement.element
                result.append(add)
            elif isinstance(statement, BindException):
                if statement.target is not None and not self._begins_clause(node.id, statement, index):
                    raise Unstructured(f"node {node.id} stores the handled exception in the middle of its handler")
            elif not isinstance(statement, (PopException, WithEnter)):
                raise Unstructured(f"node {node.id} leaves a with statement in its middle")
        return result

    def _begins_clause(self, id: int, bind: BindException, index: int) -> bool:
        clauses = self.edges.clauses(Context(Kind.TRY, bind.handler))
        return index == 0 and any(clause.start == id and clause.name is not None for clause in clauses)

    def _terminator(self, node: Node, scope: Scope, depth: int) -> Written:
        term = node.terminator
        if isinstance(term, Goto):
            if is_with_enter(node):
                enter = node.statements[-1]
                assert isinstance(enter, WithEnter)
                return self._with(enter, term.target, scope, depth)
            way = self.edges.way(scope.level, term.target)
            return ([ast.Return(way.returned)], {}) if way.returned is not None else ([], {way.target: Arrival()})
        if isinstance(term, Condition):
            if term.keep:
                raise Unstructured(f"node {node.id} keeps the value it tests")
            body, falls = self._arm(term.fall, scope, depth)
            orelse, more = self._arm(term.target, scope, depth)
            return [ast.If(term.test, body, orelse)], merged(falls, more)
        if isinstance(term, Loop):
            return self._for(node.id, term, scope, depth)
        if isinstance(term, MatchTest):
            return self._match(node, term, scope, depth)
        if isinstance(term, Return):
            self._check_return(node)
            return [ast.Return(term.value)], {}
        if isinstance(term, Raise):
            return [term.statement], {}
        if isinstance(term, Reraise):
            return self._reraise(node, term)
        if isinstance(term, Overridden):  # nothing gets here
            return [ast.Return(None)], {}
        raise Unstructured(f"node {node.id} ends in a {type(term).__name__} that stands outside of its pattern")

    def _match(self, node: Node, term: MatchTest, scope: Scope, depth: int) -> Written:
        cases = cases_of(self.nodes, node)
        assert term.subject is not None
        bodies: List[List[ast.stmt]] = []
        falls: Live = {}
        for case in cases:
            body, more = self._arm(case.body, scope, depth)
            bodies.append(body)
            falls = merged(falls, more)
        return [match_statement(term.subject, cases, bodies)], falls

    def _arm(self, target: int, scope: Scope, depth: int) -> Written:
        way = self.edges.way(scope.level, target)
        if way.returned is not None:
            return [ast.Return(way.returned)], {}
        return self.jump(way.target, scope, depth + 1)

    def _check_return(self, node: Node) -> None:
        for context in self.contexts.paths[node.id]:
            if context.kind is Kind.TRY and (self.contexts.is_with(context) or self.contexts.is_finally(context)):
                raise Unstructured(f"node {node.id} returns without leaving {context}")

    def _reraise(self, node: Node, term: Reraise) -> Written:
        handlers = [context for context in self.contexts.paths[node.id] if context.kind is Kind.HANDLER]
        if term.value is not None or not handlers or handlers[-1].anchor != term.handler:
            raise Unstructured(f"node {node.id} raises again what is not the exception handled last")
        if self.contexts.is_finally(handlers[-1]):
            return [], {End(handlers[-1].anchor): Arrival()}
        return [ast.Raise(None, None)], {}


def _keep(live: Live) -> None:
    for arrival in live.values():
        arrival.keep()


def _drop(live: Live) -> None:
    for arrival in live.values():
        arrival.drop()
