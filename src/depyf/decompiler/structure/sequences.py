"""Nested statements from a lifted graph.

Follows control from the entry. The join node of a branch (a child in the dominator tree with several predecessors;
Ramsey, "Beyond Relooper", ICFP 2022) follows the statement; loops and regions are opened where they are entered. The
target of a jump decides its form: nothing, ``break``, ``continue``, a copied ``return``. Other jumps have no structured
form here, and ``Unstructured`` is raised.
"""

from __future__ import annotations

import ast
from typing import List, Optional, Set

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.flow.graph import FlowGraph, Region
from depyf.decompiler.lift import build
from depyf.decompiler.lift.nodes import (
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
    WithDecision,
    WithEnter,
    WithExit,
)
from depyf.decompiler.lift.spans import put
from depyf.decompiler.structure.accumulation import AccumulateStatement
from depyf.decompiler.structure.branches import BranchShapes, if_statement
from depyf.decompiler.structure.jumps import Jumps, raise_statement
from depyf.decompiler.structure.leaving import Known, always_matches, leaves
from depyf.decompiler.structure.loops import LoopShapes, loop_statement
from depyf.decompiler.structure.match import Cases, case_clause
from depyf.decompiler.structure.regions import Regions, is_mark
from depyf.decompiler.structure.restore_jumps import restore_jumps
from depyf.decompiler.structure.returns_in_with import mark_break, restore_returns
from depyf.decompiler.structure.single_loops import shape_of
from depyf.decompiler.structure.targets import Targets
from depyf.decompiler.structure.try_statements import TryEnds, bound_name, handles_groups, try_statement
from depyf.decompiler.structure.unstructured import Unstructured


def structure(lifted: LiftedGraph, flow: FlowGraph) -> List[ast.stmt]:
    """Return the statements of a whole code object. Raises ``Unstructured``."""
    structurer = _Structurer(lifted, flow)
    statements = structurer.sequence(structurer.shape.entry, Targets(follow=structurer.shape.end))
    used = structurer.constants | restore_returns(statements, flow)
    jumps = [jump for jump in flow.written_jumps.jumps if jump[0] not in used]
    restore_jumps(statements, jumps, flow.written_jumps.wildcards)
    return statements


