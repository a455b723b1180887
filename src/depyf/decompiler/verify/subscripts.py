"""Indexing and slicing of fresh lists and tuples: executed silently, or an event."""

from __future__ import annotations

from typing import List, Optional, Tuple, Union

from depyf.decompiler.normal.ops import Instr, Op
from depyf.decompiler.verify.containers import SEQUENCES, Answer, Items, contents, new_object, reaches, replace_topmost
from depyf.decompiler.verify.events import EVENTS
from depyf.decompiler.verify.machine import Machine
from depyf.decompiler.verify.side import FreshKind, Side
from depyf.decompiler.verify.values import Const, Ref, Value

Index = Union[int, slice]


def constant_index(machine: Machine, value: Value) -> Optional[Index]:
    """Return a constant index or slice."""
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
    # ``[a, b][0]`` is ``a``, ``[a, b][:1]`` a new list. An unknown index, or one out of range, is an event.
    kind = kind_of(machine, side, side.stack[-2])
    items = contents(machine, side, side.stack[-2], SEQUENCES)
    index = constant_index(machine, side.stack[-1])
    if items is None or index is None:
        return EVENTS[Op.SUBSCR](machine, side, instr)
    if isinstance(index, slice):
        if kind == "tuple" and len(items[index]) == len(items):  # CPython returns the tuple itself
            return EVENTS[Op.SUBSCR](machine, side, instr)
        replace_topmost(side, 2, new_object(machine, side, kind, items[index]))
        return None
    if not -len(items) <= index < len(items):
        return EVENTS[Op.SUBSCR](machine, side, instr)
    replace_topmost(side, 2, items[index])
    return None


def kind_of(machine: Machine, side: Side, value: Value) -> FreshKind:
    value = machine.resolve(value)
    return side.heap[value].kind if isinstance(value, Ref) else "tuple"


def store_subscr(machine: Machine, side: Side, instr: Instr) -> Answer:
    value, container = side.stack[-3], side.stack[-2]
    changed = _changed(machine, side, container, constant_index(machine, side.stack[-1]), value)
    if changed is None:
        return EVENTS[Op.STORE_SUBSCR](machine, side, instr)
    assert isinstance(container, Ref)
    side.mutate(container, changed)
    side.drop(3)
    return None


def _changed(
    machine: Machine, side: Side, container: Value, index: Optional[Index], value: Optional[Value]
) -> Optional[Items]:
    """Return the items of a fresh list after a store of ``value`` or a deletion; ``None`` if that is an event."""
    if not isinstance(container, Ref) or index is None:
        return None
    # ``x[0] = x`` would make a cycle in the heap.
    if value is not None and reaches(side, value, container):
        return None
    items = contents(machine, side, container, ("list",))
    if items is None:
        return None
    changed: List[Value] = list(items)
    replacement: Optional[Items] = ()
    if isinstance(index, int):
        if not -len(items) <= index < len(items):
            return None
        # Treat ``x[i] = v`` as ``x[i : i + 1] = [v]``; with i = -1 the slice has no end, not the end 0.
        index = slice(index, index + 1 or None)
        if value is not None:
            replacement = (value,)
    elif value is not None:
        replacement = contents(machine, side, value, SEQUENCES)
    # ``x[::2] = ...`` raises ValueError for another length: an event, but not ``del x[::2]``.
    if replacement is None or (index.step not in (None, 1) and value is not None):
        return None
    if value is None:
        del changed[index]
    else:
        changed[index] = replacement
    return tuple(changed)


def delete_subscr(machine: Machine, side: Side, instr: Instr) -> Answer:
    container = side.stack[-2]
    changed = _changed(machine, side, container, constant_index(machine, side.stack[-1]), None)
    if changed is None:
        return EVENTS[Op.DELETE_SUBSCR](machine, side, instr)
    assert isinstance(container, Ref)
    side.mutate(container, changed)
    side.drop(2)
    return None
