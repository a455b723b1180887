"""Fold a growing sequence: ``A B C A B C A B C`` becomes ``(A B C) x 3``, at every level of nesting. An item is
appended when it has ended, with all items inside it. If the last items equal the items before them (or one iteration
of a loop before them), both are merged, and their times added. So a loop takes the memory of one iteration, however
often it runs. Items are equal if they are runs of the same thing with equal items inside. Items that do not repeat are
dropped in the end, the oldest first, and only counted.

A training loop records the same numbers over and over. Processing them one by one costs microseconds each, comparing
whole lists next to nothing. So equal iterations of a loop are compared and added as columns of a ``Chunk``; times are
added per position in the iteration.
"""

from __future__ import annotations

from operator import sub
from typing import AbstractSet, Any, Callable, Dict, List, Optional, Tuple, Union

_MOST_ITEMS = 4000
"""The maximal length of a sequence; beyond it the older half is dropped."""
_CANDIDATES = 8
"""How many earlier positions are checked for a repeated iteration."""

_MOST_KEYS = 50000

Key = Any
"""A hashable key: equal items have equal keys."""


class RunKeys:
    """Short keys for nodes with much inside. Numbers of things are not negative, and these are."""

    def __init__(self) -> None:
        self._known: Dict[Key, int] = {}
        self._next = 0

    def of(self, number: int, inside: RunSequence) -> Key:
        whole = (number, tuple(inside.keys))
        found = self._known.get(whole)
        if found is None:
            if len(self._known) > _MOST_KEYS:  # then new items are not known to equal earlier ones
                self._known.clear()
            self._next -= 1
            found = self._known[whole] = self._next
        return found


class RunNode:
    """Runs of one thing at one position of the order. Times are in nanoseconds; ``timed`` of ``count`` runs have
    one."""

    __slots__ = ("count", "fastest", "inside", "key", "number", "slowest", "start", "timed", "total")

    def __init__(self, number: int, start: int, duration: Optional[int] = None) -> None:
        self.number = number
        self.key: Key = number
        self.count = 1
        self.start = start
        self.timed = 0 if duration is None else 1
        self.total = self.fastest = self.slowest = duration or 0
        self.inside: Optional[RunSequence] = None

    def end(self, duration: Optional[int], keys: RunKeys) -> None:
        """Record the duration, and complete what ran inside."""
        if duration is not None:
            self.timed, self.total, self.fastest, self.slowest = 1, duration, duration, duration
        self.close(keys)

    def close(self, keys: RunKeys) -> None:
        """Complete what ran inside."""
        if self.inside is not None:
            self.key = keys.of(self.number, self.inside)

    def sequence_inside(self) -> RunSequence:
        """Return the sequence of what ran inside, to add to."""
        if self.inside is None:
            self.inside = RunSequence()
        return self.inside

    def add(self, other: RunNode) -> None:
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


class RunLoop:
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


Item = Union[RunNode, RunLoop]


