"""Lift the operations of ``except*``, once the flow layer has removed the compiler's additions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from depyf.lift.items import Mark, Marker
from depyf.normal.ops import Instr

if TYPE_CHECKING:
    from depyf.lift.simulator import Simulator


def check_group(sim: Simulator, instr: Instr) -> None:
    """Execute ``exc type -> exc matched``. Raises ``ValueError`` if the value split is not the handled exception."""
    type_ = sim.pop_value()
    exc = sim.stack[-1] if sim.stack else None
    if not (isinstance(exc, Marker) and exc.kind is Mark.EXC):
        raise ValueError(f"the exception group split at offset {instr.offset} is not the handled exception")
    sim.stack.append(Marker(Mark.MATCHED_GROUP, exc.origin, type_.expr))


def end_groups(sim: Simulator, instr: Instr) -> None:
    """Execute ``exc ->`` after the last clause."""
    exc = sim.pop()
    if not (isinstance(exc, Marker) and exc.kind is Mark.EXC):
        raise ValueError(f"PREP_RERAISE_STAR at offset {instr.offset} is outside of an except* statement")
