"""Symbolic execution of one block: stack operations become expressions, effects become statements, in order."""

from __future__ import annotations

import ast
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from depyf.flow.graph import Block
from depyf.lift import build
from depyf.lift.containers import WANTED, BoundMethod, Container, as_display, constant_key, parts, references, replaced
from depyf.lift.groups import check_group, end_groups
from depyf.lift.items import ChainTest, Copy, Function, Item, Marker, Retry, Target, Value
from depyf.lift.nodes import (
    Accumulate,
    BindException,
    ComprehensionExpression,
    FunctionStatement,
    Node,
    PopException,
    Raise,
    Reraise,
    Return,
    Statement,
    WithEnter,
    WithExit,
)
from depyf.normal.ops import Instr, Op
from depyf.result import Hints

from depyf.lift.followed import (
    build_container,
    take_result_apart,
    call_container_method,
    call_with_containers,
    delete_from_container,
    extend_container,
    pop_container,
    store_into_container,
    subscript_container,
)

COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class Decisions:
    """What earlier attempts found out: where values have to be kept in temporaries. Grows with every retry."""

    def __init__(self) -> None:
        self.spill: Set[int] = set()  # operation offsets before which all pending values are stored
        self.spill_end: Set[int] = set()  # blocks at whose end all pending values are stored
        self.containers: Set[bool] = set()  # whether lists that only move values are followed
        self.kept_results: Set[int] = set()  # calls whose tuple is not taken apart at once
        self.plain_swap: Set[int] = set()  # SWAPs that are no tuple assignment
        self.phi: Set[Tuple[int, int]] = set()  # (block, slot) that needs a temporary although its value is stable

    def learn(self, retry: Retry) -> None:
        known: Set[Any] = getattr(self, retry.kind)
        if retry.key in known:
            raise ValueError(f"lifting makes no progress: {retry}")
        known.add(retry.key)


class Context:
    """What the blocks of one code object share: counters, decisions."""

    def __init__(self, decisions: Decisions, hints: Hints) -> None:
        self.decisions, self.hints = decisions, hints
        self.order = 0
        self.temporaries = 0
        self.follows_containers = bool(decisions.containers)

    def next_order(self) -> int:
        self.order += 1
        return self.order

    def temporary(self) -> str:
        name = f"__temp_{self.temporaries}"
        self.temporaries += 1
        return name


