"""Nested statements from a lifted graph.

Walks from the entry. Where control splits, the node that both ways come together at (a child in the dominator tree
with several ways into it; Ramsey, "Beyond Relooper", ICFP 2022) follows the statement; loops and regions are opened
where they are entered. A jump is what its target means at that place: nothing, ``break``, ``continue``, a copied
``return``. Anything else has no structured form here, and ``Unstructured`` is raised.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import List, Optional, Set, Tuple

from depyf.bytecode.lines import Span
from depyf.flow.graph import FlowGraph, Region
from depyf.flow.written_jumps import Written
from depyf.lift import build
from depyf.lift.nodes import (
    Accumulate,
    BindException,
    Condition,
    ExceptionTest,
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
    Statement,
    Terminator,
    WithDecision,
    WithEnter,
    WithExit,
)
from depyf.lift.places import first_place, place_of, put
from depyf.quick_dataclass import dataclass
from depyf.structure.branches import if_statement
from depyf.structure.except_star import (
    TRY_STATEMENTS,
    TryStatement,
    after_groups,
    group_clauses,
    handles_groups,
    try_statement,
)
from depyf.structure.match import match_statement
from depyf.structure.restore_jumps import restore_jumps
from depyf.structure.shape import Shape
from depyf.structure.unstructured import Unstructured as Unstructured


class AccumulateStatement(ast.stmt):
    """A comprehension adds an element; only inside comprehensions that are not expressions yet."""

    _fields = ("key", "element")
    kind: str
    key: Optional[ast.expr]
    element: ast.expr


@dataclass(frozen=True)
class Place:
    """Where statements are being written: what runs next by itself, where ``break`` and ``continue`` go, which
    regions and handlers are open, which of them were left on the way. ``left_by``: the jump
    that leaves a handler, by the offset of its POP_EXC."""

    follow: Optional[int] = None
    continues: Optional[int] = None
    breaks: Optional[int] = None
    regions: Tuple[Region, ...] = ()
    handlers: Tuple[int, ...] = ()
    finalizer: Optional[int] = None
    left_by: Optional[int] = None

    def known(self, target: Optional[int]) -> bool:
        return target is not None and target in (self.follow, self.continues, self.breaks)


def structure(lifted: LiftedGraph, flow: FlowGraph) -> List[ast.stmt]:
    """Return the statements of a whole code object. Raises ``Unstructured``."""
    return _Structurer(lifted, flow).run()


class _Structurer:
    def __init__(self, lifted: LiftedGraph, flow: FlowGraph) -> None:
        self.shape = Shape(lifted, flow)
        self.nodes, self.flow = lifted.nodes, flow
        self.written: Set[int] = set()
        self.open_loops: Set[int] = set()
        self.offsets = [instr.offset for instr in flow.code.ops]
        # Where a function ends that does not say so.
        self.end = next((id for id, node in self.nodes.items() if self._is_end(id, node)), None)

    def run(self) -> List[ast.stmt]:
        statements = self.sequence(self.shape.entry, Place(follow=self.end))
        restore_jumps(statements, self.flow.written_jumps.jumps)
        return statements

    def _is_end(self, id: int, node: Node) -> bool:
        block = self.flow.blocks.get(id)
        return block is not None and block.implicit and isinstance(node.terminator, Return) and not node.statements

    # --- straight on -------------------------------------------------------------------------------------------------

    def sequence(self, start: Optional[int], place: Place, *, entering: bool = False) -> List[ast.stmt]:
        """Statements from node ``start`` until control goes where ``place`` says.

        ``entering``: ``start`` is not jumped to but comes next, even if a jump to it would mean ``continue``.
        """
        result: List[ast.stmt] = []
        current = start
        while current is not None:
            jump = None if entering else self._jump(current, place)
            entering = False
            if jump is not None:
                result.extend(jump)
                break
            if current in self.shape.loops and current not in self.open_loops and self._loop_is_next(current, place):
                current = self._loop(current, place, result)
                continue
            region = self._opens(current, place)
            if region is not None:
                current = self._try(current, region, place, result)
                continue
            node = self.nodes[current]
            if not _is_mark(node):
                self._check_place(node, place)
                if current in self.written:
                    raise Unstructured(f"node {current} (offset {node.offset}) is reached a second time")
            self.written.add(current)
            place = self._statements(node, place, result)
            current = self._terminate(node, place, result)
        return result

    def _jump(self, target: int, place: Place) -> Optional[List[ast.stmt]]:
        """What a jump to ``target`` is at this place, if it is a statement or nothing."""
        if target == place.follow:
            return self._written_continue(place.left_by) if target == place.continues else []
        if target == place.continues:
            return [ast.Continue()]
        if target == place.breaks:
            return [ast.Break()]
        if self.shape.is_copyable(target):
            term = self.nodes[target].terminator
            assert isinstance(term, Return)
            self.written.add(target)
            return [self._return(term)]
        return None

    def _written_continue(self, left_by: Optional[int]) -> List[ast.stmt]:
        """``continue`` where control goes there anyway, if the bytecode shows that it was written."""
        if left_by is None or left_by not in self.flow.clause_jumps:
            return []
        jump = ast.Continue()
        put(jump, self.flow.clause_jumps[left_by])
        return [jump]

    def _return(self, term: Return) -> ast.stmt:
        """The statement that returns; without a place, if nobody wrote it."""
        value = term.value
        statement: ast.stmt = ast.Return(value)
        if not (isinstance(value, ast.Constant) and value.value is None):
            put(statement, term.span)
            return statement
        written = self.flow.written_jumps.of_return(place_of(value))
        if written is Written.PASS:
            statement = ast.Return(ast.Constant(None))
            return statement
        if written is Written.RETURN:
            statement = ast.Return(None)
        if written is not None:
            put(statement, place_of(value))
        return statement

    def _check_place(self, node: Node, place: Place) -> None:
        """Code must not move into a region that does not guard it, nor into a handler it does not run under."""
        if node.silent:
            return
        guards = self.shape.chain(node.region)
        for region in place.regions:
            if region not in guards and not self.shape.exits_region(node.id, region):
                raise Unstructured(f"node {node.id} (offset {node.offset}) lies outside of the region around it")
        for handler in place.handlers:
            if handler not in node.handling:
                raise Unstructured(f"node {node.id} (offset {node.offset}) lies outside of the handler around it")

    def _statements(self, node: Node, place: Place, result: List[ast.stmt]) -> Place:
        """Write the statements of ``node``; the place behind them (marks end regions)."""
        for region in node.leaves:
            place = replace(place, regions=tuple(other for other in place.regions if other != region))
        for statement in node.statements:
            if isinstance(statement, ast.stmt):
                result.append(statement)
            elif isinstance(statement, WithExit):
                left = self.shape.with_region.get(statement.origin)
                place = replace(place, regions=tuple(other for other in place.regions if other != left))
            elif isinstance(statement, PopException):
                left_handler = statement.handler
                handlers = tuple(other for other in place.handlers if other != left_handler)
                place = replace(place, handlers=handlers, left_by=statement.offset)
            elif isinstance(statement, Accumulate):
                add = AccumulateStatement()
                add.kind, add.key, add.element = statement.kind, statement.key, statement.element
                result.append(add)
        return place

    def _terminate(self, node: Node, place: Place, result: List[ast.stmt]) -> Optional[int]:
        term = node.terminator
        if isinstance(term, Goto):
            if node.statements and isinstance(node.statements[-1], WithEnter):
                return self._with(node, node.statements[-1], term.target, place, result)
            return term.target
        if isinstance(term, Condition):
            return if_statement(self, node, term, place, result)
        if isinstance(term, MatchTest):
            return match_statement(self, node, term, place, result)
        if isinstance(term, Return):
            result.append(self._return(term))
        elif isinstance(term, Raise):
            result.append(_raise(term.statement))
        elif isinstance(term, Reraise):
            if term.value is not None:
                raise Unstructured(f"node {node.id} raises a value that is not the handled exception")
            if term.handler != place.finalizer:
                result.append(ast.Raise(None, None))
        elif isinstance(term, Overridden):
            result.append(ast.Return(None))
        elif isinstance(term, WithDecision):
            raise Unstructured(f"node {node.id}: the end of a with statement stands outside of its handler")
        elif isinstance(term, ExceptionTest):
            raise Unstructured(f"node {node.id}: an exception is tested outside of an except clause")
        else:
            raise Unstructured(f"node {node.id}: a loop is entered in its middle")
        return None

    def _is_outside(self, id: int, place: Place) -> bool:
        """Whether node ``id`` lies behind a region or handler that is open at ``place``."""
        node = self.nodes[id]
        if any(handler not in node.handling for handler in place.handlers):
            return True
        return any(region not in self.shape.regions_of(id) for region in place.regions)

    # --- loops -------------------------------------------------------------------------------------------------------

    def _loop_is_next(self, header: int, place: Place) -> bool:
        """A loop that lies inside the region that begins with it is opened after the region."""
        region = self._opens(header, place)
        if region is None:
            return True
        return not all(region in self.shape.regions_of(id) for id in self.shape.loops[header])

    def _loop(self, header: int, place: Place, result: List[ast.stmt]) -> Optional[int]:
        node = self.nodes[header]
        term = node.terminator
        test, inside, out = self._loop_test(header, node)
        members = self._with_inlined_exits(header, out, place)
        after = self._after_loop(members, out, place)
        self.open_loops.add(header)
        inner = replace(place, follow=header, continues=header, breaks=after)
        if isinstance(term, Loop):
            self._check_place(node, place)
            self.written.add(header)
            body = self.sequence(term.body, inner)
        elif test is not None:
            self.written.add(header)
            body = self.sequence(inside, inner)
        else:
            body = self._endless(header, inner)
        self.open_loops.discard(header)
        orelse: List[ast.stmt] = []
        if out is not None and out != after and after is not None:
            orelse = self.sequence(out, replace(place, follow=after))
        elif out is not None and after is None:
            after = out
        result.append(_loop_statement(term, test, body, orelse))
        return after

    def _endless(self, header: int, inner: Place) -> List[ast.stmt]:
        """``while True``: the header itself is the first thing in the body, so it must not count as a jump back."""
        region = self._opens(header, inner)
        if region is not None:
            body: List[ast.stmt] = []
            after = self._try(header, region, inner, body)
            return body + (self.sequence(after, inner) if after is not None else [])
        node = self.nodes[header]
        self._check_place(node, inner)
        self.written.add(header)
        body = []
        place = self._statements(node, inner, body)
        following = self._terminate(node, place, body)
        return body + (self.sequence(following, place) if following is not None else [])

    def _loop_test(self, header: int, node: Node) -> Tuple[Optional[ast.expr], Optional[int], Optional[int]]:
        """``(test, first node of the body, node behind the loop)``; no test for ``for`` and ``while True``."""
        term, members = node.terminator, self.shape.loops[header]
        if isinstance(term, Loop):
            return None, term.body, term.exhausted
        may_test = header in self.flow.copied_tests or not self.flow.code.copies_loop_tests
        if isinstance(term, Condition) and not node.statements and not term.keep and may_test:
            if term.fall in members and term.target not in members:
                return term.test, term.fall, term.target
            if term.target in members and term.fall not in members:
                return build.negate(term.test), term.target, term.fall
        return None, None, None

    def _with_inlined_exits(self, header: int, out: Optional[int], place: Place) -> Set[int]:
        """The loop with those nodes behind it that the compiler placed between its own: ``if x: ...; return``."""
        members = set(self.shape.loops[header])
        last = max(self.nodes[id].extent for id in members)
        if out is not None and self.nodes[out].offset > self.nodes[header].offset:
            last = max(last, self.nodes[out].offset - 1)
        todo = [target for id in members for target in self.nodes[id].successors()]
        while todo:
            target = todo.pop()
            if target in members or target == out or place.known(target) or self.shape.is_copyable(target):
                continue
            if not self.shape.dominates(header, target):
                continue
            if self.nodes[target].offset > last and not self._deeper(target, header):
                continue
            if any(source not in members for source in self.shape.forward_predecessors(target)):
                continue
            members.add(target)
            todo.extend(self.nodes[target].successors())
            region = self.nodes[target].region
            if region is not None and region not in self.shape.regions_of(header):
                todo.append(region.entry)
        return members

    def _deeper(self, target: int, header: int) -> bool:
        """Whether ``target`` lies in a region or handler that was opened inside of the loop."""
        node, outer = self.nodes[target], self.nodes[header]
        if any(handler not in outer.handling for handler in node.handling):
            return True
        return any(region not in self.shape.regions_of(header) for region in self.shape.regions_of(target))

    def _after_loop(self, members: Set[int], out: Optional[int], place: Place) -> Optional[int]:
        exits: List[int] = []
        for id in members:
            for target in self.nodes[id].successors():
                if target not in members and target not in exits and target != out:
                    if not self.shape.is_copyable(target) or target == place.follow:
                        exits.append(target)
        if out is not None and any(
            out in self.nodes[id].successors() and not self._is_loop_exit(id, out) for id in members
        ):
            return out
        if out is not None:
            exits = [target for target in exits if not self._only_returns(target, place)]
        if not exits:
            return out
        # a place around the loop that is no return can only be reached by leaving the loop
        known = [target for target in exits if place.known(target) and not self.shape.is_copyable(target)]
        fresh = [target for target in exits if not place.known(target)]
        return max(known or fresh or exits, key=lambda id: self.shape.index[id])

    def _only_returns(self, id: int, place: Place) -> bool:
        """Whether node ``id`` leaves regions and returns, which can be written wherever control goes there."""
        end = self._past_marks(id, place)
        return end != id and not place.known(end) and self.shape.is_copyable(end)

    def _is_loop_exit(self, id: int, out: int) -> bool:
        term = self.nodes[id].terminator
        return id in self.shape.loops and (
            (isinstance(term, Loop) and term.exhausted == out)
            or (isinstance(term, Condition) and not self.nodes[id].statements and out in (term.fall, term.target))
        )

    # --- regions -----------------------------------------------------------------------------------------------------

    def _opens(self, id: int, place: Place) -> Optional[Region]:
        """The outermost region around node ``id`` that is not open yet."""
        if self.nodes[id].silent and not self.nodes[id].statements and not isinstance(self.nodes[id].terminator, Goto):
            return None
        for region in reversed(self.shape.regions_of(id)):
            if region not in place.regions and region.entry not in place.handlers:
                return region
        return None

    def _with(self, node: Node, enter: WithEnter, target: int, place: Place, result: List[ast.stmt]) -> Optional[int]:
        region = self._opens(target, place)
        if region is None:
            raise Unstructured(f"node {node.id}: a with statement guards nothing")
        handler = self.nodes[region.entry]
        if not isinstance(handler.terminator, WithDecision):
            raise Unstructured(f"node {region.entry} does not look like the handler of a with statement")
        suppressed = self._destination(handler.terminator.suppressed, region, place)
        follow = suppressed
        if self.shape.is_copyable(suppressed):  # what runs behind the statement when it swallows an exception
            follow = suppressed
        self._write_handler_nodes(region)
        inner = replace(place, follow=follow, regions=(*place.regions, region))
        body = self.sequence(target, inner)
        item = ast.withitem(enter.manager, enter.target)
        kind = ast.AsyncWith if enter.async_ else ast.With
        result.append(kind(items=[item], body=body or [ast.Pass()]))
        return follow

    def _write_handler_nodes(self, region: Region) -> None:
        """The nodes of a ``with`` handler are not written: they come with the statement."""
        todo = [region.entry]
        seen: Set[int] = set()
        while todo:
            id = todo.pop()
            if id in seen or region.entry not in self.nodes[id].handling:
                continue
            seen.add(id)
            self.written.add(id)
            todo.extend(self.nodes[id].successors())

    def _destination(self, id: int, region: Region, place: Place) -> int:
        """What a way out of ``region`` that begins at ``id`` leads to.

        Marks of regions further out are passed only if behind them lies a place that is known already.
        """
        final = self._past_marks(id, place)
        if place.known(final) or self.shape.is_copyable(final):
            return final
        return self._behind_marks(id, region)

    def _past_marks(self, id: int, place: Place) -> int:
        """The first node at or behind ``id`` that is known at ``place`` or more than a mark."""
        seen: Set[int] = set()
        while id not in seen:
            seen.add(id)
            node = self.nodes[id]
            if place.known(id) or not _is_mark(node):
                break
            assert isinstance(node.terminator, Goto)
            id = node.terminator.target
        return id

    def _behind_marks(self, id: int, region: Region) -> int:
        """The first node at or behind ``id`` that is more than a mark that ends ``region``."""
        seen: Set[int] = set()
        while id not in seen:
            seen.add(id)
            node = self.nodes[id]
            if not isinstance(node.terminator, Goto) or any(other != region for other in node.leaves):
                break
            if not all(self._ends(statement, region) for statement in node.statements):
                break
            if not node.statements and not node.silent:  # evaluates what a loop runs over
                break
            id = node.terminator.target
        return id

    def _ends(self, statement: Statement, region: Region) -> bool:
        if isinstance(statement, WithExit):
            return self.shape.with_region.get(statement.origin) == region
        if isinstance(statement, PopException):
            return statement.handler == region.entry
        return isinstance(statement, BindException) and statement.handler == region.entry

    def _inside(self, region: Region) -> Set[int]:
        """The nodes that ``region`` guards, and the marks that end it."""
        members = set(self.shape.guarded.get(region, ()))
        marks = {
            target
            for id in members
            for target in self.nodes[id].successors()
            if target not in members and self.shape.exits_region(target, region)
        }
        return members | marks

    def _exits(self, members: Set[int], region: Region) -> List[int]:
        exits: List[int] = []
        for id in sorted(members, key=self.shape.index.__getitem__):
            for target in self.nodes[id].successors():
                if target not in members and target not in exits:
                    exits.append(target)
        return exits

    def _choose_follow(self, targets: List[int], place: Place) -> Optional[int]:
        """Where control goes behind a statement whose ways out are ``targets``."""
        open_: List[int] = []
        for target in targets:
            if target in open_ or (self.shape.is_copyable(target) and target != place.follow):
                continue
            if target in (place.continues, place.breaks) and target != place.follow:
                continue
            open_.append(target)
        fresh = [target for target in open_ if target != place.follow]
        if fresh:
            return max(fresh, key=lambda id: self.shape.index[id]) if len(fresh) > 1 else fresh[0]
        if place.follow in open_:
            return place.follow
        rest = [target for target in open_ if target != place.follow]
        return rest[0] if rest else place.follow

    def _try(self, start: int, region: Region, place: Place, result: List[ast.stmt]) -> Optional[int]:
        handler = self.nodes[region.entry]
        inside = self._inside(region)
        body_exits = [self._destination(exit, region, place) for exit in self._exits(inside, region)]
        if region in self.flow.finally_regions:
            follow = self._choose_follow(body_exits, place)
            body = self.sequence(start, replace(place, follow=follow, regions=(*place.regions, region)), entering=True)
            final = self.sequence(
                region.entry,
                replace(place, follow=None, handlers=(*place.handlers, region.entry), finalizer=region.entry),
            )
            result.append(self._placed(_try_finally(body, final)))
            return follow
        if isinstance(handler.terminator, WithDecision):
            raise Unstructured(f"node {start}: the body of a with statement is entered from elsewhere")
        handler_exits = self._handler_exits(region, place)
        if handles_groups(handler):
            follow, orelse_entry = after_groups(self, region, place, body_exits)
        else:
            follow, orelse_entry = self._after_try(region, body_exits, handler_exits, place)
        body_follow = orelse_entry if orelse_entry is not None else follow
        body = self.sequence(start, replace(place, follow=body_follow, regions=(*place.regions, region)), entering=True)
        clauses = self._clauses(region, replace(place, follow=follow, handlers=(*place.handlers, region.entry)))
        orelse = self.sequence(orelse_entry, replace(place, follow=follow)) if orelse_entry is not None else []
        result.append(self._placed(try_statement(handler, body, clauses, orelse)))
        return follow

    def _placed(self, statement: TryStatement) -> ast.stmt:
        """A ``try`` statement with the place where it begins."""
        first = first_place(statement.body[0])
        if first is not None:
            put(statement, self.flow.written_jumps.around(first, _place_of_clause(statement) or first))
        return statement

    def _handler_exits(self, region: Region, place: Place) -> List[int]:
        members = set(self.shape.handled.get(region.entry, ()))
        return [self._destination(exit, region, place) for exit in self._exits(members, region)]

    def _after_try(
        self, region: Region, body_exits: List[int], handler_exits: List[int], place: Place
    ) -> Tuple[Optional[int], Optional[int]]:
        """``(where control goes behind the statement, first node of the else clause)``."""
        normal = self._choose_follow(body_exits, place) if self._open(body_exits, place) else None
        handled = self._choose_follow(handler_exits, place) if self._open(handler_exits, place) else None
        if normal is None and handled is None:
            return place.follow, None
        if handled is None or normal is None or normal == handled:
            return (normal if normal is not None else handled), None
        behind = self._is_behind_handler(normal, region) and not self._runs_to_its_end(region)
        if handled == place.follow and behind:
            if handled == place.continues or self.shape.is_copyable(handled):
                return normal, None
        if handled == place.follow or self.shape.index[handled] > self.shape.index[normal]:
            if normal == place.follow:
                return handled, None
            return handled, normal
        return normal, None

    def _runs_to_its_end(self, region: Region) -> bool:
        """Whether the bytecode shows that control comes to the end of an ``except`` clause, and so not to a jump."""
        marks = [
            statement
            for id in self.shape.handled.get(region.entry, ())
            for statement in self.nodes[id].statements
            if isinstance(statement, PopException) and statement.handler == region.entry
        ]
        return any(mark.offset in self.flow.clause_ends for mark in marks)

    def _is_behind_handler(self, id: int, region: Region) -> bool:
        """Whether node ``id`` was placed behind the handler of ``region``, and so is not its ``else`` clause: then the
        handler ends in a ``return`` or ``continue``."""
        return self.nodes[id].offset > self.nodes[region.entry].offset

    def _open(self, targets: List[int], place: Place) -> List[int]:
        return [
            target
            for target in targets
            if target == place.follow
            or (not self.shape.is_copyable(target) and target not in (place.continues, place.breaks))
        ]

    def _clauses(self, region: Region, place: Place) -> List[ast.ExceptHandler]:
        if handles_groups(self.nodes[region.entry]):
            return group_clauses(self, region, place)
        clauses: List[ast.ExceptHandler] = []
        current = region.entry
        while True:
            node = self.nodes[current]
            term = node.terminator
            first = node.statements[0] if node.statements else None
            if isinstance(first, BindException) and first.target is None:
                clauses.append(ast.ExceptHandler(None, None, self._clause_body(current, place)))
                return clauses
            if isinstance(term, Reraise) and not node.statements and clauses:
                self.written.add(current)
                return clauses
            if isinstance(term, ExceptionTest) and not node.statements and term.handler == region.entry:
                self.written.add(current)
                bind = self.nodes[term.match].statements[:1]
                name = None
                if bind and isinstance(bind[0], BindException) and isinstance(bind[0].target, ast.Name):
                    name = bind[0].target.id
                elif not bind or not isinstance(bind[0], BindException) or bind[0].target is not None:
                    raise Unstructured(f"node {term.match} does not begin an except clause")
                clauses.append(ast.ExceptHandler(term.type, name, self._clause_body(term.match, place)))
                current = term.other
                continue
            body = self.sequence(current, replace(place, finalizer=None))
            clauses.append(ast.ExceptHandler(None, None, body))
            return clauses

    def _clause_body(self, start: int, place: Place) -> List[ast.stmt]:
        return self.sequence(start, place) or [ast.Pass()]


def _is_mark(node: Node) -> bool:
    """Whether ``node`` only says that regions end: nothing is written for it."""
    if not isinstance(node.terminator, Goto):
        return False
    if not all(isinstance(s, (WithExit, PopException, BindException)) for s in node.statements):
        return False
    return bool(node.statements) or bool(node.leaves) or node.silent


def _raise(statement: ast.Raise) -> ast.stmt:
    """``raise``, or ``assert False`` for the exception that only ``assert`` gets without looking its name up."""
    raised, message = statement.exc, None
    call = raised if isinstance(raised, ast.Call) and isinstance(raised.func, build.Special) else None
    if call is not None and len(call.args) == 1:
        raised, message = call.func, call.args[0]
    if not isinstance(raised, build.Special):
        return statement
    failed = ast.Assert(ast.Constant(False), message)
    put(failed, place_of(raised))
    return failed


def _loop_statement(
    term: Optional[Terminator], test: Optional[ast.expr], body: List[ast.stmt], orelse: List[ast.stmt]
) -> ast.stmt:
    body = body or [ast.Pass()]
    if isinstance(term, Loop):
        assert term.iterable is not None
        assert term.target is not None
        kind = ast.AsyncFor if term.async_ else ast.For
        loop = kind(target=term.target, iter=term.iterable, body=body, orelse=orelse)
        put(loop, term.span)
        return loop
    return ast.While(test if test is not None else ast.Constant(True), body, orelse)


def _place_of_clause(statement: TryStatement) -> Optional[Span]:
    """A place in ``statement`` that is not in its body, where ``while True`` begins with an idle instruction too."""
    if not statement.handlers:
        return first_place(statement.finalbody[0])
    handler = statement.handlers[0]
    if handler.type is None and not isinstance(statement.body[0], ast.While):
        return None  # the clause may be nothing but what comes behind the statement
    return first_place(handler.type or handler)


def _try_finally(body: List[ast.stmt], final: List[ast.stmt]) -> TryStatement:
    """``try`` inside ``try``/``finally`` is one statement."""
    final = final or [ast.Pass()]
    inner = body[0] if len(body) == 1 else None
    if isinstance(inner, TRY_STATEMENTS) and not inner.finalbody:
        return type(inner)(inner.body, inner.handlers, inner.orelse, final)
    return ast.Try(body or [ast.Pass()], [], [], final)
