"""Statements for any lifted graph: jumps without syntax go through a state variable.

After Bahmann, Reissmann, Jahre, Meyer, "Perfect Reconstructability of Control Flow from Demand Dependence Graphs" (TACO
2015): loops are the strongly connected components, restructured to one entry and one exit; a branch is written where
the last jump to its join is known; other jumps are tests of the state variable. Python adds contexts (``try``,
handlers, ``with``, ``for``) that control can't jump into or out of: the graph is restructured inside of each, level by
level. Every jump is written once, so that the size of the result is linear in the size of the graph.
"""

from __future__ import annotations

import ast
from dataclasses import field
from typing import AbstractSet, Dict, FrozenSet, List, Optional, Set, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.flow.graph import FlowGraph
from depyf.decompiler.lift.nodes import (
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
from depyf.decompiler.structure.accumulation import AccumulateStatement
from depyf.decompiler.structure.dispatch.contexts import Context, Contexts, Kind, Path, with_bodies
from depyf.decompiler.structure.dispatch.edges import Clause, Edge, Edges, Element, is_with_enter
from depyf.decompiler.structure.dispatch.match import cases_of, match_statement
from depyf.decompiler.structure.dispatch.order import ComponentOrder
from depyf.decompiler.structure.dispatch.states import (
    Arrival,
    Assignment,
    FinallyEnd,
    Live,
    States,
    Target,
    as_one_jump,
    drop_all,
    keep_all,
    merged,
)
from depyf.decompiler.structure.dispatch.tidy import Tidy
from depyf.decompiler.structure.unstructured import Unstructured

DEEPEST = 20
"""The nesting depth of branches at which the rest becomes a separate state (Python allows 100 levels)."""

Rendered = Tuple[List[ast.stmt], Live]
"""Statements, and the possible targets after them. If there are several, the state variable selects one."""


def dispatch(lifted: LiftedGraph, flow: FlowGraph) -> List[ast.stmt]:
    """Return the statements of a whole code object with arbitrary jumps.

    Raises ``Unstructured`` where protected regions overlap or have an exit without Python syntax, and where a class or
    module body (whose variables are visible) would need a state variable.
    """
    dispatcher = _Dispatcher(lifted, flow)
    statements, live = dispatcher.sequence((), {dispatcher.edges.entry: Arrival()}, 0)
    if live:
        raise Unstructured("control reaches a handler without a protected region")
    return Tidy(dispatcher.states).whole(statements, flow.code.code)


@dataclass
class LoopFrame:
    """The loop of ``break`` and ``continue``: jumps to ``again`` continue it, all others exit it. ``counted``: the
    targets by the ``try`` statement that jumps to them; all jumps of a statement to one target count once."""

    level: Path
    again: FrozenSet[Target]
    breaks: Live = field(default_factory=dict)
    counted: Set[Tuple[Context, Target]] = field(default_factory=set)

    def leave(self, target: Target, arrival: Arrival, level: Path) -> None:
        """Record an exit of the loop from ``level``."""
        if len(level) > len(self.level):
            inside = level[len(self.level)]
            around = Context(Kind.TRY, inside.anchor) if inside.kind is Kind.HANDLER else inside
            arrival = Arrival(int((around, target) not in self.counted), arrival.assignments)
            self.counted.add((around, target))
        self.breaks = merged(self.breaks, {target: arrival})


@dataclass
class Scope:
    """A list of statements under construction for the elements of ``order``. ``outer``: the enclosing scope, if that is
    in a ``try`` statement that ``break`` and ``continue`` may exit."""

    level: Path
    order: ComponentOrder
    cut: FrozenSet[int]
    frame: Optional[LoopFrame]
    outer: Optional[Scope]


class _Dispatcher:
    """Writes one level after the other, and the elements of each in topological order."""

    def __init__(self, lifted: LiftedGraph, flow: FlowGraph) -> None:
        lifted = with_bodies(lifted, flow)
        self.nodes = lifted.nodes
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
    ) -> Rendered:
        """Return everything reachable from ``live`` inside of ``level`` and ``allowed``."""
        # The components are written in topological order. If control may be on its way to a later component, each is
        # guarded by a test of the state variable:
        #
        #     if __state__ == 1: ...
        #     if __state__ == 2: ...
        #
        # If one target is possible, no test is needed, and its assignments can be dropped.
        starts = [element for element in (self._element(target, level) for target in live) if element is not None]
        order = ComponentOrder(self.by_source.get(level, {}), starts, cut, allowed)
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
        return None if isinstance(target, FinallyEnd) else self.edges.element(target, level)

    def _component(self, target: Target, scope: Scope) -> Optional[int]:
        element = self._element(target, scope.level)
        return None if element is None else scope.order.component.get(element)

    def _end_of_loop(self, live: Live, scope: Scope, frame: LoopFrame) -> List[ast.stmt]:
        """Return the statements at the end of a loop body, from which control goes to one of ``live``."""
        # The body falls off its end to continue; ``break`` is written for all other targets. Both kinds: the rarer one
        # is tested for.
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

    # --- jumps -------------------------------------------------------------------------------------------------------

    def _jump(self, target: Target, scope: Scope, depth: int) -> Rendered:
        """Return a jump to ``target`` or, if it is the only one, the code at the target."""
        return self._go_on([], {target: Arrival()}, scope, depth)

    def _component_at(self, index: int, here: Live, scope: Scope, depth: int) -> Rendered:
        statements, falls = self._write(index, here, scope, depth)
        return self._go_on(statements, falls, scope, depth)

    def _go_on(self, statements: List[ast.stmt], falls: Live, scope: Scope, depth: int) -> Rendered:
        """Return ``statements`` and their successors as long as those have no other predecessor."""
        result = list(statements)
        while len(falls) == 1:
            ((target, arrival),) = falls.items()
            # The code of a target is written where all edges to it have met; until then, the jump is an assignment.
            index = self._component(target, scope)
            if index is None or target in scope.cut or arrival.count < scope.order.ways_in[index] or depth > DEEPEST:
                part, falls = self._leave(target, arrival, scope)
                return result + part, falls
            arrival.drop()
            part, falls = self._write(index, falls, scope, depth)
            result.extend(part)
        return result, falls

    def _leave(self, target: Target, arrival: Arrival, scope: Scope) -> Rendered:
        """Return a jump to a target that is written elsewhere."""
        # ``continue`` to the only start of a loop needs no state. Otherwise: an assignment, then ``continue``,
        # ``break``, or nothing where the end of the enclosing statements leads to a test of the state.
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
        """Return the loop that a jump to ``target`` continues or breaks; ``None`` if the target is inside the loop."""
        here: Optional[Scope] = scope
        while here is not None:  # from the innermost list of statements outwards
            if here.frame is not None and target in here.frame.again:
                return here.frame
            if self._component(target, here) is not None:
                return None
            if here.frame is not None:
                return here.frame
            if isinstance(target, FinallyEnd) and here.level[-1:] == (Context(Kind.HANDLER, target.anchor),):
                return None
            here = here.outer
        return None

    def _write(self, index: int, here: Live, scope: Scope, depth: int) -> Rendered:
        members = scope.order.components[index]
        if scope.order.is_loop[index]:
            return self._loop(members, here, scope, depth)
        element = members[0]
        if isinstance(element, Context):
            return self._write_try(element, here, scope, depth)
        return self._write_node(element, scope, depth)

    # --- loops -------------------------------------------------------------------------------------------------------

    def _loop(self, members: List[Element], here: Live, scope: Scope, depth: int) -> Rendered:
        """Write ``while True`` around a strongly connected component; the state variable selects one of several."""
        # A loop with several entries starts with a test of the state:
        #
        #     while True:
        #         if __state__ == 1: ...
        #         if __state__ == 2: ...
        #
        # ``again`` has the targets of jumps back: the entries, and all nodes of their elements that the loop jumps to.
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

    def _write_for(self, id: int, term: Loop, scope: Scope, depth: int) -> Rendered:
        """Write ``for``; its ``else`` clause selects where control continues after the last item."""
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

    # --- nodes -------------------------------------------------------------------------------------------------------

    def _write_node(self, id: int, scope: Scope, depth: int) -> Rendered:
        """Write one node: what it computes, and its terminator. Raises ``Unstructured`` the second time."""
        if id in self.written:
            raise Unstructured(f"node {id} (offset {self.nodes[id].offset}) would be written twice")
        self.written.add(id)
        node = self.nodes[id]
        result = self._statements_of(node)
        part, falls = self._write_terminator(node, scope, depth)
        return result + part, falls

    def _statements_of(self, node: Node) -> List[ast.stmt]:
        """Return what ``node`` computes. Of the marks only those are allowed that a statement around it implies."""
        result: List[ast.stmt] = []
        for index, statement in enumerate(node.statements):
            if isinstance(statement, ast.stmt):
                result.append(statement)
            elif isinstance(statement, Accumulate):
                result.append(AccumulateStatement.of(statement))
            elif isinstance(statement, BindException):
                if statement.target is not None and not self._begins_clause(node.id, statement, index):
                    raise Unstructured(f"node {node.id} stores the handled exception in the middle of its handler")
            elif not isinstance(statement, (PopException, WithEnter)):
                raise Unstructured(f"node {node.id} exits a with statement in the middle of its code")
        return result

    def _begins_clause(self, id: int, bind: BindException, index: int) -> bool:
        clauses = self.edges.clauses(Context(Kind.TRY, bind.handler))
        return index == 0 and any(clause.start == id and clause.name is not None for clause in clauses)

    def _write_terminator(self, node: Node, scope: Scope, depth: int) -> Rendered:
        term = node.terminator
        if isinstance(term, Goto):
            if is_with_enter(node):
                enter = node.statements[-1]
                assert isinstance(enter, WithEnter)
                return self._write_with(enter, term.target, scope, depth)
            way = self.edges.way(scope.level, term.target)
            return ([ast.Return(way.returned)], {}) if way.returned is not None else ([], {way.target: Arrival()})
        if isinstance(term, Condition):
            if term.keep:
                raise Unstructured(f"node {node.id} keeps the value it tests")
            body, falls = self._arm(term.fall, scope, depth)
            orelse, more = self._arm(term.target, scope, depth)
            return [ast.If(term.test, body, orelse)], merged(falls, more)
        if isinstance(term, Loop):
            return self._write_for(node.id, term, scope, depth)
        if isinstance(term, MatchTest):
            return self._write_match(node, term, scope, depth)
        if isinstance(term, Return):
            self._check_return(node)
            return [ast.Return(term.value)], {}
        if isinstance(term, Raise):
            return [term.statement], {}
        if isinstance(term, Reraise):
            return self._reraise(node, term)
        if isinstance(term, Overridden):  # unreachable
            return [ast.Return(None)], {}
        raise Unstructured(f"node {node.id} ends in a {type(term).__name__} outside of its pattern")

    def _write_match(self, node: Node, term: MatchTest, scope: Scope, depth: int) -> Rendered:
        cases = cases_of(self.nodes, node)
        assert term.subject is not None
        bodies: List[List[ast.stmt]] = []
        falls: Live = {}
        for case in cases:
            body, more = self._arm(case.body, scope, depth)
            bodies.append(body)
            falls = merged(falls, more)
        return [match_statement(term.subject, cases, bodies)], falls

    def _arm(self, target: int, scope: Scope, depth: int) -> Rendered:
        """Return the branch of an ``if`` or ``match`` that jumps to ``target``."""
        way = self.edges.way(scope.level, target)
        if way.returned is not None:
            return [ast.Return(way.returned)], {}
        return self._jump(way.target, scope, depth + 1)

    def _check_return(self, node: Node) -> None:
        """Check that ``node``, which returns, is in no ``with`` or ``finally``: bytecode exits them before it
        returns."""
        for context in self.contexts.paths[node.id]:
            if context.kind is Kind.TRY and (self.contexts.is_with(context) or self.contexts.is_finally(context)):
                raise Unstructured(f"node {node.id} returns without leaving {context}")

    def _reraise(self, node: Node, term: Reraise) -> Rendered:
        handlers = [context for context in self.contexts.paths[node.id] if context.kind is Kind.HANDLER]
        if term.value is not None or not handlers or handlers[-1].anchor != term.handler:
            raise Unstructured(f"node {node.id} raises again another exception than the one handled last")
        if self.contexts.is_finally(handlers[-1]):
            return [], {FinallyEnd(handlers[-1].anchor): Arrival()}
        return [ast.Raise(None, None)], {}

    # --- try and with ------------------------------------------------------------------------------------------------

    def _write_try(self, context: Context, here: Live, scope: Scope, depth: int) -> Rendered:
        """Write a ``try`` statement whose body is entered at ``here``."""
        if self.contexts.is_with(context):
            raise Unstructured(f"the body of the with statement at {context.anchor} is entered from elsewhere")
        if self.contexts.is_finally(context):
            return self._write_finally(context, here, scope, depth)
        clauses = self.edges.clauses(context)
        body, falls = self.sequence(self.contexts.path_of(context), here, depth + 1, outer=scope)
        handler = self.contexts.path_of(Context(Kind.HANDLER, context.anchor))
        written: List[ast.ExceptHandler] = []
        for clause in clauses:
            if clause.following is not None:
                part = self._group_clause(clause, clause.following, handler, depth)
            else:
                part, more = self.sequence(handler, {clause.start: Arrival()}, depth + 1, outer=scope)
                falls = merged(falls, more)
            written.append(ast.ExceptHandler(clause.type, clause.name, part))
        if not clauses or clauses[0].following is None:
            return [ast.Try(body, written, [], [])], as_one_jump(falls)
        return self._after_groups(body, written, falls, context, depth)

    def _write_finally(self, context: Context, here: Live, scope: Scope, depth: int) -> Rendered:
        """Write a ``try`` statement with a ``finally`` clause.

        A jump out of the clause becomes ``break`` or ``continue`` of the enclosing loop. Where these have another
        target, the statement is wrapped in a loop that runs once.
        """
        handler = self.contexts.path_of(Context(Kind.HANDLER, context.anchor))
        jumps = self._jumps_out(handler)
        # while True:
        #     try: ...
        #     finally:
        #         if a: __state__ = 1; break        swallows the exception; the state selects where control continues
        #     break                                 the loop runs once
        once = LoopFrame(scope.level, frozenset())
        outer: Optional[Scope] = None
        if jumps and all(self._frame_left(target, scope) for target in jumps):
            outer = scope
        elif jumps:
            outer = Scope(scope.level, ComponentOrder({}, (), frozenset(), None), frozenset(), once, scope)
        body, falls = self.sequence(self.contexts.path_of(context), here, depth + 1)
        final, ends = self.sequence(handler, {context.anchor: Arrival()}, depth + 1, outer=outer)
        self._leave_finally(final, ends, FinallyEnd(context.anchor), handler, outer)
        statement: ast.stmt = ast.Try(body, [], [], final)
        falls = as_one_jump(merged(as_one_jump(falls), once.breaks))
        if outer is not None and outer is not scope:
            statement = ast.While(ast.Constant(True), [statement, ast.Break()], [])
        return self._after_exit([statement], falls, self.contexts.path_of(context), scope)

    def _after_exit(self, statements: List[ast.stmt], falls: Live, inside: Path, scope: Scope) -> Rendered:
        """Return ``statements``, which run code when control leaves them from ``inside``, with the assignments that
        have to follow."""
        # Variables that may not be assigned inside (``States.assignment`` says which) are assigned after the statement.
        states, level = self.states, scope.level
        late = {target for target in falls if not states.is_complete(level, target, inside)}
        if not late:
            return statements, falls
        if len(falls) > 1:
            keep_all(falls)
        result, complete = list(statements), dict(falls)
        for target in late:
            assignment = states.assignment(level, target)
            complete[target] = Arrival(falls[target].count, [*falls[target].assignments, assignment])
            result.append(ast.If(states.test(level, [target]), [assignment], []) if len(falls) > 1 else assignment)
        return result, complete

    def _jumps_out(self, handler: Path) -> Set[int]:
        """Return the targets of jumps out of the ``finally`` clause at ``handler``."""
        result: Set[int] = set()
        for id, path in self.contexts.paths.items():
            if path[: len(handler)] == handler:
                for target in self.edges.exits(id):
                    way = self.edges.way(self.edges.path_behind(id, target), target)
                    if way.returned is None and self.contexts.paths[way.target][: len(handler)] != handler:
                        result.add(way.target)
        return result

    def _leave_finally(
        self, final: List[ast.stmt], ends: Live, end: FinallyEnd, handler: Path, outer: Optional[Scope]
    ) -> None:
        """Write the remaining jumps at the end of a ``finally`` clause; the interrupted jump or exception resumes at
        ``end``."""
        jumps = {target: arrival for target, arrival in ends.items() if target != end}
        if not jumps:
            drop_all(ends)
            return
        if outer is None:
            raise Unstructured(f"the finally body at {end.anchor} is exited by a jump")
        keep_all(ends)
        for target, arrival in jumps.items():
            part, _ = self._leave(target, arrival, outer)
            final.append(ast.If(self.states.test(handler, [target]), part, []))

    def _group_clause(self, clause: Clause, following: int, handler: Path, depth: int) -> List[ast.stmt]:
        """Return the body of an ``except*`` clause, which control leaves only at its end."""
        cut = frozenset({following})
        part, falls = self.sequence(handler, {clause.start: Arrival()}, depth + 1, cut=cut)
        if set(falls) - cut:
            raise Unstructured(f"the except* clause at node {clause.start} is exited by a jump")
        drop_all(falls)
        return part

    def _after_groups(
        self, body: List[ast.stmt], clauses: List[ast.ExceptHandler], falls: Live, context: Context, depth: int
    ) -> Rendered:
        """Write ``try`` with ``except*``. The code after the last clause must be nothing but a jump."""
        end = self.edges.clauses(context)[-1].following
        assert end is not None
        part, more = self.sequence(
            self.contexts.path_of(Context(Kind.HANDLER, context.anchor)), {end: Arrival()}, depth
        )
        falls = merged(falls, more)
        if any(not isinstance(statement, Assignment) for statement in part):
            raise Unstructured(f"node {end} does more than end a try statement with except*")
        statement = ast.TryStar(body=body, handlers=clauses, orelse=[], finalbody=[])
        if len(falls) < 2:
            return [statement, *part], as_one_jump(falls)
        for clause in clauses:  # several targets: the state is assigned at the end of each clause
            clause.body.extend(part)
        return [statement], as_one_jump(falls)

    def _write_with(self, enter: WithEnter, target: int, scope: Scope, depth: int) -> Rendered:
        """Write a ``with`` statement."""
        # The state of the case that the manager suppresses an exception is assigned before the statement, since no code
        # runs where that happens; the body assigns the other targets.
        context = self.contexts.with_context(enter.origin)
        if context is None:
            raise Unstructured(f"the with statement at offset {enter.origin} guards nothing")
        level = self.contexts.path_of(context)
        body, falls = self.sequence(level, {self.edges.way(level, target).target: Arrival()}, depth + 1)
        swallowed = self.edges.suppressed(context).target
        assignment = self.states.assignment(scope.level, swallowed, passing=level)
        kind = ast.AsyncWith if enter.async_ else ast.With
        statement = kind(items=[ast.withitem(enter.manager, enter.target)], body=body)
        falls = as_one_jump(merged(falls, {swallowed: Arrival(1, [assignment])}))
        return self._after_exit([assignment, statement], falls, level, scope)
