"""The statements that enclose each node of a lifted graph: ``try`` bodies, handlers, ``for`` loops.

These are facts of the bytecode: protected regions come from its exception table, handlers and loops from the markers
(the handled exception, the iterator) on the stack while a node runs.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Dict, FrozenSet, List, Optional, Sequence, Set, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.base.quick_enum import Enum
from depyf.decompiler.flow.graph import FlowGraph, Jump, Region
from depyf.decompiler.lift.items import Item, Mark, Marker
from depyf.decompiler.lift.nodes import Goto, LiftedGraph, Node, PopException, Return, WithEnter, WithExit
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.structure.unstructured import Unstructured


class Kind(Enum):
    """The kind of an enclosing statement: the body of a ``try``, a handler, or a ``for`` loop."""

    TRY = "try"
    HANDLER = "handler"
    FOR = "for"


@dataclass(frozen=True)
class Context:
    """An enclosing statement; ``anchor`` is the entry node of the handler, or the loop header."""

    kind: Kind
    anchor: int

    def __repr__(self) -> str:
        return f"{self.kind.value}@{self.anchor}"


Path = Tuple[Context, ...]
"""Contexts, outermost first."""


def with_bodies(lifted: LiftedGraph, flow: FlowGraph) -> LiftedGraph:
    """Return ``lifted``, or a copy with an empty node in each region that control leaves without having entered it."""
    # try: x = 1            N1: x = 1; a             x = 1 can't raise, so it was lifted together with a. Control would
    # finally: a()          N2 (handler): a; RERAISE reach the ``finally`` part without having entered the statement.
    nodes = lifted.nodes
    fresh = min([*nodes, 0]) - 1
    result = dict(nodes)
    for id, node in nodes.items():
        for target in sorted(set(node.successors())):
            missing = [region for region in nodes[target].leaves if region not in flow.chain(node.region)]
            if not missing:
                continue
            if result[id] is node:
                result[id] = replace(node, terminator=copy.copy(node.terminator))
            after = nodes[target]
            result[fresh] = Node(
                fresh,
                missing[0],
                [],
                Goto(target),
                handling=after.handling,
                offset=after.offset,
                base=list(after.base),
                stack=list(after.base),
            )
            result[id].redirect(target, fresh)
            fresh -= 1
    return replace(lifted, nodes=result)


class Contexts:
    """The contexts of all nodes. Raises ``Unstructured`` if contexts overlap."""

    def __init__(self, lifted: LiftedGraph, flow: FlowGraph) -> None:
        self.nodes, self.flow = lifted.nodes, flow
        self.origins = self._origins()
        self.with_regions = self._with_regions()
        self.with_entries = frozenset(region.entry for region in self.with_regions.values())
        self.finally_entries = frozenset(region.entry for region in flow.finally_regions)
        self._around: Dict[Context, FrozenSet[Context]] = {}
        self.paths: Dict[int, Path] = {id: self._path(id) for id in self.nodes}

    # --- paths -------------------------------------------------------------------------------------------------------

    def _path(self, id: int) -> Path:
        """Return the contexts of node ``id``, outermost first."""
        # Sorted by how many contexts are around each, every context must have exactly the ones before it around it.
        # Otherwise two regions overlap, which no nesting of statements does.
        found = self._of(id)
        if id in self.origins or self._is_harmless(self.nodes[id]):
            found = self._closed(found)
        path: List[Context] = []
        for context in sorted(found, key=lambda context: len(self._outside(context))):
            if self._outside(context) != frozenset(path):
                where = f"node {id} (offset {self.nodes[id].offset})"
                raise Unstructured(f"{where} is in {context}, but not in all contexts around that")
            path.append(context)
        return tuple(path)

    def _closed(self, found: FrozenSet[Context]) -> FrozenSet[Context]:
        """Return the contexts of code that can't raise, which bytecode need not guard: those that markers on the stack
        show, with everything around them, and the regions that nest properly."""
        result: Set[Context] = set()
        for context in found:
            if context.kind is not Kind.TRY:
                result.update({context}, self._outside(context))
        for context in sorted(found - result, key=lambda context: len(self._outside(context))):
            if self._outside(context) == frozenset(result):
                result.add(context)
        return frozenset(result)

    def _of(self, id: int) -> FrozenSet[Context]:
        node = self.nodes[id]
        found: Set[Context] = {Context(Kind.TRY, region.entry) for region in self.flow.chain(node.region)}
        found.update(Context(Kind.HANDLER, entry) for entry in node.handling)
        found.update(Context(Kind.FOR, loop) for loop in self._iterators(id) if loop != id)
        return frozenset(found)

    def _outside(self, context: Context) -> FrozenSet[Context]:
        """Return the contexts around ``context``."""
        if context not in self._around:
            if context.anchor not in self.nodes:
                raise Unstructured(f"{context} is not in the graph")
            self._around[context] = self._of(context.anchor) - {Context(Kind.HANDLER, context.anchor)}
        return self._around[context]

    def _iterators(self, id: int) -> Set[int]:
        """Return the loops whose iterators are on the stack while node ``id`` runs."""
        if id not in self.origins:
            return _loops_on(self._without_dropped(id))
        whole = self.nodes[self.origins[id]]
        return _loops_on(whole.base) & _loops_on(whole.stack)

    def _without_dropped(self, id: int) -> List[Item]:
        """Return the stack of node ``id`` without the iterators that it pops first, as ``break`` does."""
        # FOR body: POP_TOP; JUMP 1     ``break``: the iterator is on the stack, but the code is no longer in the loop
        stack = list(self.nodes[id].base)
        block = self.flow.blocks.get(id)
        while block is not None:
            for instr in block.ops:
                if instr.op is not Op.POP or not stack or not _loops_on(stack[-1:]):
                    return stack
                stack.pop()
            following = block.term.target if isinstance(block.term, Jump) else None
            block = None if following is None or following in self.nodes else self.flow.blocks[following]
        return stack

    def _origins(self) -> Dict[int, int]:
        """Return the original node of each node that was split off after a mark."""
        origins: Dict[int, int] = {}
        for id, node in self.nodes.items():
            current = node
            while node.id not in origins and isinstance(current.terminator, Goto) and current.statements:
                target = current.terminator.target
                rest = self.nodes[target]
                cut = isinstance(current.statements[-1], (WithExit, PopException)) and target not in self.flow.blocks
                if not cut or rest.base or rest.stack or target in origins:
                    break
                origins[target] = id
                current = rest
        return origins

    def _is_harmless(self, node: Node) -> bool:
        """Return whether ``node`` can't raise and only leaves a handler: bytecode need not guard it."""
        marks = all(isinstance(statement, PopException) for statement in node.statements)
        return node.silent and marks and isinstance(node.terminator, (Goto, Return))

    # --- with --------------------------------------------------------------------------------------------------------

    def _with_regions(self) -> Dict[int, Region]:
        """Return the region of each ``with`` by the origin of its marks."""
        result: Dict[int, Region] = {}
        for node in self.nodes.values():
            if node.statements and isinstance(node.statements[-1], WithEnter) and isinstance(node.terminator, Goto):
                around = self.flow.chain(node.region)
                inner = [
                    region
                    for region in self.flow.chain(self.nodes[node.terminator.target].region)
                    if region not in around
                ]
                if inner:
                    result[node.statements[-1].origin] = inner[-1]
        return result

    def with_context(self, origin: int) -> Optional[Context]:
        region = self.with_regions.get(origin)
        return None if region is None else Context(Kind.TRY, region.entry)

    def is_with(self, context: Context) -> bool:
        return context.anchor in self.with_entries

    def is_finally(self, context: Context) -> bool:
        return context.kind is not Kind.FOR and context.anchor in self.finally_entries

    def path_of(self, context: Context) -> Path:
        """Return the path of the code directly inside of ``context``."""
        anchor = self.paths[context.anchor]
        if context.kind is not Kind.FOR:
            anchor = tuple(other for other in anchor if other != Context(Kind.HANDLER, context.anchor))
        return (*anchor, context)


def _loops_on(stack: Sequence[Item]) -> Set[int]:
    return {item.origin for item in stack if isinstance(item, Marker) and item.kind is Mark.ITER}


def common(one: Path, two: Path) -> Path:
    """Return the contexts that both paths share."""
    length = 0
    while length < min(len(one), len(two)) and one[length] == two[length]:
        length += 1
    return one[:length]
