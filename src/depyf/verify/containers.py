"""Operations on fresh objects: executed here and now, as long as nobody else has seen the object.

Dynamo shuffles values through list literals; the source that we write has none of that. So building, indexing, slicing,
extending and popping a list that has not escaped is no event. Whatever does not fit falls back to the event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Set, Tuple, Union

from depyf.bytecode.set_order import has_fixed_order
from depyf.normal.ops import Instr, Op
from depyf.verify.comparison import Finding, MismatchError
from depyf.verify.constants import FOLDABLE, constant_key
from depyf.verify.events import EVENTS
from depyf.verify.side import Fresh, Side
from depyf.verify.stops import Event
from depyf.verify.values import NULL, Const, Ref, Value

if TYPE_CHECKING:
    from depyf.verify.machine import Machine

Answer = Optional[Event]
Items = Tuple[Value, ...]
Index = Union[int, slice]


def contents(machine: Machine, side: Side, value: Value, kinds: Tuple[str, ...]) -> Optional[Items]:
    """The items of a fresh object of one of ``kinds``, or of a constant tuple if that is one of them."""
    value = machine.resolve(value)
    if isinstance(value, Ref):
        fresh = side.heap[value]
        return fresh.items if fresh.kind in kinds else None
    if isinstance(value, Const) and type(value.value) is tuple and "tuple" in kinds:
        return tuple(machine.values.const(item) for item in value.value)
    return None


SEQUENCES = ("list", "tuple")


def _reaches(side: Side, value: Value, target: Ref) -> bool:
    """Whether ``target`` is ``value`` or lies inside it: storing ``value`` into it would tie a knot."""
    todo = [value]
    while todo:
        current = todo.pop()
        if current is target:
            return True
        if isinstance(current, Ref):
            todo.extend(side.heap[current].items)
    return False


def _new(machine: Machine, side: Side, kind: str, items: Items) -> Value:
    """Make an object that nothing holds yet. A tuple or slice of constants is a constant: only its identity differs."""
    if kind in ("tuple", "slice"):
        plain = [item.value for item in items if isinstance(item, Const)]
        if len(plain) == len(items):
            return machine.values.const(tuple(plain) if kind == "tuple" else slice(*plain))
    return side.allocate(Fresh(kind, items))


def _take(side: Side, count: int) -> Items:
    return tuple(side.stack[len(side.stack) - count :])


def _leave(side: Side, count: int, value: Value) -> None:
    """Put ``value`` in place of the ``count`` topmost ones."""
    side.hold(value)
    side.drop(count)
    side.stack.append(value)


def build(machine: Machine, side: Side, instr: Instr) -> Answer:
    kind, count = instr.arg
    if kind in ("tuple", "list", "slice"):
        _leave(side, count, _new(machine, side, kind, _take(side, count)))
        return None
    if kind == "set":
        constants = _constant_set(machine, side, count)
        if constants is not None:
            _leave(side, count, constants)
            return None
    if kind in _DISPLAYS_OF:
        joined = _joined(machine, side, kind, count)
        if joined is not None:
            _leave(side, count, joined)
            return None
    pairs, pops = None, count
    if kind == "map":
        pairs, pops = _take(side, 2 * count), 2 * count
    elif kind == "const_key_map":
        pairs, pops = _with_keys(machine, side, count), count + 1
    if pairs is not None:
        if not _plain_keys(pairs):
            return Event("build", ("map", count), pairs, "v", pops)
        _leave(side, pops, side.allocate(Fresh("map", pairs)))
        return None
    return EVENTS[Op.BUILD](machine, side, instr)


_DISPLAYS_OF = {
    "list_of": "list",
    "tuple_of": "tuple",
    "arguments_of": "tuple",
    "map_of": "map",
    "keywords_of": "map",
}
"""What kind of object unpacking several others makes (3.8)."""


def _joined(machine: Machine, side: Side, kind: str, count: int) -> Optional[Value]:
    """What unpacking the topmost ``count`` values makes, if it is known what is in them."""
    made = _DISPLAYS_OF[kind]
    items: Items = ()
    for value in _take(side, count):
        more = contents(machine, side, value, ("map",) if made == "map" else SEQUENCES)
        if more is None:
            return None
        items += more
    return _new(machine, side, made, items) if made != "map" or _plain_keys(items) else None


def _with_keys(machine: Machine, side: Side, count: int) -> Optional[Items]:
    """The pairs of a BUILD const_key_map: values below, the tuple of keys on top."""
    keys = contents(machine, side, side.stack[-1], ("tuple",))
    if keys is None or len(keys) != count:
        return None
    values = _take(side, count + 1)[:-1]
    return tuple(value for pair in zip(keys, values) for value in pair)


def _plain_keys(pairs: Items) -> bool:
    """Whether the keys are different strings: only then the map needs nobody's ``__hash__`` or ``__eq__``."""
    keys = pairs[::2]
    return all(isinstance(key, Const) and type(key.value) is str for key in keys) and len(set(keys)) == len(keys)


