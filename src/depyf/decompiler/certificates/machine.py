"""One side of a certificate's check: what is in its frame, and how it runs silently to its next stop.

A value is a tuple: ``("const", key)``, ``("sym", number)`` (any object, the same wherever the symbol is),
``("maybe", number)`` (an object, or an unbound variable), ``("cell", name)``, ``("prev", value)`` (what PUSH_EXC
leaves), ``("saved", value)`` (what TAKE leaves) or ``("mark", name)``.

Only what moves values is silent: constants, variables of the frame, the stack, jumps, and handlers. All else is an
``Event``, which both sides have to do alike.
"""

from __future__ import annotations

from typing import Callable, Dict, Hashable, List, NamedTuple, Optional, Set, Tuple, Union

from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.ops import Handler, Instr, Op, is_silent

Value = Tuple[str, Hashable]


class CertificateError(ValueError):
    """The certificate does not prove what it is for; the message says where it fails."""


def constant(kind: str, content: Hashable) -> Value:
    return ("const", (kind, content))


NULL, LASTI, OUTER, UNBOUND = (("mark", name) for name in ("NULL", "LASTI", "OUTER", "unbound"))
NONE = constant("NoneType", None)
TRUTHS = {True: constant("bool", True), False: constant("bool", False)}
OUTSIDE = -1


class Event(NamedTuple):
    """What both sides have to do alike. ``outcome``: "next", "raise" (always), "for" (may be exhausted), "truth" (both
    truths are followed), "bound" (a variable is bound from now on), "handles" (another exception is being handled)."""

    kind: Hashable
    operands: Tuple[Value, ...] = ()
    pops: int = 0
    results: int = 0
    outcome: str = "next"
    raises: bool = True


class Returned(NamedTuple):
    value: Value


class Raised(NamedTuple):
    """``open_test``: it left by a test that CPython's own handler around a generator does not cover."""

    error: Value
    open_test: bool


Stop = Union[Event, Returned, Raised]


class Side:
    """The frame of one side. Variables that are not in ``locals`` are unbound."""

    def __init__(self, ops: Tuple[Instr, ...], constants: Dict[int, Value], open_tests: Set[int]) -> None:
        self.ops, self.constants, self.open_tests = ops, constants, open_tests
        self.position = 0
        self.stack: List[Value] = []
        self.locals: Dict[str, Value] = {}
        self.handled: Value = OUTER
        self.leaving: Optional[Raised] = None

    def clone(self) -> Side:
        other = Side(self.ops, self.constants, self.open_tests)
        other.position, other.stack, other.locals = self.position, self.stack[:], dict(self.locals)
        other.handled, other.leaving = self.handled, self.leaving
        return other

    @property
    def instr(self) -> Instr:
        return self.ops[self.position]

    def top(self, count: int) -> Tuple[Value, ...]:
        if not 0 <= count <= len(self.stack):
            raise CertificateError("there are too few values on the stack")
        return tuple(self.stack[len(self.stack) - count :])

    def pop(self, count: int = 1) -> Tuple[Value, ...]:
        values = self.top(count)
        del self.stack[len(self.stack) - count :]
        return values

    def alive(self) -> Set[Value]:
        """Return the symbols that the frame keeps alive."""
        found, todo = set(), [*self.stack, *self.locals.values(), self.handled]
        todo += [] if self.leaving is None else [self.leaving.error]
        while todo:
            value = todo.pop()
            if value[0] in ("sym", "maybe"):
                found.add(value)
            elif value[0] in ("prev", "saved"):
                todo.append(inner(value))
        return found

    def replace(self, one: Value, other: Value) -> None:
        """Put ``other`` in the place of ``one`` everywhere."""
        self.stack = [_replaced(each, one, other) for each in self.stack]
        self.locals = {name: _replaced(each, one, other) for name, each in self.locals.items()}
        self.handled = _replaced(self.handled, one, other)

    def unwind(self, handler: Optional[Handler], error: Value) -> None:
        """Continue at the handler with ``error``, or leave the function."""
        depth = 0 if handler is None else handler.depth
        self.top(depth)
        while len(self.stack) > depth:
            (value,) = self.pop()
            if value[0] == "prev":
                self.handled = inner(value)
        if handler is None:
            self.leaving, self.position = Raised(error, self.position in self.open_tests), OUTSIDE
        else:
            self.stack += [LASTI, error] if handler.lasti else [error]
            self.position = handler.target

    def jump(self) -> None:
        target = self.instr.target
        if target is None:
            raise CertificateError("a jump has no target")
        self.position = target

    def take(self, *, truth: bool) -> None:
        """Continue after a "truth" event whose operands are popped: the truth is what the kind of event asks."""
        op, arg = self.instr.op, self.instr.arg
        if op is Op.BRANCH:
            if truth is (arg in ("true", "none")):
                self.jump()
                return
        elif op is Op.UNARY:
            self.stack.append(TRUTHS[not truth])
        else:  # IS, IN: ``arg`` is whether it is negated
            self.stack.append(TRUTHS[truth is not (op in (Op.IS, Op.IN) and arg)])
        self.position += 1

    def run(self) -> Stop:
        """Run silently up to the next stop."""
        for _ in range(2 * len(self.ops) + 2):
            if self.leaving is not None:
                return self.leaving
            instr = self.instr
            answer = SILENT.get(instr.op, event)(self, instr)
            if answer is not None:
                return answer
        raise CertificateError("one side may run silently for ever")


