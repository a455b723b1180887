"""Operations on fresh objects: executed silently as long as the object has not escaped.

Dynamo passes values through list literals; the decompiled source does not. So building, indexing, slicing, extending
and popping a list that has not escaped is not an event. Every other case falls back to the event.
"""

from __future__ import annotations

from typing import Dict, Optional, Set, Tuple

from depyf.decompiler.bytecode.set_order import has_fixed_order
from depyf.decompiler.normal.ops import Instr, Op
from depyf.decompiler.verify.constants import FOLDABLE, constant_key
from depyf.decompiler.verify.events import EVENTS, topmost
from depyf.decompiler.verify.machine import Machine
from depyf.decompiler.verify.side import Fresh, FreshKind, Side
from depyf.decompiler.verify.stops import Event
from depyf.decompiler.verify.values import Const, Ref, Value

Answer = Optional[Event]
Items = Tuple[Value, ...]


def contents(machine: Machine, side: Side, value: Value, kinds: Tuple[FreshKind, ...]) -> Optional[Items]:
    """Return the items of a fresh object of one of ``kinds``, or of a constant tuple if ``kinds`` has tuples."""
    value = machine.resolve(value)
    if isinstance(value, Ref):
        fresh = side.heap[value]
        return fresh.items if fresh.kind in kinds else None
    if isinstance(value, Const) and type(value.value) is tuple and "tuple" in kinds:
        return tuple(machine.values.const(item) for item in value.value)
    return None


SEQUENCES: Tuple[FreshKind, ...] = ("list", "tuple")


def reaches(side: Side, value: Value, target: Ref) -> bool:
    """Return whether ``target`` is ``value`` or inside it: storing ``value`` into it would make a cycle."""
    todo = [value]
    while todo:
        current = todo.pop()
        if current is target:
            return True
        if isinstance(current, Ref):
            todo.extend(side.heap[current].items)
    return False


def new_object(machine: Machine, side: Side, kind: FreshKind, items: Items) -> Value:
    """Make an object with no references to it. A tuple or slice of constants is a constant, but for its identity."""
    if kind in ("tuple", "slice"):
        plain = [item.value for item in items if isinstance(item, Const)]
        if len(plain) == len(items):
            return machine.values.const(tuple(plain) if kind == "tuple" else slice(*plain))
    return side.allocate(Fresh(kind, items))


def replace_topmost(side: Side, count: int, value: Value) -> None:
    """Replace the ``count`` topmost values with ``value``."""
    side.hold(value)
    side.drop(count)
    side.stack.append(value)


def build(machine: Machine, side: Side, instr: Instr) -> Answer:
    kind, count = instr.arg
    # These call no code of their items. ``x, y = [a, b]`` is proved against ``x = a; y = b``.
    if kind in ("tuple", "list", "slice"):
        replace_topmost(side, count, new_object(machine, side, kind, topmost(side, count)))
        return None
    if kind == "set":
        # ``{1, 2}`` calls ``__hash__`` and ``__eq__`` of constants only; with a variable as a member it is an event.
        constants = _constant_set(machine, side, count)
        if constants is not None:
            replace_topmost(side, count, constants)
            return None
    if kind in _DISPLAYS_OF:
        # 3.8: ``[*a, *b]`` is BUILD_LIST_UNPACK 2, on later versions two LIST_EXTEND.
        joined = _joined(machine, side, kind, count)
        if joined is not None:
            replace_topmost(side, count, joined)
            return None
    pairs, pops = None, count
    if kind == "map":
        # ``{k: a, l: b}``: k a l b -> map
        pairs, pops = topmost(side, 2 * count), 2 * count
    elif kind == "const_key_map":
        # ``{'k': a, 'l': b}``: a b ('k', 'l') -> map
        pairs, pops = _with_keys(machine, side, count), count + 1
    if pairs is not None:
        if not has_plain_keys(pairs):
            # Keys may call ``__hash__``: the same event for both forms of the operation.
            return Event("build", ("map", count), pairs, "v", pops)
        replace_topmost(side, pops, side.allocate(Fresh("map", pairs)))
        return None
    return EVENTS[Op.BUILD](machine, side, instr)


