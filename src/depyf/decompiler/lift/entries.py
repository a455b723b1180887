"""The operand stacks at the entries of blocks: the stack on each edge, and the join of values where edges meet."""

from __future__ import annotations

import ast
from typing import Dict, List, Optional

from depyf.decompiler.flow.graph import Block, FlowGraph, For, Region
from depyf.decompiler.flow.order import Order
from depyf.decompiler.lift.containers import copied, holds_containers, parts
from depyf.decompiler.lift.context import LiftContext
from depyf.decompiler.lift.items import Container, Copy, Function, Item, Mark, Marker, Retry, Target, Value
from depyf.decompiler.lift.nodes import Condition, Goto, Loop, Node
from depyf.decompiler.lift.simulator import Simulator


class Entries:
    """The stacks at the entries of blocks; ``edges`` are the nodes from which each block is entered."""

    def __init__(self, graph: FlowGraph, order: Order, context: LiftContext, edges: Dict[int, List[Node]]) -> None:
        self.graph, self.order, self.context, self.edges = graph, order, context, edges
        self.nodes = context.nodes
        self.handler_bases: Dict[int, List[Item]] = {}
        """The operand stack at the entry of each handler."""

    def remember_handler_base(self, region: Region, block: Block, node: Node) -> None:
        """Record the operand stack at the entry of the handler of ``region``, which covers ``block``. Raises ``Retry``
        or ``ValueError`` if a slot below the exception holds a pending value."""
        # Every operation of the region may raise, so the slots that the handler keeps must be the same at all of them:
        # markers (the iterator of an enclosing ``for``, the exit method of a ``with``), or values in temporaries.
        base = list(node.base[: region.depth]) if node.id == block.id else list(node.stack[: region.depth])
        if len(base) < region.depth:
            raise ValueError("a handler keeps more values than the stack has")
        for item in base:
            if (isinstance(item, Value) and not item.stable) or isinstance(item, (Copy, Function, Target)):
                raise (
                    self.context.waits_no_longer(item)
                    if isinstance(item, Value)
                    else ValueError("an unevaluated value is on the stack where an exception handler starts")
                )
        if region.lasti:
            base.append(Marker(Mark.LASTI, region.entry))
        base.append(Marker(Mark.EXC, region.entry))
        self.handler_bases[region.entry] = base

    def stack_on_edge(self, node: Node, target: int) -> List[Item]:
        """Return the operand stack on the edge from ``node`` to the block ``target``."""
        term = node.terminator
        # Each branch may change its containers, so each gets its own copies.
        if self.context.follows_containers and not isinstance(term, (Goto, Loop)) and len(node.successors()) > 1:
            if holds_containers(node.stack):
                return [*copied(node.stack), *_kept(node, target)]
        # FOR_ITER drops the iterator when it is exhausted. Otherwise it keeps the iterator and pushes the next item,
        # which can only be stored: in the target of the ``for``.
        if isinstance(term, Loop):
            base = copied(node.stack[:-1])
            if target == term.exhausted:
                return base
            loop = term

            def fill(expr: ast.expr) -> None:
                loop.target = expr

            item = Target(fill, needed=True)
            return [*base, Marker(Mark.ITER, node.id), item]
        return [*node.stack, *_kept(node, target)]

    def entry_stack(self, block: Block) -> List[Item]:
        """Return the operand stack at the entry of ``block``."""
        if block.id in self.handler_bases:
            return list(self.handler_bases[block.id])
        edges = self.edges[block.id]
        if block.id == self.graph.entry and not edges:
            stack: List[Item] = []
        elif len(edges) == 1:
            stack = self.stack_on_edge(edges[0], block.id)
        else:
            stack = self._meet(block, edges)
        if isinstance(block.term, For) and not block.ops:
            stack = self._enter_loop(block, stack)
        if block.id in self.order.headers:
            stack = self._header_stack(block, edges, stack)
        return stack

    def _enter_loop(self, block: Block, stack: List[Item]) -> List[Item]:
        """Return ``stack`` with the iterator on top replaced by a marker: the ``for`` statement owns it."""
        item = stack[-1]
        if isinstance(item, Marker) and item.kind is Mark.ITER:
            return stack
        if not isinstance(item, Value):
            raise ValueError("the iterator of a loop is not a value")
        for other in stack[:-1]:
            if isinstance(other, Value) and not other.stable:
                raise self.context.waits_no_longer(other)
        if item.copies or item.tests:
            raise Retry("spill", item.copied_at)
        return [*stack[:-1], Marker(Mark.ITER, block.id, item.expr)]

    def _header_stack(self, block: Block, edges: List[Node], stack: List[Item]) -> List[Item]:
        """Return the stack at a loop header: markers, loop-invariant values, and phi variables for all other slots."""
        # The back edges are not lifted yet. A constant or a temporary is expected to be the same there; ``close_loop``
        # checks it, and restarts with a phi variable for the slot otherwise.
        result: List[Item] = []
        for slot, item in enumerate(stack):
            if isinstance(item, Marker):
                result.append(item)
            elif isinstance(item, Container):
                if not all(isinstance(part, Marker) or _is_stable(part) for part in parts([item])):
                    raise Retry("spill_end", edges[0].last_block)
                result.append(item)
            elif (
                isinstance(item, Value)
                and item.stable
                and (block.id, slot) not in self.context.decisions.phi
                and item.local is None
                and _stays(item.expr)
            ):
                result.append(item)
            else:
                result.append(self.phi(block, slot, edges))
        return result

    def _meet(self, block: Block, edges: List[Node]) -> List[Item]:
        """Return the stack at a block with several predecessors: a slot that is equal on all edges stays as it is."""
        stacks = [self.stack_on_edge(node, block.id) for node in edges]
        depth = len(stacks[0])
        if any(len(stack) != depth for stack in stacks):
            raise ValueError(f"the stack depth differs between the edges into block {block.id}")
        result: List[Item] = []
        for slot in range(depth):
            items = [stack[slot] for stack in stacks]
            first = items[0]
            if all(isinstance(item, Marker) for item in items):
                result.append(first)
            elif any(isinstance(item, Container) for item in items):
                if not all(_same_container(first, item) for item in items):
                    raise ValueError(f"tracked lists differ between the edges into block {block.id}")
                result.append(first)
            elif isinstance(first, Value) and all(_is_stable_and_same(item, first.expr) for item in items):
                result.append(Value(first.expr, True, first.local))
            else:
                result.append(self.phi(block, slot, edges))
        return result

    def phi(self, block: Block, slot: int, edges: List[Node]) -> Value:
        """Return a phi variable for ``slot``: a temporary that is assigned on every edge into ``block``."""
        name = f"__temp_{self.context.temporaries}"
        stored = []
        for node in list(edges):
            stack = self.stack_on_edge(node, block.id)
            item = stack[slot]
            if isinstance(item, Function):
                raise Retry("spill_end", node.last_block)
            if not isinstance(item, Value):
                raise ValueError(f"a stack slot is a value on some edges into block {block.id}, but not on all")
            # The assignment is written on this edge. It would be too late for a value that
            # - was evaluated before a test, and is used after both results,
            # - was evaluated in a ``with`` or ``try`` that has been left,
            # - another edge needs as well, and would evaluate again.
            if not isinstance(node.terminator, Goto) and not item.stable:
                if node.kept is item:
                    raise Retry("spill", self.copy_offset(node))
                raise self.context.waits_no_longer(item)
            if not item.stable and self._left_before(node, item):
                raise self.context.waits_no_longer(item)
            if not item.stable and item.born != node.id and len(self.edges[node.id]) == 1:
                shared = [other for other in edges if other is not node and item in self.stack_on_edge(other, block.id)]
                if shared:
                    raise self.context.waits_no_longer(item)
            stored.append((node, item))
        self.context.temporaries += 1
        for node, item in stored:
            statement = ast.Assign([ast.Name(name, ast.Store()), *item.chain], item.expr)
            if isinstance(node.terminator, Goto):  # the node has no other edge: assign at its end
                if item.copies or item.tests is not None:
                    raise Retry("spill", item.copied_at)
                self.keep_before(node, item)
                node.evaluate(item.expr, statement)
                node.stack[node.stack.index(item)] = Value(ast.Name(name, ast.Load()), True)
            else:
                self._split_edge(node, block, statement, slot, name)
        return Value(ast.Name(name, ast.Load()), True)

    def _left_before(self, node: Node, item: Value) -> bool:
        """Return whether a region was exited before ``node`` while ``item`` was pending (a return out of two managers),
        and storing it before was not tried yet."""
        if self.context.waits_no_longer(item).key in self.context.decisions.spill_end:
            return False
        return any(other is not node and other.left_with(item.expr) >= 0 for other in self.nodes.values())

    def keep_before(self, node: Node, item: Value) -> None:
        """Store the values that were evaluated before ``item`` in temporaries."""
        simulator = Simulator(self.context, node)
        earlier = [other for other in node.stack if isinstance(other, Value) and not other.stable and other is not item]
        for other in sorted(earlier, key=lambda value: value.order):
            if other.order < item.order:
                simulator.keep(other)

    def copy_offset(self, node: Node) -> int:
        """Return the byte offset of the last operation of ``node``: of the copy, if its condition may keep a value."""
        term = node.terminator
        if isinstance(term, Condition) and term.keep:
            return term.copied_at
        return self.graph.blocks[node.last_block].ops[-1].offset

    def _split_edge(self, node: Node, block: Block, statement: ast.stmt, slot: int, name: str) -> None:
        """Insert a node on the edge from ``node`` to ``block``; its ``statement`` stores ``slot`` as ``name``."""
        id = self.fresh_id()
        stack = self.stack_on_edge(node, block.id)
        between = Node(id, node.region, [statement], Goto(block.id), base=list(stack), stack=stack, offset=node.offset)
        between.handling = node.handling
        stack[slot] = Value(ast.Name(name, ast.Load()), True)
        self.nodes[id] = between
        self.edges[id] = [node]
        node.redirect(block.id, id)
        edges = self.edges[block.id]
        edges[edges.index(node)] = between

    def close_loop(self, node: Node, header: int) -> None:
        """Make the pending values on a back edge equal to those of the loop header."""
        target = self.nodes.get(header)
        if target is None:
            return
        stack = self.stack_on_edge(node, header)
        if len(stack) != len(target.base):
            raise ValueError(f"the stack depth at the end of the loop at block {header} differs from that at its start")
        for slot, (item, base) in enumerate(zip(stack, target.base)):
            if (isinstance(item, Marker) and isinstance(base, Marker)) or _same_container(item, base):
                continue
            if not isinstance(base, Value):
                raise ValueError(f"the iterator of the loop at block {header} is replaced")
            if isinstance(item, Value) and item.stable and _same(item.expr, base.expr):
                continue  # as expected at the header
            # The slot changes in the loop: store it in the phi variable of the header, at the end of this node.
            if not (isinstance(base.expr, ast.Name) and base.expr.id.startswith("__temp_")):
                raise Retry("phi", (header, slot))
            if not isinstance(item, Value) or item.copies or not isinstance(node.terminator, Goto):
                raise Retry("spill_end", node.last_block)
            if (header, slot) not in self.context.decisions.phi and item.stable and base.stable:
                raise Retry("phi", (header, slot))
            self.keep_before(node, item)
            node.statements.append(ast.Assign([ast.Name(base.expr.id, ast.Store()), *item.chain], item.expr))

    def fresh_id(self) -> int:
        """Return an id for a node that is not a block."""
        id = -len(self.nodes) - 1
        while id in self.nodes:
            id -= 1
        return id


