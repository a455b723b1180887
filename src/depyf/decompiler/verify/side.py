"""The state of one side: operand stack, local variables, fresh objects and reference counts.

``Side`` is independent of operations (see ``machine`` and ``events``), and of the other side except for ``onesided``:
the set of values that exactly one side keeps alive.
"""

from __future__ import annotations

import itertools
from typing import Dict, Hashable, List, Literal, NamedTuple, Optional, Set, Tuple

from depyf.decompiler.normal.ops import Handler
from depyf.decompiler.verify.program import Program, cell_name
from depyf.decompiler.verify.values import LASTI, NULL, OUTER, Maybe, Prev, Ref, Sym, Value

_clock = itertools.count(1)

_HOLDERS = (Maybe, Ref)
"""The classes of values that keep others alive."""

GONE, GONE_FROM_TEST = -1, -2
"""The positions of a side that an exception has left, the second if one of ``Program.open_tests`` raised it last."""


FreshKind = Literal["list", "tuple", "map", "set", "slice", "function", "method", "cell"]


class Fresh(NamedTuple):
    """A fresh object: its kind and contents.

    ``detail`` is a method's name or a function's flags; a map's items are key, value, key, value ...
    """

    kind: FreshKind
    items: Tuple[Value, ...]
    detail: object = None


