"""The edges of a lifted graph, grouped by the innermost context that contains both ends (the level of the edge).

On one level, each ``try`` statement, ``with`` or ``for`` is one element with everything inside of it; so the edges of a
level form a plain graph of elements.
"""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.lift.items import Value
from depyf.decompiler.lift.nodes import (
    BindException,
    ExceptionTest,
    Goto,
    Loop,
    MatchTest,
    Node,
    PopException,
    Reraise,
    Return,
    WithDecision,
    WithEnter,
    WithExit,
)
from depyf.decompiler.structure.dispatch.contexts import Context, Contexts, Kind, Path, common
from depyf.decompiler.structure.dispatch.match import cases_of
from depyf.decompiler.structure.unstructured import Unstructured

Element = Union[int, Context]
"""The elements of a level: nodes (a header represents its whole loop) and ``try`` or ``with`` bodies."""


class Way(NamedTuple):
    """The final target of a jump, with marks skipped; ``returned`` if that is a bare ``return``."""

    target: int
    returned: Optional[ast.expr]


class Edge(NamedTuple):
    source: Element
    target: Element
    node: int


@dataclass(frozen=True)
class Clause:
    """``except type as name`` (a bare ``except`` without ``type``) with the entry node ``start``. A clause of
    ``except*`` ends where the ``following`` one is tested."""

    type: Optional[ast.expr]
    name: Optional[str]
    start: int
    following: Optional[int] = None