class Simulator:
    """Runs operations of blocks that belong to one node, on that node's stack and statement list."""

    def __init__(self, context: Context, node: Node) -> None:
        self.context, self.node = context, node
        self.stack: List[Any] = node.stack
        self.ops: Sequence[Instr] = ()
        self.index = 0

    # --- driving -----------------------------------------------------------------------------------------------

    def run(self, block: Block, start: int = 0) -> None:
        self.ops, self.index = block.ops, start
        while self.index < len(self.ops):
            instr = self.ops[self.index]
            self.index += 1
            if instr.offset in self.context.decisions.spill:
                self.spill_all()
            _RULES[instr.op](self, instr)

    def ahead(self, count: int) -> List[Tuple[Op, Any]]:
        return [(instr.op, instr.arg) for instr in self.ops[self.index : self.index + count]]

    # --- the stack ---------------------------------------------------------------------------------------------

    def push(self, expr: ast.expr, stable: bool = False, local: Optional[str] = None, **facts: Any) -> Value:
        order = 0 if stable else self.context.next_order()
        value = Value(expr, stable, local, order, self.node.id, **facts)
        self.stack.append(value)
        return value

    def push_temporary(self, name: str) -> None:
        self.push(ast.Name(name, ast.Load()), stable=True)

    def pop(self) -> Any:
        if not self.stack:
            raise ValueError(f"the stack is empty at offset {self.ops[self.index - 1].offset}")
        return self.stack.pop()

    def pop_value(self) -> Value:
        """The top as a value that only the caller uses from now on."""
        return self.as_value(self.pop())

    def as_value(self, item: Any) -> Value:
        if isinstance(item, Value):
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
            name = self.context.temporary()
            self.fill(item, ast.Name(name, ast.Store()))
            return Value(ast.Name(name, ast.Load()), stable=True)
        raise ValueError(f"a {item.kind} marker is used as a value at offset {self.ops[self.index - 1].offset}")

    def _close_chain(self, value: Value) -> Value:
        """``value`` was stored on the way and is now used: a walrus, or a temporary where that can't be written."""
        targets, value.chain = value.chain, []
        if len(targets) == 1 and isinstance(targets[0], ast.Name):
            value.expr = ast.NamedExpr(targets[0], value.expr)
            return value
        name = self.context.temporary()
        self.emit(ast.Assign([ast.Name(name, ast.Store()), *targets], value.expr))
        return Value(ast.Name(name, ast.Load()), stable=True)

    def pop_values(self, count: int) -> List[Value]:
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

    # --- containers that are followed ----------------------------------------------------------------------------

    def container_value(self, container: Container) -> Value:
        """The container as a display: it is handed to somebody, and nothing else refers to it."""
        self.share_container(container)
        expr, values = as_display(container, self.as_value)
        self.check_order(values)
        return Value(expr, order=self.context.next_order(), born=self.node.id)

    def share_container(self, container: Container) -> None:
        """A container that several slots hold gets a name before one of them is handed out."""
        for inner in container.elements:
            if isinstance(inner, Container):
                self.share_container(inner)
        if references(self.stack, container) < 2:
            return
        expr, values = as_display(container, self.as_value)
        self.check_order(values)
        name = self.context.temporary()
        value = Value(ast.Name(name, ast.Load()), stable=True)
        replaced(self.stack, container, value)
        self.emit(ast.Assign([ast.Name(name, ast.Store())], expr))

    def drop_container(self, name: str) -> None:
        """``del`` of a variable that holds a followed container: its elements must be settled, nothing else."""
        container = self.node.containers.pop(name)
        self.stack.append(container)
        self.settle()
        self.stack.pop()

    def wants_containers(self) -> None:
        if not self.context.follows_containers:
            raise WANTED

    def combine(self, make: Callable[..., ast.expr], values: Sequence[Value], **facts: Any) -> None:
        """Push ``make(*expressions)``; the values must have been evaluated in the order in which they are written."""
        self.check_order(values)
        self.push(make(*[value.expr for value in values]), **facts)

    def check_order(self, values: Sequence[Value]) -> None:
        last = 0
        for value in values:
            if value.stable:
                continue
            if value.order < last:
                swapped = max(other.swapped_at for other in values)
                raise Retry("spill", swapped if swapped >= 0 else self.ops[self.index - 1].offset)
            last = value.order

    # --- statements --------------------------------------------------------------------------------------------

    def emit(self, statement: Statement, stores: Optional[str] = None) -> None:
        """Add a statement; whatever is still pending was evaluated before it."""
        self.settle(stores)
        self.node.statements.append(statement)

    def settle(self, stores: Optional[str] = None) -> None:
        """Keep pending values in temporaries: all that are not stable, and loads of the local ``stores``."""
        for item in self.stack:
            if isinstance(item, Target) and item.group is not None:
                item.group.give_up(self)
        items = self.stack if not self.context.follows_containers else parts(self.stack)
        pending = [
            item
            for item in items
            if isinstance(item, (Function, Copy))
            or (isinstance(item, Value) and (not item.stable or (stores is not None and item.local is not None
                                                             and stores in (item.local, "*"))))
        ]
        pending = list({id(item): item for item in pending}.values())
        pending.sort(key=lambda item: item.order if isinstance(item, (Value, Function)) else 0)
        for item in pending:
            self.keep(item)

    def keep(self, item: Any) -> None:
        """Store a pending item in a temporary."""
        if isinstance(item, Copy):
            raise Retry("spill", item.offset)
        if isinstance(item, Function):
            value = Value(build.function_expression(item))
            self.stack[self.stack.index(item)] = value
            item = value
        if item.copies or item.tests is not None:
            raise Retry("spill", item.copied_at)
        if item.born != self.node.id and not item.stable:  # other ways out of that node may use the value, too
            raise Retry("spill_end", item.born)
        name = self.context.temporary()
        targets = [ast.Name(name, ast.Store()), *item.chain]
        item.chain = []
        self.node.statements.append(ast.Assign(targets, item.expr))
        item.expr, item.stable, item.local = ast.Name(name, ast.Load()), True, None

    def spill_all(self) -> None:
        self.settle()

    def check_latest(self, item: Any) -> None:
        """Whatever is still pending must have been evaluated before ``item``, whose turn it is now."""
        if not isinstance(item, Value) or item.stable:
            return
        for other in self.stack:
            if isinstance(other, Value) and not other.stable and other.order > item.order:
                swapped = max(item.swapped_at, other.swapped_at)
                if swapped < 0:
                    raise ValueError(f"values are used out of order at offset {self.ops[self.index - 1].offset}")
                raise Retry("spill", swapped)

    def store(self, target: ast.expr, item: Any, local: Optional[str] = None) -> None:
        """``target = item`` in whatever form the item asks for."""
        self.check_latest(item)
        if isinstance(item, Copy):
            item.of.chain.append(target)
            item.of.copies -= 1
        elif isinstance(item, Target):
            self.fill(item, target)
        elif isinstance(item, Function):
            self.emit(self.definition(item, target), local)
        elif isinstance(item, Container):
            self.store_container(item, target, local)
        elif isinstance(item, Marker) and item.kind in ("module", "imported"):
            self.store_import(item, target, local)
        elif isinstance(item, Marker) and item.kind == "exc":
            self.emit(BindException(item.origin, target), local)
        elif isinstance(item, Value) and item.augments is not None and self.same_place(item.augments[0], target):
            _, operator, operand = item.augments
            self.emit(ast.AugAssign(target, operator, operand), local)
        else:
            if isinstance(item, Value):
                if item.copies or item.tests is not None:
                    raise Retry("spill", item.copied_at)
                chain, item.chain = item.chain, []
                self.emit(ast.Assign([*chain, target], item.expr), local)
            else:
                self.emit(ast.Assign([target], self.as_value(item).expr), local)

    def store_container(self, item: Container, target: ast.expr, local: Optional[str]) -> None:
        expr, values = as_display(item, self.as_value)
        self.check_order(values)
        if references(self.stack, item):
            name = self.context.temporary()
            replaced(self.stack, item, Value(ast.Name(name, ast.Load()), stable=True))
            self.emit(ast.Assign([ast.Name(name, ast.Store()), target], expr), local)
        else:
            self.emit(ast.Assign([target], expr), local)

    def store_import(self, item: Marker, target: ast.expr, local: Optional[str]) -> None:
        """``import a``, ``import a.b as c`` or one name of ``from a import b as c``."""
        if not isinstance(target, ast.Name):
            raise ValueError("a module is imported into something that is no name")
        if item.kind == "module":
            top = item.data.name.partition(".")[0]
            self.emit(ast.Import([ast.alias(item.data.name, None if target.id == top else target.id)]), local)
            return
        request, name = item.data
        if request.names is None:
            self.emit(ast.Import([ast.alias(request.name, target.id)]), local)
            return
        alias = ast.alias(name, None if name == target.id else target.id)
        last = self.node.statements[-1] if self.node.statements else None
        if isinstance(last, ast.ImportFrom) and getattr(last, "request", None) is request:
            last.names.append(alias)
            return
        statement = ast.ImportFrom(request.name or None, [alias], request.level)
        statement.request = request  # type: ignore[attr-defined]
        self.emit(statement, local)

    def settle_exit(self) -> None:
        """A region is left: what is pending is at most the value to return, and that was evaluated inside."""
        for item in self.stack:
            if isinstance(item, Target) and item.group is not None:
                item.group.give_up(self)

    def pending(self) -> Tuple[ast.expr, ...]:
        return tuple(item.expr for item in self.stack if isinstance(item, Value))

    def fill(self, item: Target, target: ast.expr) -> None:
        item.fill(target)

    def same_place(self, place: Any, target: ast.expr) -> bool:
        return isinstance(place, ast.Name) and isinstance(target, ast.Name) and place.id == target.id

    def definition(self, function: Function, target: ast.expr) -> ast.stmt:
        name = target.id if isinstance(target, ast.Name) else None
        if name is None or function.code.co_name == "<lambda>" or not build.names_match(function.code.co_name, name):
            return ast.Assign([target], build.function_expression(function))
        return build.function_statement(function, name)


