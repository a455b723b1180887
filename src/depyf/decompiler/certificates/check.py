"""Check a certificate: run both sides from every state in it to the next ones, with the same events on the way.

A state says for a pair of positions what corresponds: what is in each slot (of the stack, of the variables) of either
side, a constant or a number, the same number for the same object. It means all states that come of it by putting
objects for the numbers. Checked is, from the start and from each state:

1. Both sides run silently to a stop. Two events are the same operation on the same operands, while both handle the
   same exception, have the same variables, and keep the same objects alive; then both continue with the same results,
   and likewise if it raises. Of a test both outcomes are followed. Two ends are the same.
2. Each path comes to its end, or, after one event at least, to a state that means the one which it is in.

So what both sides do is the same on every path, of any length. Pairs of nested code objects have states of their own,
or the same operations. What a certificate leaves out is refused, never guessed.
"""

from __future__ import annotations

import inspect
import json
import struct
from typing import Dict, Hashable, List, NamedTuple, Optional, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.decompiler.bytecode.added_names import added_at_start
from depyf.decompiler.bytecode.code import Code, docstring, is_code, parameter_names, version_of
from depyf.decompiler.bytecode.nesting import names_of, qualified_name
from depyf.decompiler.bytecode.set_order import has_fixed_order
from depyf.decompiler.certificates.machine import (
    UNBOUND,
    CertificateError,
    Event,
    Raised,
    Returned,
    Side,
    Value,
    constant,
    inner,
)
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import NormalCode, Op

Path = Tuple[int, ...]
Pair = Tuple[Path, Path]

STEPS = 50
"""The limit on steps of a check, for each operation."""

_KIND = (
    inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS | inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR
)  # fmt: skip
_LOOK_AT_LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"})
_COMPILE = frozenset({"compile", "eval", "exec"})


def check_certificate(text: str, original: Code, candidate: Code) -> int:
    """Check the certificate ``text`` for two code objects of one Python; return the number of its states.

    Raises ``CertificateError`` where it proves nothing about these two. Nothing of either is run.
    """
    try:
        states = {(tuple(each["original"]), tuple(each["candidate"])): each["states"] for each in json.loads(text)}
        if version_of(original) != version_of(candidate):
            raise CertificateError("the two are of different Pythons")
        _Checker(original, candidate, states).prove(((), ()), nested=False)
        return sum(map(len, states.values()))
    except CertificateError:
        raise
    except synchronous(Exception) as error:
        raise CertificateError(f"the certificate is malformed: {type(error).__name__}: {error}") from error


class Joint(NamedTuple):
    left: Side
    right: Side
    events: int = 0

    def clone(self) -> Joint:
        return Joint(self.left.clone(), self.right.clone(), self.events)


class _Checker:
    """The checks of a pair of code objects and of those inside, each made once."""

    def __init__(self, original: Code, candidate: Code, states: Dict[Pair, List[Dict[str, object]]]) -> None:
        self.roots, self.states = (original, candidate), states
        self.proved: Set[Pair] = set()

    def prove(self, pair: Pair, *, nested: bool) -> None:
        """Prove the pair of code objects that two paths through the constants lead to."""
        if pair in self.proved:
            return
        programs = [_Program(root, path) for root, path in zip(self.roots, pair)]
        _compare_facts(*programs, nested=nested)
        if pair in self.states:
            _Proof(self, programs[0], programs[1], self.states[pair]).check()
        else:
            self._compare_operations(*programs)
        self.proved.add(pair)

    def _compare_operations(self, left: _Program, right: _Program) -> None:
        if len(left.ops) != len(right.ops) or left.open_tests != right.open_tests:
            raise CertificateError(f"{left.code.co_name}: other operations, and no proof")
        for index, (one, other) in enumerate(zip(left.ops, right.ops)):
            same = (one.op, one.target, one.handler) == (other.op, other.target, other.handler)
            if one.op is Op.CONST:
                same = same and self.same(left.constants[index], right.constants[index])
            elif type(one.arg) is not type(other.arg) or one.arg != other.arg:
                same = False
            if not same:
                raise CertificateError(f"{left.code.co_name}: other operations at {index}, and no proof")

    def same(self, one: Value, other: Value) -> bool:
        """Return whether two values are the same, code objects by a proof of their own."""
        if _is_code_constant(one) and _is_code_constant(other):
            self.prove((one[1][1], other[1][1]), nested=True)  # type: ignore[index]
            return True
        return one == other and not _is_code_constant(one)


