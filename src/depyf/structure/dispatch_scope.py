"""The position of statements under construction: their level and their loop."""

from __future__ import annotations

from dataclasses import field
from typing import FrozenSet, Optional, Set, Tuple

from depyf.quick_dataclass import dataclass
from depyf.structure.dispatch_contexts import Context, Kind, Path
from depyf.structure.dispatch_order import Order
from depyf.structure.dispatch_states import Arrival, Live, Target, merged


@dataclass
class LoopFrame:
    """The loop of ``break`` and ``continue``: jumps to ``again`` continue it, all others exit it. ``counted``: the
    targets by the ``try`` statement that jumps to them; all jumps of a statement to one target count once."""

    level: Path
    again: FrozenSet[Target]
    breaks: Live = field(default_factory=dict)
    counted: Set[Tuple[Context, Target]] = field(default_factory=set)

    def leave(self, target: Target, arrival: Arrival, level: Path) -> None:
        """Record an exit of the loop from ``level``."""
        if len(level) > len(self.level):
            inside = level[len(self.level)]
            around = Context(Kind.TRY, inside.anchor) if inside.kind is Kind.HANDLER else inside
            arrival = Arrival(int((around, target) not in self.counted), arrival.assignments)
            self.counted.add((around, target))
        self.breaks = merged(self.breaks, {target: arrival})


@dataclass
class Scope:
    """A list of statements under construction for the elements of ``order``. ``outer``: the enclosing scope, if that is
    in a ``try`` statement that ``break`` and ``continue`` may exit."""

    level: Path
    order: Order
    cut: FrozenSet[int]
    frame: Optional[LoopFrame]
    outer: Optional[Scope]