class Unpacking:
    """``a, b.c, d[0] = value``: the statement is complete once every part has its target, in order."""

    def __init__(self, simulator: Simulator, count: int, star: Optional[int], done: Callable[[ast.expr], None]) -> None:
        self.simulator, self.star, self.done = simulator, star, done
        self.targets: List[Optional[ast.expr]] = [None] * count

    def parts(self) -> List[Target]:
        def filler(index: int) -> Callable[[ast.expr], None]:
            return lambda target: self.fill(index, target)

        return [Target(filler(index), self) for index in range(len(self.targets))]

    def fill(self, index: int, target: ast.expr) -> None:
        for earlier in range(index):
            if self.targets[earlier] is None:  # stored out of order: the earlier parts wait in temporaries
                self._temporary(earlier)
        self.targets[index] = ast.Starred(target, ast.Store()) if index == self.star else target
        if all(part is not None for part in self.targets):
            self._finish()

    def give_up(self, simulator: Simulator) -> None:
        """Something else happens before all parts are stored: the rest goes into temporaries now."""
        self.simulator = simulator
        missing = [index for index, part in enumerate(self.targets) if part is None]
        if not missing:
            return
        for index in missing:
            self._temporary(index)
        self._finish()

    def _temporary(self, index: int) -> None:
        name = self.simulator.context.temporary()
        target: ast.expr = ast.Name(name, ast.Store())
        self.targets[index] = ast.Starred(target, ast.Store()) if index == self.star else target
        stack = self.simulator.stack
        for place, item in enumerate(stack):
            if isinstance(item, Target) and item.group is self and self._index_of(item) == index:
                stack[place] = Value(ast.Name(name, ast.Load()), stable=True)

    def _index_of(self, item: Target) -> int:
        closure = item.fill.__closure__  # type: ignore[attr-defined]
        for cell in closure or ():
            if isinstance(cell.cell_contents, int):
                return cell.cell_contents
        raise AssertionError("a part of an unpacking has lost its index")

    def _finish(self) -> None:
        elements = [part for part in self.targets if part is not None]
        self.done(ast.Tuple(elements, ast.Store()))


# --- rules -------------------------------------------------------------------------------------------------------

Rule = Callable[[Simulator, Instr], None]


def _const(sim: Simulator, instr: Instr) -> None:
    sim.push(ast.Constant(instr.arg), stable=True)


def _null(sim: Simulator, instr: Instr) -> None:
    sim.stack.append(Marker("null"))


def _load(sim: Simulator, instr: Instr) -> None:
    scope, name = instr.arg
    if scope == "fast" and name in sim.node.containers:
        sim.stack.append(sim.node.containers[name])
    elif scope == "fast":
        sim.push(ast.Name(name, ast.Load()), stable=True, local=name)
    elif scope == "global" and name in sim.context.hints.stable_globals:
        sim.push(ast.Name(name, ast.Load()), stable=True)
    else:
        sim.push(ast.Name(name, ast.Load()))


def _closure(sim: Simulator, instr: Instr) -> None:
    sim.push(build.cell(instr.arg), stable=True)


def _special(sim: Simulator, instr: Instr) -> None:
    if instr.arg == "__build_class__":
        sim.stack.append(Marker("build_class"))
    else:
        sim.push(build.assertion_error(), stable=True)


def _store(sim: Simulator, instr: Instr) -> None:
    scope, name = instr.arg
    if scope == "fast" and _store_tuple(sim, instr):
        return
    if scope == "fast" and name in sim.context.hints.droppable and isinstance(sim.stack[-1], Container):
        if sim.stack[-1].offset >= 0:
            sim.node.containers[name] = sim.stack.pop()
            return
    if scope == "fast":
        sim.node.containers.pop(name, None)
    sim.store(ast.Name(name, ast.Store()), sim.pop(), name if scope == "fast" else None)


def _store_tuple(sim: Simulator, instr: Instr) -> bool:
    """``a, b = x, y`` with local names is ``x; y; STORE b; STORE a``: the compiler orders the stores, not the values."""
    names = [instr.arg[1]]
    for op, arg in sim.ahead(2):
        if op is not Op.STORE or arg[0] != "fast" or arg[1] in names:
            break
        names.append(arg[1])
    count = 0
    for item in reversed(sim.stack[-len(names) :]):
        if not isinstance(item, Value) or item.copies or item.chain or item.tests or item.augments:
            break
        count += 1
    if count < 2 or instr.offset in sim.context.decisions.plain_swap:
        return False
    values = sim.pop_values(count)
    try:
        sim.check_order(values)
    except Retry:
        raise Retry("plain_swap", instr.offset) from None
    targets: List[ast.expr] = [ast.Name(name, ast.Store()) for name in reversed(names[:count])]
    sim.index += count - 1
    stored = ast.Tuple([value.expr for value in values], ast.Load())
    sim.emit(ast.Assign([ast.Tuple(targets, ast.Store())], stored), "*")
    return True


def _delete(sim: Simulator, instr: Instr) -> None:
    scope, name = instr.arg
    if scope == "fast" and name in sim.node.containers:
        sim.drop_container(name)
        return
    sim.emit(ast.Delete([ast.Name(name, ast.Del())]), name if scope == "fast" else None)


def _copy(sim: Simulator, instr: Instr) -> None:
    item = sim.stack[-instr.arg]
    if isinstance(item, Container):
        sim.stack.append(item)
    elif isinstance(item, Value) and not item.stable and sim.context.follows_containers and not _is_kept(sim, item):
        sim.settle()
        sim.stack.append(Value(item.expr, True, item.local))
    elif isinstance(item, Value) and item.stable and instr.arg == 1 and _is_stored_next(sim, instr):
        value = Value(item.expr, False, item.local, sim.context.next_order(), sim.node.id, copies=1)
        value.copied_at = instr.offset
        sim.stack[-1] = value
        sim.stack.append(Copy(value, instr.offset))
    elif isinstance(item, Value) and item.stable:
        sim.stack.append(Value(item.expr, True, item.local))
    elif isinstance(item, Value):
        item.copies += 1
        item.copied_at = instr.offset
        sim.stack.append(Copy(item, instr.offset))
    elif isinstance(item, Copy):
        item.of.copies += 1
        sim.stack.append(Copy(item.of, instr.offset))
    elif isinstance(item, Marker) and item.kind in ("exc", "null", "prev", "lasti"):
        sim.stack.append(Marker(item.kind, item.origin, "copy"))
    else:
        sim.settle()
        value = sim.as_value(item)
        if not value.stable:
            name = sim.context.temporary()
            sim.node.statements.append(ast.Assign([ast.Name(name, ast.Store())], value.expr))
            value = Value(ast.Name(name, ast.Load()), stable=True)
        sim.stack[-instr.arg] = value
        sim.stack.append(Value(value.expr, True, value.local))


def _is_stored_next(sim: Simulator, instr: Instr) -> bool:
    """``a = b = value``: the copy goes into a target at once."""
    return instr.offset not in sim.context.decisions.spill and _stores_follow(sim.ops, sim.index, 1)


