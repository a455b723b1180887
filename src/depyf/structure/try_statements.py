"""``try`` statements: the body, the clauses, ``else``, ``finally``, and the node after the statement."""

from __future__ import annotations

import ast
from typing import List, Optional, Tuple

from depyf.bytecode.lines import Span
from depyf.bytecode.syntax_trees import TRY_STATEMENTS, TryStatement
from depyf.flow.graph import Jump, Region
from depyf.lift.nodes import BindException, ExceptionTest, PopException, Reraise, WithDecision
from depyf.lift.places import first_place, place_of, put
from depyf.structure.except_star import (
    after_groups,
    group_clauses,
    handles_groups,
    try_statement,
)
from depyf.structure.follow import choose_follow, open_targets
from depyf.structure.place import Place
from depyf.structure.regions import destination, exits_of, nodes_inside
from depyf.structure.structurer import Structurer
from depyf.structure.unstructured import Unstructured


def write_try(
    structurer: Structurer, start: int, region: Region, place: Place, result: List[ast.stmt]
) -> Optional[int]:
    """Write the statement; return the node after it, ``None`` if there is none."""
    handler = structurer.nodes[region.entry]
    inside = nodes_inside(structurer, region)
    body_exits = [destination(structurer, exit, region, place) for exit in exits_of(structurer, inside)]
    if region in structurer.flow.finally_regions:
        end = structurer.shape.overridden_end(inside, region)
        follow = choose_follow(structurer, body_exits, place) if end is None else end
        body = structurer.sequence(
            start, place._replace(follow=follow, regions=(*place.regions, region)), entering=True
        )
        final = structurer.sequence(
            region.entry,
            place._replace(follow=None, handlers=(*place.handlers, region.entry), finalizer=region.entry),
        )
        result.append(_try_finally(structurer, body, final))
        return follow if end is None else None
    if isinstance(handler.terminator, WithDecision):
        raise Unstructured(f"node {start}: the body of a with statement is entered from elsewhere")
    handler_exits = _handler_exits(structurer, region, place)
    if handles_groups(handler):
        follow, orelse_entry = after_groups(structurer, region, place, body_exits)
    else:
        follow, orelse_entry = _after_try(structurer, region, body_exits, handler_exits, place)
    body_follow = orelse_entry if orelse_entry is not None else follow
    body = structurer.sequence(
        start, place._replace(follow=body_follow, regions=(*place.regions, region)), entering=True
    )
    clauses = _clauses_of(structurer, region, place._replace(follow=follow, handlers=(*place.handlers, region.entry)))
    orelse = structurer.sequence(orelse_entry, place._replace(follow=follow)) if orelse_entry is not None else []
    result.append(_placed_try(structurer, try_statement(handler, body, clauses, orelse)))
    return follow


def _placed_try(structurer: Structurer, statement: TryStatement) -> ast.stmt:
    """Return a ``try`` statement with the span of its start."""
    first = first_place(statement.body[0])
    if first is not None:
        put(statement, structurer.flow.written_jumps.around(first, _place_of_clause(statement) or first))
    return statement


def _handler_exits(structurer: Structurer, region: Region, place: Place) -> List[int]:
    members = set(structurer.shape.handled.get(region.entry, ()))
    return [destination(structurer, exit, region, place) for exit in exits_of(structurer, members)]


def _after_try(
    structurer: Structurer, region: Region, body_exits: List[int], handler_exits: List[int], place: Place
) -> Tuple[Optional[int], Optional[int]]:
    """Return the node after the statement, and the first node of its else clause; ``None`` for each that does not
    exist."""
    normal = choose_follow(structurer, body_exits, place) if open_targets(structurer, body_exits, place) else None
    handled = (
        choose_follow(structurer, handler_exits, place) if open_targets(structurer, handler_exits, place) else None
    )
    if normal is None and handled is None:
        return place.follow, None
    if handled is None or normal is None or normal == handled:
        return (normal if normal is not None else handled), None
    behind = _is_behind_handler(structurer, normal, region) and not _runs_to_its_end(structurer, region)
    if handled == place.follow and behind:
        if handled == place.continues or structurer.shape.is_copyable(handled):
            return normal, None
    if handled == place.follow or structurer.shape.index[handled] > structurer.shape.index[normal]:
        if normal == place.follow:
            return handled, None
        return handled, normal
    return normal, None


