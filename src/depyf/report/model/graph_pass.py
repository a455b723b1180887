"""What a pass changed in a graph, as a part of the model of a run."""

from __future__ import annotations

from typing import Optional, Tuple

from depyf.quick_dataclass import dataclass


@dataclass(frozen=True)
class Pass:
    """A pass of Inductor, or a custom one, that changed a graph: lines ``first`` to ``last`` of ``artifact`` are the
    difference. ``group`` is Inductor's name of the stage, ``function`` the custom pass, ``within`` the passes that
    called it, the outermost first, ``sizes`` the symbols of the inputs with the ranges that they are compiled for,
    ``piece`` the part of a split graph.
    """

    compile_id: Optional[str]
    artifact: str
    group: str
    name: str
    function: str = ""
    within: Tuple[str, ...] = ()
    nodes_before: int = 0
    nodes_after: int = 0
    first: int = 0
    last: int = 0
    sizes: Tuple[str, ...] = ()
    piece: str = ""