def _is_code_constant(value: Value) -> bool:
    return value[0] == "const" and isinstance(value[1], tuple) and value[1][0] == "code"


# --- the facts of one code object


class _Program:
    """The operations of a code object, with comparable constants."""

    def __init__(self, root: Code, path: Path) -> None:
        around, code = root, root
        for index in path:
            around, code = code, code.co_consts[index]
            if not is_code(code):
                raise CertificateError("a path leads to no code object")
        self.code, self.path = code, path
        own = qualified_name(root) if code is root else names_of(around).within(code)
        self.name = _relative(own, qualified_name(root))
        normal = lower(code)
        self.ops, self.open_tests = normal.ops, _open_tests(normal)
        self.constants = {
            index: self._constant(instr.arg) for index, instr in enumerate(self.ops) if instr.op is Op.CONST
        }
        if not code.co_flags & inspect.CO_OPTIMIZED:
            self._forget_what_a_class_says_of_itself(own, qualified_name(root))
        self.locals = {each.arg[1] for each in self.ops if each.op in _ON_VARIABLES and each.arg[0] == "fast"}
        self.names = {
            each.arg if each.op is Op.ATTR else each.arg[1] for each in self.ops if each.op in (Op.ATTR, Op.LOAD)
        }

    def side(self) -> Side:
        return Side(self.ops, self.constants, self.open_tests)

    def _constant(self, value: object) -> Value:
        if not is_code(value):
            return constant(*_key(value))
        return constant("code", (*self.path, next(at for at, each in enumerate(self.code.co_consts) if each is value)))

    def _forget_what_a_class_says_of_itself(self, own: str, root: str) -> None:
        """A class body stores its own qualified name and line: compare the name below ``root``, and not the line."""
        # Only what the compiler itself stores, which comes first: the body may assign these names, too.
        own_names = {*added_at_start(self.code)} & {"__qualname__", "__firstlineno__"}
        for index, instr in enumerate(self.ops[1:]):
            before = self.ops[index]
            if before.op is Op.CONST and instr.op is Op.STORE and instr.arg[1] in own_names:
                own_names.remove(instr.arg[1])
                if instr.arg[1] == "__qualname__" and before.arg == own:
                    self.constants[index] = constant("qualified name", _relative(before.arg, root))
                if instr.arg[1] == "__firstlineno__" and before.arg == self.code.co_firstlineno:
                    self.constants[index] = constant("its line", None)


_ON_VARIABLES = (Op.LOAD, Op.STORE, Op.DELETE, Op.TAKE)


def _key(value: object) -> Tuple[str, Hashable]:
    """Return the key of a constant: equal keys mean that no program can distinguish the constants."""
    kind = type(value).__name__
    if type(value) is float or type(value) is complex:
        parts = (value.real, value.imag)
        if any(part != part for part in parts):
            raise CertificateError("code with a NaN has no certificate")
        return (kind, struct.pack("<2d", *parts))
    if type(value) is tuple:
        return (kind, tuple(map(_key, value)))
    if type(value) is slice:
        return (kind, tuple(map(_key, (value.start, value.stop, value.step))))
    if type(value) is frozenset:
        keys = [_key(item) for item in value]
        return (kind, tuple(keys if has_fixed_order(value) else sorted(keys, key=repr)))
    if value is None or value is ... or type(value) in (bool, int, str, bytes):
        return (kind, value)
    raise CertificateError(f"a constant of the type {kind} has no certificate")


def _relative(name: str, root: str) -> str:
    """Return the part of a qualified name behind that of the outermost code object."""
    return name[len(root) :] if name == root or name.startswith(f"{root}.") else f"= {name}"


def _open_tests(normal: NormalCode) -> Set[int]:
    tests = normal.open_tests
    return {
        index
        for index, instr in enumerate(normal.ops)
        if tests is None or (instr.op is Op.BRANCH and instr.offset in tests)
    }


