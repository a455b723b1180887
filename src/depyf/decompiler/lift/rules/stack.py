"""Values, copies and swaps on the symbolic stack."""

from __future__ import annotations

import ast
from typing import Optional, Sequence

from depyf.decompiler.lift import build
from depyf.decompiler.lift.containers import wanted
from depyf.decompiler.lift.followed import pop_container
from depyf.decompiler.lift.items import (
    BoundMethod,
    ChainTest,
    Container,
    Copy,
    Function,
    Mark,
    Marker,
    Retry,
    Target,
    Value,
)
from depyf.decompiler.lift.nodes import BindException
from depyf.decompiler.lift.simulator import Simulator
from depyf.decompiler.lift.unpacking import Unpacking
from depyf.decompiler.normal.ops import Instr, Op


def _const(sim: Simulator, instr: Instr) -> None:
    sim.push(ast.Constant(instr.arg), stable=True)


def _null(sim: Simulator, instr: Instr) -> None:
    sim.stack.append(Marker(Mark.NULL))


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


def _namespace(sim: Simulator, instr: Instr) -> None:
    sim.push(build.special("locals()"))


def _closure(sim: Simulator, instr: Instr) -> None:
    sim.push(build.cell(instr.arg), stable=True)


def _special(sim: Simulator, instr: Instr) -> None:
    if instr.arg == "__build_class__":
        sim.stack.append(Marker(Mark.BUILD_CLASS))
    else:
        sim.push(build.special(instr.arg), stable=True)


def _copy(sim: Simulator, instr: Instr) -> None:
    """Duplicate an item. The copy of a value that must not be evaluated twice is a ``Copy``: the next operation decides
    whether it is a chained assignment, an augmented one, a comparison, ... or needs a temporary."""
    item = sim.stack[-instr.arg]
    if isinstance(item, Function):
        item = sim.stack[-instr.arg] = sim.as_value(item)
    if isinstance(item, Container):
        sim.stack.append(item)
    # Dynamo duplicates values to permute the stack: in its code each waiting value is stored before it is copied.
    elif isinstance(item, Value) and not item.stable and sim.context.follows_containers and not _is_kept(sim):
        sim.settle()
        sim.stack.append(item.again())
    # a = b = 1     CONST 1; COPY 1; STORE a; STORE b: could be two statements, but is one
    elif isinstance(item, Value) and item.stable and instr.arg == 1 and _is_stored_next(sim, instr):
        value = Value(item.expr, False, item.local, sim.context.next_order(), sim.node.id, copies=1)
        value.copied_at = instr.offset
        sim.stack[-1] = value
        sim.stack.append(Copy(value, instr.offset))
    elif isinstance(item, Value) and item.stable:
        sim.stack.append(item.again())
    elif isinstance(item, Value):
        item.copies += 1
        item.copied_at = instr.offset
        sim.stack.append(Copy(item, instr.offset))
    elif isinstance(item, Copy):
        item.of.copies += 1
        sim.stack.append(Copy(item.of, instr.offset))
    elif isinstance(item, Marker) and item.kind in (Mark.EXC, Mark.NULL, Mark.PREV, Mark.LASTI):
        sim.stack.append(Marker(item.kind, item.origin, copied=True))
    else:
        sim.settle()
        value = sim.as_value(item)
        sim.stack[-instr.arg] = value
        sim.stack.append(Value(value.expr, True, value.local))


def _is_stored_next(sim: Simulator, instr: Instr) -> bool:
    """Return whether the copy is stored in a target at once, as in ``a = b = value``."""
    return instr.offset not in sim.context.decisions.spill and _stores_follow(sim.ops, sim.index, 1)


def _is_kept(sim: Simulator) -> bool:
    """Return whether the copy is stored in a variable at once: the variable then represents the value."""
    following = sim.ahead(1)
    return bool(following) and following[0].op is Op.STORE


def _swap(sim: Simulator, instr: Instr) -> None:
    """Exchange two items, unless the SWAP is part of ``a < b < c`` or of ``a, b = x, y``."""
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
    """Start ``a < b < c``, compiled to ``a; b; SWAP 2; COPY 2; COMPARE <``: ``b`` is used again if the test holds."""
    following = sim.ahead(2)
    if (
        instr.arg != 2
        or len(following) < 2
        or (following[0].op, following[0].arg) != (Op.COPY, 2)
        or instr.offset in sim.context.decisions.spill
    ):
        return False
    # Both operands have to be plain: with copies or targets of their own there would be two uses of one expression.
    operands = [item for item in sim.stack[-2:] if isinstance(item, (Value, Function))]
    if following[1].op not in (Op.COMPARE, Op.IS, Op.IN) or len(operands) < 2:
        return False
    previous, middle = [sim.as_value(item) if isinstance(item, Function) else item for item in operands]
    if middle.copies or previous.copies or not all(isinstance(target, ast.Name) for target in middle.chain):
        return False
    middle = sim.as_value(middle)
    operator = build.comparison(following[1])
    # The first comparison of a chain begins it; each later one makes it longer by an operand.
    chain = previous.tests
    if chain is None:
        previous = sim.as_value(previous)
        sim.check_order([previous, middle])
        chain = ChainTest(previous.expr, [operator], [middle.expr])
    else:
        chain = build.longer(chain, operator, middle.expr)
    # Left are ``b``, which the next comparison takes, and the truth of the chain so far, which a jump takes.
    del sim.stack[-2:]
    middle = sim.push(middle.expr)
    middle.tests = chain
    test = sim.push(build.chain_expression(chain))
    middle.copied_at = test.copied_at = instr.offset
    sim.index += 2
    return True


