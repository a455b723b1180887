"""How the symbolic machine executes each operation: rules on values, variables and control, and the table of all."""

from __future__ import annotations

from typing import Dict

from depyf.decompiler.normal.ops import Instr, Op
from depyf.decompiler.verify import containers, fresh_calls, functions, subscripts
from depyf.decompiler.verify.comparison import Finding, MismatchError
from depyf.decompiler.verify.events import EVENTS
from depyf.decompiler.verify.folding import binary, compare, is_, truth_of, unary
from depyf.decompiler.verify.machine import MOVED, Answer, Machine, Rule
from depyf.decompiler.verify.program import cell_name
from depyf.decompiler.verify.side import Fresh, Side
from depyf.decompiler.verify.stops import Event, Exit, Outcome, Split
from depyf.decompiler.verify.values import NULL, OUTER, Const, Maybe, Prev, Saved

# --- values and the stack


def _const(machine: Machine, side: Side, instr: Instr) -> Answer:
    side.push(machine.values.const(instr.arg))
    return None


def _null(machine: Machine, side: Side, instr: Instr) -> Answer:
    side.push(NULL)
    return None


def _load(machine: Machine, side: Side, instr: Instr) -> Answer:
    scope, name = instr.arg
    if scope == "fast":
        value = side.locals.get(name)
        if value is None:
            return Event("unbound local", name, (), "", 0, outcome="raise")
        if isinstance(value, Maybe):
            return Event("use of the local", name, (value.inner,), "", 0, advance=False, outcome="bound")
        side.push(value)
        return None
    # A global that is assumed not to change: reading it is silent, at any time.
    if scope == "global" and name in machine.stable_globals:
        side.push(machine.values.named("global", name))
        return None
    # Reading other variables may raise NameError. A cell keeps its value alive only until another function rebinds it.
    counted = machine.counted_globals or scope in ("deref", "classderef", "bodyderef")
    return Event(f"load {scope}", name, side.cell(name), "v" if counted else "u", 0)


def _store(machine: Machine, side: Side, instr: Instr) -> Answer:
    scope, name = instr.arg
    if scope != "fast":
        # A cell takes any value; a namespace may be any mapping.
        outcome: Outcome = "safe" if scope == "deref" else "next"
        return Event(f"store {scope}", name, (*side.cell(name), side.stack[-1]), "", 1, outcome=outcome)
    value = side.stack[-1]
    if isinstance(value, Saved):
        _restore(side, name, value)
    else:
        side.store(name, value)
    side.pop()
    return None


def _restore(side: Side, name: str, saved: Saved) -> None:
    value = side.locals.get(saved.key)
    if value is not None:
        side.store(name, value)
        side.delete(saved.key)
    elif name in side.locals:
        side.delete(name)


def _take(machine: Machine, side: Side, instr: Instr) -> Answer:
    """Move the value to a name that no variable has."""
    _, name = instr.arg
    depth = sum(isinstance(value, Saved) for value in side.stack)
    saved = machine.values.saved(name, depth)
    value = side.locals.get(name)
    if value is not None:
        side.store(saved.key, value)
        side.delete(name)
    side.push(saved)
    return None


def _make_cell(machine: Machine, side: Side, instr: Instr) -> Answer:
    side.store(cell_name(instr.arg), side.allocate(Fresh("cell", ())))
    return None


def _delete(machine: Machine, side: Side, instr: Instr) -> Answer:
    scope, name = instr.arg
    if scope != "fast":
        return Event(f"delete {scope}", name, side.cell(name), "", 0)
    value = side.locals.get(name)
    if value is None:
        return Event("unbound local", name, (), "", 0, outcome="raise")
    if isinstance(value, Maybe):
        return Event("use of the local", name, (value.inner,), "", 0, advance=False, outcome="bound")
    side.delete(name)
    return None


def _closure(machine: Machine, side: Side, instr: Instr) -> Answer:
    side.push(machine.values.named("cell", instr.arg))
    return None


def _special(machine: Machine, side: Side, instr: Instr) -> Answer:
    side.push(machine.values.named("special", instr.arg))
    return None


def _copy(machine: Machine, side: Side, instr: Instr) -> Answer:
    side.push(side.stack[-instr.arg])
    return None


def _swap(machine: Machine, side: Side, instr: Instr) -> Answer:
    stack = side.stack
    stack[-1], stack[-instr.arg] = stack[-instr.arg], stack[-1]
    return None