def _compare_facts(left: _Program, right: _Program, *, nested: bool) -> None:
    """Compare what operations do not show."""
    one, other = left.code, right.code
    facts = [
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _KIND,
         parameter_names(code), docstring(code), [*code.co_freevars] if nested else sorted(code.co_freevars),
         sorted(code.co_cellvars)) for code in (one, other)
    ]  # fmt: skip
    if facts[0] != facts[1] or (nested and (one.co_name, left.name) != (other.co_name, right.name)):
        raise CertificateError(f"{one.co_name} and {other.co_name} have other signatures, names or docstrings")
    if (left.names | right.names) & _COMPILE and one.co_flags != other.co_flags:
        raise CertificateError("code that is compiled at run time inherits other flags")
    if (left.names | right.names) & _LOOK_AT_LOCALS and one.co_flags & inspect.CO_OPTIMIZED:
        if one.co_varnames != other.co_varnames or left.locals != right.locals:
            raise CertificateError("locals() would show other variables")
    missing = left.locals - right.locals - {*parameter_names(one)}
    if missing:
        raise CertificateError(f"the candidate has no variable {sorted(missing)[0]}")


# --- the states of a certificate


def _side(said: object, side: Side) -> Side:
    """Put into ``side`` what a state says of it: its position, its stack, its variables, and what it handles."""
    position, stack, variables, handled = _list(said)
    if type(position) is not int or not 0 <= position < len(side.ops) or not isinstance(variables, dict):
        raise CertificateError("a state has no position or no variables")
    side.position = position
    side.stack = [_value(each, side) for each in _list(stack)]
    side.locals = {str(name): _value(each, side) for name, each in variables.items()}
    side.handled = _value(handled, side)
    return side


def _value(data: object, side: Side) -> Value:
    """Return the value of a slot. Constants are those that operations of its own side load."""
    kind, what = _list(data)
    if kind == "const" and type(what) is int:
        return side.constants[what]
    if kind == "truth" and type(what) is bool:
        return constant("bool", what)
    if kind in ("sym", "maybe") and type(what) is int:
        return (str(kind), f"state {what}")
    if kind in ("prev", "saved"):
        return (str(kind), _value(what, side))
    if kind in ("mark", "cell") and type(what) is str:
        return (str(kind), what)
    raise CertificateError("a state has something else than a value")


def _list(data: object) -> List[object]:
    if not isinstance(data, list):
        raise CertificateError("a state has another form")
    return data


# --- the proof of one pair


