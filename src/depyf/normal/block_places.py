"""What each draft becomes on each path to it, and the order of the result.

A ``finally`` body gets one copy for each entry: each copy follows the operation that enters it, where the compilers
since 3.9 put it.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from depyf.normal.block_states import State
from depyf.normal.draft import Draft
from depyf.normal.ops import COPY_STRIDE, Handler, Op
from depyf.quick_dataclass import dataclass


class Place(NamedTuple):
    """The draft with index ``at`` on one path to it. ``part`` is what is emitted there: the start of a handler, the
    draft, or what follows a ``with`` whose exit function returned true."""

    at: int
    state: State
    part: int


ENTRY, MAIN, SUPPRESSED, _COPIES = range(4)

Entry = Tuple[Place, int, bool]
"""A handler: its place, how many values stay on the stack, and whether LASTI is pushed."""


@dataclass
class Written:
    """What a place becomes. Jumps target places until these have offsets."""

    drafts: List[Draft]
    after: Optional[Place] = None
    jumps: Tuple[Tuple[int, Place], ...] = ()
    """The drafts that jump, and their targets."""
    handler: Optional[Entry] = None


def in_order(drafts: List[Draft], places: Dict[Place, Written]) -> List[Draft]:
    """Return all drafts, each copy of a ``finally`` body behind the draft that entered it."""
    order = sorted(places, key=_position)
    at = _offsets(drafts, order)
    result: List[Draft] = []
    known: Optional[Entry] = None
    entry: Optional[Handler] = None
    for place, following in zip(order, [*order[1:], None]):
        written = places[place]
        made, offset = written.drafts, at[place]
        if len(made) != 1 or made[0] is not drafts[place.at] or made[0].offset != offset:  # it is not there alone
            made = [draft.changed(offset=offset) for draft in made]
        for index, target in written.jumps:
            made[index].target = at[target]
        if written.after is not None and written.after != following:
            made.append(Draft(Op.JUMP, None, offset, drafts[place.at].span, at[written.after]))
        if written.handler is not known:
            known, entry = written.handler, None
            if known is not None and known[0] in at:
                entry = Handler(at[known[0]], known[1], known[2])
        for draft in made:
            draft.handler = entry
        result.extend(made)
    return result


def _offsets(drafts: List[Draft], order: List[Place]) -> Dict[Place, int]:
    """Return offsets that increase in this order and that ``byte_offset`` maps back to those in the bytecode."""
    at: Dict[Place, int] = {}
    last, copies = (-1, -1), 0
    for place in order:
        offset = drafts[place.at].offset - (place.part == ENTRY)
        if (offset + copies * COPY_STRIDE, place.at) <= last:
            copies += 1
        last = (offset + copies * COPY_STRIDE, place.at)
        at[place] = last[0]
    return at


def _position(place: Place) -> Tuple[Tuple[int, int], ...]:
    """Return the position of a place: nested in one copy for each enclosing ``finally`` body that was not entered by
    an exception, each behind the operation that entered it."""
    own = (place.at, place.part)
    if not place.state.special:
        return (own,)
    return (*[(slot.came_from, _COPIES) for _, slot in place.state.special if slot.came_from >= 0], own)
