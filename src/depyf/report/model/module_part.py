"""A module of the user's model, as a part of a graph."""

from __future__ import annotations

from typing import Optional, Tuple

from depyf.quick_dataclass import dataclass


@dataclass(frozen=True)
class ModulePart:
    """The operations of a graph that were called in one module: ``name`` as the program writes it, and its class.

    ``parent`` is the index of the module around it. ``nodes`` are those of no module inside of this one.
    """

    name: str
    type: str
    parent: Optional[int] = None
    nodes: Tuple[str, ...] = ()