def _is_kept(sim: Simulator, item: Value) -> bool:
    """Whether the copy is stored in a variable at once: then the variable is what stands for the value."""
    following = sim.ahead(1)
    return bool(following) and following[0][0] is Op.STORE


def _swap(sim: Simulator, instr: Instr) -> None:
    stack, count = sim.stack, instr.arg
    if _starts_chain_test(sim, instr) or _starts_tuple_assignment(sim, instr):
        return
    stack[-1], stack[-count] = stack[-count], stack[-1]
    for item in stack[-count:]:
        if isinstance(item, Value):
            item.swapped_at = instr.offset
            if item.tests is not None:
                raise Retry("spill", item.copied_at)


def _starts_chain_test(sim: Simulator, instr: Instr) -> bool:
    """``a < b < c`` begins ``a; b; SWAP 2; COPY 2; COMPARE <``: ``b`` is used again if the test holds."""
    following = sim.ahead(2)
    if instr.arg != 2 or len(following) < 2 or following[0] != (Op.COPY, 2) or instr.offset in sim.context.decisions.spill:
        return False
    op, arg = following[1]
    if op not in (Op.COMPARE, Op.IS, Op.IN) or not all(isinstance(item, Value) for item in sim.stack[-2:]):
        return False
    previous, middle = sim.stack[-2], sim.stack[-1]
    if middle.copies or middle.chain and len(middle.chain) > 1 or previous.copies:
        return False
    if middle.chain:
        middle.expr, middle.chain = ast.NamedExpr(middle.chain[0], middle.expr), []
    operator = build.comparison(op, arg)
    chain = previous.tests
    if chain is None:
        previous = sim.as_value(previous)
        sim.check_order([previous, middle])
        chain = ChainTest(previous.expr, [operator], [middle.expr])
    else:
        chain = ChainTest(chain.left, [*chain.operators, operator], [*chain.operands, middle.expr])
    del sim.stack[-2:]
    sim.push(middle.expr, tests=chain, copied_at=instr.offset)
    test = sim.push(build.chain_expression(chain))
    test.copied_at = instr.offset
    sim.index += 2
    return True


def _starts_tuple_assignment(sim: Simulator, instr: Instr) -> bool:
    """``a, b = x, y`` is ``x; y; SWAP 2; STORE a; STORE b`` (3 values: SWAP 3): no tuple is built."""
    count = instr.arg
    if count not in (2, 3) or instr.offset in sim.context.decisions.plain_swap or len(sim.stack) < count:
        return False
    items = sim.stack[-count:]
    if not all(isinstance(item, (Value, Function)) for item in items):
        return False
    if any(isinstance(item, Value) and (item.copies or item.chain or item.tests or item.augments) for item in items):
        return False
    if not _stores_follow(sim.ops, sim.index, count):
        return False
    values = sim.pop_values(count)
    try:
        sim.check_order(values)
    except Retry:
        raise Retry("plain_swap", instr.offset) from None
    stored = ast.Tuple([value.expr for value in values], ast.Load())
    unpacking = Unpacking(sim, count, None, lambda target: sim.emit(ast.Assign([target], stored), "*"))
    sim.stack.extend(reversed(unpacking.parts()))
    return True


def _stores_follow(ops: Sequence[Instr], index: int, count: int) -> bool:
    """Whether the operations at ``index`` are ``count`` stores, each with the simple loads that its target needs."""
    depth = 0
    stored = 0
    while index < len(ops) and stored < count:
        op = ops[index].op
        index += 1
        if op is Op.STORE and depth == 0:
            stored += 1
        elif op in (Op.UNPACK, Op.UNPACK_EX) and depth == 0:
            parts_of = ops[index - 1].arg
            count += (parts_of if op is Op.UNPACK else sum(parts_of) + 1) - 1
        elif op is Op.STORE_ATTR and depth == 1:
            depth, stored = 0, stored + 1
        elif op is Op.STORE_SUBSCR and depth == 2:
            depth, stored = 0, stored + 1
        elif op in (Op.LOAD, Op.CONST):
            depth += 1
        elif op in (Op.ATTR, Op.UNARY) and depth:
            pass
        elif op in (Op.SUBSCR, Op.BINARY) and depth >= 2:
            depth -= 1
        elif op is Op.BUILD and ops[index - 1].arg[0] in ("tuple", "slice") and depth >= ops[index - 1].arg[1]:
            depth -= ops[index - 1].arg[1] - 1
        else:
            return False
    return stored == count


def _pop(sim: Simulator, instr: Instr) -> None:
    item = sim.pop()
    sim.check_latest(item)
    if isinstance(item, Copy):
        item.of.copies -= 1
    elif isinstance(item, Container):
        pop_container(sim, item)
    elif isinstance(item, BoundMethod):
        return
    elif isinstance(item, Marker):
        if item.kind == "exc" and item.data != "copy":
            sim.emit(BindException(item.origin, None))
    elif isinstance(item, Target):
        if item.group is not None:
            sim.fill(item, ast.Name(sim.context.temporary(), ast.Store()))
        elif getattr(item, "needed", False):
            sim.fill(item, ast.Name(sim.context.temporary(), ast.Store()))
    elif isinstance(item, Function):
        sim.emit(ast.Expr(build.function_expression(item)))
    elif item.chain and len(item.chain) >= 1 and not item.copies:
        chain, item.chain = item.chain, []
        if len(chain) == 1 and isinstance(chain[0], ast.Name):
            sim.emit(ast.Expr(ast.NamedExpr(chain[0], item.expr)), "*")
        else:
            sim.emit(ast.Assign(chain, item.expr), "*")
    elif item.tests is not None:
        raise Retry("spill", item.copied_at)
    elif isinstance(item.expr, ast.List) and not sim.context.follows_containers:
        raise WANTED
    elif not item.stable:
        sim.emit(ast.Expr(sim.as_value(item).expr))
    elif item.local is not None:
        sim.emit(ast.Expr(item.expr))


def _unary(sim: Simulator, instr: Instr) -> None:
    operator = build.UNARY[instr.arg]()
    sim.combine(lambda operand: ast.UnaryOp(operator, operand), [sim.pop_value()])


def _binary(sim: Simulator, instr: Instr) -> None:
    operator = build.BINARY[instr.arg]()
    sim.combine(lambda left, right: ast.BinOp(left, operator, right), sim.pop_values(2))