def _runs_to_its_end(structurer: Structurer, region: Region) -> bool:
    """Return whether the bytecode shows that the end of an ``except`` clause is reached, and not a jump. Only that end
    jumps to the implicit return of a function (3.8, 3.9): a ``return`` returns where it is."""
    for id in structurer.shape.handled.get(region.entry, ()):
        node = structurer.nodes[id]
        marks = [each for each in node.statements if isinstance(each, PopException) and each.handler == region.entry]
        if any(mark.offset in structurer.flow.clause_ends for mark in marks):
            return True
        block = structurer.flow.blocks.get(node.last_block)
        term = block.term if marks and block is not None else None
        if isinstance(term, Jump) and term.offset >= 0 and term.target == structurer.end:
            return True
    return False


def _is_behind_handler(structurer: Structurer, id: int, region: Region) -> bool:
    """Return whether node ``id`` was placed after the handler of ``region``, and so is not its ``else`` clause. The
    handler then ends in a ``return`` or ``continue``."""
    return structurer.nodes[id].offset > structurer.nodes[region.entry].offset


def _clauses_of(structurer: Structurer, region: Region, place: Place) -> List[ast.ExceptHandler]:
    if handles_groups(structurer.nodes[region.entry]):
        return group_clauses(structurer, region, place)
    clauses: List[ast.ExceptHandler] = []
    current = region.entry
    while True:
        node = structurer.nodes[current]
        term = node.terminator
        first = node.statements[0] if node.statements else None
        if isinstance(first, BindException) and first.target is None:
            clauses.append(ast.ExceptHandler(None, None, _clause_body(structurer, current, place)))
            return clauses
        if isinstance(term, Reraise) and not node.statements and clauses:
            structurer.written.add(current)
            return clauses
        if isinstance(term, ExceptionTest) and not node.statements and term.handler == region.entry:
            structurer.written.add(current)
            bind = structurer.nodes[term.match].statements[:1]
            name = None
            if bind and isinstance(bind[0], BindException) and isinstance(bind[0].target, ast.Name):
                name = bind[0].target.id
            elif not bind or not isinstance(bind[0], BindException) or bind[0].target is not None:
                raise Unstructured(f"node {term.match} does not start an except clause")
            clauses.append(ast.ExceptHandler(term.type, name, _clause_body(structurer, term.match, place)))
            current = term.other
            continue
        body = structurer.sequence(current, place._replace(finalizer=None))
        clauses.append(ast.ExceptHandler(None, None, body))
        return clauses


def _clause_body(structurer: Structurer, start: int, place: Place) -> List[ast.stmt]:
    return structurer.sequence(start, place) or [ast.Pass()]


def _place_of_clause(statement: TryStatement) -> Optional[Span]:
    """Return a span in ``statement`` outside of its body; ``None`` if it has none. The body is excluded because ``while
    True`` also starts with a NOP."""
    if not statement.handlers:
        return first_place(statement.finalbody[0])
    handler = statement.handlers[0]
    if handler.type is None and not isinstance(statement.body[0], ast.While):
        return None  # the clause may contain only what follows the statement
    return first_place(handler.type or handler)


def _try_finally(structurer: Structurer, body: List[ast.stmt], final: List[ast.stmt]) -> ast.stmt:
    """Return one statement for ``try`` inside of ``try``/``finally``, unless two of them start there."""
    outer = ast.Try(body or [ast.Pass()], [], [], final or [ast.Pass()])
    inner = outer.body[0]
    first = first_place(inner.body[0] if isinstance(inner, TRY_STATEMENTS) else inner)
    if first is not None:
        put(outer, structurer.flow.written_jumps.around(first, first_place(outer.finalbody[0]) or first))
    return joined_try(outer) or outer


def joined_try(outer: ast.stmt) -> Optional[TryStatement]:
    """Return ``outer``, which has a ``finally`` clause only, with the clauses of the ``try`` that is its whole body;
    ``None`` if it has another body, or line tables show two statements."""
    if not isinstance(outer, ast.Try) or outer.handlers or len(outer.body) != 1:
        return None
    inner, place = outer.body[0], place_of(outer)
    if not isinstance(inner, TRY_STATEMENTS) or inner.finalbody or place_of(inner) not in (None, place):
        return None
    joined = type(inner)(inner.body, inner.handlers, inner.orelse, outer.finalbody)
    put(joined, place)
    return joined