def _pop(machine: Machine, side: Side, instr: Instr) -> Answer:
    value = side.pop()
    if isinstance(value, Saved) and value.key in side.locals:
        side.delete(value.key)
    return None


def _branch(machine: Machine, side: Side, instr: Instr) -> Answer:
    value = side.stack[-1]
    if instr.arg in ("true", "false"):
        truth = truth_of(machine, side, value)
        if truth is None:
            return Event("truth of", None, (value,), "b", 1, advance=False)
    else:
        values = machine.values
        truth = machine.resolve(values.same_object(machine.resolve(value), values.none))
    if not isinstance(truth, Const):
        return Split(truth)
    side.pop()
    # A known truth, or one that the path assumes after a ``Split``.
    jumps = bool(truth.value) == (instr.arg in ("true", "none"))
    assert instr.target is not None
    side.position = instr.target if jumps else side.position + 1
    return MOVED


# --- control and exceptions


def _jump(machine: Machine, side: Side, instr: Instr) -> Answer:
    assert instr.target is not None
    side.position = instr.target
    return MOVED


def _return(machine: Machine, side: Side, instr: Instr) -> Answer:
    return Exit("return", side.stack[-1])


def _raise(machine: Machine, side: Side, instr: Instr) -> Answer:
    """Raise; a bare ``raise`` continues to unwind the exception being handled, with its traceback and context.

    RERAISE of the same exception does the same (ceval.c: both restore it and skip the new traceback entry).
    """
    # In ``except E: raise`` the exception is known. Outside of a handler, the caller's may be raised: an event.
    if instr.arg == 0 and side.handled is not OUTER:
        side.unwind(instr.handler, side.handled)
        return MOVED
    count = instr.arg
    operands = tuple(side.stack[len(side.stack) - count :])
    return Event("raise", count, operands, "", count, outcome="raise")


def _reraise(machine: Machine, side: Side, instr: Instr) -> Answer:
    side.unwind(instr.handler, machine.resolve(side.stack[-1]))
    return MOVED


def _push_exc(machine: Machine, side: Side, instr: Instr) -> Answer:
    exception = side.stack[-1]
    side.handle(exception)
    side.stack[-1], side.stack[-2] = side.stack[-2], side.stack[-1]
    return None


def _pop_exc(machine: Machine, side: Side, instr: Instr) -> Answer:
    marker = side.stack[-1]
    if not isinstance(marker, Prev):
        raise MismatchError(Finding.UNVERIFIED, f"POP_EXC without its marker at offset {instr.offset}")
    side.restore(marker)
    side.pop()
    return None


def _with_except(machine: Machine, side: Side, instr: Instr) -> Answer:
    return Event("exit with the exception", None, (side.stack[-4], side.stack[-1]), "v", 0)


def _for(machine: Machine, side: Side, instr: Instr) -> Answer:
    return Event("async for" if instr.arg else "for", None, (side.stack[-1],), "v", 0, outcome="for")


RULES: Dict[Op, Rule] = {
    **EVENTS,
    Op.CONST: _const,
    Op.NULL: _null,
    Op.LOAD: _load,
    Op.STORE: _store,
    Op.DELETE: _delete,
    Op.TAKE: _take,
    Op.MAKE_CELL: _make_cell,
    Op.CLOSURE: _closure,
    Op.SPECIAL: _special,
    Op.COPY: _copy,
    Op.SWAP: _swap,
    Op.POP: _pop,
    Op.UNARY: unary,
    Op.IS: is_,
    Op.BINARY: binary,
    Op.COMPARE: compare,
    Op.BRANCH: _branch,
    Op.JUMP: _jump,
    Op.RETURN: _return,
    Op.RAISE: _raise,
    Op.RERAISE: _reraise,
    Op.PUSH_EXC: _push_exc,
    Op.POP_EXC: _pop_exc,
    Op.WITH_EXCEPT: _with_except,
    Op.FOR: _for,
    Op.MAKE_FUNCTION: functions.make_function,
    Op.BUILD: containers.build,
    Op.ADD: containers.add,
    Op.UPDATE: containers.update,
    Op.LIST_TO_TUPLE: containers.list_to_tuple,
    Op.UNPACK: containers.unpack,
    Op.UNPACK_EX: containers.unpack_ex,
    Op.SUBSCR: subscripts.subscr,
    Op.STORE_SUBSCR: subscripts.store_subscr,
    Op.DELETE_SUBSCR: subscripts.delete_subscr,
    Op.ATTR: fresh_calls.attr,
    Op.CALL: fresh_calls.call,
    Op.CALL_EX: fresh_calls.call_ex,
}