def _constant_set(machine: Machine, side: Side, count: int) -> Optional[Value]:
    """The set that the topmost ``count`` values are put into one by one, if they are constants."""
    members = [item.value for item in _take(side, count) if isinstance(item, Const)]
    if len(members) != count or not all(map(_hashes_silently, members)):
        return None
    return side.allocate(Fresh("set", _members(machine, set(members))))


def _fill_with_constants(machine: Machine, side: Side, container: Value, source: Value) -> bool:
    """``{1, 2, 3}`` is compiled as an empty set that a constant is put into: the same as to put in its members.

    ``{*()}``, which is how a program writes an empty set, puts nothing into it.
    """
    if not isinstance(container, Ref) or side.heap[container] != Fresh("set", ()) or not isinstance(source, Const):
        return False
    if source.value == () and type(source.value) is tuple:
        return True
    if type(source.value) is not frozenset or not all(map(_hashes_silently, source.value)):
        return False
    made: Set[object] = set()
    made.update(source.value)
    side.extend(container, _members(machine, made))
    return True


def _members(machine: Machine, made: Set[object]) -> Items:
    """The members in the order in which the set is gone through, or in any one where that is another in every run."""
    fixed = has_fixed_order(frozenset(made))
    ordered = list(made) if fixed else sorted(made, key=lambda member: repr(constant_key(member)))
    return tuple(machine.values.const(member) for member in ordered)


def _hashes_silently(value: object) -> bool:
    """Whether no code of others decides if a set has ``value``, nor an address where it lies (as a NaN's does)."""
    if type(value) is tuple:
        return all(map(_hashes_silently, value))
    return type(value) in (*FOLDABLE, float) and value == value


def add(machine: Machine, side: Side, instr: Instr) -> Answer:
    kind, depth = instr.arg
    if kind == "list":
        container, item = side.stack[-1 - depth], side.stack[-1]
        items = contents(machine, side, container, ("list",))
        if items is not None and isinstance(container, Ref) and not _reaches(side, item, container):
            side.extend(container, (item,))
            side.pop()
            return None
    elif kind == "map":  # one by one: the keywords of a call, if they are many
        container, pair = side.stack[-2 - depth], _take(side, 2)
        items = contents(machine, side, container, ("map",))
        if items is not None and isinstance(container, Ref) and not _reaches(side, pair[1], container):
            if _plain_keys(pair) and pair[0] not in items[::2]:
                side.extend(container, pair)
                side.drop(2)
                return None
    return EVENTS[Op.ADD](machine, side, instr)


def update(machine: Machine, side: Side, instr: Instr) -> Answer:
    kind, depth = instr.arg
    container, source = side.stack[-1 - depth], side.stack[-1]
    wanted = {"list": SEQUENCES, "map": ("map",), "kwargs": ("map",)}.get(kind)
    if wanted is not None and isinstance(container, Ref):
        old = contents(machine, side, container, wanted)
        more = contents(machine, side, source, wanted)
        if old is None or more is None or _reaches(side, source, container):
            return EVENTS[Op.UPDATE](machine, side, instr)
        if kind == "list" or _plain_keys(old + more):
            side.extend(container, more)
            side.pop()
            return None
    elif kind == "set" and _fill_with_constants(machine, side, container, source):
        side.pop()
        return None
    return EVENTS[Op.UPDATE](machine, side, instr)


