"""What each draft becomes on each path that leads to it, and the order of the result.

A ``finally`` body gets one copy for each entry: each copy follows the operation that enters it, where the compilers
since 3.9 put it.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.normal.block_states import State
from depyf.decompiler.normal.draft import Draft
from depyf.decompiler.normal.ops import COPY_STRIDE, Handler, Op


class Visit(NamedTuple):
    """The draft with index ``at`` on one path to it. ``part`` is what is emitted there: the start of a handler, the
    draft, or what follows a ``with`` whose exit function returned true."""

    at: int
    state: State
    part: int


ENTRY, MAIN, SUPPRESSED, _COPIES = range(4)

Entry = Tuple[Visit, int, bool]
"""A handler: its first visit, how many values stay on the stack, and whether LASTI is pushed."""


@dataclass
class Emitted:
    """What a visit becomes. Jumps target visits until these have offsets."""

    drafts: List[Draft]
    after: Optional[Visit] = None
    jumps: Tuple[Tuple[int, Visit], ...] = ()
    """The drafts that jump, and their targets."""
    handler: Optional[Entry] = None


def in_order(drafts: List[Draft], visits: Dict[Visit, Emitted]) -> List[Draft]:
    """Return all drafts, each copy of a ``finally`` body after the draft that entered it."""
    order = sorted(visits, key=_position)
    at = _offsets(drafts, order)
    result: List[Draft] = []
    known: Optional[Entry] = None
    entry: Optional[Handler] = None
    for visit, following in zip(order, [*order[1:], None]):
        emitted = visits[visit]
        made, offset = emitted.drafts, at[visit]
        # Drafts are not copied where one may stay as it is: at its own offset, and alone there.
        if len(made) != 1 or made[0] is not drafts[visit.at] or made[0].offset != offset:
            made = [draft.changed(offset=offset) for draft in made]
        for index, target in emitted.jumps:
            made[index].target = at[target]
        if emitted.after is not None and emitted.after != following:  # what follows is elsewhere: END_FINALLY goes back
            made.append(Draft(Op.JUMP, None, offset, drafts[visit.at].span, at[emitted.after]))
        if emitted.handler is not known:
            known, entry = emitted.handler, None
            if known is not None and known[0] in at:
                entry = Handler(at[known[0]], known[1], known[2])
        for draft in made:
            draft.handler = entry
        result.extend(made)
    return result


def _offsets(drafts: List[Draft], order: List[Visit]) -> Dict[Visit, int]:
    """Return offsets that increase in this order and that ``byte_offset`` maps back to those in the bytecode."""
    at: Dict[Visit, int] = {}
    last, copies = (-1, -1), 0
    for visit in order:
        # The start of a handler has the odd offset before its first instruction. Where offsets would not increase, a
        # further copy of a ``finally`` body starts: it and what follows are COPY_STRIDE further on.
        offset = drafts[visit.at].offset - (visit.part == ENTRY)
        if (offset + copies * COPY_STRIDE, visit.at) <= last:
            copies += 1
        last = (offset + copies * COPY_STRIDE, visit.at)
        at[visit] = last[0]
    return at


def _position(visit: Visit) -> Tuple[Tuple[int, int], ...]:
    """Return the key that sorts a visit: the positions where the enclosing ``finally`` bodies were entered without an
    exception, outermost first, then its own. So a copy follows the operation that enters it."""
    own = (visit.at, visit.part)
    if not visit.state.special:
        return (own,)
    return (*[(slot.came_from, _COPIES) for _, slot in visit.state.special if slot.came_from >= 0], own)