class _Structurer:
    """The graph, which of its nodes are written, and which loops are open. The other modules find the parts of each
    kind of statement in the graph; here the parts are written, each by ``sequence``."""

    def __init__(self, lifted: LiftedGraph, flow: FlowGraph) -> None:
        self.shape = shape_of(lifted, flow)
        self.nodes, self.flow = lifted.nodes, flow
        self.regions = Regions(self.shape)
        self.jumps, self.branches = Jumps(self.regions), BranchShapes(self.regions)
        self.loops, self.cases, self.try_ends = LoopShapes(self.jumps), Cases(self.regions), TryEnds(self.regions)
        self.written: Set[int] = set()
        self.open_loops: Set[int] = set()
        self.constants: Set[Optional[Span]] = set()
        """The spans of the constants of the endless loops that are written."""
        self.leaving: Known = {}

    # --- one node after the other ------------------------------------------------------------------------------------

    def sequence(self, start: Optional[int], targets: Targets, *, entering: bool = False) -> List[ast.stmt]:
        """Return the statements from node ``start`` until control reaches one of ``targets``. ``entering``: ``start``
        follows without a jump, even if a jump to it would be a ``continue``."""
        result: List[ast.stmt] = []
        current = start
        while current is not None:
            jump = None if entering else self._jump_to(current, targets)
            entering = False
            if jump is not None:
                result.extend(jump)
                break
            # A loop and a ``try`` may start at the same node; the one that contains the other is opened first.
            if current in self.shape.loops and current not in self.open_loops and self.loops.is_next(current, targets):
                current = self._write_loop(current, targets, result)
                continue
            region = self.regions.opened_at(current, targets)
            if region is not None:
                current = self._write_try(current, region, targets, result)
                continue
            node = self.nodes[current]
            if not is_mark(node):
                self.regions.check_inside(node, targets)
                if current in self.written:
                    raise Unstructured(f"node {current} (offset {node.offset}) is reached a second time")
            self.written.add(current)
            targets = self._write_statements(node, targets, result)
            current = self._write_terminator(node, targets, result)
        return result

    def _jump_to(self, target: int, targets: Targets) -> Optional[List[ast.stmt]]:
        """Return the statements of a jump to ``target``; ``None`` if the target must be written here."""
        if target == targets.follow:
            return self.jumps.explicit_continue(targets.left_by) if target == targets.continues else []
        if target == targets.continues:
            return [ast.Continue()]
        if target == targets.breaks:
            return [mark_break(ast.Break()) if self.jumps.returns_none(target) else ast.Break()]
        if self.shape.is_copyable(target):
            term = self.nodes[target].terminator
            self.written.add(target)
            return [self.jumps.return_statement(term) if isinstance(term, Return) else ast.Return(None)]
        return None

    def _write_statements(self, node: Node, targets: Targets, result: List[ast.stmt]) -> Targets:
        """Write the statements of ``node``; return the targets after them, since marks end regions."""
        for region in node.leaves:
            targets = targets._replace(regions=tuple(other for other in targets.regions if other != region), left=True)
        for statement in node.statements:
            if isinstance(statement, ast.stmt):
                result.append(statement)
            elif isinstance(statement, WithExit):
                left = self.shape.with_region.get(statement.origin)
                targets = targets._replace(
                    regions=tuple(other for other in targets.regions if other != left), left=True
                )
            elif isinstance(statement, PopException):
                left_handler = statement.handler
                handlers = tuple(other for other in targets.handlers if other != left_handler)
                targets = targets._replace(handlers=handlers, left=True, left_by=statement.offset)
            elif isinstance(statement, Accumulate):
                result.append(AccumulateStatement.of(statement))
        return targets

    def _write_terminator(self, node: Node, targets: Targets, result: List[ast.stmt]) -> Optional[int]:
        """Write the terminator of ``node``; return the node that follows, ``None`` if control does not fall through."""
        term = node.terminator
        # Control goes on: after a jump, a with statement, a condition or a match at what these have as their end.
        if isinstance(term, Goto):
            if node.statements and isinstance(node.statements[-1], WithEnter):
                return self._write_with(node, node.statements[-1], term.target, targets, result)
            return term.target
        if isinstance(term, Condition):
            return self._write_if(node, term, targets, result)
        if isinstance(term, MatchTest):
            return self._write_match(node, term, targets, result)
        # Control ends here.
        if isinstance(term, Return):
            result.append(self.jumps.return_statement(term))
        elif isinstance(term, Raise):
            result.append(raise_statement(term.statement))
        elif isinstance(term, Reraise):
            if term.value is not None:
                raise Unstructured(f"node {node.id} raises a value that is not the handled exception")
            if term.handler != targets.finalizer:
                result.append(ast.Raise(None, None))
        # The finally block that follows decides where control goes: this return is never carried out.
        elif isinstance(term, Overridden):
            result.append(ast.Return(None))
        # Tests that belong to a handler are written with it. Met elsewhere, the graph has a shape that no rule knows.
        elif isinstance(term, WithDecision):
            raise Unstructured(f"node {node.id}: the end of a with statement is outside of its handler")
        elif isinstance(term, ExceptionTest):
            raise Unstructured(f"node {node.id}: an exception is tested outside of an except clause")
        else:
            raise Unstructured(f"node {node.id}: a loop is entered in its middle")
        return None

    # --- if and match ------------------------------------------------------------------------------------------------

    def _write_if(self, node: Node, term: Condition, targets: Targets, result: List[ast.stmt]) -> Optional[int]:
        """Write the ``if`` for the test at the end of ``node``; return the next node, ``None`` without one."""
        if term.keep:
            raise Unstructured(f"node {node.id} keeps the value it tests")
        merge = self.branches.join(node, term, targets)
        arms = targets if merge is None else targets._replace(follow=merge)
        body = self.sequence(term.fall, arms)
        if merge is None and leaves(body, self.leaving):
            # if a: return          the rest follows without ``else``
            result.append(if_statement(term.test, body, []))
            return term.target
        orelse = self.sequence(term.target, arms)
        if not body and orelse and merge is None and targets.follow is not None:
            self._write_inverted(node, term, orelse, targets, result)
        elif leaves(body, self.leaving) and not (merge is None and leaves(orelse, self.leaving)):
            result.append(if_statement(term.test, body, []))
            result.extend(orelse)
        else:
            turned = not body and not orelse and self.branches.was_inverted(node)
            result.append(if_statement(build.negate(term.test) if turned else term.test, body, orelse))
        return merge

    def _write_inverted(
        self, node: Node, term: Condition, orelse: List[ast.stmt], targets: Targets, result: List[ast.stmt]
    ) -> None:
        """Write an ``if`` whose body is empty, and whose ``orelse`` is not."""
        # if not a: b()         if a: continue (or return)          if a: pass
        #                       b()                                 else: b()
        #
        # All three jump over b() if a holds. The second and third have a jump of their own, with its span.
        rest_leaves = leaves(orelse, self.leaving) and not self.branches.jump_was_added(node)
        jump = self.jumps.explicit_jump(term.fall, targets, rest_leaves=rest_leaves)
        if jump is None:
            result.append(if_statement(build.negate(term.test), orelse, []))
        elif isinstance(jump, ast.Pass):
            result.append(ast.If(term.test, [jump], orelse))
        else:
            result.extend([ast.If(term.test, [jump], []), *orelse])

    def _write_match(self, node: Node, term: MatchTest, targets: Targets, result: List[ast.stmt]) -> Optional[int]:
        """Write the statement whose first pattern ends ``node``; return the next node, ``None`` without one. Raises
        ``Unstructured`` when its parts do not belong together."""
        if term.subject is None:
            raise Unstructured(f"node {node.id} (offset {node.offset}): a case is outside of its match statement")
        cases, last, has_default = self.cases.read(node)
        for case in cases[1:]:
            self.regions.check_inside(self.nodes[case.nodes[0]], targets)
        self.written.update(id for case in cases for id in case.nodes)
        merge = self.cases.merge(cases, last, targets)
        arms = targets if merge is None else targets._replace(follow=merge)
        bodies = [self.sequence(case.body, arms) for case in cases]
        clauses = [case_clause(case.pattern, case.guard, body) for case, body in zip(cases, bodies)]
        following = merge
        if (
            last is not None
            and merge is None
            and not has_default
            and all(leaves(body, self.leaving) for body in bodies)
        ):
            # Every body jumps away, so ``case _: a()`` and a() after the statement are equal. Without a trace of
            # ``case _`` in the bytecode, a() follows.
            following = last
        elif last is not None and last != merge:
            default = self.sequence(last, arms)
            if default:
                clauses.append(case_clause(ast.MatchAs(pattern=None, name=None), None, default))
        if any(case.guard is None and always_matches(case.pattern) for case in clauses[:-1]):
            raise Unstructured(f"node {node.id} (offset {node.offset}): a case that always matches is not the last one")
        result.append(ast.Match(subject=term.subject, cases=clauses))
        return following

    # --- loops -------------------------------------------------------------------------------------------------------

    def _write_loop(self, header: int, targets: Targets, result: List[ast.stmt]) -> Optional[int]:
        """Write the statement; return the node after it, ``None`` without one."""
        node = self.nodes[header]
        term = node.terminator
        test, inside, out = self.loops.test(header)
        after = self.loops.after(self.loops.members(header, out, targets), out, targets)
        self.open_loops.add(header)
        inner = targets._replace(follow=header, continues=header, breaks=after)
        if isinstance(term, Loop):
            self.regions.check_inside(node, targets)
        if inside is None:
            body = self._endless_body(header, inner)
        else:
            self.written.add(header)
            body = self.sequence(inside, inner)
        self.open_loops.discard(header)
        orelse: List[ast.stmt] = []
        if out is not None and out != after and after is not None:
            # ``break`` jumps over the node that the test leads to: the node starts an ``else`` clause.
            orelse = self.sequence(out, targets._replace(follow=after))
        elif after is None:
            after = out
        loop = loop_statement(term, test, body, orelse)
        if isinstance(loop, ast.While) and test is None:
            constant = self.loops.constant_before(loop.body[0])
            put(loop.test, constant)
            self.constants.add(constant)
        result.append(loop)
        return after

    def _endless_body(self, header: int, inner: Targets) -> List[ast.stmt]:
        """Return the body of ``while True``. Its first node is the header itself, which must not be taken for a back
        edge."""
        body: List[ast.stmt] = []
        region = self.regions.opened_at(header, inner)
        if region is not None:
            following = self._write_try(header, region, inner, body)
        else:
            node = self.nodes[header]
            self.regions.check_inside(node, inner)
            self.written.add(header)
            inner = self._write_statements(node, inner, body)
            following = self._write_terminator(node, inner, body)
        return body + self.sequence(following, inner)

    # --- try and with ------------------------------------------------------------------------------------------------

    def _write_try(self, start: int, region: Region, targets: Targets, result: List[ast.stmt]) -> Optional[int]:
        """Write the statement; return the node after it, ``None`` without one."""
        handler = self.nodes[region.entry]
        guarded = self.regions.nodes_inside(region)
        body_exits = self.regions.exits_of(guarded, region, targets)
        if region in self.flow.finally_regions:
            return self._write_finally(start, region, guarded, body_exits, targets, result)
        if isinstance(handler.terminator, WithDecision):
            raise Unstructured(f"node {start}: the body of a with statement is entered from elsewhere")
        follow, orelse_entry = self.try_ends.after(region, body_exits, targets)
        inside = targets._replace(follow=follow if orelse_entry is None else orelse_entry)
        body = self.sequence(start, inside._replace(regions=(*targets.regions, region)), entering=True)
        handling = targets._replace(follow=follow, handlers=(*targets.handlers, region.entry))
        write_clauses = self._group_clauses if handles_groups(handler) else self._clauses
        clauses = write_clauses(region, handling)
        orelse = self.sequence(orelse_entry, targets._replace(follow=follow))
        result.append(self.try_ends.with_start(try_statement(handler, body, clauses, orelse)))
        return follow

    def _write_finally(
        self,
        start: int,
        region: Region,
        guarded: Set[int],
        body_exits: List[int],
        targets: Targets,
        result: List[ast.stmt],
    ) -> Optional[int]:
        """Write ``try`` ... ``finally``; return the node after it. The flow layer has joined the copies of the final
        body: only the one in the handler is left."""
        end = self.shape.overridden_end(guarded, region)
        follow = self.regions.latest_exit(body_exits, targets) if end is None else end
        if follow is None:
            follow = targets.follow
        inside = targets._replace(follow=follow, regions=(*targets.regions, region))
        body = self.sequence(start, inside, entering=True)
        # RERAISE at the end of the handler is the end of the clause: no ``raise`` is written for the finalizer.
        handling = targets._replace(follow=None, handlers=(*targets.handlers, region.entry), finalizer=region.entry)
        final = self.sequence(region.entry, handling)
        result.append(self.try_ends.try_finally(body, final))
        return follow if end is None else None

    def _clauses(self, region: Region, targets: Targets) -> List[ast.ExceptHandler]:
        """Return the ``except`` clauses of ``region``; ``targets`` are inside of its handler. Raises
        ``Unstructured``."""
        # except A as e: a()        1: A; CHECK_EXC_MATCH; POP_JUMP_IF_FALSE 2; STORE e; a; POP_EXCEPT; JUMP
        # except B: b()             2: B; CHECK_EXC_MATCH; POP_JUMP_IF_FALSE 3; POP_TOP; b; POP_EXCEPT; JUMP
        #                           3: RERAISE
        # except: c()               or, instead of that, 3: POP_TOP; c; POP_EXCEPT; JUMP
        clauses: List[ast.ExceptHandler] = []
        current = region.entry
        while True:
            node = self.nodes[current]
            term = node.terminator
            first = node.statements[0] if node.statements else None
            if isinstance(first, BindException) and first.target is None:
                break
            if isinstance(term, Reraise) and not node.statements and clauses:
                self.written.add(current)
                return clauses
            if not isinstance(term, ExceptionTest) or node.statements or term.handler != region.entry:
                # A clause that uses the exception before it is dropped; a RERAISE in it is written.
                body = self.sequence(current, targets._replace(finalizer=None))
                return [*clauses, ast.ExceptHandler(None, None, body)]
            self.written.add(current)
            start = self.nodes[term.match]
            name = bound_name(start, region)
            bind = start.statements[0] if start.statements else None
            if name is None and not (isinstance(bind, BindException) and bind.target is None):
                raise Unstructured(f"node {term.match} does not start an except clause")
            clauses.append(ast.ExceptHandler(term.type, name, self._clause_body(term.match, targets)))
            current = term.other
        return [*clauses, ast.ExceptHandler(None, None, self._clause_body(current, targets))]

    def _clause_body(self, start: int, targets: Targets) -> List[ast.stmt]:
        return self.sequence(start, targets) or [ast.Pass()]

    def _group_clauses(self, region: Region, targets: Targets) -> List[ast.ExceptHandler]:
        """Return the ``except*`` clauses of ``region``; ``targets`` are inside of its handler. Raises
        ``Unstructured``."""
        # Each clause ends where the next one is tested; the last one ends at the mark that exits the handler.
        clauses: List[ast.ExceptHandler] = []
        current = region.entry
        while True:
            node = self.nodes[current]
            term = node.terminator
            self.written.add(current)
            first = node.statements[0] if node.statements else None
            if clauses and isinstance(first, PopException) and first.handler == region.entry:
                return clauses
            if not isinstance(term, ExceptionTest) or not term.group or term.handler != region.entry or node.statements:
                raise Unstructured(f"node {current} (offset {node.offset}) is not an except* clause")
            body = self._clause_body(term.match, targets._replace(follow=term.other, continues=None, breaks=None))
            clauses.append(ast.ExceptHandler(term.type, bound_name(self.nodes[term.match], region), body))
            current = term.other

    def _write_with(
        self, node: Node, enter: WithEnter, target: int, targets: Targets, result: List[ast.stmt]
    ) -> Optional[int]:
        """Write the statement; return the node after it: where control continues if the manager suppresses an
        exception."""
        region = self.regions.first_closed(target, targets)
        if region is None:
            raise Unstructured(f"node {node.id}: a with statement guards nothing")
        handler = self.nodes[region.entry]
        if not isinstance(handler.terminator, WithDecision):
            raise Unstructured(f"node {region.entry} does not look like the handler of a with statement")
        follow = self.regions.destination(handler.terminator.suppressed, region, targets)
        self._skip_handler(region)
        body = self.sequence(target, targets._replace(follow=follow, regions=(*targets.regions, region)))
        kind = ast.AsyncWith if enter.async_ else ast.With
        result.append(kind(items=[ast.withitem(enter.manager, enter.target)], body=body or [ast.Pass()]))
        return follow

    def _skip_handler(self, region: Region) -> None:
        """Mark the nodes of a ``with`` handler as written: the statement implies them."""
        todo = [region.entry]
        seen: Set[int] = set()
        while todo:
            id = todo.pop()
            if id not in seen and region.entry in self.nodes[id].handling:
                seen.add(id)
                self.written.add(id)
                todo.extend(self.shape.successors[id])
