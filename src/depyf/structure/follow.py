"""The node after a statement, chosen among the targets of its exits."""

from __future__ import annotations

from typing import List, Optional

from depyf.structure.place import Place
from depyf.structure.structurer import Structurer


def choose_follow(structurer: Structurer, targets: List[int], place: Place) -> Optional[int]:
    """Return the node after a statement with the exits ``targets``; ``None`` if there is none."""
    open_: List[int] = []
    for target in targets:
        if target in open_ or (structurer.shape.is_copyable(target) and target != place.follow):
            continue
        if target in (place.continues, place.breaks) and target != place.follow:
            continue
        open_.append(target)
    fresh = [target for target in open_ if target != place.follow]
    if fresh:
        return max(fresh, key=lambda id: structurer.shape.index[id]) if len(fresh) > 1 else fresh[0]
    if place.follow in open_:
        return place.follow
    rest = [target for target in open_ if target != place.follow]
    return rest[0] if rest else place.follow


def open_targets(structurer: Structurer, targets: List[int], place: Place) -> List[int]:
    return [
        target
        for target in targets
        if target == place.follow
        or (not structurer.shape.is_copyable(target) and target not in (place.continues, place.breaks))
    ]
