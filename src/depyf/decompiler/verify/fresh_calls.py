"""Calls: methods of fresh lists are executed silently, other calls are events with unpacked arguments."""

from __future__ import annotations

from typing import Optional, Tuple

from depyf.decompiler.normal.ops import Instr, Op
from depyf.decompiler.verify import functions
from depyf.decompiler.verify.comparison import Finding, MismatchError
from depyf.decompiler.verify.containers import (
    SEQUENCES,
    Answer,
    Items,
    contents,
    has_plain_keys,
    new_object,
    reaches,
    replace_topmost,
)
from depyf.decompiler.verify.events import EVENTS, topmost
from depyf.decompiler.verify.machine import Machine
from depyf.decompiler.verify.side import Fresh, Side
from depyf.decompiler.verify.stops import Event
from depyf.decompiler.verify.subscripts import constant_index, kind_of
from depyf.decompiler.verify.values import NULL, Const, Ref, Value

METHODS = ("pop", "append", "extend")


def attr(machine: Machine, side: Side, instr: Instr) -> Answer:
    owner = side.stack[-1]
    if isinstance(owner, Ref):
        fresh = side.heap[owner]
        if fresh.kind == "list" and instr.arg in METHODS:
            # ``x.append`` is looked up before the arguments are evaluated: keep the list with the name.
            replace_topmost(side, 1, side.allocate(Fresh("method", (owner,), instr.arg)))
            return None
        known = functions.attribute(machine, fresh, instr.arg) if fresh.kind == "function" else None
        if known is not None:
            replace_topmost(side, 1, known)
            return None
    return EVENTS[Op.ATTR](machine, side, instr)


def call(machine: Machine, side: Side, instr: Instr) -> Answer:
    count, names, null = instr.arg
    taken = topmost(side, count + (2 if null else 1))
    pops = len(taken)
    if null == "below":
        # A callable in the slot means that the self value is where the callable usually is.
        taken = taken[1:] if taken[0] is NULL else taken
    elif null == "above":
        taken = (taken[0], *taken[2:]) if taken[1] is NULL else taken
    return _call(machine, side, taken, tuple(names), pops)


def _call(machine: Machine, side: Side, operands: Items, names: Tuple[str, ...], pops: int) -> Answer:
    """Call ``operands[0]``; the last ``len(names)`` operands are keyword arguments."""
    target = operands[0]
    if isinstance(target, Ref) and not names:
        fresh = side.heap[target]
        if fresh.kind == "method":
            # ``x = [a, b]; y = x.pop()`` is proved against ``x = [a]; y = b``.
            result = _call_method(machine, side, fresh, operands[1:])
            if result is not None:
                replace_topmost(side, pops, result)
                side.release(result)
                return None
    # A call of the builtin itself, as a constant in generated code, does what ``for`` does to its operand.
    if target is machine.values.const(iter) and len(operands) == 2 and not names:
        return Event("iterator of", None, operands[1:], "v", pops)
    # The class itself makes of two or three arguments what ``a[b:c]`` makes of its bounds.
    if target is machine.values.const(slice) and len(operands) in (3, 4) and not names:
        replace_topmost(side, pops, new_object(machine, side, "slice", operands[1:]))
        return None
    if not names:
        made, answer = functions.call_of_class(machine, side, operands, pops)
        if made:
            return answer
    return Event("call", (len(operands) - 1 - len(names), names), operands, "v", pops)


def _call_method(machine: Machine, side: Side, method: Fresh, arguments: Items) -> Optional[Value]:
    """Call a bound method of a fresh list: return its result, held once, or ``None`` with nothing changed."""
    owner = method.items[0]
    items = contents(machine, side, owner, ("list",))
    if items is None or not isinstance(owner, Ref) or any(reaches(side, value, owner) for value in arguments):
        return None
    if method.detail == "pop" and len(arguments) <= 1:
        # An index out of range raises IndexError: an event.
        index = constant_index(machine, arguments[0]) if arguments else -1
        if not isinstance(index, int) or not -len(items) <= index < len(items):
            return None
        popped = items[index]
        position = index % len(items)
        side.hold(popped)
        side.mutate(owner, items[:position] + items[position + 1 :])
        return popped
    if len(arguments) != 1:
        return None
    # ``append(a)`` adds its argument, ``extend([a, b])`` the items; extending by another iterable is an event.
    more = contents(machine, side, arguments[0], SEQUENCES) if method.detail == "extend" else arguments
    if more is None or method.detail == "pop":
        return None
    side.extend(owner, more)
    return machine.values.none


def call_ex(machine: Machine, side: Side, instr: Instr) -> Answer:
    """Execute ``callable args [kwargs]``: with known arguments the same as a plain call."""
    has_keywords, null = instr.arg
    pops = 2 + has_keywords + bool(null)
    taken = topmost(side, pops)
    if null:
        taken, slot = (taken[1:], taken[0]) if null == "below" else ((taken[0], *taken[2:]), taken[1])
        if slot is not NULL:
            raise MismatchError(Finding.UNVERIFIED, f"no NULL beside the callable at offset {instr.offset}")
    positional = contents(machine, side, taken[1], SEQUENCES)
    keywords: Optional[Items] = contents(machine, side, taken[2], ("map",)) if has_keywords else ()
    if positional is not None and keywords is not None and has_plain_keys(keywords):
        # ``g(*[a], **{'k': b})`` is the call ``g(a, k=b)``.
        names = tuple(str(key.value) for key in keywords[::2] if isinstance(key, Const))
        return _call(machine, side, (taken[0], *positional, *keywords[1::2]), names, pops)
    if positional is not None and kind_of(machine, side, taken[1]) == "list":
        # CPython converts a list of arguments to a tuple: both forms of the call get one.
        depth = 1 + has_keywords
        converted = new_object(machine, side, "tuple", positional)
        side.hold(converted)
        side.release(side.stack[-depth])
        side.stack[-depth] = converted
        taken = (taken[0], converted, *taken[2:])
    return Event("call with unpacking", has_keywords, taken, "v", pops)
