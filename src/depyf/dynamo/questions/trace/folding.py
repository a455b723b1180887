"""Fold a growing sequence: ``A B C A B C A B C`` becomes ``(A B C) x 3``, at every level of nesting. An item is
appended when it has ended, with all items inside it. If the last items equal those before them (or one iteration of a
loop before them), both are merged, and their times added. So a loop takes the memory of one iteration, however often it
runs. Items are equal if they are runs of the same thing with equal items inside. Items that do not repeat are dropped
in the end, the oldest first, and only counted.
"""

from __future__ import annotations

from typing import AbstractSet, Any, Callable, Dict, List, Optional, Tuple, Union

_MOST_ITEMS = 4000
"""The maximal length of a sequence; beyond it the older half is dropped."""
_CANDIDATES = 8
"""How many earlier positions are checked for a repeated iteration."""

_MOST_KEYS = 50000

Key = Any
"""What equal items have in common: hashable."""


class Keys:
    """Short keys for nodes with much inside. Numbers of things are not negative, and these are."""

    def __init__(self) -> None:
        self._known: Dict[Key, int] = {}
        self._next = 0

    def of(self, number: int, inside: Sequence) -> Key:
        whole = (number, tuple(inside.keys))
        found = self._known.get(whole)
        if found is None:
            if len(self._known) > _MOST_KEYS:  # then new items are not known to equal earlier ones
                self._known.clear()
            self._next -= 1
            found = self._known[whole] = self._next
        return found


class Node:
    """Runs of one thing at one place of the order. Times are in nanoseconds; ``timed`` of ``count`` runs have one."""

    __slots__ = ("count", "fastest", "inside", "key", "number", "slowest", "start", "timed", "total")

    def __init__(self, number: int, start: int, duration: Optional[int] = None) -> None:
        self.number = number
        self.key: Key = number
        self.count = 1
        self.start = start
        self.timed = 0 if duration is None else 1
        self.total = self.fastest = self.slowest = duration or 0
        self.inside: Optional[Sequence] = None

    def end(self, duration: Optional[int], keys: Keys) -> None:
        """Record the duration, and complete what ran inside."""
        if duration is not None:
            self.timed, self.total, self.fastest, self.slowest = 1, duration, duration, duration
        self.close(keys)

    def close(self, keys: Keys) -> None:
        """Complete what ran inside."""
        if self.inside is not None:
            self.key = keys.of(self.number, self.inside)

    def sequence_inside(self) -> Sequence:
        """Return the sequence of what ran inside, to add to."""
        if self.inside is None:
            self.inside = Sequence()
        return self.inside

    def add(self, other: Node) -> None:
        """Add the runs of an equal node, which came later."""
        self.count += other.count
        if other.timed:
            first = not self.timed
            self.timed += other.timed
            self.total += other.total
            self.fastest = other.fastest if first else min(self.fastest, other.fastest)
            self.slowest = other.slowest if first else max(self.slowest, other.slowest)
        if self.inside is not None and other.inside is not None:
            self.inside.add(other.inside)


class Loop:
    """A sequence of items that came ``count`` times in a row."""

    __slots__ = ("body", "body_key", "count")

    def __init__(self, body: List[Item], body_key: Tuple[Key, ...], count: int) -> None:
        self.body = body
        self.body_key = body_key
        self.count = count

    @property
    def key(self) -> Key:
        return (self.body_key, self.count, "x")

    def add_turn(self, items: List[Item]) -> None:
        for mine, its in zip(self.body, items):
            _add(mine, its)


Item = Union[Node, Loop]


