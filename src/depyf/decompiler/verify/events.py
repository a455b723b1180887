"""The operations that are events whatever their operands: how many values they inspect, pop and push."""

from __future__ import annotations

from typing import Callable, Dict, Tuple

from depyf.decompiler.normal.ops import Instr, Op
from depyf.decompiler.verify.machine import Machine
from depyf.decompiler.verify.side import Side
from depyf.decompiler.verify.stops import Event, Outcome
from depyf.decompiler.verify.values import Const, Value

EventRule = Callable[[Machine, Side, Instr], Event]


def _plain(kind: str, looks: int, pops: int, results: str, outcome: Outcome = "next") -> EventRule:
    """Return the rule of an event that inspects the ``looks`` topmost values and pops ``pops`` values."""

    def rule(machine: Machine, side: Side, instr: Instr) -> Event:
        return Event(kind, instr.arg, topmost(side, looks), results, pops, outcome=outcome)

    return rule


def topmost(side: Side, count: int) -> Tuple[Value, ...]:
    """Return the ``count`` values on top of the stack, the top last."""
    return tuple(side.stack[len(side.stack) - count :])


def _in(machine: Machine, side: Side, instr: Instr) -> Event:
    item, container = topmost(side, 2)
    if isinstance(container, Const) and type(container.value) is frozenset:
        container = machine.values.members(container.value)
    return Event("in", None, (item, container), "b", 2, negated=instr.arg)


def _unpack(machine: Machine, side: Side, instr: Instr) -> Event:
    return Event("unpack", instr.arg, topmost(side, 1), "v" * instr.arg, 1)


def _unpack_ex(machine: Machine, side: Side, instr: Instr) -> Event:
    return Event("unpack", instr.arg, topmost(side, 1), "v" * (sum(instr.arg) + 1), 1)


def _intrinsic(machine: Machine, side: Side, instr: Instr) -> Event:
    count = instr.arg[1]
    return Event("intrinsic", instr.arg, topmost(side, count), "v", count)


def _format(machine: Machine, side: Side, instr: Instr) -> Event:
    count = 2 if instr.arg[1] else 1
    return Event("format", instr.arg, topmost(side, count), "v", count)


def _interpolation(machine: Machine, side: Side, instr: Instr) -> Event:
    count = 3 if instr.arg[1] else 2
    return Event("interpolation", instr.arg, topmost(side, count), "v", count)


def _build(machine: Machine, side: Side, instr: Instr) -> Event:
    kind, count = instr.arg
    if kind == "map":
        count *= 2
    elif kind == "const_key_map":
        count += 1
    return Event("build", instr.arg, topmost(side, count), "v", count)


def _into(kind: str) -> EventRule:
    """Return the rule of ADD and UPDATE: the container stays below the operands."""

    def rule(machine: Machine, side: Side, instr: Instr) -> Event:
        what, depth = instr.arg
        count = 2 if kind == "add" and what == "map" else 1
        return Event(f"{kind} {what}", None, (side.stack[-count - depth], *topmost(side, count)), "", count)

    return rule


EVENTS: Dict[Op, EventRule] = {
    Op.UNARY: _plain("unary", 1, 1, "v"),
    Op.BINARY: _plain("binary", 2, 2, "v"),
    Op.INPLACE: _plain("in-place", 2, 2, "v"),
    Op.COMPARE: _plain("compare", 2, 2, "v"),
    Op.IN: _in,
    Op.SUBSCR: _plain("subscript", 2, 2, "v"),
    Op.STORE_SUBSCR: _plain("store subscript", 3, 3, ""),
    Op.DELETE_SUBSCR: _plain("delete subscript", 2, 2, ""),
    Op.ATTR: _plain("attribute", 1, 1, "v"),
    Op.STORE_ATTR: _plain("store attribute", 2, 2, ""),
    Op.SUPER_ATTR: _plain("attribute of super", 3, 3, "v"),
    Op.INTRINSIC: _intrinsic,
    Op.NAMESPACE: _plain("namespace", 0, 0, "u"),
    Op.CONVERT: _plain("convert", 1, 1, "v"),
    Op.DELETE_ATTR: _plain("delete attribute", 1, 1, ""),
    Op.BUILD: _build,
    Op.ADD: _into("add"),
    Op.UPDATE: _into("update"),
    Op.LIST_TO_TUPLE: _plain("list to tuple", 1, 1, "v"),
    Op.UNPACK: _unpack,
    Op.UNPACK_EX: _unpack_ex,
    Op.FORMAT: _format,
    Op.INTERPOLATION: _interpolation,
    Op.TEMPLATE: _plain("template", 2, 2, "v"),
    Op.IMPORT: _plain("import", 2, 2, "u"),
    Op.IMPORT_FROM: _plain("import from", 1, 0, "u"),
    Op.IMPORT_STAR: _plain("import star", 1, 1, ""),
    Op.SETUP_ANNOTATIONS: _plain("set up annotations", 0, 0, ""),
    Op.PRINT: _plain("show", 1, 1, ""),
    Op.ITER: _plain("iterator of", 1, 1, "v"),
    Op.YIELD_FROM_ITER: _plain("iterator for yield from", 1, 1, "v"),
    Op.AITER: _plain("async iterator of", 1, 1, "v"),
    Op.AWAITABLE: _plain("awaitable of", 1, 1, "v"),
    Op.YIELD: _plain("yield", 1, 1, "v"),
    Op.YIELD_FROM: _plain("yield from", 2, 2, "v"),
    Op.CHECK_EXC: _plain("exception matches", 2, 1, "b"),
    Op.CHECK_EXC_GROUP: _plain("split the exception group", 2, 2, "vv", "handles"),
    Op.PREP_RERAISE_STAR: _plain("gather exceptions", 2, 2, "v"),
    Op.WITH: _plain("enter", 1, 1, "vv"),
    Op.ASYNC_WITH: _plain("async enter", 1, 1, "vv"),
    Op.MATCH_MAPPING: _plain("is a mapping", 1, 0, "b"),
    Op.MATCH_SEQUENCE: _plain("is a sequence", 1, 0, "b"),
    Op.GET_LEN: _plain("length of", 1, 0, "v"),
    Op.MATCH_KEYS: _plain("match keys", 2, 0, "v"),
    Op.MATCH_CLASS: _plain("match class", 3, 3, "v"),
}
