"""Symbolic execution of one block: stack operations become expressions, effects become statements, in order."""

from __future__ import annotations

import ast
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from depyf.decompiler.flow.graph import Block, Jump
from depyf.decompiler.lift import build
from depyf.decompiler.lift.containers import as_display, parts, references, replaced, wanted
from depyf.decompiler.lift.context import LiftContext
from depyf.decompiler.lift.items import BoundMethod, Container, Copy, Function, Item, Mark, Marker, Retry, Target, Value
from depyf.decompiler.lift.nodes import Node, Statement
from depyf.decompiler.lift.spans import put
from depyf.decompiler.normal.ops import Instr, Op


class Simulator:
    """Executes operations of blocks that belong to one node, on that node's stack and statement list."""

    def __init__(self, context: LiftContext, node: Node) -> None:
        self.context, self.node = context, node
        self.stack: List[Item] = node.stack
        self.ops: Sequence[Instr] = ()
        self.index = 0

    # --- driving -----------------------------------------------------------------------------------------------

    def run(self, block: Block, rules: Mapping[Op, Rule], start: int = 0) -> None:
        ops, spill = block.ops, self.context.decisions.spill
        self.ops, self.index = ops, start
        while self.index < len(ops):
            instr = ops[self.index]
            self.index += 1
            if instr.offset in spill:
                self.settle()
            rules[instr.op](self, instr)

    def ahead(self, count: int) -> List[Instr]:
        return list(self.ops[self.index : self.index + count])

    # --- the stack ---------------------------------------------------------------------------------------------

    def push(self, expr: ast.expr, *, stable: bool = False, local: Optional[str] = None) -> Value:
        if self.context.records_spans:
            instr, before = self.ops[self.index - 1], self.ops[self.index - 2]
            # A load that is one instruction with the store before it (3.13) has no span: the table has the store's.
            if before.op is not Op.STORE or before.offset != instr.offset:
                put(expr, instr.span)
        if self.node.tested is not None:
            expr, stable, local = build.after_test(self.node.tested, expr), False, None
            self.node.tested = None
        value = Value(expr, stable, local, self.context.next_order(), self.node.id)
        self.stack.append(value)
        return value

    def push_temporary(self, name: str) -> None:
        self.push(ast.Name(name, ast.Load()), stable=True)

    def pop(self) -> Item:
        if not self.stack:
            raise ValueError(f"the stack is empty at offset {self.ops[self.index - 1].offset}")
        return self.stack.pop()

    def pop_value(self) -> Value:
        """Pop the top as a value that only the caller uses."""
        if self.stack and isinstance(self.stack[-1], Container):
            return self.pop_values(1)[0]
        return self.as_value(self.pop())

    def as_value(self, item: Item) -> Value:
        """Return ``item`` as a value that only the caller uses. Raises ``Retry`` if another slot needs the same
        evaluation, and ``ValueError`` for an item without a value."""
        if isinstance(item, Value):
            # The result of ITER, the original of a copy, or b after the first test of ``a < b < c``: these have syntax
            # only if a certain operation follows. It did not, so lifting restarts with a temporary.
            if item.iterated_at >= 0:
                raise Retry("iterators", item.iterated_at)
            if item.copies:
                raise Retry("spill", item.copied_at)
            if item.tests is not None:
                raise Retry("spill", item.copied_at)
            if item.chain:
                return self._close_chain(item)
            return item
        if isinstance(item, Copy):
            raise Retry("spill", item.offset)
        if isinstance(item, Container):
            return self.container_value(item)
        if isinstance(item, Function):
            return Value(build.function_expression(item), order=item.order, born=self.node.id)
        if isinstance(item, Target):
            name = item.group.temporaries.get(item.index) if item.group is not None else None
            if name is None:
                name = self.context.temporary()
                self.fill(item, ast.Name(name, ast.Store()))
            return Value(ast.Name(name, ast.Load()), stable=True)
        what = f"method {item.name}" if isinstance(item, BoundMethod) else f"{item.kind.value} marker"
        raise ValueError(f"a {what} is used as a value at offset {self.ops[self.index - 1].offset}")

    def _close_chain(self, value: Value) -> Value:
        """Close the chain of ``value``, which was stored while pending and is now used.

        Each name becomes a walrus; other targets need a temporary. A statement here would be too late: expressions
        evaluated since the store may have read the target.
        """
        if not all(isinstance(target, ast.Name) for target in value.chain) and value.copied_at >= 0:
            raise Retry("spill", value.copied_at)
        targets, value.chain = value.chain, []
        if all(isinstance(target, ast.Name) for target in targets):
            for target in targets:
                assert isinstance(target, ast.Name)
                value.expr = ast.NamedExpr(target, value.expr)
            return value
        name = self.context.temporary()
        self.emit(ast.Assign([ast.Name(name, ast.Store()), *targets], value.expr))
        return Value(ast.Name(name, ast.Load()), stable=True)

    def pop_callee(self, null: str) -> Tuple[Item, List[Item]]:
        """Pop the callee, and its first argument if that is in the slot of the NULL; ``null`` is CALL's argument."""
        top = self.pop()
        if not null:
            return top, []
        pair = [self.pop(), top]
        slot = pair[0] if null == "below" else pair[1]
        if isinstance(slot, Marker) and slot.kind is Mark.NULL:
            pair.remove(slot)
        return pair[0], pair[1:]

    def pop_values(self, count: int) -> List[Value]:
        """Pop the operands of an operation, in the order of their evaluation."""
        if count == 0:
            return []
        popped = self.stack[len(self.stack) - count :]
        if self.context.follows_containers:
            for item in popped:
                if isinstance(item, Container):
                    self.share_container(item)
            popped = self.stack[len(self.stack) - count :]
        items = [self.as_value(item) for item in popped]
        del self.stack[len(self.stack) - count :]
        return items

    # --- tracked containers ------------------------------------------------------------------------------------------

    def container_value(self, container: Container) -> Value:
        """Return the container as a display: it escapes, and nothing else refers to it."""
        self.share_container(container)
        expr, values = as_display(container, self.as_value)
        begun = self.check_order(values)
        orders = [value.order for value in values if not value.stable]
        if not orders:
            return Value(expr, order=self.context.next_order(), born=self.node.id, silent=True)
        return Value(expr, order=max(orders), born=self.node.id, begun=begun)

    def share_container(self, container: Container) -> None:
        """Store a container that several slots hold in a temporary before it escapes."""
        for inner in container.elements:
            if isinstance(inner, Container):
                self.share_container(inner)
        if references(self.stack, container) < 2:
            return
        self.settle()
        expr, values = as_display(container, self.as_value)
        self.check_order(values)
        name = self.context.temporary()
        value = Value(ast.Name(name, ast.Load()), stable=True)
        replaced(self.stack, container, value)
        self.emit(ast.Assign([ast.Name(name, ast.Store())], expr))

    def drop_container(self, name: str) -> None:
        """Execute ``del`` of a variable that holds a tracked container: only its elements must be settled."""
        container = self.node.containers.pop(name)
        self.stack.append(container)
        self.settle()
        self.stack.pop()

    def wants_containers(self) -> None:
        if not self.context.follows_containers:
            raise wanted()

    def combine(self, make: Callable[..., ast.expr], values: Sequence[Value], *, stable: bool = False) -> Value:
        """Push ``make(*expressions)``; the values must have been evaluated in the order in which they are written."""
        # LOAD_GLOBAL a; CALL f; SWAP 2; BINARY -       ``f() - a`` would evaluate f() first: check_order raises Retry,
        #                                               the next attempt stores both in temporaries before SWAP
        begun = self.check_order(values)
        value = self.push(make(*[value.expr for value in values]), stable=stable)
        value.begun = begun
        return value

    def check_order(self, values: Sequence[Value]) -> int:
        """Return when the first unstable of ``values`` was evaluated; 0 if all are stable. Raises ``Retry`` if they
        were not evaluated in this order."""
        # ``order`` is when a value was complete, ``begun`` when its first operand was evaluated: each value must begin
        # after the one before is complete.
        first = last = 0
        for value in values:
            if value.stable or value.silent:
                continue
            begun = value.begun or value.order
            if begun < last:
                raise self.spilled(max(other.swapped_at for other in values))
            first, last = first or begun, value.order
        return first

    def spilled(self, swapped_at: int) -> Retry:
        """Return the ``Retry`` for pending values that are used in another order: they are stored where they were
        swapped."""
        if swapped_at < 0 or swapped_at in self.context.decisions.spill:
            swapped_at = self.ops[self.index - 1].offset
        return Retry("spill", swapped_at)

    # --- statements --------------------------------------------------------------------------------------------

    def emit(self, statement: Statement, stores: Optional[str] = None) -> None:
        """Add a statement; all pending values are evaluated before it. ``stores``: the local variable that it stores,
        "*" for all names in it."""
        if stores == "*" and self.stack and isinstance(statement, ast.stmt):
            self.settle(*_stored_names(statement))
        else:
            self.settle(stores)
        if self.context.records_spans and isinstance(statement, ast.stmt):
            put(statement, self.ops[self.index - 1].span)
        self.node.statements.append(statement)

    def drop(self, item: Value) -> None:
        """Add the unused ``item`` as a statement: inside of the region, if one was exited while it was pending. A
        return value that a ``finally`` body drops is such an item."""
        self.settle()
        statement = ast.Expr(self.as_value(item).expr)
        if self.context.records_spans:
            put(statement, self.ops[self.index - 1].span)
        self.node.evaluate(item.expr, statement)

    def settle(self, *stores: Optional[str]) -> None:
        """Store pending values in temporaries: those that are not stable, and loads of the locals ``stores`` ("*":
        all)."""
        if not self.stack:
            return
        # A statement is about to be written. All that was evaluated before, and is used after it, must be stored first:
        #
        #     LOAD f; CALL; LOAD 1; STORE a; LOAD a; BINARY +       temporary = f(); a = 1; temporary + a
        for item in self.stack:
            if isinstance(item, Target) and item.group is not None:
                item.group.give_up(self)
        items = list(self.stack if not self.context.follows_containers else parts(self.stack))
        # A load of a local variable may wait, unless the statement stores that variable, or a pending value stores it
        # when it is evaluated: ``a + (a := 1)``.
        changed = stored_on_the_way(items)
        pending = [
            item
            for item in items
            if isinstance(item, (Function, Copy))
            or (
                isinstance(item, Value)
                and (
                    not item.stable
                    or (item.local is not None and (item.local in stores or "*" in stores))
                    or changed.get(item.local, 0) > item.order
                )
            )
        ]
        pending = list({id(item): item for item in pending}.values())  # two slots may hold one item
        pending.sort(key=lambda item: item.order if isinstance(item, (Value, Function)) else 0)
        for item in pending:
            self.keep(item)

    def keep(self, item: Union[Value, Copy, Function]) -> None:
        """Store a pending item in a temporary."""
        if isinstance(item, Copy):
            raise Retry("spill", item.offset)
        if isinstance(item, Function):
            value = Value(build.function_expression(item), order=item.order, born=self.node.id)
            replaced(self.stack, item, value)
            item = value
        if item.copies or item.tests is not None:
            raise Retry("spill", item.copied_at)
        if item.born != self.node.id and not item.stable:  # other exits of that node may use the value, too
            raise Retry("spill", item.kept_at) if item.kept_at >= 0 else self.context.waits_no_longer(item)
        if isinstance(item.expr, ast.Slice) and not item.chain:
            self._keep_bounds(item, item.expr)
            return
        name = self.context.temporary()
        targets = [ast.Name(name, ast.Store()), *item.chain]
        item.chain = []
        self.node.evaluate(item.expr, ast.Assign(targets, item.expr))
        item.expr, item.stable, item.local = ast.Name(name, ast.Load()), True, None

    def _keep_bounds(self, item: Value, expr: ast.Slice) -> None:
        """Store the bounds of a slice in temporaries: outside of brackets a slice has no syntax."""
        bounds: List[Optional[ast.expr]] = [expr.lower, expr.upper, expr.step]
        for index, bound in enumerate(bounds):
            if bound is not None and not isinstance(bound, ast.Constant):
                name = self.context.temporary()
                self.node.evaluate(expr, ast.Assign([ast.Name(name, ast.Store())], bound))
                bounds[index] = ast.Name(name, ast.Load())
        item.expr, item.stable, item.local = ast.Slice(*bounds), True, None

    def check_latest(self, item: Item) -> None:
        """Check that all pending values were evaluated before ``item``, used next. Raises ``Retry`` otherwise."""
        if not isinstance(item, Value):
            return
        self._check_unchanged(item)
        if item.stable:
            return
        for other in self.stack:
            if isinstance(other, Value) and not other.stable and other.order > item.order:
                swapped = max(item.swapped_at, other.swapped_at)
                if swapped < 0:
                    raise ValueError(f"values are used out of order at offset {self.ops[self.index - 1].offset}")
                raise Retry("spill", swapped)

    def _check_unchanged(self, item: Value) -> None:
        """Check that no pending store changes ``item``, and that ``item`` stores no variable of a pending load. Raises
        ``Retry`` otherwise."""
        stored = stored_on_the_way([item])
        if item.local is None and not stored:
            return
        for other in self.stack:
            if isinstance(other, Value) and other.order > item.order:
                if other.local in stored:
                    raise Retry("spill", item.copied_at)
                if item.local is not None and item.local in stored_on_the_way([other]):
                    raise Retry("spill", other.copied_at)

    def settle_exit(self) -> None:
        """Exit a region: at most the return value is pending, and it was evaluated inside."""
        for item in self.stack:
            if isinstance(item, Target) and item.group is not None:
                item.group.give_up(self)

    def pending(self) -> Tuple[ast.expr, ...]:
        """Return the pending expressions; a value that was stored while pending becomes a walrus."""
        for item in self.stack:
            if isinstance(item, Value) and item.chain and all(isinstance(target, ast.Name) for target in item.chain):
                self._close_chain(item)
        return tuple(item.expr for item in self.stack if isinstance(item, Value))

    def fill(self, item: Target, target: ast.expr) -> None:
        if item.group is not None:
            item.group.continue_in(self)
        item.fill(target)


def end_as_operands(simulator: Simulator, block: Block) -> None:
    """Turn pending items at the end of a block into operands. A lambda in ``key or (lambda x: x)`` becomes an
    expression, a stored value in ``a and (b := c)`` a walrus."""
    top = simulator.stack[-1] if simulator.stack else None
    if isinstance(block.term, Jump) and isinstance(top, Value) and top.chain and not top.copies:
        if top.tests is None and all(isinstance(target, ast.Name) for target in top.chain):
            simulator.stack[-1] = simulator.as_value(top)
    for slot, item in enumerate(simulator.stack):
        if isinstance(item, Function) and item.is_lambda:
            simulator.stack[slot] = simulator.as_value(item)


def _stored_names(statement: ast.stmt) -> Set[str]:
    return {
        node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }


def stored_on_the_way(items: Sequence[Item]) -> Dict[Optional[str], int]:
    """Return the names that pending values are stored in when they are evaluated, and when that is."""
    return {
        target.id: item.order
        for item in items
        if isinstance(item, Value)
        for target in item.chain
        if isinstance(target, ast.Name)
    }


Rule = Callable[[Simulator, Instr], None]