class Edges:
    """All edges reachable from the entry; ``levels`` holds them by level."""

    def __init__(self, contexts: Contexts, entry: int) -> None:
        self.contexts, self.nodes, self.paths = contexts, contexts.nodes, contexts.paths
        self.entry = entry
        self.levels: Dict[Path, List[Edge]] = {}
        self._known: Set[Tuple[Element, int]] = set()
        self._handlers: Dict[Context, List[Clause]] = {}
        self._suppressed: Dict[Context, Way] = {}
        self._walk()

    # --- single jumps ------------------------------------------------------------------------------------------------

    def way(self, path: Path, target: int) -> Way:
        """Return the jump to ``target`` from code at ``path``. Raises ``Unstructured`` if it does not exit each
        ``with`` and ``finally`` in between as Python would."""
        # JUMP 1; 1: call of the exit of a ``with``; 2: RETURN     the way leads from the JUMP past 1 to 2
        #
        # Python runs the exit where control leaves the statement, so the marks on the way must be exactly those of the
        # ``with`` statements that the jump leaves.
        ended: Set[Optional[Context]] = set()
        id, seen = target, set()
        while id not in seen:
            seen.add(id)
            node = self.nodes[id]
            ended.update(Context(Kind.TRY, region.entry) for region in node.leaves)
            if not self._is_passed(node):
                break
            ended.update(
                self.contexts.with_context(mark.origin) for mark in node.statements if isinstance(mark, WithExit)
            )
            assert isinstance(node.terminator, Goto)
            id = node.terminator.target
        left = path[len(common(path, self.paths[id])) :]
        managers = {context for context in left if context.kind is Kind.TRY and self.contexts.is_with(context)}
        if not managers <= ended or not ended <= set(left):  # all exits of a finally are known to run its body
            raise Unstructured(f"node {id} is reached from {path} without exiting it properly")
        return Way(id, self._returned(id, past_finally=any(self.contexts.is_finally(context) for context in left)))

    def _is_passed(self, node: Node) -> bool:
        """Return whether ``node`` only marks the exit of regions."""
        term = node.terminator
        if not isinstance(term, Goto) or term.target == node.id:
            return False
        if not node.statements and not node.leaves:
            there = self.paths[term.target]
            return node.silent and self.paths[node.id] in (there, (*there, Context(Kind.FOR, term.target)))
        marks = (WithExit, PopException) if node.id in self.contexts.origins else (WithExit,)
        return all(isinstance(statement, marks) for statement in node.statements)

    def _returned(self, id: int, *, past_finally: bool) -> Optional[ast.expr]:
        """Return the value of a ``return`` that can replace every jump to it; ``None`` if it can't be duplicated."""
        node = self.nodes[id]
        term = node.terminator
        if not isinstance(term, Return) or node.statements or not node.silent:
            return None
        pending = id in self.contexts.origins or any(
            isinstance(item, Value) and item.expr is term.value for item in node.base
        )
        return term.value if pending or not past_finally or isinstance(term.value, ast.Constant) else None

    def exits(self, id: int) -> Sequence[int]:
        """Return the targets of the jumps at the end of node ``id`` (of the whole ``match`` statement, if it ends in
        one)."""
        node = self.nodes[id]
        if isinstance(node.terminator, MatchTest):
            return [case.body for case in cases_of(self.nodes, node)]
        return node.successors()

    def path_behind(self, id: int, target: int) -> Path:
        """Return the path of the edge from node ``id`` to ``target``: inside the loop, if ``id`` is a loop header."""
        path = self.paths[id]
        node = self.nodes[id]
        if isinstance(node.terminator, Loop) and target == node.terminator.body:
            return (*path, Context(Kind.FOR, id))
        return path

    # --- handlers ----------------------------------------------------------------------------------------------------

    def clauses(self, context: Context) -> List[Clause]:
        """Return the ``except`` clauses of a ``try`` body."""
        if context not in self._handlers:
            self._handlers[context] = list(self._find_clauses(context.anchor))
        return self._handlers[context]

    def _find_clauses(self, entry: int) -> Iterator[Clause]:
        """Yield the clauses that are tested one after the other from node ``entry`` on."""
        current, tested = entry, False
        while True:
            node = self.nodes[current]
            term = node.terminator
            # No clause matched: the exception is raised again, which every ``try`` does anyway.
            if tested and isinstance(term, Reraise) and term.value is None and not node.statements:
                return
            # Code that tests no exception is a bare ``except``.
            if not isinstance(term, ExceptionTest) or node.statements or term.handler != entry:
                yield Clause(None, None, current)
                return
            following = term.other if term.group else None
            yield Clause(term.type, self._bound_name(entry, term), term.match, following)
            current, tested = term.other, True
            if term.group and not isinstance(self.nodes[current].terminator, ExceptionTest):
                return

    def _bound_name(self, entry: int, term: ExceptionTest) -> Optional[str]:
        first = next(iter(self.nodes[term.match].statements), None)
        if not isinstance(first, BindException) or first.handler != entry:
            if term.group:
                return None
            raise Unstructured(f"node {term.match} does not start an except clause")
        if first.target is not None and not isinstance(first.target, ast.Name):
            raise Unstructured(f"node {term.match} stores the exception in a target that is not a name")
        return None if first.target is None else first.target.id

    def suppressed(self, context: Context) -> Way:
        """Return where control continues when the manager of a ``with`` suppresses an exception."""
        if context not in self._suppressed:
            term = self.nodes[context.anchor].terminator
            if not isinstance(term, WithDecision):
                raise Unstructured(f"node {context.anchor} does not look like the handler of a with statement")
            id = term.suppressed
            while context.anchor in self.nodes[id].handling:
                node = self.nodes[id]
                marks = all(isinstance(mark, (BindException, PopException)) for mark in node.statements)
                if not marks or not isinstance(node.terminator, Goto):
                    raise Unstructured(f"node {id} does more than a with statement does")
                id = node.terminator.target
            way = self.way(self.contexts.path_of(context)[:-1], id)
            self._suppressed[context] = Way(way.target, None)
        return self._suppressed[context]

    # --- levels ------------------------------------------------------------------------------------------------------

    def element(self, id: int, level: Path) -> Optional[Element]:
        """Return the element of ``level`` that node ``id`` belongs to; ``None`` if it is outside."""
        path = self.paths[id]
        if path[: len(level)] != level:
            return None
        if len(path) == len(level):
            return id
        inner = path[len(level)]
        return inner.anchor if inner.kind is Kind.FOR else Context(Kind.TRY, inner.anchor)

    def _walk(self) -> None:
        """Collect the edges that are reachable from the entry. A handler is reachable if its ``try`` is."""
        seen: Set[int] = set()
        todo = [self.entry]
        opened: Set[Context] = set()
        while todo:
            id = todo.pop()
            if id in seen:
                continue
            seen.add(id)
            for target in self.exits(id):
                way = self.way(self.path_behind(id, target), target)
                if way.returned is None:
                    todo.append(way.target)
                    self._add(id, self.paths[id], way.target)
            for context in self.paths[id]:
                if context.kind is Kind.TRY and context not in opened:
                    opened.add(context)
                    todo.extend(self._open(context))

    def _open(self, context: Context) -> List[int]:
        """Return where control continues when an exception reaches ``context``."""
        if self.contexts.is_with(context):
            way = self.suppressed(context)
            self._add(context, self.contexts.path_of(context)[:-1], way.target)
            return [way.target]
        if self.contexts.is_finally(context):
            return [context.anchor]
        clauses = self.clauses(context)
        ends = [clause.following for clause in clauses[-1:] if clause.following is not None]
        return [clause.start for clause in clauses] + ends

    def _add(self, source: Element, path: Path, target: int) -> None:
        """Add the edge from ``source``, at ``path``, to the level that both of its ends are in."""
        # Seen from that level, all jumps out of a statement to one target are one edge: ``once``. Two branches of an
        # ``if`` to one target are two edges, since each of them may have to write the target.
        level = common(path, self.paths[target])
        if isinstance(source, int):
            inside = self.element(source, level)
            assert inside is not None
            if inside != source or isinstance(self.nodes[source].terminator, Loop):
                source, once = inside, True
            else:
                once = bool(self.nodes[source].statements) and isinstance(self.nodes[source].statements[-1], WithEnter)
        else:
            inner = path[len(level) :]
            source, once = (source if not inner else _outermost(inner)), True
        element = self.element(target, level)
        assert element is not None
        if element == source and isinstance(element, int) and isinstance(self.nodes[element].terminator, Loop):
            return  # the back edge of a for loop, and the edge into its body
        if once and (source, target) in self._known:
            return
        self._known.add((source, target))
        self.levels.setdefault(level, []).append(Edge(source, element, target))


def _outermost(path: Path) -> Element:
    inner = path[0]
    return inner.anchor if inner.kind is Kind.FOR else Context(Kind.TRY, inner.anchor)


def is_with_enter(node: Node) -> bool:
    return bool(node.statements) and isinstance(node.statements[-1], WithEnter)
