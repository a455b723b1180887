"""``while`` and ``for``: the test, the body, and the node after the loop."""

from __future__ import annotations

import ast
from typing import List, Optional, Set, Tuple

from depyf.bytecode.lines import Span
from depyf.flow.graph import Jump
from depyf.lift import build
from depyf.lift.nodes import (
    BindException,
    Condition,
    Loop,
    Node,
    PopException,
    Raise,
    Reraise,
    Return,
    Terminator,
    WithDecision,
    WithExit,
)
from depyf.lift.places import column_of, first_place, put, start_of
from depyf.structure.jumps import return_statement
from depyf.structure.place import Place
from depyf.structure.regions import behind_marks, is_mark, nodes_inside, past_marks, region_opened_at
from depyf.structure.structurer import Structurer
from depyf.structure.try_statements import write_try


def loop_is_next(structurer: Structurer, header: int, place: Place) -> bool:
    """Return whether the loop is opened next: not before a region that starts with it and contains all of it."""
    region = region_opened_at(structurer, header, place)
    if region is None:
        return True
    return not all(region in structurer.shape.regions_of(id) for id in structurer.shape.loops[header])


def write_loop(structurer: Structurer, header: int, place: Place, result: List[ast.stmt]) -> Optional[int]:
    """Write the statement; return the node after it, ``None`` if there is none."""
    node = structurer.nodes[header]
    term = node.terminator
    test, inside, out = _loop_test(structurer, header, node)
    members = _with_inlined_exits(structurer, header, out, place)
    after = _after_loop(structurer, members, out, place)
    structurer.open_loops.add(header)
    inner = place._replace(follow=header, continues=header, breaks=after)
    if isinstance(term, Loop):
        structurer.check_place(node, place)
        structurer.written.add(header)
        body = structurer.sequence(term.body, inner)
    elif test is not None:
        structurer.written.add(header)
        body = structurer.sequence(inside, inner)
    else:
        body = _endless_body(structurer, header, inner)
    structurer.open_loops.discard(header)
    orelse: List[ast.stmt] = []
    if out is not None and out != after and after is not None:
        orelse = structurer.sequence(out, place._replace(follow=after))
    elif out is not None and after is None:
        after = out
    loop = _loop_statement(term, test, body, orelse)
    if isinstance(loop, ast.While) and test is None:
        _place_constant(structurer, loop)
    result.append(loop)
    return after


def _place_constant(structurer: Structurer, loop: ast.While) -> None:
    """Record the span of the constant that the endless ``loop`` tests."""
    constant = _constant_before(structurer, loop.body[0])
    put(loop.test, constant)
    structurer.constants.add(constant)


def _constant_before(structurer: Structurer, first: ast.stmt) -> Optional[Span]:
    """Return the span of the constant of the endless loop that ``first`` is the first statement in; ``None`` if it is
    unknown."""
    start = start_of(first) if first_place(first) is not None else None
    return None if start is None else structurer.flow.written_jumps.constant_of_loop(start.line, start.column)


def _endless_body(structurer: Structurer, header: int, inner: Place) -> List[ast.stmt]:
    """Return the body of ``while True``. Its first node is the header itself, which must not be taken for a back
    edge."""
    region = region_opened_at(structurer, header, inner)
    if region is not None:
        body: List[ast.stmt] = []
        after = write_try(structurer, header, region, inner, body)
        return body + (structurer.sequence(after, inner) if after is not None else [])
    node = structurer.nodes[header]
    structurer.check_place(node, inner)
    structurer.written.add(header)
    body = []
    place = structurer.statements(node, inner, body)
    following = structurer.terminate(node, place, body)
    return body + (structurer.sequence(following, place) if following is not None else [])


def _loop_test(
    structurer: Structurer, header: int, node: Node
) -> Tuple[Optional[ast.expr], Optional[int], Optional[int]]:
    """Return the test, the first node of the body, and the node after the loop; no test for ``for`` and ``while
    True``."""
    term, members = node.terminator, structurer.shape.loops[header]
    if isinstance(term, Loop):
        return None, term.body, term.exhausted
    may_test = header in structurer.flow.copied_tests or not structurer.flow.code.copies_loop_tests
    may_test = may_test or header in structurer.shape.single_loops
    if isinstance(term, Condition) and not node.statements and not term.keep:
        copies = bool(structurer.flow.finally_regions)  # jumps of a finally body may hide that the test had a copy
        if not may_test and (copies or structurer.flow.written_jumps.may_loop_before(first_place(term.test))):
            return None, None, None
        if structurer.flow.written_jumps.loops_before(first_place(term.test)):
            return None, None, None
        if term.fall in members and term.target not in members:
            return term.test, term.fall, term.target
        if term.target in members and term.fall not in members:
            return build.negate(term.test), term.target, term.fall
    return None, None, None


