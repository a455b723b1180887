"""Reject proofs in which one side diverges silently while the other makes progress.

A coinductive proof may assume its own goal after a step of both sides only. Between two join points without an event in
between, one side may move and the other not. A cycle of such steps in which one side never moves would accept a
function that diverges silently in place of one that continues.
"""

from __future__ import annotations

from typing import Dict, Hashable, List, Set, Tuple

Place = Hashable


class Progress:
    """The silent steps between join points, apart for those in which the left or the right side did not move."""

    def __init__(self) -> None:
        self._idle: Tuple[Dict[Place, Set[Place]], Dict[Place, Set[Place]]] = ({}, {})

    def step(self, start: Place, end: Place, moved: Tuple[bool, bool]) -> None:
        """Record a step without an event from ``start`` to ``end``; ``moved`` is whether each side moved."""
        for graph, has_moved in zip(self._idle, moved):
            if not has_moved:
                graph.setdefault(start, set()).add(end)

    def waits_for_ever(self) -> bool:
        """Return whether there is a cycle in which one side does not move."""
        return any(_has_cycle(graph) for graph in self._idle)


def _has_cycle(graph: Dict[Place, Set[Place]]) -> bool:
    done: Set[Place] = set()
    for root in graph:
        open_places: Set[Place] = set()
        todo: List[Tuple[Place, bool]] = [(root, False)]
        while todo:
            place, leaving = todo.pop()
            if leaving:
                open_places.discard(place)
                done.add(place)
            elif place in open_places:
                return True
            elif place not in done:
                open_places.add(place)
                todo.append((place, True))
                todo.extend((after, False) for after in graph.get(place, ()))
    return False