def _inplace(sim: Simulator, instr: Instr) -> None:
    operator = build.BINARY[instr.arg]()
    right = sim.pop_value()
    left = sim.pop()
    if isinstance(left, Value) and left.augments is not None and left.augments[0] == "place":
        place = left.augments[1]
        sim.push(left.expr, augments=(place, operator, right.expr), copied_at=left.copied_at)
        return
    left = sim.as_value(left)
    sim.check_order([left, right])
    following = sim.ahead(1)
    if isinstance(left.expr, ast.Name) and following and following[0][0] is Op.STORE:
        if following[0][1][1] == left.expr.id:
            sim.push(left.expr, augments=(left.expr, operator, right.expr))
            return
    name = sim.context.temporary()
    sim.emit(ast.Assign([ast.Name(name, ast.Store())], left.expr))
    sim.emit(ast.AugAssign(ast.Name(name, ast.Store()), operator, right.expr))
    sim.push_temporary(name)


def _compare(sim: Simulator, instr: Instr) -> None:
    operator = build.comparison(instr.op, instr.arg)
    left = sim.stack[-2]
    if isinstance(left, Value) and left.tests is not None:
        right = sim.pop_value()
        chain = left.tests
        sim.pop()
        full = ChainTest(chain.left, [*chain.operators, operator], [*chain.operands, right.expr])
        sim.push(build.chain_expression(full))
        return
    sim.combine(lambda one, two: ast.Compare(one, [operator], [two]), sim.pop_values(2))


def _subscr(sim: Simulator, instr: Instr) -> None:
    base, key = sim.stack[-2:]
    if isinstance(base, Container) and subscript_container(sim, base, key):
        return
    if isinstance(base, Copy) and isinstance(base.of.expr, (ast.List, ast.Tuple)) and constant_key(key) is not None:
        sim.wants_containers()
    if isinstance(base, Copy) or isinstance(key, Copy):
        _augmented_load(sim, [base, key], lambda exprs: ast.Subscript(exprs[0], exprs[1], ast.Load()))
        return
    if _augments_stable(sim, 2):
        return
    sim.combine(lambda one, two: ast.Subscript(one, two, ast.Load()), sim.pop_values(2))


def _augmented_load(sim: Simulator, items: List[Any], make: Callable[[List[ast.expr]], ast.expr]) -> None:
    """``a[i] += v`` begins with copies of ``a`` and ``i``: remember that the value read lives at that place."""
    below = sim.stack[-2 * len(items) : -len(items)]
    exprs = []
    for item, base in zip(items, below):
        if isinstance(item, Copy) and item.of is base:
            exprs.append(base.expr)
        elif isinstance(item, Value) and isinstance(base, Value) and item.stable and item.expr is base.expr:
            exprs.append(item.expr)
        else:
            offset = next(item.offset for item in items if isinstance(item, Copy))
            raise Retry("spill", offset)
    if len(below) != len(items):
        raise Retry("spill", next(item.offset for item in items if isinstance(item, Copy)))
    del sim.stack[-len(items) :]
    copied = max(item.offset for item in items if isinstance(item, Copy))
    sim.push(make(exprs), augments=("place", tuple(below)), copied_at=copied)


def _augments_stable(sim: Simulator, count: int) -> bool:
    """The same as above when the operands are stable, so that COPY made plain duplicates: only if a store follows."""
    stack = sim.stack
    if len(stack) < 2 * count:
        return False
    items, below = stack[-count:], stack[-2 * count : -count]
    for item, base in zip(items, below):
        if not (isinstance(item, Value) and isinstance(base, Value) and item.stable and item.expr is base.expr):
            return False
    exprs = [item.expr for item in items]
    del stack[-count:]
    if count == 2:
        sim.push(ast.Subscript(exprs[0], exprs[1], ast.Load()), augments=("place", tuple(below)))
    return True


def _attr(sim: Simulator, instr: Instr) -> None:
    item = sim.stack[-1]
    if isinstance(item, Container):
        sim.stack[-1] = BoundMethod(item, instr.arg)
        return
    if isinstance(item, Copy):
        _augmented_load(sim, [item], lambda exprs: ast.Attribute(exprs[0], instr.arg, ast.Load()))
        return
    below = sim.stack[-2] if len(sim.stack) > 1 else None
    if isinstance(item, Value) and isinstance(below, Value) and item.stable and item.expr is below.expr:
        sim.pop()
        sim.push(ast.Attribute(item.expr, instr.arg, ast.Load()), augments=("place", (below,)))
        return
    sim.combine(lambda value: ast.Attribute(value, instr.arg, ast.Load()), [sim.pop_value()])


def _store_attr(sim: Simulator, instr: Instr) -> None:
    base = sim.pop()
    item = sim.pop()
    target = ast.Attribute(_expr_of(base), instr.arg, ast.Store())
    _store_place(sim, item, (base,), target)


def _store_subscr(sim: Simulator, instr: Instr) -> None:
    key = sim.pop()
    base = sim.pop()
    item = sim.pop()
    if isinstance(base, Container):
        store_into_container(sim, base, key, item)
        return
    if isinstance(base, Copy) and isinstance(base.of.expr, (ast.List, ast.Tuple)) and constant_key(key) is not None:
        sim.wants_containers()
    if _annotates(sim, base, key, item):
        return
    target = ast.Subscript(_expr_of(base), _expr_of(key), ast.Store())
    _store_place(sim, item, (base, key), target)


def _expr_of(item: Any) -> ast.expr:
    if isinstance(item, Value) and not item.chain:
        return item.expr
    return ast.Constant(None) if not isinstance(item, Value) else item.expr


def _store_place(sim: Simulator, item: Any, place: Tuple[Any, ...], target: ast.expr) -> None:
    if isinstance(item, Value) and item.augments is not None and item.augments[0] != "place":
        known = item.augments[0]
        if isinstance(known, tuple) and len(known) == len(place) and all(a is b for a, b in zip(known, place)):
            for base in place:
                base.copies = 0
            sim.check_order(place)
            sim.emit(ast.AugAssign(target, item.augments[1], item.augments[2]), "*")
            return
        if isinstance(known, tuple):
            raise Retry("spill", item.copied_at)
    values = [sim.as_value(base) for base in place]
    if isinstance(target, ast.Subscript):
        target.value, target.slice = values[0].expr, values[1].expr
    elif isinstance(target, ast.Attribute):
        target.value = values[0].expr
    if isinstance(item, Value):
        sim.check_order([item, *values])
    sim.store(target, item, "*" if not isinstance(item, (Copy, Target)) else None)


