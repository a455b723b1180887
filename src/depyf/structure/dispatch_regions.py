"""The dispatcher's ``try`` and ``with`` statements: body, clauses, ``finally`` and the jumps out of them."""

from __future__ import annotations

import ast
from typing import List, Optional, Set

from depyf.lift.nodes import WithEnter
from depyf.structure.dispatch_contexts import Context, Kind, Path
from depyf.structure.dispatch_edges import Clause
from depyf.structure.dispatch_order import Order
from depyf.structure.dispatch_scope import LoopFrame, Scope
from depyf.structure.dispatch_states import Arrival, Assignment, End, Live, as_one_jump, drop_all, keep_all, merged
from depyf.structure.dispatch_writer import Writer, Written
from depyf.structure.unstructured import Unstructured


def write_try(writer: Writer, context: Context, here: Live, scope: Scope, depth: int) -> Written:
    """Write a ``try`` statement whose body is entered at ``here``."""
    if writer.contexts.is_with(context):
        raise Unstructured(f"the body of the with statement at {context.anchor} is entered from elsewhere")
    if writer.contexts.is_finally(context):
        return _write_finally(writer, context, here, scope, depth)
    clauses = writer.edges.clauses(context)
    body, falls = writer.sequence(writer.contexts.path_of(context), here, depth + 1, outer=scope)
    handler = writer.contexts.path_of(Context(Kind.HANDLER, context.anchor))
    written: List[ast.ExceptHandler] = []
    for clause in clauses:
        if clause.following is not None:
            part = _group_clause(writer, clause, clause.following, handler, depth)
        else:
            part, more = writer.sequence(handler, {clause.start: Arrival()}, depth + 1, outer=scope)
            falls = merged(falls, more)
        written.append(ast.ExceptHandler(clause.type, clause.name, part))
    if not clauses or clauses[0].following is None:
        return [ast.Try(body, written, [], [])], as_one_jump(falls)
    return _after_groups(writer, body, written, falls, context, depth)


def _write_finally(writer: Writer, context: Context, here: Live, scope: Scope, depth: int) -> Written:
    """Write a ``try`` statement with a ``finally`` clause.

    A jump out of the clause becomes ``break`` or ``continue`` of the enclosing loop. Where these have another
    target, the statement is wrapped in a loop that runs once.
    """
    handler = writer.contexts.path_of(Context(Kind.HANDLER, context.anchor))
    jumps = _jumps_out(writer, handler)
    once = LoopFrame(scope.level, frozenset())
    outer: Optional[Scope] = None
    if jumps and all(writer.frame_left(target, scope) for target in jumps):
        outer = scope
    elif jumps:
        outer = Scope(scope.level, Order({}, (), frozenset(), None), frozenset(), once, scope)
    body, falls = writer.sequence(writer.contexts.path_of(context), here, depth + 1)
    final, ends = writer.sequence(handler, {context.anchor: Arrival()}, depth + 1, outer=outer)
    _leave_finally(writer, final, ends, End(context.anchor), handler, outer)
    statement: ast.stmt = ast.Try(body, [], [], final)
    falls = as_one_jump(merged(as_one_jump(falls), once.breaks))
    if outer is not None and outer is not scope:
        statement = ast.While(ast.Constant(True), [statement, ast.Break()], [])
    return _behind([statement], falls, writer.contexts.path_of(context), scope, writer)


def _behind(statements: List[ast.stmt], falls: Live, inside: Path, scope: Scope, writer: Writer) -> Written:
    """Return ``statements``, which run code when control leaves them from ``inside``, with the assignments that have to
    follow them."""
    states, level = writer.states, scope.level
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


def _jumps_out(writer: Writer, handler: Path) -> Set[int]:
    """Return the targets of jumps out of the ``finally`` clause at ``handler``."""
    result: Set[int] = set()
    for id, path in writer.contexts.paths.items():
        if path[: len(handler)] == handler:
            for target in writer.edges.exits(id):
                way = writer.edges.way(writer.edges.path_behind(id, target), target)
                if way.returned is None and writer.contexts.paths[way.target][: len(handler)] != handler:
                    result.add(way.target)
    return result


def _leave_finally(
    writer: Writer, final: List[ast.stmt], ends: Live, end: End, handler: Path, outer: Optional[Scope]
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
        part, _ = writer.leave(target, arrival, outer)
        final.append(ast.If(writer.states.test(handler, [target]), part, []))


def _group_clause(writer: Writer, clause: Clause, following: int, handler: Path, depth: int) -> List[ast.stmt]:
    """Return the body of an ``except*`` clause, which control leaves only at its end."""
    cut = frozenset({following})
    part, falls = writer.sequence(handler, {clause.start: Arrival()}, depth + 1, cut=cut)
    if set(falls) - cut:
        raise Unstructured(f"the except* clause at node {clause.start} is exited by a jump")
    drop_all(falls)
    return part


def _after_groups(
    writer: Writer, body: List[ast.stmt], clauses: List[ast.ExceptHandler], falls: Live, context: Context, depth: int
) -> Written:
    end = writer.edges.clauses(context)[-1].following
    assert end is not None
    part, more = writer.sequence(
        writer.contexts.path_of(Context(Kind.HANDLER, context.anchor)), {end: Arrival()}, depth
    )
    falls = merged(falls, more)
    if any(not isinstance(statement, Assignment) for statement in part):
        raise Unstructured(f"node {end} does more than end a try statement with except*")
    statement = ast.TryStar(body=body, handlers=clauses, orelse=[], finalbody=[])
    if len(falls) < 2:
        return [statement, *part], as_one_jump(falls)
    for clause in clauses:  # only behind one of them does control reach the end
        clause.body.extend(part)
    return [statement], as_one_jump(falls)


def write_with(writer: Writer, enter: WithEnter, target: int, scope: Scope, depth: int) -> Written:
    context = writer.contexts.with_context(enter.origin)
    if context is None:
        raise Unstructured(f"the with statement at offset {enter.origin} guards nothing")
    level = writer.contexts.path_of(context)
    body, falls = writer.sequence(level, {writer.edges.way(level, target).target: Arrival()}, depth + 1)
    swallowed = writer.edges.suppressed(context).target
    assignment = writer.states.assignment(scope.level, swallowed, passing=level)
    kind = ast.AsyncWith if enter.async_ else ast.With
    statement = kind(items=[ast.withitem(enter.manager, enter.target)], body=body)
    falls = as_one_jump(merged(falls, {swallowed: Arrival(1, [assignment])}))
    return _behind([assignment, statement], falls, level, scope, writer)
