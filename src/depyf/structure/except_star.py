"""``try`` with ``except*``: each clause ends where the next one starts; the last one exits the handler."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, List, Optional, Tuple, Type

from depyf.bytecode.syntax_trees import TryStatement
from depyf.lift.nodes import BindException, ExceptionTest, Goto, Node, PopException
from depyf.structure.follow import choose_follow, open_targets
from depyf.structure.regions import destination
from depyf.structure.structurer import Structurer
from depyf.structure.unstructured import Unstructured

if TYPE_CHECKING:
    from depyf.flow.graph import Region
    from depyf.structure.place import Place


def handles_groups(handler: Node) -> bool:
    """Return whether ``handler`` is the first node of an ``except*`` clause."""
    return isinstance(handler.terminator, ExceptionTest) and handler.terminator.group


def try_statement(
    handler: Node, body: List[ast.stmt], clauses: List[ast.ExceptHandler], orelse: List[ast.stmt]
) -> TryStatement:
    """Return ``try`` with the clauses of ``handler``."""
    kind: Type[TryStatement] = ast.TryStar if handles_groups(handler) else ast.Try
    return kind(body=body or [ast.Pass()], handlers=clauses, orelse=orelse, finalbody=[])


def after_groups(
    structurer: Structurer, region: Region, place: Place, body_exits: List[int]
) -> Tuple[Optional[int], Optional[int]]:
    """Return the node after the statement and the first node of its else clause, ``None`` for each that does not exist.
    A clause can only reach its end or raise, so the end of the handler leads to the node after the statement."""
    current, seen = region.entry, set()
    while current not in seen:
        seen.add(current)
        term = structurer.nodes[current].terminator
        if not isinstance(term, ExceptionTest):
            break
        current = term.other
    term = structurer.nodes[current].terminator
    if not isinstance(term, Goto):
        raise Unstructured(f"node {current} does not end an except* statement")
    follow = destination(structurer, term.target, region, place)
    normal = choose_follow(structurer, body_exits, place) if open_targets(structurer, body_exits, place) else None
    return follow, normal if normal not in (follow, place.follow) else None


def group_clauses(structurer: Structurer, region: Region, place: Place) -> List[ast.ExceptHandler]:
    """Return the ``except*`` clauses of ``region``; ``place`` is inside of its handler. Raises ``Unstructured``."""
    clauses: List[ast.ExceptHandler] = []
    current = region.entry
    while True:
        node = structurer.nodes[current]
        term = node.terminator
        structurer.written.add(current)
        first = node.statements[0] if node.statements else None
        if clauses and isinstance(first, PopException) and first.handler == region.entry:
            return clauses
        if not isinstance(term, ExceptionTest) or not term.group or term.handler != region.entry or node.statements:
            raise Unstructured(f"node {current} (offset {node.offset}) is not an except* clause")
        inner = place._replace(follow=term.other, continues=None, breaks=None)
        body = structurer.sequence(term.match, inner) or [ast.Pass()]
        clauses.append(ast.ExceptHandler(term.type, _name(structurer.nodes[term.match], region), body))
        current = term.other


def _name(node: Node, region: Region) -> Optional[str]:
    first = node.statements[0] if node.statements else None
    if isinstance(first, BindException) and first.handler == region.entry and isinstance(first.target, ast.Name):
        return first.target.id
    return None