def _starts_tuple_assignment(sim: Simulator, instr: Instr) -> bool:
    """Start ``a, b = x, y``, compiled to ``x; y; SWAP 2; STORE a; STORE b`` (3 values: SWAP 3) without a tuple."""
    count = instr.arg
    if count not in (2, 3) or instr.offset in sim.context.decisions.plain_swap or len(sim.stack) < count:
        return False
    items = sim.stack[-count:]
    if not all(isinstance(item, (Value, Function)) for item in items):
        return False
    if any(isinstance(item, Value) and (item.copies or item.tests or item.augments) for item in items):
        return False
    stored_before = [target for item in items if isinstance(item, Value) for target in item.chain]
    if not all(isinstance(target, ast.Name) for target in stored_before):
        return False
    if not _stores_follow(sim.ops, sim.index, count):
        return False
    values = sim.pop_values(count)
    try:
        sim.check_order(values)
    except Retry:
        raise Retry("plain_swap", instr.offset) from None
    stored = ast.Tuple([value.expr for value in values], ast.Load())
    unpacking = Unpacking(sim, count, None, lambda last, target: last.emit(ast.Assign([target], stored), "*"))
    sim.stack.extend(reversed(unpacking.parts()))
    return True


def _stores_follow(ops: Sequence[Instr], index: int, count: int) -> bool:
    """Return whether the operations at ``index`` are ``count`` stores, each with the simple loads of its target."""
    # STORE a; LOAD b; STORE_ATTR c; LOAD d; CONST 0; STORE_SUBSCR      are the targets ``a``, ``b.c`` and ``d[0]``;
    #                                                                   ``depth`` counts the items that a target pushed
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


def _is_from_before_a_test(sim: Simulator, item: Value) -> bool:
    """Return whether ``item`` was evaluated in another node, and storing it there was not tried yet."""
    home = sim.context.waits_no_longer(item).key
    return item.born != sim.node.id and home not in sim.context.decisions.spill_end


def _was_loaded_inside(sim: Simulator, item: Value) -> bool:
    """Return whether a region was exited while the variable ``item`` was pending, and an earlier store was not tried
    yet."""
    home = sim.context.waits_no_longer(item).key
    if item.local is None or home in sim.context.decisions.spill_locals:
        return False
    return any(node.left_with(item.expr) >= 0 for node in sim.context.nodes.values())


def _stored_next(sim: Simulator) -> Optional[str]:
    """Return the name that a dropped value is stored to: ``_, _, _ = x`` keeps only the last equal store since 3.12."""
    for instr in sim.ahead(len(sim.stack)):
        if instr.op is Op.STORE and instr.arg[0] == "fast":
            name: str = instr.arg[1]
            return name
        if instr.op is not Op.POP:
            return None
    return None


def _was_just_built(sim: Simulator) -> bool:
    """Return whether a display is dropped at once, as only user code does. Dynamo uses the lists that it builds."""
    return sim.index >= 2 and sim.ops[sim.index - 2].op in (Op.BUILD, Op.UPDATE, Op.ADD)


def _pop(sim: Simulator, instr: Instr) -> None:
    """Drop the top item. A value that was evaluated becomes an expression statement."""
    item = sim.pop()
    sim.check_latest(item)
    if isinstance(item, Copy):
        item.of.copies -= 1
    elif isinstance(item, Container):
        pop_container(sim, item)
    elif isinstance(item, BoundMethod):
        return
    elif isinstance(item, Marker):
        if item.kind is Mark.EXC and not item.copied:  # ``except E:`` without a name
            sim.emit(BindException(item.origin, None))
    elif isinstance(item, Target):  # the item of a ``for`` or ``with`` that nothing stores
        if item.group is not None:
            sim.fill(item, ast.Name(_stored_next(sim) or sim.context.temporary(), ast.Store()))
        elif item.needed:
            sim.fill(item, ast.Name(sim.context.temporary(), ast.Store()))
    elif isinstance(item, Function):
        sim.emit(ast.Expr(build.function_expression(item)))
    elif item.chain and not item.copies:  # ``(a := f())`` as a statement, or ``(b := (a := f()))``
        chain, item.chain = item.chain, []
        if len(chain) == 1 and isinstance(chain[0], ast.Name):
            sim.emit(ast.Expr(ast.NamedExpr(chain[0], item.expr)), "*")
        else:
            sim.emit(ast.Assign(chain, item.expr), "*")
    elif item.tests is not None:
        raise Retry("spill", item.copied_at)
    elif isinstance(item.expr, ast.List) and not (sim.context.follows_containers or _was_just_built(sim)):
        raise wanted()  # a list of Dynamo's that only moved values
    elif not item.stable and _is_from_before_a_test(sim, item):
        raise sim.context.waits_no_longer(item)
    elif item.stable and item.born != sim.node.id and _was_loaded_inside(sim, item):
        raise Retry("spill_locals", sim.context.waits_no_longer(item).key)
    elif not item.stable or item.local is not None:
        sim.drop(item)


def _print(sim: Simulator, instr: Instr) -> None:
    sim.emit(ast.Expr(sim.pop_value().expr))