def inner(value: Value) -> Value:
    found = value[1]
    assert isinstance(found, tuple)
    return found


def _replaced(value: Value, one: Value, other: Value) -> Value:
    if value == one:
        return other
    return (value[0], _replaced(inner(value), one, other)) if value[0] in ("prev", "saved") else value


# --- events

_KEEPS = (Op.IMPORT_FROM, Op.MATCH_MAPPING, Op.MATCH_SEQUENCE, Op.GET_LEN, Op.MATCH_KEYS, Op.WITH_EXCEPT, Op.FOR)
"""Operations that leave their operands on the stack."""
_TRUTHS = (Op.CHECK_EXC, Op.MATCH_MAPPING, Op.MATCH_SEQUENCE)
"""Operations that push a truth."""
_UNKNOWN = (Op.MAKE_CELL, Op.COMPREHENSION)


def event(side: Side, instr: Instr) -> Event:
    """Return the event of an operation that is not silent: it may do anything with its operands."""
    op, arg = instr.op, instr.arg
    if op in _UNKNOWN or (op in (Op.LOAD, Op.STORE, Op.DELETE, Op.TAKE) and arg[0] == "cell"):
        raise CertificateError(f"certificates have no {op.name}")
    raises = not is_silent(instr)
    if op in (Op.ADD, Op.UPDATE):
        count = 2 if op is Op.ADD and arg[0] == "map" else 1
        return Event((op, arg[0]), (side.top(count + arg[1])[0], *side.top(count)), count)
    takes, leaves = effect(op, arg)
    operands, pops = side.top(takes), 0 if op in _KEEPS else 1 if op is Op.CHECK_EXC else takes
    if op in _TRUTHS:
        return Event((op, arg), operands, pops, 0, "truth", raises)
    outcome = {Op.RAISE: "raise", Op.FOR: "for", Op.CHECK_EXC_GROUP: "handles"}.get(op, "next")
    if outcome == "handles" and side.handled == OUTER:
        raise CertificateError("a group is matched where nothing is handled")
    return Event((op, arg), operands, pops, leaves - (takes - pops), outcome, raises)


def _of_variable(side: Side, name: str) -> Optional[Event]:
    """Return the event of a variable that is unbound, or may be."""
    value = side.locals.get(name, UNBOUND)
    if value == UNBOUND:
        return Event(("unbound", name), outcome="raise")
    return Event(("bound", name), (value,), outcome="bound") if value[0] == "maybe" else None


# --- what is silent


def _push(make: Callable[[Side, Instr], Value]) -> Callable[[Side, Instr], Optional[Stop]]:
    def rule(side: Side, instr: Instr) -> None:
        side.stack.append(make(side, instr))
        side.position += 1

    return rule