class _Proof:
    """The check of one pair of code objects."""

    def __init__(self, checker: _Checker, left: _Program, right: _Program, states: List[Dict[str, object]]) -> None:
        self.checker, self.name = checker, left.code.co_name
        arguments = parameter_names(left.code)
        self.common = (left.locals & right.locals) | {*arguments}
        self.numbers = 0
        self.steps_left = STEPS * (len(left.ops) + len(right.ops))
        self.start = Joint(left.side(), right.side())
        for name in arguments:
            self.start.left.locals[name] = self.start.right.locals[name] = self._new()
        self.states = [self._read(each) for each in states]
        self.at: Dict[Tuple[int, int], List[Joint]] = {}
        for state in self.states:
            self.at.setdefault((state.left.position, state.right.position), []).append(state)

    def _new(self) -> Value:
        self.numbers += 1
        return ("sym", self.numbers)

    def _read(self, data: Dict[str, object]) -> Joint:
        return Joint(_side(data["left"], self.start.left.clone()), _side(data["right"], self.start.right.clone()))

    def check(self) -> None:
        for state in [self.start, *self.states]:
            todo = [state.clone()]
            while todo:
                joint: Optional[Joint] = todo.pop()
                while joint is not None:
                    self.steps_left -= 1
                    if self.steps_left < 0:
                        raise CertificateError(f"{self.name}: too many steps")
                    joint = self._step(joint, todo)

    def _step(self, joint: Joint, todo: List[Joint]) -> Optional[Joint]:
        """Run both sides past their next stops; add other ways to ``todo``. Return ``None`` where this way ends."""
        mine, theirs = joint.left.run(), joint.right.run()
        at = joint.left.position, joint.right.position
        if joint.events and any(self._means(state, joint) for state in self.at.get(at, ())):
            return None
        if isinstance(mine, Event) and isinstance(theirs, Event):
            return self._event(joint, mine, theirs, todo)
        if joint.left.handled != joint.right.handled:
            raise self._failed(joint, "other exceptions are being handled")
        if isinstance(mine, Returned) and isinstance(theirs, Returned):
            if not self.checker.same(mine.value, theirs.value):
                raise self._failed(joint, "other values are returned")
            return None
        if isinstance(mine, Raised) and isinstance(theirs, Raised) and mine == theirs:
            self._compare_frames(joint)
            return None
        raise self._failed(joint, f"{mine} on one side, {theirs} on the other")

    def _event(self, joint: Joint, mine: Event, theirs: Event, todo: List[Joint]) -> Optional[Joint]:
        left, right = joint.left, joint.right
        # The same operation on the same operands.
        if mine._replace(operands=(), raises=True) != theirs._replace(operands=(), raises=True):
            raise self._failed(joint, f"{mine} on one side, {theirs} on the other")
        if len(mine.operands) != len(theirs.operands) or not all(
            map(self.checker.same, mine.operands, theirs.operands)
        ):
            raise self._failed(joint, f"{mine} on one side, {theirs} on the other")
        # What foreign code that runs now can observe.
        self._compare_frames(joint)
        for side, each in ((left, mine), (right, theirs)):
            side.pop(each.pops)
        joint = joint._replace(events=joint.events + 1)
        # The ways on: the exception, the end of a loop, the other truth, the next operation.
        if mine.raises or theirs.raises:
            raised, error = joint.clone(), self._new()
            for side in (raised.left, raised.right):
                side.unwind(side.instr.handler, error)
            todo.append(raised)
        if mine.outcome == "raise":
            return None
        if mine.outcome == "truth":
            other = joint.clone()
            for way, truth in ((joint, True), (other, False)):
                way.left.take(truth=truth)
                way.right.take(truth=truth)
            todo.append(other)
            return joint
        if mine.outcome == "for":
            over = joint.clone()
            for side in (over.left, over.right):
                side.pop()
                side.jump()
            todo.append(over)
        results = [self._new() for _ in range(mine.results)]
        handled = self._new() if mine.outcome == "handles" else None
        for side in (left, right):
            side.handled = handled or side.handled
            side.stack += results
            side.position += mine.outcome != "bound"
        if mine.outcome == "bound":
            value = self._new()
            for side in (left, right):
                side.replace(mine.operands[0], value)
        return joint

    def _compare_frames(self, joint: Joint) -> None:
        """Compare what can be seen of the frames: the exception, the variables, and which objects are alive."""
        left, right = joint.left, joint.right
        if left.handled != right.handled:
            raise self._failed(joint, "other exceptions are being handled")
        for name in self.common:
            if not self.checker.same(left.locals.get(name, UNBOUND), right.locals.get(name, UNBOUND)):
                raise self._failed(joint, f"the variable {name} differs")
        if left.alive() != right.alive():
            raise self._failed(joint, "a value is alive on one side only")

    def _means(self, state: Joint, joint: Joint) -> bool:
        """Return whether ``joint`` comes of ``state`` by putting values for its symbols, the same for both sides."""
        found: Dict[Value, Value] = {}
        for said, side in ((state.left, joint.left), (state.right, joint.right)):
            if side.leaving is not None or side.position != said.position or len(side.stack) != len(said.stack):
                return False
            slots = [*zip(said.stack, side.stack), (said.handled, side.handled)]
            for name in {*said.locals, *side.locals}:
                slots.append((said.locals.get(name, UNBOUND), side.locals.get(name, UNBOUND)))
            if not all(_matches(value, there, found) for value, there in slots):
                return False
        return True

    def _failed(self, joint: Joint, why: str) -> CertificateError:
        return CertificateError(f"{self.name}, at {joint.left.position} and {joint.right.position}: {why}")


def _matches(value: Value, there: Value, found: Dict[Value, Value]) -> bool:
    if value[0] == "sym":
        return there[0] in ("sym", "const") and not _is_code_constant(there) and found.setdefault(value, there) == there
    if value[0] == "maybe":
        fits = there[0] in ("sym", "const", "maybe") or there == UNBOUND
        return fits and not _is_code_constant(there) and found.setdefault(value, there) == there
    if value[0] == there[0] and value[0] in ("prev", "saved"):
        return _matches(inner(value), inner(there), found)
    return value == there
