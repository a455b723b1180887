"""One record of a trace: the folded events of the lanes, from which the result is built on request."""

from __future__ import annotations

from time import perf_counter_ns
from typing import AbstractSet, Dict, List, Optional, Tuple

from depyf.answers.trace import Event, Ran, Repeated, Thing, ThreadTrace, Total, TraceResult
from depyf.base.locks import Lock
from depyf.dynamo.questions.trace.folding import (
    Chunk,
    Item,
    RunKeys,
    RunLoop,
    RunNode,
    RunSequence,
    added_up,
    equal_turns,
    nodes_in,
)
from depyf.dynamo.questions.trace.lanes import Lane

_NANOSECONDS = 1e-9


class _Thread:
    """The runs in one thread: those that have ended, and those that are open, the innermost last."""

    __slots__ = ("loop", "name", "opened", "root", "turn")

    def __init__(self, name: str, late: AbstractSet[int]) -> None:
        self.name = name
        self.root = RunSequence(late)
        self.opened: List[RunNode] = []
        self.loop: Optional[RunLoop] = None
        self.turn: List[int] = []
        """What the lane notes in a turn of that loop."""


class RunRecord:
    """A record, from ``began`` until ``ended``."""

    def __init__(self, things: List[Thing], late: AbstractSet[int] = frozenset()) -> None:
        self.began = perf_counter_ns()
        self.ended: Optional[int] = None
        self._things = things
        self._late = late
        self._threads: Dict[int, _Thread] = {}
        self._keys = RunKeys()
        self._dropped: Dict[int, RunNode] = {}
        self._lock = Lock()

    def take(self, lane: Lane, chunk: List[int]) -> None:
        """Add a lane's records: three numbers for each event (see ``lanes``)."""
        with self._lock:
            thread = self._threads.get(lane.ident)
            if thread is None:
                thread = self._threads[lane.ident] = _Thread(lane.name, self._late)
            self._take(thread, Chunk(chunk))

    def _take(self, thread: _Thread, chunk: Chunk) -> None:
        opened, root, drop = thread.opened, thread.root, self._drop
        numbers, starts, ends = chunk.numbers, chunk.starts, chunk.ends
        at, began = 0, -1  # the position, and the start of an iteration of the open loop
        while at < len(numbers):
            # At the outermost level, right after an iteration of a loop: remember which numbers an iteration records,
            # and take all equal ones that follow at once.
            loop = None if opened else root.loop
            if loop is not None:
                if loop is not thread.loop:
                    thread.loop, thread.turn = loop, []
                elif not thread.turn and began >= 0:
                    thread.turn = numbers[began:at]
                began = at = self._take_turns(thread, chunk, at)
                if at == len(numbers):
                    return
            # Else event by event: an end, a run with nothing inside, or a start.
            number = numbers[at]
            if number < 0:
                self._end(thread, ~number, starts[at])
            elif ends[at]:
                node = RunNode(number, starts[at], ends[at] - starts[at])
                (opened[-1].sequence_inside() if opened else root).append(node, drop)
            else:
                opened.append(RunNode(number, starts[at]))
            at += 1

    def _take_turns(self, thread: _Thread, chunk: Chunk, at: int) -> int:
        """Take all turns that are like the last one, at once; return what comes after them."""
        loop, turn = thread.loop, thread.turn
        if loop is None or not turn:
            return at
        times = equal_turns(chunk.numbers, at, turn)
        if times > 1:
            whole = added_up(chunk, at, turn, times, self._keys, self._late)
            if whole is not None and tuple(whole.keys) == loop.body_key:
                loop.add_turn(whole.items)
                loop.count += times
                return at + times * len(turn)
        return at

    def close(self) -> None:
        """Close the record, and all that is open in it."""
        with self._lock:
            self.ended = perf_counter_ns()
            for thread in self._threads.values():
                while thread.opened:
                    self._end(thread, thread.opened[-1].number, 0)

    def _end(self, thread: _Thread, number: int, when: int) -> None:
        """Record the end of the thing with this number, and of all inside."""
        opened = thread.opened
        if not any(node.number == number for node in opened):
            return  # it began before this record
        while True:
            node = opened.pop()
            found = node.number == number
            if node.inside is not None:
                node.inside.settle(self._drop)
            node.end(when - node.start if found and when else None, self._keys)
            (opened[-1].sequence_inside() if opened else thread.root).append(node, self._drop)
            if found:
                return

    def _drop(self, item: Item) -> None:
        for node in nodes_in(item):
            _add(self._dropped, node)

    def answer(self, notes: Tuple[str, ...] = ()) -> TraceResult:
        """Return what has been recorded so far."""
        with self._lock:
            return TraceResult(
                seconds=((self.ended or perf_counter_ns()) - self.began) * _NANOSECONDS,
                threads=tuple(
                    ThreadTrace(each.name, self._events_of(each), each.root.dropped)
                    for each in self._threads.values()
                    if each.root.items or each.opened
                ),
                totals=self._totals(),
                notes=notes,
            )

    def counts(self) -> Dict[int, int]:
        """Return how often each thing ran, by its number."""
        with self._lock:
            return {number: node.count for number, node in self._summed().items()}

    def _events_of(self, thread: _Thread) -> Tuple[Event, ...]:
        events = self._events(thread.root)
        inner: Tuple[Event, ...] = ()
        for node in reversed(thread.opened):  # open, with the open nodes inside
            own = () if node.inside is None else self._events(node.inside)
            inner = (self._ran(node, (*own, *inner)),)
        return (*events, *inner)

    def _events(self, sequence: RunSequence) -> Tuple[Event, ...]:
        sequence.settle(self._drop)
        return tuple(self._event(item) for item in sequence.items)

    def _event(self, item: Item) -> Event:
        if isinstance(item, RunLoop):
            return Repeated(item.count, tuple(self._event(each) for each in item.body))
        return self._ran(item, () if item.inside is None else self._events(item.inside))

    def _ran(self, node: RunNode, inside: Tuple[Event, ...]) -> Ran:
        return Ran(
            self._things[node.number], node.count, (node.start - self.began) * _NANOSECONDS, *_times(node), inside
        )

    def _summed(self) -> Dict[int, RunNode]:
        """Return all runs of each thing, as one node."""
        found: Dict[int, RunNode] = {}
        for dropped in self._dropped.values():
            _add(found, dropped)
        for thread in self._threads.values():
            thread.root.settle(self._drop)
            for item in (*thread.root.items, *thread.opened):
                for node in nodes_in(item):
                    _add(found, node)
        return found

    def _totals(self) -> Tuple[Total, ...]:
        return tuple(
            Total(self._things[number], node.count, *_times(node)) for number, node in sorted(self._summed().items())
        )


def _add(totals: Dict[int, RunNode], node: RunNode) -> None:
    """Add the runs of this node, without the nodes inside, to the total of its thing."""
    total = totals.get(node.number)
    if total is None:
        total = totals[node.number] = RunNode(node.number, node.start)
        total.count = 0
    total.add(node)


def _times(node: RunNode) -> Tuple[Optional[float], Optional[float], Optional[float]]:
    if not node.timed:
        return None, None, None
    return node.total * _NANOSECONDS, node.fastest * _NANOSECONDS, node.slowest * _NANOSECONDS