def _is_stable(item: Item) -> bool:
    return isinstance(item, Value) and item.stable


def _stays(expr: Optional[ast.expr]) -> bool:
    """Return whether ``expr`` is a constant, a temporary, or a slice of these, which a loop hardly ever changes."""
    if isinstance(expr, ast.Slice):
        return all(bound is None or _stays(bound) for bound in (expr.lower, expr.upper, expr.step))
    return isinstance(expr, ast.Constant) or (isinstance(expr, ast.Name) and expr.id.startswith("__temp_"))


def _kept(node: Node, target: int) -> List[Item]:
    """Return the values that the condition at the end of ``node`` leaves on the stack on the edge to ``target``."""
    term = node.terminator
    if isinstance(term, Condition) and term.keep and target == term.target:
        assert node.kept is not None
        return [node.kept]
    return []


def _same_container(one: Item, two: Item) -> bool:
    """Return whether two items are tracked containers with the same elements."""
    if isinstance(one, Container) and isinstance(two, Container):
        same_size = one.kind == two.kind and len(one.elements) == len(two.elements) and one.keys == two.keys
        return same_size and all(map(_same_element, one.elements, two.elements))
    return False


def _same_element(one: Item, two: Item) -> bool:
    if isinstance(one, Value) and isinstance(two, Value):
        return one.stable and two.stable and _same(one.expr, two.expr)
    return one is two or _same_container(one, two)


def _is_stable_and_same(item: Item, expr: ast.expr) -> bool:
    return isinstance(item, Value) and item.stable and _same(item.expr, expr)


def _same(one: ast.expr, two: ast.expr) -> bool:
    if one is two:
        return True
    if isinstance(one, ast.Constant) and isinstance(two, ast.Constant):
        return one.value is two.value
    if isinstance(one, ast.Slice) and isinstance(two, ast.Slice):
        pairs = [(one.lower, two.lower), (one.upper, two.upper), (one.step, two.step)]
        return all(mine is theirs or (mine and theirs and _same(mine, theirs)) for mine, theirs in pairs)
    return isinstance(one, ast.Name) and type(one) is type(two) and one.id == two.id