def _annotates(sim: Simulator, base: Any, key: Any, item: Any) -> bool:
    """``name: annotation = value`` in a class or module ends with ``__annotations__['name'] = annotation``."""
    if not (
        isinstance(base, Value)
        and isinstance(base.expr, ast.Name)
        and base.expr.id == "__annotations__"
        and isinstance(key, Value)
        and isinstance(key.expr, ast.Constant)
        and isinstance(key.expr.value, str)
        and isinstance(item, Value)
        and item.order <= base.order
    ):
        return False
    name = key.expr.value
    if not name.isidentifier():
        return False
    value = None
    statements = sim.node.statements
    annotation = sim.as_value(item).expr
    if statements and isinstance(statements[-1], ast.Assign) and len(statements[-1].targets) == 1:
        target = statements[-1].targets[0]
        if isinstance(target, ast.Name) and target.id == name:
            value = statements[-1].value
            sim.settle()
            if statements[-1] is sim.node.statements[-1]:
                sim.node.statements.pop()
            else:
                value = None
    sim.emit(ast.AnnAssign(ast.Name(name, ast.Store()), annotation, value, 1))
    return True


def _delete_subscr(sim: Simulator, instr: Instr) -> None:
    base, key = sim.stack[-2:]
    if isinstance(base, Container):
        delete_from_container(sim, base, key)
        return
    values = sim.pop_values(2)
    sim.check_order(values)
    sim.emit(ast.Delete([ast.Subscript(values[0].expr, values[1].expr, ast.Del())]))


def _delete_attr(sim: Simulator, instr: Instr) -> None:
    sim.emit(ast.Delete([ast.Attribute(sim.pop_value().expr, instr.arg, ast.Del())]))


def _build(sim: Simulator, instr: Instr) -> None:
    kind, count = instr.arg
    if sim.context.follows_containers and build_container(sim, kind, count):
        return
    if kind == "const_key_map":
        keys = sim.pop_value().expr
        assert isinstance(keys, ast.Constant)
        values = sim.pop_values(count)
        sim.combine(lambda *exprs: ast.Dict([ast.Constant(key) for key in keys.value], list(exprs)), values)
    elif kind == "map":
        values = sim.pop_values(2 * count)
        sim.combine(lambda *exprs: ast.Dict(list(exprs[::2]), list(exprs[1::2])), values)
    else:
        make = build.DISPLAYS[kind]
        values = sim.pop_values(count)
        constant = kind == "slice" and all(isinstance(value.expr, ast.Constant) for value in values)
        sim.combine(lambda *exprs: make(list(exprs)), values, stable=constant)


def _add(sim: Simulator, instr: Instr) -> None:
    kind, depth = instr.arg
    key = None
    element = sim.pop_value()
    operands = [element]
    if kind == "map":
        key = sim.pop_value()
        operands.insert(0, key)
    sim.check_order(operands)
    container = sim.stack[-depth]
    if _grows_display(container, kind):
        container.expr = build.add_to_display(container.expr, kind, element.expr, key.expr if key else None)
        container.order = sim.context.next_order()
        return
    if isinstance(container, Marker) and container.kind == "result":
        sim.emit(Accumulate(kind, element.expr, key.expr if key else None))
        return
    sim.stack[-depth] = kept = sim.as_value(container)
    if not kept.stable:
        sim.keep(kept)
    sim.emit(Accumulate(kind, element.expr, key.expr if key else None))


def _grows_display(container: Any, kind: str) -> bool:
    shapes = {"list": ast.List, "set": ast.Set, "map": ast.Dict}
    return isinstance(container, Value) and not container.copies and isinstance(container.expr, shapes[kind])


def _update(sim: Simulator, instr: Instr) -> None:
    kind, depth = instr.arg
    if isinstance(sim.stack[-depth - 1], Container):
        extend_container(sim, sim.stack[-depth - 1], kind)
        return
    more = sim.pop_value()
    container = sim.stack[-depth]
    if kind == "kwargs" or kind == "map":
        shape: Any = ast.Dict
    else:
        shape = {"list": ast.List, "set": ast.Set}[kind]
    if not isinstance(container, Value) or not isinstance(container.expr, shape) or container.copies:
        sim.wants_containers()
        raise ValueError(f"a {kind} that is no display is extended at offset {instr.offset}")
    sim.check_order([container, more])
    container.expr = build.extend_display(container.expr, more.expr)
    container.order = sim.context.next_order()


def _list_to_tuple(sim: Simulator, instr: Instr) -> None:
    if isinstance(sim.stack[-1], Container):
        sim.stack[-1] = Container("tuple", list(sim.stack[-1].elements))
        return
    value = sim.pop_value()
    if not isinstance(value.expr, ast.List):
        raise ValueError(f"a value that is no list display becomes a tuple at offset {instr.offset}")
    sim.push(ast.Tuple(value.expr.elts, ast.Load()))


def _annotates_parameter(sim: Simulator) -> bool:
    """``def f(*args: *T)`` unpacks ``T`` above the name of the parameter; an assignment has nothing below."""
    below = sim.stack[-1] if sim.stack else None
    return isinstance(below, Value) and isinstance(below.expr, ast.Constant) and isinstance(below.expr.value, str)


def _unpack(sim: Simulator, instr: Instr) -> None:
    if instr.op is Op.UNPACK:
        count, star = instr.arg, None
    else:
        before, after = instr.arg
        count, star = before + 1 + after, before
    item = sim.pop()
    if isinstance(item, Container) and instr.op is Op.UNPACK and len(item.elements) == count:
        sim.stack.extend(reversed(item.elements))
        return
    if count == 1 and star is None and isinstance(item, Value) and _annotates_parameter(sim):
        sim.push(ast.Starred(sim.as_value(item).expr, ast.Load()))
        return
    done: Callable[[ast.expr], None]
    if count == 0:
        sim.store(ast.Tuple([], ast.Store()), item)
        return
    if isinstance(item, Target):
        done = item.fill
    elif isinstance(item, Copy):
        of = item.of

        def done(target: ast.expr) -> None:
            of.chain.append(target)
            of.copies -= 1
    else:
        value = item if isinstance(item, Value) and not item.copies and item.tests is None else sim.as_value(item)
        chain, value.chain = value.chain, []

        def done(target: ast.expr) -> None:
            sim.emit(ast.Assign([*chain, target], value.expr), "*")

    sim.stack.extend(reversed(Unpacking(sim, count, star, done).parts()))


def _format(sim: Simulator, instr: Instr) -> None:
    conversion, has_spec = instr.arg
    values = sim.pop_values(1 + has_spec)
    sim.combine(lambda *exprs: build.formatted(conversion, *exprs), values)