def list_to_tuple(machine: Machine, side: Side, instr: Instr) -> Answer:
    items = contents(machine, side, side.stack[-1], ("list",))
    if items is None:
        return EVENTS[Op.LIST_TO_TUPLE](machine, side, instr)
    _leave(side, 1, _new(machine, side, "tuple", items))
    return None


def unpack(machine: Machine, side: Side, instr: Instr) -> Answer:
    items = contents(machine, side, side.stack[-1], SEQUENCES)
    if items is None or len(items) != instr.arg:
        return EVENTS[Op.UNPACK](machine, side, instr)
    _unpack_into(side, items)
    return None


def unpack_ex(machine: Machine, side: Side, instr: Instr) -> Answer:
    before, after = instr.arg
    items = contents(machine, side, side.stack[-1], SEQUENCES)
    if items is None or len(items) < before + after:
        return EVENTS[Op.UNPACK_EX](machine, side, instr)
    end = len(items) - after
    middle = side.allocate(Fresh("list", items[before:end]))
    _unpack_into(side, (*items[:before], middle, *items[end:]))
    return None


def _unpack_into(side: Side, items: Items) -> None:
    for item in items:
        side.hold(item)
    side.pop()
    side.stack.extend(reversed(items))


# --- indexing


def _index(machine: Machine, value: Value) -> Optional[Index]:
    """A constant index or slice."""
    value = machine.resolve(value)
    if isinstance(value, Const):
        found = value.value
        if type(found) is int:
            return found
        if type(found) is slice and all(part is None or type(part) is int for part in _parts(found)):
            return None if found.step == 0 else found
    return None


def _parts(index: slice) -> Tuple[object, object, object]:
    return index.start, index.stop, index.step


def subscr(machine: Machine, side: Side, instr: Instr) -> Answer:
    kind = _kind(machine, side, side.stack[-2])
    items = contents(machine, side, side.stack[-2], SEQUENCES)
    index = _index(machine, side.stack[-1])
    if items is None or index is None:
        return EVENTS[Op.SUBSCR](machine, side, instr)
    if isinstance(index, slice):
        if kind == "tuple" and len(items[index]) == len(items):  # CPython gives the tuple itself
            return EVENTS[Op.SUBSCR](machine, side, instr)
        _leave(side, 2, _new(machine, side, kind, items[index]))
        return None
    if not -len(items) <= index < len(items):
        return EVENTS[Op.SUBSCR](machine, side, instr)
    _leave(side, 2, items[index])
    return None


def _kind(machine: Machine, side: Side, value: Value) -> str:
    value = machine.resolve(value)
    return side.heap[value].kind if isinstance(value, Ref) else "tuple"


def store_subscr(machine: Machine, side: Side, instr: Instr) -> Answer:
    value, container = side.stack[-3], side.stack[-2]
    changed = _changed(machine, side, container, _index(machine, side.stack[-1]), value)
    if changed is None:
        return EVENTS[Op.STORE_SUBSCR](machine, side, instr)
    assert isinstance(container, Ref)
    side.mutate(container, changed)
    side.drop(3)
    return None


def _changed(
    machine: Machine, side: Side, container: Value, index: Optional[Index], value: Optional[Value]
) -> Optional[Items]:
    """The items of a fresh list after a store of ``value``, or after a deletion; ``None`` if that is an event."""
    if not isinstance(container, Ref) or index is None:
        return None
    if value is not None and _reaches(side, value, container):
        return None
    items = contents(machine, side, container, ("list",))
    if items is None:
        return None
    changed: List[Value] = list(items)
    replacement: Optional[Items] = ()
    if isinstance(index, int):
        if not -len(items) <= index < len(items):
            return None
        index = slice(index, index + 1 or None)
        if value is not None:
            replacement = (value,)
    elif value is not None:
        replacement = contents(machine, side, value, SEQUENCES)
    if replacement is None or (index.step not in (None, 1) and value is not None):
        return None
    if value is None:
        del changed[index]
    else:
        changed[index] = replacement
    return tuple(changed)


def delete_subscr(machine: Machine, side: Side, instr: Instr) -> Answer:
    container = side.stack[-2]
    changed = _changed(machine, side, container, _index(machine, side.stack[-1]), None)
    if changed is None:
        return EVENTS[Op.DELETE_SUBSCR](machine, side, instr)
    assert isinstance(container, Ref)
    side.mutate(container, changed)
    side.drop(2)
    return None


