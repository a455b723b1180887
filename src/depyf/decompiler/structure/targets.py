"""The nodes that control may reach from a list of statements without being written there."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from depyf.decompiler.flow.graph import Region


class Targets(NamedTuple):
    """The jump targets of the statements under construction: the node after them (``follow``), the targets of
    ``continue`` and ``break``; and the regions and handlers that are open around them.

    ``finalizer``: the entry of the ``finally`` clause under construction. ``left``: control has left a region or
    handler whose statement is not complete. ``left_by``: the offset of the POP_EXC of the jump that exits a handler.
    """

    follow: Optional[int] = None
    continues: Optional[int] = None
    breaks: Optional[int] = None
    regions: Tuple[Region, ...] = ()
    handlers: Tuple[int, ...] = ()
    finalizer: Optional[int] = None
    left: bool = False
    left_by: Optional[int] = None

    def known(self, target: Optional[int]) -> bool:
        """Return whether a jump to ``target`` needs no code of the target: it falls through, continues or breaks."""
        return target is not None and target in (self.follow, self.continues, self.breaks)