def _call(sim: Simulator, instr: Instr) -> None:
    count, names, null = instr.arg
    arguments = sim.stack[len(sim.stack) - count :] if count else []
    callee_at = len(sim.stack) - count - (2 if null else 1)
    slots = sim.stack[callee_at : len(sim.stack) - count]
    del sim.stack[callee_at:]
    if null == "below" and slots[0].__class__ is Marker and slots[0].kind == "null":
        callee = slots[1]
    elif null == "above":
        callee = slots[0]
    elif null == "below":
        callee, arguments = slots[0], [slots[1], *arguments]
    else:
        callee = slots[0]
    if isinstance(callee, Marker):
        _call_marker(sim, callee, arguments, names)
        return
    if isinstance(callee, BoundMethod):
        call_container_method(sim, callee, arguments)
        return
    sim.stack.extend([callee, *arguments])  # what is called with containers may need names for them
    if sim.context.follows_containers:
        for item in arguments:
            if isinstance(item, Container):
                sim.share_container(item)
    callee, arguments = sim.stack[len(sim.stack) - len(arguments) - 1], sim.stack[len(sim.stack) - len(arguments) :]
    del sim.stack[len(sim.stack) - len(arguments) - 1 :]
    bare = null == "below" and slots[0] is callee
    if isinstance(callee, Function) and len(arguments) == 1 and callee.code.co_name in COMPREHENSIONS:
        _comprehension(sim, callee, arguments[0])
        return
    if bare and len(arguments) == 1 and isinstance(arguments[0], Function) and not names:
        if arguments[0].code.co_name != "<lambda>":
            arguments[0].decorators.insert(0, sim.as_value(callee).expr)
            arguments[0].order = sim.context.next_order()
            sim.stack.append(arguments[0])
            return
    values = [sim.as_value(item) for item in [callee, *arguments]]
    sim.combine(lambda *exprs: build.call(exprs, names), values)
    take_result_apart(sim, instr.offset)


def _call_marker(sim: Simulator, callee: Marker, arguments: List[Any], names: Tuple[str, ...]) -> None:
    if callee.kind == "exit" and len(arguments) == 3:
        sim.settle_exit()
        sim.node.statements.append(WithExit(callee.origin, sim.pending()))
        sim.stack.append(Marker("exit_result", callee.origin))
        return
    if callee.kind == "build_class" and len(arguments) >= 2 and isinstance(arguments[0], Function):
        function = arguments[0]
        values = [sim.as_value(item) for item in arguments[2:]]
        positional = len(values) - len(names)
        bases = [value.expr for value in values[:positional]]
        keywords = [ast.keyword(name, value.expr) for name, value in zip(names, values[positional:])]
        sim.check_order(values)
        function.class_arguments = (bases, keywords)
        function.order = sim.context.next_order()
        sim.stack.append(function)
        return
    raise ValueError(f"a {callee.kind} marker is called at offset {sim.ops[sim.index - 1].offset}")


def _comprehension(sim: Simulator, function: Function, iterable: Any) -> None:
    value = sim.as_value(iterable)
    expression = ComprehensionExpression(value.expr)
    expression.function = function
    expression.iterable = value.expr
    sim.push(expression)


def _call_ex(sim: Simulator, instr: Instr) -> None:
    if sim.context.follows_containers and call_with_containers(sim, bool(instr.arg)):
        return
    keywords = sim.pop_value() if instr.arg else None
    positional = sim.pop_value()
    callee = sim.pop()
    null = sim.pop()
    if not (isinstance(null, Marker) and null.kind == "null"):
        raise ValueError(f"no NULL below the callable at offset {instr.offset}")
    if isinstance(callee, Marker) and callee.kind == "build_class":
        _class_ex(sim, positional, keywords)
        return
    values = [sim.as_value(callee), positional, *([keywords] if keywords else [])]
    sim.combine(lambda *exprs: build.call_ex(*exprs), values)


def _class_ex(sim: Simulator, positional: Value, keywords: Optional[Value]) -> None:
    """``class C(*bases, **keywords)``: the function and the name are the first of the positional arguments."""
    if not isinstance(positional.expr, ast.Tuple) or len(positional.expr.elts) < 2:
        raise ValueError("a class is made from arguments that are no display")
    expression = positional.expr.elts[0]
    function: Function = expression.function  # type: ignore[attr-defined]
    call = build.call_ex(ast.Name("class"), ast.Tuple(positional.expr.elts[2:], ast.Load()),
                         *([keywords.expr] if keywords else []))
    function.class_arguments = (call.args, call.keywords)
    function.order = sim.context.next_order()
    sim.stack.append(function)


def _make_function(sim: Simulator, instr: Instr) -> None:
    code = sim.pop_value().expr
    assert isinstance(code, ast.Constant)
    function = Function(code.value)
    flags = instr.arg
    values = []
    if flags & 8:
        sim.pop()
    annotations = sim.pop_value() if flags & 4 else None
    kw_defaults = sim.pop_value() if flags & 2 else None
    defaults = sim.pop_value() if flags & 1 else None
    if defaults is not None:
        function.defaults = build.elements(defaults.expr)
        values.append(defaults)
    if kw_defaults is not None:
        function.kw_defaults = build.string_pairs(kw_defaults.expr)
        values.append(kw_defaults)
    if annotations is not None:
        function.annotations = build.annotation_pairs(annotations.expr)
        values.append(annotations)
    sim.check_order(values)
    function.order = sim.context.next_order()
    sim.stack.append(function)


def _import(sim: Simulator, instr: Instr) -> None:
    names = sim.pop_value().expr
    level = sim.pop_value().expr
    assert isinstance(names, ast.Constant) and isinstance(level, ast.Constant)
    sim.stack.append(Marker("module", sim.context.next_order(), build.Import(instr.arg, level.value, names.value)))


def _import_from(sim: Simulator, instr: Instr) -> None:
    module = sim.stack[-1]
    if isinstance(module, Marker) and module.kind == "imported" and module.data[0].names is None:
        sim.stack.append(Marker("imported", module.origin, (module.data[0], instr.arg)))
        return
    if not (isinstance(module, Marker) and module.kind == "module"):
        raise ValueError(f"a name is imported from something else than a module at offset {instr.offset}")
    sim.stack.append(Marker("imported", module.origin, (module.data, instr.arg)))


def _import_star(sim: Simulator, instr: Instr) -> None:
    module = sim.pop()
    sim.emit(ast.ImportFrom(module.data.name or None, [ast.alias("*", None)], module.data.level), "*")


