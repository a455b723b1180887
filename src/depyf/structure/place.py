"""The position of statements under construction."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from depyf.flow.graph import Region


class Place(NamedTuple):
    """The position of statements under construction: the node after them, the targets of ``break`` and ``continue``,
    the open regions and handlers. ``left``: control has left a region or handler whose statement is not complete.
    ``left_by``: the offset of the POP_EXC of the jump that exits a handler."""

    follow: Optional[int] = None
    continues: Optional[int] = None
    breaks: Optional[int] = None
    regions: Tuple[Region, ...] = ()
    handlers: Tuple[int, ...] = ()
    finalizer: Optional[int] = None
    left: bool = False
    left_by: Optional[int] = None

    def known(self, target: Optional[int]) -> bool:
        return target is not None and target in (self.follow, self.continues, self.breaks)
