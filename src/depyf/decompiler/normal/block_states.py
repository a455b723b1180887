"""Before 3.11: the abstract operand stack and block stack of a running frame.

An exception takes six slots of the stack there (traceback, value and type of the exception that ``sys.exc_info`` showed
before, then of the new one), but two in the normal form: PREV and the exception. Each slot counts as many values as the
normal form has for it.
"""

from __future__ import annotations

from typing import Final, List, Literal, NamedTuple, Optional, Tuple

SlotKind = Literal["type", "traceback", "exception", "nothing", "placeholder", "previous", "fall through", "come back"]
FALL_THROUGH: Final = "fall through"
COME_BACK: Final = "come back"


class Slot(NamedTuple):
    """A slot without a plain value, and how many values the normal form has for it."""

    kind: SlotKind
    width: int
    came_from: int = -1
    """For the operand of END_FINALLY: the index of the draft that entered the ``finally`` body."""


TYPE = Slot("type", 0)
EXCEPTION = (Slot("traceback", 0), Slot("exception", 1), TYPE)
NOTHING = Slot("nothing", 0)
PLACEHOLDER = Slot("placeholder", 0)


def previous(width: int) -> Tuple[Slot, ...]:
    """Return the slots of the previous exception state: PREV, and LASTI and exit function of a ``with`` below."""
    return Slot("previous", width), NOTHING, NOTHING


HANDLER = -1


class BlockEntry(NamedTuple):
    """An entry of the block stack: a SETUP with its target, or an exception that is being handled."""

    level: int
    target: int
    lasti: bool


class State(NamedTuple):
    """``height`` slots, of which ``special`` (by position) are no plain values, and the block stack."""

    height: int = 0
    special: Tuple[Tuple[int, Slot], ...] = ()
    blocks: Tuple[BlockEntry, ...] = ()

    def top(self, count: int) -> Tuple[Optional[Slot], ...]:
        """Return the ``count`` topmost slots, the top last; ``None`` is a plain value."""
        if count > self.height:
            raise ValueError("it pops more values than the stack has")
        slots: List[Optional[Slot]] = [None] * count
        for at, slot in self.special:
            if at >= self.height - count:
                slots[at - self.height] = slot
        return tuple(slots)

    def ends_in(self, *slots: Optional[Slot]) -> bool:
        return self.height >= len(slots) and self.top(len(slots)) == slots

    def values(self, start: int, end: int) -> int:
        """Return how many values the normal form has between two positions."""
        return end - start + sum(slot.width - 1 for at, slot in self.special if start <= at < end)

    def without(self, count: int) -> State:
        """Return the state without the ``count`` topmost slots."""
        height = self.height - count
        if height < 0:
            raise ValueError("it pops more values than the stack has")
        if self.special and self.special[-1][0] >= height:
            return State(height, tuple(entry for entry in self.special if entry[0] < height), self.blocks)
        return State(height, self.special, self.blocks)

    def push(self, *slots: Optional[Slot]) -> State:
        special = tuple((self.height + index, slot) for index, slot in enumerate(slots) if slot is not None)
        return State(self.height + len(slots), self.special + special, self.blocks)

    def push_values(self, count: int) -> State:
        return State(self.height + count, self.special, self.blocks)


def leave_handler(state: State) -> Tuple[int, State]:
    """Return how many values the previous exception state is in the normal form, and the state without it."""
    slot = state.top(3)[0]
    handler = BlockEntry(state.height - 3, HANDLER, slot is not None and slot.width > 1)
    # A return value may lie between the handler's level and the slots: then the level is one lower.
    below = handler._replace(level=handler.level - 1)
    if slot is None or slot.kind != "previous" or state.blocks[-1:] not in ((handler,), (below,)):
        raise ValueError("there is no active handler")
    return slot.width, state.without(3)._replace(blocks=state.blocks[:-1])


def values_of(slots: List[Tuple[int, Optional[Slot]]]) -> List[Tuple[int, int]]:
    """Return the values of the normal form in numbered slots: each by its slot and its index in it."""
    return [(number, part) for number, slot in slots for part in range(1 if slot is None else slot.width)]