_DISPLAYS_OF: Dict[str, FreshKind] = {
    "list_of": "list",
    "tuple_of": "tuple",
    "arguments_of": "tuple",
    "map_of": "map",
    "keywords_of": "map",
}
"""The kind of object that unpacking several others makes (3.8)."""


def _joined(machine: Machine, side: Side, kind: str, count: int) -> Optional[Value]:
    """Return the result of unpacking the topmost ``count`` values, if their items are known."""
    made = _DISPLAYS_OF[kind]
    items: Items = ()
    for value in topmost(side, count):
        more = contents(machine, side, value, ("map",) if made == "map" else SEQUENCES)
        if more is None:
            return None
        items += more
    return new_object(machine, side, made, items) if made != "map" or has_plain_keys(items) else None


def _with_keys(machine: Machine, side: Side, count: int) -> Optional[Items]:
    """Return the pairs of a BUILD const_key_map: values below, the tuple of keys on top."""
    keys = contents(machine, side, side.stack[-1], ("tuple",))
    if keys is None or len(keys) != count:
        return None
    values = topmost(side, count + 1)[:-1]
    return tuple(value for pair in zip(keys, values) for value in pair)


def has_plain_keys(pairs: Items) -> bool:
    """Return whether the keys are distinct strings: only then the map calls no ``__hash__`` or ``__eq__``."""
    keys = pairs[::2]
    return all(isinstance(key, Const) and type(key.value) is str for key in keys) and len(set(keys)) == len(keys)


def _constant_set(machine: Machine, side: Side, count: int) -> Optional[Value]:
    """Return the set of the topmost ``count`` values, added one by one, if they are constants."""
    members = [item.value for item in topmost(side, count) if isinstance(item, Const)]
    if len(members) != count or not all(map(_hashes_silently, members)):
        return None
    return side.allocate(Fresh("set", _members(machine, set(members))))


def _fill_with_constants(machine: Machine, side: Side, container: Value, source: Value) -> bool:
    """Update a set with a constant, as ``{1, 2, 3}`` is compiled: the same as adding its members.

    ``{*()}``, a way to write an empty set, adds nothing.
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
    """Return the members in iteration order, or in an arbitrary one where that changes from run to run."""
    fixed = has_fixed_order(frozenset(made))
    # Both sides need the same order for the same members; the actual one is unknown for strings (hash randomization).
    ordered = list(made) if fixed else sorted(made, key=lambda member: repr(constant_key(member)))
    return tuple(machine.values.const(member) for member in ordered)


def _hashes_silently(value: object) -> bool:
    """Return whether ``value`` is hashed without foreign code and not by its address (as a NaN is)."""
    if type(value) is tuple:
        return all(map(_hashes_silently, value))
    return type(value) in (*FOLDABLE, float) and value == value


def add(machine: Machine, side: Side, instr: Instr) -> Answer:
    kind, depth = instr.arg
    if kind == "list":
        container, item = side.stack[-1 - depth], side.stack[-1]
        items = contents(machine, side, container, ("list",))
        if items is not None and isinstance(container, Ref) and not reaches(side, item, container):
            side.extend(container, (item,))
            side.pop()
            return None
    # Add to a list that has not escaped: no code can observe when. A list that contains itself stays an event.
    elif kind == "map":  # one by one: used for calls with many keywords
        container, pair = side.stack[-2 - depth], topmost(side, 2)
        items = contents(machine, side, container, ("map",))
        if items is not None and isinstance(container, Ref) and not reaches(side, pair[1], container):
            if has_plain_keys(pair) and pair[0] not in items[::2]:
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
        if old is None or more is None or reaches(side, source, container):
            return EVENTS[Op.UPDATE](machine, side, instr)
        # ``f(**{'k': a}, **{'k': b})`` raises TypeError: distinct keys are silent, all others are an event.
        if kind == "list" or has_plain_keys(old + more):
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
    replace_topmost(side, 1, new_object(machine, side, "tuple", items))
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
    # ``a, *b, c = [1, 2, 3, 4]``: b is a new list.
    middle = side.allocate(Fresh("list", items[before:end]))
    _unpack_into(side, (*items[:before], middle, *items[end:]))
    return None


def _unpack_into(side: Side, items: Items) -> None:
    for item in items:
        side.hold(item)
    side.pop()
    side.stack.extend(reversed(items))