class RunSequence:
    """Items in order, folded. An iteration does not start with a ``late`` item: a step starts with the forward pass."""

    __slots__ = ("_late", "_loop", "_positions", "_turn", "dropped", "items", "keys")

    def __init__(self, late: AbstractSet[Key] = frozenset()) -> None:
        self._late = late
        self.items: List[Item] = []
        self.keys: List[Key] = []
        self.dropped = 0
        self._loop: Optional[RunLoop] = None
        """The last item, while the following items are its next iteration; those so far are in ``_turn``."""
        self._turn: List[Item] = []
        self._positions: Dict[Key, List[int]] = {}
        """The positions of items with this key, or of loops whose iteration ends with one."""

    def append(self, item: Item, on_drop: Callable[[Item], object] = lambda item: None) -> None:
        """Add an item that has ended. ``on_drop`` is called with each item that is dropped."""
        # While a loop goes on, items are compared with its body one by one and kept apart in ``_turn``: no search, and
        # nothing is stored once the iteration is complete.
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
    def loop(self) -> Optional[RunLoop]:
        """The current loop, if one of its iterations has just ended; else None."""
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
        self._loop = last if isinstance(last, RunLoop) else None

    def add(self, other: RunSequence) -> None:
        """Add the runs of an equal sequence."""
        for mine, its in zip(self.items, other.items):
            _add(mine, its)
        self.dropped += other.dropped

    def _fold(self) -> bool:
        """Fold the last items with equal items before them."""
        # ``last`` is the position of the new item. An earlier position ``at`` with the same key ends a possible
        # iteration before it, of ``length`` items:
        #     A B C A B C      at=2, last=5, length=3: items 0-2 equal items 3-5
        # Candidates come from an index by key, the nearest first, so the shortest iteration wins.
        keys, last = self.keys, len(self.keys) - 1
        positions = self._positions[keys[last]]
        for at in positions[-2 : -2 - _CANDIDATES : -1] if positions[-1] == last else ():
            length = last - at
            before = self.items[at]
            if isinstance(before, RunLoop) and len(before.body_key) == length:
                # ``(A B C) x 2`` at ``at``, and A B C after it: one more iteration of that loop.
                if before.body_key == tuple(keys[at + 1 :]):
                    before.add_turn(self.items[at + 1 :])
                    self._cut(at)
                    before.count += 1
                    self._push(before, before.key)
                    return True
            elif at + 1 >= length and keys[at + 1 - length : at + 1] == keys[at + 1 :]:
                # Two equal sequences in a row become a loop, unless they begin with a late item (a backward): B F B F
                # is cut in the middle of a step. After the next B it is B, (F B) x 2.
                if keys[at + 1] in self._late and not all(key in self._late for key in keys[at + 1 :]):
                    continue
                body = self.items[at + 1 - length : at + 1]
                loop = RunLoop(body, tuple(keys[at + 1 :]), 2)
                loop.add_turn(self.items[at + 1 :])
                self._cut(at + 1 - length)
                self._push(loop, loop.key)
                return True
        return False

    def _push(self, item: Item, key: Key) -> None:
        at = len(self.items)
        self.items.append(item)
        self.keys.append(key)
        self._positions.setdefault(key, []).append(at)
        if isinstance(item, RunLoop):
            self._positions.setdefault(item.body_key[-1], []).append(at)

    def _cut(self, start: int) -> None:
        """Remove the items from ``start`` on."""
        for at in range(len(self.items) - 1, start - 1, -1):
            item = self.items[at]
            self._forget(self.keys[at])
            if isinstance(item, RunLoop):
                self._forget(item.body_key[-1])
        del self.items[start:], self.keys[start:]

    def _forget(self, key: Key) -> None:
        positions = self._positions[key]
        positions.pop()
        if not positions:
            del self._positions[key]

    def _drop(self, on_drop: Callable[[Item], object]) -> None:
        gone, kept = self.items[: _MOST_ITEMS // 2], self.items[_MOST_ITEMS // 2 :]
        keys = self.keys[_MOST_ITEMS // 2 :]
        for item in gone:
            self.dropped += runs_in(item)
            on_drop(item)
        self.items, self.keys, self._positions = [], [], {}
        for item, key in zip(kept, keys):
            self._push(item, key)


def _add(mine: Item, its: Item) -> None:
    if isinstance(mine, RunNode) and isinstance(its, RunNode):
        mine.add(its)
    elif isinstance(mine, RunLoop) and isinstance(its, RunLoop):
        mine.add_turn(its.body)


def runs_in(item: Item) -> int:
    """Return the number of runs of the things in an item."""
    return sum(node.count for node in nodes_in(item))


def nodes_in(item: Item) -> List[RunNode]:
    """Return every node of an item, at any depth."""
    found: List[RunNode] = []
    todo: List[Item] = [item]
    while todo:
        each = todo.pop()
        if isinstance(each, RunLoop):
            todo += each.body
        else:
            found.append(each)
            if each.inside is not None:
                todo += each.inside.items
    return found


class Chunk:
    """What a lane has noted, as columns."""

    __slots__ = ("ends", "numbers", "starts")

    def __init__(self, noted: List[int]) -> None:
        self.numbers, self.starts, self.ends = noted[::3], noted[1::3], noted[2::3]


def equal_turns(numbers: List[int], start: int, turn: List[int]) -> int:
    """Return how many times ``turn`` follows one after the other from ``start`` on."""
    length, at = len(turn), start
    while numbers[at : at + length] == turn:
        at += length
    return (at - start) // length


def added_up(
    chunk: Chunk, start: int, turn: List[int], times: int, keys: RunKeys, late: AbstractSet[int]
) -> Optional[RunSequence]:
    """Return the items of one iteration with the times of ``times`` iterations from ``start`` on; ``None`` if the
    iterations differ."""
    # Column by column: all runs of the event at position ``at`` of the iteration are every ``length``-th record. An
    # event is an end (negative number), a run with nothing inside (it has an end), or a start (its end comes later).
    length = len(turn)
    stop = start + length * times
    whole = RunSequence(late)
    opened: List[RunNode] = []
    begun: List[List[int]] = []
    for at, number in enumerate(turn, start):
        starts = chunk.starts[at:stop:length]
        if number < 0:
            if not opened or opened[-1].number != ~number:
                return None
            node = opened.pop()
            _add_times(node, begun.pop(), starts)
            if node.inside is not None:
                node.inside.settle()
            node.close(keys)
        elif chunk.ends[at]:
            ends = chunk.ends[at:stop:length]
            if 0 in ends:
                return None
            node = RunNode(number, starts[0])
            _add_times(node, starts, ends)
        else:
            if any(chunk.ends[at:stop:length]):
                return None
            opened.append(RunNode(number, starts[0]))
            begun.append(starts)
            continue
        (opened[-1].sequence_inside() if opened else whole).append(node)
    if opened:
        return None
    whole.settle()
    return whole


def _add_times(node: RunNode, starts: List[int], ends: List[int]) -> None:
    """Add runs that began and ended at these times; an end of 0 is not known."""
    node.count = len(starts)
    if 0 in ends:
        known = [(start, end) for start, end in zip(starts, ends) if end]
        starts, ends = [start for start, _ in known], [end for _, end in known]
    if ends:
        durations = list(map(sub, ends, starts))
        node.timed, node.total = len(durations), sum(durations)
        node.fastest, node.slowest = min(durations), max(durations)