def _with_inlined_exits(structurer: Structurer, header: int, out: Optional[int], place: Place) -> Set[int]:
    """Return the loop with the nodes after it that the compiler placed inside, as in ``if x: ...; return``."""
    members = set(structurer.shape.loops[header])
    last = max(structurer.nodes[id].extent for id in members)
    if out is not None and structurer.nodes[out].offset > structurer.nodes[header].offset:
        last = structurer.nodes[out].offset - 1
    todo = [target for id in members for target in structurer.shape.successors[id]]
    todo += {
        region.entry
        for id in members
        for region in structurer.shape.regions_of(id)
        if region not in place.regions and region.entry not in place.handlers and region.entry not in members
    }
    broken: Set[int] = set()
    while todo:
        target = todo.pop()
        if target in members or target == out or place.known(target) or structurer.shape.is_copyable(target):
            continue
        if _ends_finally(structurer.nodes[target], place):
            continue
        if not structurer.shape.dominates(header, target):
            continue
        if out is None and _is_written_behind(structurer, target, header):
            continue
        if structurer.nodes[target].offset > last and not _deeper(structurer, target, header):
            if out is not None or not _is_written_inside(structurer, target, header):
                continue
        sources = structurer.shape.forward_predecessors(target)
        if any(source not in members for source in sources):
            continue
        if sources and all(source in broken or _breaks_out(structurer, source, target, header) for source in sources):
            final = past_marks(structurer, target, place)
            jumps = final in (out, header) or place.known(final) or structurer.shape.is_copyable(final)
            if not jumps and not _only_ends(structurer, structurer.nodes[target], header):
                continue
            broken.add(target)
        members.add(target)
        todo.extend(structurer.shape.successors[target])
        region = structurer.nodes[target].region
        if region is not None and region not in structurer.shape.regions_of(header):
            todo.append(region.entry)
    return members


def _is_written_inside(structurer: Structurer, target: int, header: int) -> bool:
    """Return whether the column of ``target`` shows that it is in the endless loop at ``header``. Nothing of the loop
    needs to be behind it: since 3.14 there are several jumps back. What another loop starts with is in that one."""
    column = column_of(_statements(structurer, structurer.nodes[target]))
    if column is None or target in structurer.shape.loops:
        return False
    start = _column_of_loop(structurer, header)
    if start is not None:
        return column > start
    inside = (column_of(_statements(structurer, structurer.nodes[id])) for id in structurer.shape.loops[header])
    return column >= min((each for each in inside if each is not None), default=column + 1)


def _is_written_behind(structurer: Structurer, target: int, header: int) -> bool:
    """Return whether the column of ``target`` shows that it is behind the endless loop at ``header``. The compiler
    copies a short exit to each ``break`` (3.12), so it may have an offset in the loop."""
    first = _statements(structurer, structurer.nodes[target])[:1]
    column, start = column_of(first), _column_of_loop(structurer, header)
    return column is not None and start is not None and column <= start


def _column_of_loop(structurer: Structurer, header: int) -> Optional[int]:
    """Return the column of the endless loop at ``header``; ``None`` if it is unknown."""
    first = _statements(structurer, structurer.nodes[header])
    constant = _constant_before(structurer, first[0]) if first else None
    return None if constant is None or constant.column is None else constant.column - len("while ")


def _statements(structurer: Structurer, node: Node) -> List[ast.stmt]:
    """Return the statements that start in ``node``."""
    term = node.terminator
    statements = [each for each in node.statements if isinstance(each, ast.stmt)]
    if isinstance(term, Condition) and not term.keep:
        statements.append(ast.If(term.test, [], []))
    elif isinstance(term, Return):
        statements.append(return_statement(structurer, term))
    elif isinstance(term, Raise):
        statements.append(term.statement)
    return statements


def _ends_finally(node: Node, place: Place) -> bool:
    """Return whether ``node`` is the end of the ``finally`` clause that is written: only ``break`` jumps there out of a
    loop."""
    return isinstance(node.terminator, Reraise) and node.terminator.handler == place.finalizer