def _setup_annotations(sim: Simulator, instr: Instr) -> None:
    return


def _iter(sim: Simulator, instr: Instr) -> None:
    value = sim.pop_value()
    sim.push(value.expr, iterator=True)


def _yield_from_iter(sim: Simulator, instr: Instr) -> None:
    value = sim.pop_value()
    sim.push(ast.YieldFrom(value.expr))


def _awaitable(sim: Simulator, instr: Instr) -> None:
    if isinstance(sim.stack[-1], Marker):  # what an async exit returned
        return
    if isinstance(sim.stack[-1], Target):  # what an async enter returned
        return
    value = sim.pop_value()
    if isinstance(value.expr, ComprehensionExpression) and value.expr.function.code.co_name != "<genexpr>":
        value.expr.awaited = True  # an asynchronous comprehension awaits itself
        sim.stack.append(value)
        return
    sim.push(ast.Await(value.expr))


def _yield_from(sim: Simulator, instr: Instr) -> None:
    sim.pop()
    if isinstance(sim.stack[-1], (Marker, Target)):
        return
    value = sim.pop_value()
    if isinstance(value.expr, ComprehensionExpression) and value.expr.awaited:
        sim.stack.append(value)
        return
    if not isinstance(value.expr, (ast.Await, ast.YieldFrom)):
        raise ValueError(f"something else than an iterator is delegated to at offset {instr.offset}")
    sim.push(value.expr)


def _yield(sim: Simulator, instr: Instr) -> None:
    value = sim.pop_value()
    nothing = isinstance(value.expr, ast.Constant) and value.expr.value is None
    sim.push(ast.Yield(None if nothing else value.expr))


def _return(sim: Simulator, instr: Instr) -> None:
    item = sim.pop()
    if isinstance(item, Marker) and item.kind == "result":
        sim.node.terminator = Return(ast.Name(".result", ast.Load()))
        return
    sim.node.terminator = Return(sim.as_value(item).expr)


def _raise(sim: Simulator, instr: Instr) -> None:
    values = sim.pop_values(instr.arg)
    sim.check_order(values)
    sim.settle_exit()
    sim.node.terminator = Raise(ast.Raise(*[value.expr for value in values]))


def _reraise(sim: Simulator, instr: Instr) -> None:
    item = sim.pop()
    if isinstance(item, Marker) and item.kind in ("exc", "group_result"):
        sim.node.terminator = Reraise(item.origin)
    else:
        sim.node.terminator = Reraise(None, sim.as_value(item).expr)


def _push_exc(sim: Simulator, instr: Instr) -> None:
    exc = sim.pop()
    sim.stack.append(Marker("prev", exc.origin))
    sim.stack.append(exc)


def _pop_exc(sim: Simulator, instr: Instr) -> None:
    prev = sim.pop()
    if not (isinstance(prev, Marker) and prev.kind == "prev"):
        raise ValueError(f"POP_EXCEPT without a handled exception at offset {instr.offset}")
    sim.settle_exit()
    sim.node.statements.append(PopException(prev.origin, sim.pending()))


def _check_exc(sim: Simulator, instr: Instr) -> None:
    type_ = sim.pop_value()
    exc = sim.stack[-1]
    if not (isinstance(exc, Marker) and exc.kind in ("exc", "rest")):
        raise ValueError(f"an exception is tested that is not the handled one at offset {instr.offset}")
    sim.stack.append(Marker("matched", exc.origin, type_.expr))


def _with(sim: Simulator, instr: Instr) -> None:
    manager = sim.pop_value()
    enter = WithEnter(instr.offset, manager.expr, instr.op is Op.ASYNC_WITH)
    sim.emit(enter)
    sim.stack.append(Marker("exit", instr.offset))

    def fill(target: ast.expr) -> None:
        enter.target = target

    sim.stack.append(Target(fill))


def _with_except(sim: Simulator, instr: Instr) -> None:
    sim.stack.append(Marker("with_result", sim.stack[-4].origin if len(sim.stack) >= 4 else -1))


def _unsupported(sim: Simulator, instr: Instr) -> None:
    raise ValueError(f"{instr.op.name} at offset {instr.offset} stands outside any pattern that has syntax")


_RULES: Dict[Op, Rule] = {
    Op.CONST: _const, Op.NULL: _null, Op.LOAD: _load, Op.CLOSURE: _closure, Op.SPECIAL: _special,
    Op.STORE: _store, Op.DELETE: _delete, Op.COPY: _copy, Op.SWAP: _swap, Op.POP: _pop,
    Op.UNARY: _unary, Op.BINARY: _binary, Op.INPLACE: _inplace, Op.COMPARE: _compare, Op.IS: _compare,
    Op.IN: _compare, Op.SUBSCR: _subscr, Op.STORE_SUBSCR: _store_subscr, Op.DELETE_SUBSCR: _delete_subscr,
    Op.ATTR: _attr, Op.STORE_ATTR: _store_attr, Op.DELETE_ATTR: _delete_attr, Op.BUILD: _build, Op.ADD: _add,
    Op.UPDATE: _update, Op.LIST_TO_TUPLE: _list_to_tuple, Op.UNPACK: _unpack, Op.UNPACK_EX: _unpack,
    Op.FORMAT: _format, Op.CALL: _call, Op.CALL_EX: _call_ex, Op.MAKE_FUNCTION: _make_function,
    Op.IMPORT: _import, Op.IMPORT_FROM: _import_from, Op.IMPORT_STAR: _import_star,
    Op.SETUP_ANNOTATIONS: _setup_annotations, Op.ITER: _iter, Op.AITER: _iter, Op.YIELD_FROM_ITER: _yield_from_iter,
    Op.AWAITABLE: _awaitable, Op.YIELD: _yield, Op.YIELD_FROM: _yield_from, Op.RETURN: _return, Op.RAISE: _raise,
    Op.RERAISE: _reraise, Op.PUSH_EXC: _push_exc, Op.POP_EXC: _pop_exc, Op.CHECK_EXC: _check_exc,
    Op.WITH: _with, Op.ASYNC_WITH: _with, Op.WITH_EXCEPT: _with_except,
    Op.CHECK_EXC_GROUP: check_group, Op.PREP_RERAISE_STAR: end_groups, Op.MATCH_MAPPING: _unsupported,
    Op.MATCH_SEQUENCE: _unsupported, Op.GET_LEN: _unsupported, Op.MATCH_KEYS: _unsupported,
    Op.MATCH_CLASS: _unsupported,
}  # fmt: skip