# --- methods and calls

METHODS = ("pop", "append", "extend")


def attr(machine: Machine, side: Side, instr: Instr) -> Answer:
    owner = side.stack[-1]
    if isinstance(owner, Ref):
        fresh = side.heap[owner]
        if fresh.kind == "list" and instr.arg in METHODS:
            _leave(side, 1, side.allocate(Fresh("method", (owner,), instr.arg)))
            return None
        if fresh.kind == "function" and instr.arg == "__closure__" and isinstance(fresh.detail, int):
            closure = fresh.items[-1] if fresh.detail & 8 else machine.values.none
            _leave(side, 1, closure)
            return None
    return EVENTS[Op.ATTR](machine, side, instr)


def call(machine: Machine, side: Side, instr: Instr) -> Answer:
    count, names, null = instr.arg
    taken = _take(side, count + (2 if null else 1))
    pops = len(taken)
    if null == "below":
        # A callable in the slot means that the self value stands where the callable usually is.
        taken = taken[1:] if taken[0] is NULL else taken
    elif null == "above":
        taken = (taken[0], *taken[2:]) if taken[1] is NULL else taken
    return _call(machine, side, taken, tuple(names), pops)


def _call(machine: Machine, side: Side, operands: Items, names: Tuple[str, ...], pops: int) -> Answer:
    """A call of ``operands[0]``; the last ``len(names)`` operands are keywords."""
    target = operands[0]
    if isinstance(target, Ref) and not names:
        fresh = side.heap[target]
        if fresh.kind == "method":
            result = _call_method(machine, side, fresh, operands[1:])
            if result is not None:
                _leave(side, pops, result)
                side.release(result)
                return None
    return Event("call", (len(operands) - 1 - len(names), names), operands, "v", pops)


def _call_method(machine: Machine, side: Side, method: Fresh, arguments: Items) -> Optional[Value]:
    """What calling a bound method of a fresh list returns, held once; ``None`` (and nothing done) if it can't be."""
    owner = method.items[0]
    items = contents(machine, side, owner, ("list",))
    if items is None or not isinstance(owner, Ref) or any(_reaches(side, value, owner) for value in arguments):
        return None
    if method.detail == "pop" and len(arguments) <= 1:
        index = _index(machine, arguments[0]) if arguments else -1
        if not isinstance(index, int) or not -len(items) <= index < len(items):
            return None
        popped = items[index]
        position = index % len(items)
        side.hold(popped)
        side.mutate(owner, items[:position] + items[position + 1 :])
        return popped
    if len(arguments) != 1:
        return None
    more = contents(machine, side, arguments[0], SEQUENCES) if method.detail == "extend" else arguments
    if more is None or method.detail == "pop":
        return None
    side.extend(owner, more)
    return machine.values.none


def call_ex(machine: Machine, side: Side, instr: Instr) -> Answer:
    """``callable args [kwargs]``: with known arguments the same as a plain call."""
    has_keywords, null = instr.arg
    pops = 2 + has_keywords + bool(null)
    taken = _take(side, pops)
    if null:
        taken, slot = (taken[1:], taken[0]) if null == "below" else ((taken[0], *taken[2:]), taken[1])
        if slot is not NULL:
            raise MismatchError(Finding.UNVERIFIED, f"no NULL beside the callable at offset {instr.offset}")
    positional = contents(machine, side, taken[1], SEQUENCES)
    keywords: Optional[Items] = contents(machine, side, taken[2], ("map",)) if has_keywords else ()
    if positional is not None and keywords is not None and _plain_keys(keywords):
        names = tuple(str(key.value) for key in keywords[::2] if isinstance(key, Const))
        return _call(machine, side, (taken[0], *positional, *keywords[1::2]), names, pops)
    if positional is not None and _kind(machine, side, taken[1]) == "list":
        depth = 1 + has_keywords
        converted = _new(machine, side, "tuple", positional)
        side.hold(converted)
        side.release(side.stack[-depth])
        side.stack[-depth] = converted
        taken = (taken[0], converted, *taken[2:])
    return Event("call with unpacking", has_keywords, taken, "v", pops)