def _on_variable(side: Side, instr: Instr) -> Optional[Stop]:
    """Execute an operation on a variable of the frame; on a name elsewhere it is an event."""
    scope, name = instr.arg
    if scope != "fast":
        return event(side, instr)
    found = _of_variable(side, name) if instr.op in (Op.LOAD, Op.DELETE) else None
    if found is not None:
        return found
    if instr.op is Op.LOAD:
        side.stack.append(side.locals[name])
    elif instr.op is Op.DELETE:
        del side.locals[name]
    elif instr.op is Op.TAKE:
        side.stack.append(("saved", side.locals.pop(name, UNBOUND)))
    else:
        (value,) = side.pop()
        value = inner(value) if value[0] == "saved" else value
        side.locals.pop(name, None)
        if value != UNBOUND:
            side.locals[name] = value
    side.position += 1
    return None


def _swap_or_pop(side: Side, instr: Instr) -> None:
    if instr.op is Op.POP:
        side.pop()
    else:
        side.top(max(instr.arg, 1))
        side.stack[-1], side.stack[-instr.arg] = side.stack[-instr.arg], side.stack[-1]
    side.position += 1


def _known_truth(value: Value) -> Optional[bool]:
    if value[0] == "const" and isinstance(value[1], tuple) and value[1][0] in ("NoneType", "bool", "int", "str"):
        return bool(value[1][1])
    return None


def _branch(side: Side, instr: Instr) -> Optional[Stop]:
    (value,) = side.top(1)
    asks_none = instr.arg in ("none", "not none")
    known = (value == NONE if value[0] == "const" else None) if asks_none else _known_truth(value)
    if known is None:
        if asks_none:
            return Event("is", tuple(sorted((value, NONE), key=repr)), 1, 0, "truth", raises=False)
        return Event("truth", (value,), 1, 0, "truth")
    side.pop()
    side.take(truth=known)
    return None


def _unary(side: Side, instr: Instr) -> Optional[Stop]:
    if instr.arg != "not":
        return event(side, instr)
    known = _known_truth(side.top(1)[0])
    if known is None:
        return Event("truth", side.top(1), 1, 0, "truth")
    side.pop()
    side.take(truth=known)
    return None


def _build(side: Side, instr: Instr) -> Optional[Stop]:
    kind, count = instr.arg
    items = side.top(count) if kind == "tuple" else ()
    if kind != "tuple" or not all(each[0] == "const" and each[1][0] != "code" for each in items):  # type: ignore[index]
        return event(side, instr)
    side.pop(count)
    side.stack.append(constant("tuple", tuple(each[1] for each in items)))
    side.position += 1
    return None


def _raise(side: Side, instr: Instr) -> Optional[Stop]:
    if instr.arg or side.handled == OUTER:
        return event(side, instr)
    side.unwind(instr.handler, side.handled)
    return None


def _push_exc(side: Side, instr: Instr) -> None:
    (error,) = side.pop()
    side.stack += [("prev", side.handled), error]
    side.handled = error
    side.position += 1


def _pop_exc(side: Side, instr: Instr) -> None:
    (marker,) = side.pop()
    if marker[0] != "prev":
        raise CertificateError("POP_EXC has no marker")
    side.handled = inner(marker)
    side.position += 1


SILENT: Dict[Op, Callable[[Side, Instr], Optional[Stop]]] = {
    Op.CONST: _push(lambda side, instr: side.constants[side.position]), Op.NULL: _push(lambda side, instr: NULL),
    Op.CLOSURE: _push(lambda side, instr: ("cell", instr.arg)),
    Op.COPY: _push(lambda side, instr: side.top(instr.arg)[0]),
    Op.LOAD: _on_variable, Op.STORE: _on_variable, Op.DELETE: _on_variable, Op.TAKE: _on_variable,
    Op.SWAP: _swap_or_pop, Op.POP: _swap_or_pop,
    Op.BRANCH: _branch, Op.UNARY: _unary, Op.BUILD: _build, Op.RAISE: _raise, Op.PUSH_EXC: _push_exc,
    Op.POP_EXC: _pop_exc,
    Op.IS: lambda side, instr: Event("is", tuple(sorted(side.top(2), key=repr)), 2, 0, "truth", raises=False),
    Op.IN: lambda side, instr: Event("in", side.top(2), 2, 0, "truth"),
    Op.JUMP: lambda side, instr: side.jump(),
    Op.RERAISE: lambda side, instr: side.unwind(instr.handler, side.top(1)[0]),
    Op.RETURN: lambda side, instr: Returned(side.top(1)[0]),
}  # fmt: skip