class Sequence:
    """Items in order, folded. An iteration does not start with a ``late`` item: a step starts with the forward pass."""

    __slots__ = ("_late", "_loop", "_places", "_turn", "dropped", "items", "keys")

    def __init__(self, late: AbstractSet[Key] = frozenset()) -> None:
        self._late = late
        self.items: List[Item] = []
        self.keys: List[Key] = []
        self.dropped = 0
        self._loop: Optional[Loop] = None
        """The last item, while the following items are its next iteration; those so far are in ``_turn``."""
        self._turn: List[Item] = []
        self._places: Dict[Key, List[int]] = {}
        """The positions of items with this key, or of loops whose iteration ends with one."""

    def append(self, item: Item, on_drop: Callable[[Item], object] = lambda item: None) -> None:
        """Add an item that has ended. ``on_drop`` is called with each item that is dropped."""
        loop, turn = self._loop, self._turn
        if loop is None:
            self._append(item, on_drop)
        elif item.key == loop.body_key[len(turn)]:
            turn.append(item)
            if len(turn) == len(loop.body):
                loop.add_turn(turn)
                loop.count += 1
                turn.clear()
        else:
            self.settle(on_drop)
            self._append(item, on_drop)

    @property
    def loop(self) -> Optional[Loop]:
        """The current loop, if an iteration of it has just ended; else None."""
        return None if self._turn else self._loop

    def settle(self, on_drop: Callable[[Item], object] = lambda item: None) -> None:
        """Complete ``items`` and ``keys``: a partial iteration becomes separate items."""
        loop, turn = self._loop, self._turn
        self._loop, self._turn = None, []
        if loop is not None and self.keys[-1] != loop.key:
            self._cut(len(self.items) - 1)
            self._push(loop, loop.key)
        for item in turn:
            self._append(item, on_drop)

    def _append(self, item: Item, on_drop: Callable[[Item], object]) -> None:
        self._push(item, item.key)
        while self._fold():
            continue
        if len(self.items) > _MOST_ITEMS:
            self._drop(on_drop)
        last = self.items[-1]
        self._loop = last if isinstance(last, Loop) else None

    def add(self, other: Sequence) -> None:
        """Add the runs of an equal sequence."""
        for mine, its in zip(self.items, other.items):
            _add(mine, its)
        self.dropped += other.dropped

    def _fold(self) -> bool:
        """Fold the last items with equal items before them."""
        keys, last = self.keys, len(self.keys) - 1
        places = self._places[keys[last]]
        for at in places[-2 : -2 - _CANDIDATES : -1] if places[-1] == last else ():
            length = last - at
            before = self.items[at]
            if isinstance(before, Loop) and len(before.body_key) == length:
                if before.body_key == tuple(keys[at + 1 :]):
                    before.add_turn(self.items[at + 1 :])
                    self._cut(at)
                    before.count += 1
                    self._push(before, before.key)
                    return True
            elif at + 1 >= length and keys[at + 1 - length : at + 1] == keys[at + 1 :]:
                if keys[at + 1] in self._late and not all(key in self._late for key in keys[at + 1 :]):
                    continue
                body = self.items[at + 1 - length : at + 1]
                loop = Loop(body, tuple(keys[at + 1 :]), 2)
                loop.add_turn(self.items[at + 1 :])
                self._cut(at + 1 - length)
                self._push(loop, loop.key)
                return True
        return False

    def _push(self, item: Item, key: Key) -> None:
        at = len(self.items)
        self.items.append(item)
        self.keys.append(key)
        self._places.setdefault(key, []).append(at)
        if isinstance(item, Loop):
            self._places.setdefault(item.body_key[-1], []).append(at)

    def _cut(self, start: int) -> None:
        """Remove the items from ``start`` on."""
        for at in range(len(self.items) - 1, start - 1, -1):
            item = self.items[at]
            self._forget(self.keys[at])
            if isinstance(item, Loop):
                self._forget(item.body_key[-1])
        del self.items[start:], self.keys[start:]

    def _forget(self, key: Key) -> None:
        places = self._places[key]
        places.pop()
        if not places:
            del self._places[key]

    def _drop(self, on_drop: Callable[[Item], object]) -> None:
        gone, kept = self.items[: _MOST_ITEMS // 2], self.items[_MOST_ITEMS // 2 :]
        keys = self.keys[_MOST_ITEMS // 2 :]
        for item in gone:
            self.dropped += runs_in(item)
            on_drop(item)
        self.items, self.keys, self._places = [], [], {}
        for item, key in zip(kept, keys):
            self._push(item, key)


def _add(mine: Item, its: Item) -> None:
    if isinstance(mine, Node) and isinstance(its, Node):
        mine.add(its)
    elif isinstance(mine, Loop) and isinstance(its, Loop):
        mine.add_turn(its.body)


def runs_in(item: Item) -> int:
    """Return the number of runs of the things in an item."""
    return sum(node.count for node in nodes_in(item))


def nodes_in(item: Item) -> List[Node]:
    """Return every node of an item, at any depth."""
    found: List[Node] = []
    todo: List[Item] = [item]
    while todo:
        each = todo.pop()
        if isinstance(each, Loop):
            todo += each.body
        else:
            found.append(each)
            if each.inside is not None:
                todo += each.inside.items
    return found
