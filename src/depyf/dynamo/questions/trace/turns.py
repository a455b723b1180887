"""Add many equal iterations of a loop at once: a lane's records are compared and added as whole lists. A training loop
records the same numbers over and over. Processing them one by one costs microseconds each, comparing lists next to
nothing. Times are added per position in the iteration.
"""

from __future__ import annotations

from operator import sub
from typing import AbstractSet, List, Optional

from depyf.dynamo.questions.trace.folding import Keys, Node, Sequence


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
    chunk: Chunk, start: int, turn: List[int], times: int, keys: Keys, late: AbstractSet[int]
) -> Optional[Sequence]:
    """Return the items of one turn with the times of so many turns from ``start`` on, ``None`` if these differ."""
    length = len(turn)
    stop = start + length * times
    whole = Sequence(late)
    opened: List[Node] = []
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
            node = Node(number, starts[0])
            _add_times(node, starts, ends)
        else:
            if any(chunk.ends[at:stop:length]):
                return None
            opened.append(Node(number, starts[0]))
            begun.append(starts)
            continue
        (opened[-1].sequence_inside() if opened else whole).append(node)
    if opened:
        return None
    whole.settle()
    return whole


def _add_times(node: Node, starts: List[int], ends: List[int]) -> None:
    """Add runs that began and ended at these times; an end of 0 is not known."""
    node.count = len(starts)
    if 0 in ends:
        known = [(start, end) for start, end in zip(starts, ends) if end]
        starts, ends = [start for start, _ in known], [end for _, end in known]
    if ends:
        durations = list(map(sub, ends, starts))
        node.timed, node.total = len(durations), sum(durations)
        node.fastest, node.slowest = min(durations), max(durations)