class Side:
    """The state of one side. ``position`` indexes ``program.ops``; ``version`` changes with locals and heap.

    ``crossed``: it has reached a join point; ``moved``: it has executed a silent operation. Both since the last reset.
    """

    __slots__ = (
        "counts", "crossed", "handled", "heap", "leaving", "locals", "moved", "onesided", "position", "program",
        "stack", "stored", "version",
    )  # fmt: skip

    def __init__(self, program: Program, onesided: Set[Value]) -> None:
        self.program = program
        self.onesided = onesided
        self.position = 0
        self.stack: List[Value] = []
        self.locals: Dict[str, Value] = {}
        self.heap: Dict[Ref, Fresh] = {}
        self.counts: Dict[Value, int] = {}
        self.handled: Value = OUTER
        self.leaving: Value = OUTER
        self.crossed = False
        self.moved = False
        self.stored: Dict[str, int] = {}
        self.version = next(_clock)

    def clone(self, onesided: Set[Value]) -> Side:
        other = Side.__new__(Side)
        other.program = self.program
        other.onesided = onesided
        other.position = self.position
        other.stack = self.stack.copy()
        other.locals = self.locals.copy()
        other.heap = self.heap.copy()
        other.counts = self.counts.copy()
        other.handled = self.handled
        other.leaving = self.leaving
        other.crossed = self.crossed
        other.moved = self.moved
        other.stored = self.stored.copy()
        other.version = self.version
        return other

    def trimmed(self, depth: int, onesided: Set[Value]) -> Side:
        """Return a copy to unwind to ``depth``, without the values above it except for markers of exceptions.

        Cheaper than copying everything and dropping it one by one: a long display may be under construction there.
        """
        other = Side(self.program, onesided)
        other.position, other.version = self.position, self.version
        other.stored = self.stored.copy()
        other.handled = self.handled
        other.hold(self.handled)
        # ``cut`` restores the handled exception by the markers, so they are copied above ``depth``, in their order.
        markers = [value for value in self.stack[depth:] if isinstance(value, Prev)]
        for value in (*self.stack[:depth], *markers):
            other._adopt(value, self.heap)
            other.push(value)
        for name, value in self.locals.items():
            other._adopt(value, self.heap)
            other.locals[name] = value
            other.hold(value)
        return other

    def _adopt(self, value: Value, heap: Dict[Ref, Fresh]) -> None:
        """Copy the fresh object ``value``, if it is one, from another heap."""
        if isinstance(value, Ref) and value not in self.heap:
            self.heap[value] = heap[value]
            for item in heap[value].items:
                self._adopt(item, heap)
                self.hold(item)

    # --- reference counts

    def hold(self, value: Value) -> None:
        """Add a reference to ``value``."""
        if not value.counted:
            return
        count = self.counts.get(value, 0)
        self.counts[value] = count + 1
        if not count:
            self._flip(value, held=True)

    def release(self, value: Value) -> None:
        """Drop a reference to ``value``."""
        if not value.counted:
            return
        count = self.counts[value] - 1
        if count:
            self.counts[value] = count
            return
        del self.counts[value]
        self._flip(value, held=False)
        if isinstance(value, Ref):
            # The last reference to a new object is gone, and with it the object: release what it holds.
            for item in self.heap.pop(value).items:
                self.release(item)

    def _flip(self, value: Value, *, held: bool) -> None:
        if isinstance(value, Sym):
            # Each side flips the membership: a value that both keep alive, or neither, is not in the set.
            if value in self.onesided:
                self.onesided.remove(value)
            else:
                self.onesided.add(value)
        elif isinstance(value, (Prev, Maybe)):
            (self.hold if held else self.release)(value.inner)

    # --- stack and locals

    def push(self, value: Value) -> None:
        self.stack.append(value)
        self.hold(value)

    def pop(self) -> Value:
        value = self.stack.pop()
        self.release(value)
        return value

    def drop(self, count: int) -> None:
        for _ in range(count):
            self.pop()

    def store(self, name: str, value: Value) -> None:
        self.hold(value)
        old = self.locals.get(name)
        self.locals[name] = value
        if old is not None:
            self.release(old)
        self.stored[name] = self.program.ops[self.position].offset
        self.version = next(_clock)

    def delete(self, name: str) -> None:
        self.release(self.locals.pop(name))
        self.stored[name] = self.program.ops[self.position].offset
        self.version = next(_clock)

    def cell(self, name: str) -> Tuple[Value, ...]:
        """Return the cell object of ``name``, where it can change."""
        if name not in self.program.changing_cells:
            return ()
        return (self.locals.get(cell_name(name), NULL),)

    # --- fresh objects

    def allocate(self, fresh: Fresh) -> Ref:
        """Make a new object; the caller pushes or stores it."""
        ref = Ref()
        self.heap[ref] = fresh
        for item in fresh.items:
            self.hold(item)
        return ref

    def mutate(self, ref: Ref, items: Tuple[Value, ...]) -> None:
        old = self.heap[ref]
        for item in items:
            self.hold(item)
        self.heap[ref] = old._replace(items=items)
        for item in old.items:
            self.release(item)
        self.version = next(_clock)

    def extend(self, ref: Ref, more: Tuple[Value, ...]) -> None:
        """Do as ``mutate`` for appended items: long displays are built so, item by item."""
        for item in more:
            self.hold(item)
        old = self.heap[ref]
        self.heap[ref] = old._replace(items=old.items + more)
        self.version = next(_clock)

    def replace(self, ref: Ref, value: Value) -> None:
        """Let the object of ``ref`` escape: replace every reference to it with ``value``."""
        if ref not in self.counts:
            return
        for index, item in enumerate(self.stack):
            if item is ref:
                self.stack[index] = value
                self.hold(value)
                self.release(ref)
        for name in [name for name, item in self.locals.items() if item is ref]:
            self.hold(value)
            self.locals[name] = value
            self.release(ref)
        if ref in self.counts:
            for holder, fresh in list(self.heap.items()):
                if holder is not ref and ref in fresh.items:
                    self.mutate(holder, tuple(value if item is ref else item for item in fresh.items))
        self.version = next(_clock)

    # --- exceptions

    def handle(self, exception: Value) -> None:
        """Execute PUSH_EXC: ``exception`` becomes the one being handled."""
        self.push(Prev(self.handled))
        self.set_handled(exception)

    def restore(self, marker: Prev) -> None:
        self.set_handled(marker.inner)

    def set_handled(self, exception: Value) -> None:
        self.hold(exception)
        self.release(self.handled)
        self.handled = exception

    def cut(self, depth: int) -> None:
        """Unwind the stack to ``depth``; its markers restore the exception being handled."""
        while len(self.stack) > depth:
            value = self.stack[-1]
            if isinstance(value, Prev):
                self.set_handled(value.inner)
            self.pop()

    @property
    def has_left(self) -> bool:
        """Whether an exception has left the function."""
        return self.position < 0

    @property
    def outside(self) -> int:
        """The position that an exception which the current operation raises, and nothing handles, leads to."""
        return GONE_FROM_TEST if self.position in self.program.open_tests else GONE

    def unwind(self, handler: Optional[Handler], exception: Value) -> None:
        """Raise ``exception`` at the current operation: continue at its handler, or leave the function."""
        self.hold(exception)
        if handler is None:
            self.cut(0)
            self.leaving = exception
            self.position = self.outside
            return
        if len(self.stack) < handler.depth:
            raise IndexError("a handler keeps more values than the stack has")
        self.cut(handler.depth)
        if handler.lasti:
            self.push(LASTI)
        self.push(exception)
        self.release(exception)
        self.position = handler.target
        self.crossed = True

    def reached(self, values: List[Value]) -> Set[Value]:
        """Return ``values`` and the values that they keep alive."""
        found = set(values)
        todo = [value for value in found if value.__class__ in _HOLDERS]
        while todo:
            value = todo.pop()
            inner: Tuple[Value, ...] = ()
            if isinstance(value, Maybe):
                inner = (value.inner,)
            elif isinstance(value, Ref) and value in self.heap:
                inner = self.heap[value].items
            todo += [each for each in inner if each.__class__ in _HOLDERS and each not in found]
            found.update(inner)
        return found

    def bind(self, name: str) -> None:
        """Record that a local that might have been unbound is bound."""
        value = self.locals[name]
        assert isinstance(value, Maybe)
        self.hold(value.inner)
        self.locals[name] = value.inner
        self.release(value)

    def seen_by(self, handler: Optional[Handler]) -> Hashable:
        """Return a key for what a handler can observe of this side: equal keys mean equal states at its entry."""
        if handler is None:
            return self.outside
        return (handler, self.version, tuple(self.stack[: handler.depth]), self.handled)