def _breaks_out(structurer: Structurer, source: int, target: int, header: int) -> bool:
    """Return whether node ``source`` jumps to ``target`` out of a statement in the loop at ``header`` that ends
    elsewhere. No code can be written between the end of such a statement and the jump."""
    node, loop = structurer.nodes[source], structurer.shape.loops[header]
    exits = [structurer.shape.with_region.get(mark.origin) for mark in node.statements if isinstance(mark, WithExit)]
    for region in (*exits, *node.leaves):
        if region is None or region in structurer.shape.regions_of(header):
            continue
        decision = structurer.nodes[region.entry].terminator
        if isinstance(decision, WithDecision):
            if behind_marks(structurer, decision.suppressed, region) != target:
                return True
            continue
        # the last mark in the bytecode is that of its end
        marks = nodes_inside(structurer, region).difference(structurer.shape.guarded.get(region, ()))
        last = max(marks, key=lambda mark: _last_way_to(structurer, mark))
        if last != source and behind_marks(structurer, last, region) in loop:
            return True
    return False


def _is_empty(node: Node) -> bool:
    """Return whether ``node`` only jumps, or drops an iterator."""
    return is_mark(node) and not node.statements and not node.leaves


def _only_ends(structurer: Structurer, node: Node, header: int) -> bool:
    """Return whether ``node`` only ends regions and handlers that were opened in the loop at ``header``, if any: so it
    is part of a jump out of the loop, wherever that leads."""
    regions, handlers = structurer.shape.regions_of(header), structurer.nodes[header].handling
    ended = [structurer.shape.with_region.get(mark.origin) for mark in node.statements if isinstance(mark, WithExit)]
    handled = [mark.handler for mark in node.statements if isinstance(mark, (PopException, BindException))]
    inside = all(each not in regions for each in (*ended, *node.leaves)) and all(
        each not in handlers for each in handled
    )
    return is_mark(node) and inside


def _last_way_to(structurer: Structurer, id: int) -> Tuple[int, bool]:
    """Return the offset of the last edge to node ``id``, and whether it is the jump of a branch."""
    before = [structurer.nodes[source] for source in structurer.shape.predecessors[id]]
    jumps = [isinstance(node.terminator, Condition) and node.terminator.target == id for node in before]
    return max(zip([node.extent for node in before], jumps), default=(-1, False))


def _deeper(structurer: Structurer, target: int, header: int) -> bool:
    """Return whether ``target`` is in a region or handler that was opened inside of the loop."""
    node, outer = structurer.nodes[target], structurer.nodes[header]
    if any(handler not in outer.handling for handler in node.handling):
        return True
    return any(region not in structurer.shape.regions_of(header) for region in structurer.shape.regions_of(target))


def _after_loop(structurer: Structurer, members: Set[int], out: Optional[int], place: Place) -> Optional[int]:
    exits: List[int] = []
    for id in members:
        for target in structurer.shape.successors[id]:
            if target not in members and target not in exits and target != out:
                if not structurer.shape.is_copyable(target) or (target == place.follow and _jumps(structurer, id)):
                    exits.append(target)
    if out is not None and any(
        out in structurer.shape.successors[id] and not _is_loop_exit(structurer, id, out) for id in members
    ):
        return out
    if out is not None:
        drops = [target for target in exits if _is_empty(structurer.nodes[target])]
        if drops == exits and all(past_marks(structurer, target, place) == out for target in drops):
            return out
        exits = [target for target in exits if not _only_returns(structurer, target, place)]
    if not exits:
        return out
    # an enclosing target that is not a return can only be reached by an exit of the loop
    known = [target for target in exits if place.known(target) and not structurer.shape.is_copyable(target)]
    fresh = [target for target in exits if not place.known(target)]
    return max(known or fresh or exits, key=lambda id: structurer.shape.index[id])


def _jumps(structurer: Structurer, id: int) -> bool:
    """Return whether node ``id`` does not end an ``except`` clause with a ``return``. Where the compiler copies the
    last return of a function into its predecessors, that has the same bytecode as ``break``."""
    node, block = structurer.nodes[id], structurer.flow.blocks.get(id)
    if structurer.flow.code.copies_loop_tests or block is None or not isinstance(block.term, Jump):
        return True
    ends_clause = any(isinstance(statement, PopException) for statement in node.statements)
    return not ends_clause or max(block.term.offset, block.jumps_from) >= 0


def _only_returns(structurer: Structurer, id: int, place: Place) -> bool:
    """Return whether node ``id`` exits regions and returns, so that it may be duplicated."""
    end = past_marks(structurer, id, place)
    return end != id and not place.known(end) and structurer.shape.is_copyable(end)


def _is_loop_exit(structurer: Structurer, id: int, out: int) -> bool:
    term = structurer.nodes[id].terminator
    return id in structurer.shape.loops and (
        (isinstance(term, Loop) and term.exhausted == out)
        or (isinstance(term, Condition) and not structurer.nodes[id].statements and out in (term.fall, term.target))
    )


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
