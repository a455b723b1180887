"""Before 3.11: from the block stack that a running frame keeps to handlers that each operation has.

SETUP_FINALLY, SETUP_WITH and POP_BLOCK say while the code runs where an exception goes. And an exception takes six
slots of the stack there (the traceback, value and type that ``sys.exc_info`` showed before, and those of the new one),
in the normal form two: PREV and the exception. ``resolve_blocks`` follows the stacks over all paths. Each slot counts
as many values as the normal form has for it, so that what the compiler does with traceback and type vanishes.

In 3.8 a ``finally`` body stands in the bytecode once. Something on the stack says how it was entered, and so what its
END_FINALLY does. Here it gets one copy for each entry, where the compilers since 3.9 put them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from depyf.asynchronous import synchronous
from depyf.bytecode.instructions import ExceptionRange
from depyf.normal.draft import Draft, IndexOf
from depyf.normal.effects import effect
from depyf.normal.ops import COPY_STRIDE, ENDS, SILENT, Op
from depyf.normal.undo import ANEXT, END_ASYNC_FOR
from depyf.quick_dataclass import dataclass

SETUP_FINALLY = "SETUP_FINALLY"
SETUP_WITH = "SETUP_WITH"
POP_BLOCK = "POP_BLOCK"
RERAISE = "RERAISE"
EXC_MATCH = "EXC_MATCH"
BEGIN_FINALLY = "BEGIN_FINALLY"
CALL_FINALLY = "CALL_FINALLY"
END_FINALLY = "END_FINALLY"
POP_FINALLY = "POP_FINALLY"
WITH_CLEANUP_START = "WITH_CLEANUP_START"
WITH_CLEANUP_FINISH = "WITH_CLEANUP_FINISH"

MOST_COPIES = 40
"""How many times longer the code may become."""


class _Slot(NamedTuple):
    """A slot that holds no plain value, and how many values the normal form has there."""

    kind: str
    width: int
    came_from: int = -1
    """For what END_FINALLY looks at: the index of the draft that began the ``finally`` body."""


_TYPE = _Slot("type", 0)
_EXCEPTION = (_Slot("traceback", 0), _Slot("exception", 1), _TYPE)
_NOTHING = _Slot("nothing", 0)
_PLACEHOLDER = _Slot("placeholder", 0)
_FALL_THROUGH = "fall through"
_COME_BACK = "come back"


def _previous(width: int) -> Tuple[_Slot, ...]:
    """The exception state of before: PREV, and the LASTI and exit function of a ``with`` that lie below it."""
    return _Slot("previous", width), _NOTHING, _NOTHING


_HANDLER = -1


class _Block(NamedTuple):
    """An entry of the block stack: a SETUP with its target, or an exception that is being handled."""

    level: int
    target: int
    lasti: bool


class _State(NamedTuple):
    """``height`` slots, of which ``special`` (by position) hold no plain value; the stack of blocks."""

    height: int = 0
    special: Tuple[Tuple[int, _Slot], ...] = ()
    blocks: Tuple[_Block, ...] = ()

    def top(self, count: int) -> Tuple[Optional[_Slot], ...]:
        """The ``count`` topmost slots, the top last; ``None`` is a plain value."""
        if count > self.height:
            raise ValueError("it takes more from the stack than there is")
        slots: List[Optional[_Slot]] = [None] * count
        for at, slot in self.special:
            if at >= self.height - count:
                slots[at - self.height] = slot
        return tuple(slots)

    def ends_in(self, *slots: Optional[_Slot]) -> bool:
        return self.height >= len(slots) and self.top(len(slots)) == slots

    def values(self, start: int, end: int) -> int:
        """How many values the normal form has between two positions."""
        return end - start + sum(slot.width - 1 for at, slot in self.special if start <= at < end)

    def without(self, count: int) -> _State:
        """The state without the ``count`` topmost slots."""
        height = self.height - count
        if height < 0:
            raise ValueError("it takes more from the stack than there is")
        if self.special and self.special[-1][0] >= height:
            return _State(height, tuple(entry for entry in self.special if entry[0] < height), self.blocks)
        return _State(height, self.special, self.blocks)

    def push(self, *slots: Optional[_Slot]) -> _State:
        special = tuple((self.height + index, slot) for index, slot in enumerate(slots) if slot is not None)
        return _State(self.height + len(slots), self.special + special, self.blocks)

    def push_values(self, count: int) -> _State:
        return _State(self.height + count, self.special, self.blocks)


class _Place(NamedTuple):
    """The draft with index ``at`` on one way to it. ``part`` says what is written there: the beginning of a handler,
    the draft, or what follows a ``with`` whose exit function returned true."""

    at: int
    state: _State
    part: int


_ENTRY, _MAIN, _SUPPRESSED, _COPIES = range(4)


@dataclass
class _Written:
    """What a place becomes. Jumps go to places as long as these have no offsets."""

    drafts: List[Draft]
    after: Optional[_Place] = None
    jumps: Tuple[Tuple[int, _Place], ...] = ()
    """Which of the drafts jump, and where."""
    handler: Optional[Tuple[_Place, int, bool]] = None


def resolve_blocks(drafts: List[Draft]) -> List[Draft]:
    """``drafts`` with handlers in place of blocks. Raises ``ValueError`` where the stacks do not fit together."""
    if not any(draft.op in _BLOCKS for draft in drafts):
        return drafts
    return _Walk(drafts).run()


class _Walk:
    def __init__(self, drafts: List[Draft]) -> None:
        self.drafts = drafts
        self.index_of = IndexOf(drafts)
        self.written: Dict[_Place, _Written] = {}

    def run(self) -> List[Draft]:
        todo = [_Place(0, _State(), _MAIN)]
        while todo:
            place = todo.pop()
            while place not in self.written:
                if place.at >= len(self.drafts):
                    raise ValueError("control runs off the end of the bytecode")
                if len(self.written) > MOST_COPIES * len(self.drafts) + 1000:
                    raise ValueError("nested finally bodies have too many copies")
                written = self.written[place] = self._write(place)
                if written.handler is not None and written.drafts:
                    todo.append(written.handler[0])
                todo.extend(target for _, target in written.jumps)
                if written.after is None:
                    break
                place = written.after
        return self._in_order()

    # --- one place

    def _write(self, place: _Place) -> _Written:
        draft, state = self.drafts[place.at], place.state
        try:
            if place.part == _ENTRY:
                written = _Written([replace(draft, op=Op.PUSH_EXC, arg=None, target=None)], place._replace(part=_MAIN))
            elif place.part == _SUPPRESSED:
                written = self._suppressed(place, draft)
            else:
                written = _RULES.get(draft.op, _Walk._plain)(self, place, draft)
            written.handler = self._handler(state, state.height - self._taken(place))
        except synchronous(ValueError) as error:
            raise ValueError(f"{draft.op} at offset {draft.offset}: {error}") from None
        return written

    def _taken(self, place: _Place) -> int:
        """How many values the operation has taken from the stack when it raises."""
        draft = self.drafts[place.at]
        raises = place.part == _MAIN and isinstance(draft.op, Op) and draft.op not in SILENT
        return effect(draft.op, draft.arg)[0] if raises else 0

    def _handler(self, state: _State, lowest: int) -> Optional[Tuple[_Place, int, bool]]:
        """Where an exception goes, how many values it leaves on the stack, whether LASTI is pushed.

        ``lowest`` is how high the stack is when it is raised: less than the level of the block where the operation
        takes what lies below the block, as Dynamo writes it. The interpreter puts nothing in the place of that.
        """
        for index in range(len(state.blocks) - 1, -1, -1):
            level, target, lasti = state.blocks[index]
            level = min(level, lowest)
            if target >= 0:
                blocks = (*state.blocks[:index], _Block(level, _HANDLER, lasti))
                kept = state.without(state.height - level)._replace(blocks=blocks)
                at = self.index_of(target)
                part = _MAIN if self._is_bookkeeping(at) else _ENTRY
                entered = kept.push(*_previous(1 + lasti), *_EXCEPTION)
                return _Place(at, entered, part), state.values(0, level), lasti
        return None

    def _is_bookkeeping(self, index: int) -> bool:
        """Whether the handler is one that the compiler adds: the end of ``async for``, or ``name = None; del name``.
        Nobody sees there which exception is being handled, and 3.11 does not even set it."""
        ops = [draft.op for draft in self.drafts[index : index + 4]]
        return ops[:1] == [END_ASYNC_FOR] or (
            ops in ([Op.CONST, Op.STORE, Op.DELETE, RERAISE], [Op.CONST, Op.STORE, Op.DELETE, END_FINALLY])
            and self.drafts[index].arg is None
            and self.drafts[index + 1].arg == self.drafts[index + 2].arg
        )

    def _jump(self, draft: Draft, state: _State) -> _Place:
        assert draft.target is not None
        return _Place(self.index_of(draft.target), state, _MAIN)

    @staticmethod
    def _next(place: _Place, state: _State) -> _Place:
        return _Place(place.at + 1, state, _MAIN)

    # --- what the drafts do

    def _plain(self, place: _Place, draft: Draft) -> _Written:
        """An operation of the normal form that needs nothing but plain values."""
        state = place.state
        if isinstance(draft.op, Op):
            taken, left = effect(draft.op, draft.arg)
        elif draft.op in _HELPERS:
            taken, left = _HELPERS[draft.op]
        else:
            raise ValueError("it stands outside its usual pattern")
        if any(slot is not None and slot.width != 1 for slot in state.top(taken)):
            raise ValueError("it takes what is no value")
        below = state.without(taken)
        behind = below.push_values(left)
        written = _Written([draft], None if draft.op in ENDS else self._next(place, behind))
        if draft.target is not None:
            written.jumps = ((0, self._jump(draft, below if draft.op is Op.FOR else behind)),)
        return written

    def _const(self, place: _Place, draft: Draft) -> _Written:
        """In 3.8 a None below a ``try`` keeps the place of a value to return, where the ``finally`` body may jump out
        and drop either."""
        behind = self.drafts[place.at + 1] if place.at + 1 < len(self.drafts) else draft
        if draft.arg is None and behind.op == SETUP_FINALLY:
            return _Written([], self._next(place, place.state.push(_PLACEHOLDER)))
        return self._plain(place, draft)

    def _copy(self, place: _Place, draft: Draft) -> _Written:
        state = place.state
        slot = state.top(draft.arg)[0]
        if slot is not None and slot.kind not in ("type", "exception"):
            raise ValueError("it copies what is no value")
        made = [replace(draft, arg=state.values(state.height - draft.arg, state.height))]
        if slot is _TYPE:
            return _Written([], self._next(place, state.push(slot)))
        return _Written(made, self._next(place, state.push_values(1)))

    def _swap(self, place: _Place, draft: Draft) -> _Written:
        """Values change their order only among themselves."""
        state = place.state
        slots = list(enumerate(state.top(draft.arg)))
        now = _values_of(slots)
        slots[0], slots[-1] = slots[-1], slots[0]
        behind = state.without(draft.arg).push(*[slot for _, slot in slots])
        return _Written(_swaps(draft, now, _values_of(slots)), self._next(place, behind))

    def _pop(self, place: _Place, draft: Draft) -> _Written:
        (slot,) = place.state.top(1)
        if slot is not None and slot.kind not in ("type", "exception", "traceback", "placeholder"):
            raise ValueError("it takes what is no value")
        return _Written([draft] if slot is None or slot.width else [], self._next(place, place.state.without(1)))

    def _setup(self, place: _Place, draft: Draft) -> _Written:
        """The handler of a ``with`` keeps the exit function, but not what was entered, which lies above it."""
        assert draft.target is not None
        state, is_with = place.state, draft.op == SETUP_WITH
        if state.height < 1 + is_with and is_with:
            raise ValueError("there is no exit function")
        block = _Block(state.height - is_with, draft.target, is_with)
        return _Written([], self._next(place, state._replace(blocks=(*state.blocks, block))))

    def _pop_block(self, place: _Place, draft: Draft) -> _Written:
        state = place.state
        if not state.blocks or state.blocks[-1].target == _HANDLER:
            raise ValueError("there is no block to leave")
        return _Written([], self._next(place, state._replace(blocks=state.blocks[:-1])))

    def _pop_except(self, place: _Place, draft: Draft) -> _Written:
        width, state = _leave_handler(place.state)
        pops = [replace(draft, op=Op.POP) for _ in range(width - 1)]
        return _Written([replace(draft, op=Op.POP_EXC), *pops], self._next(place, state))

    def _reraise(self, place: _Place, draft: Draft) -> _Written:
        if not place.state.ends_in(*_EXCEPTION):
            raise ValueError("there is no exception to raise")
        return _Written([replace(draft, op=Op.RERAISE, arg=None)])

    def _exception_match(self, place: _Place, draft: Draft) -> _Written:
        """``type type E -> type bool``, or with a target ``type type E -> type`` and a jump if it does not match."""
        state = place.state
        if not state.ends_in(*_EXCEPTION, _TYPE, None):
            raise ValueError("it tests something else than the exception being handled")
        state = state.without(2)
        test = replace(draft, op=Op.CHECK_EXC, target=None)
        if draft.target is None:
            return _Written([test], self._next(place, state.push_values(1)))
        branch = replace(draft, op=Op.BRANCH, arg="false")
        return _Written([test, branch], self._next(place, state), ((1, self._jump(draft, state)),))

    def _with_except(self, place: _Place, draft: Draft) -> _Written:
        state = place.state
        if not state.ends_in(None, *_previous(2), *_EXCEPTION):
            raise ValueError("there is no exit function below the exception")
        return _Written([draft], self._next(place, state.push_values(1)))

    def _end_async_for(self, place: _Place, draft: Draft) -> _Written:
        state = place.state
        if not state.ends_in(None, *_previous(1), *_EXCEPTION):
            raise ValueError("there is no iterator below the exception")
        _, state = _leave_handler(state.without(3))
        return _Written([draft], self._next(place, state.without(1)))

    # --- 3.8

    def _begin_finally(self, place: _Place, draft: Draft) -> _Written:
        return _Written([], self._next(place, place.state.push(_Slot(_FALL_THROUGH, 0, place.at))))

    def _call_finally(self, place: _Place, draft: Draft) -> _Written:
        return _Written([], self._jump(draft, place.state.push(_Slot(_COME_BACK, 0, place.at))))

    def _end_finally(self, place: _Place, draft: Draft) -> _Written:
        state = place.state
        (slot,) = state.top(1)
        if slot == _TYPE:
            return self._reraise(place, draft)
        if slot is None or slot.came_from < 0:
            raise ValueError("it does not end a finally body")
        index = slot.came_from if slot.kind == _COME_BACK else place.at
        return _Written([], _Place(index + 1, state.without(1), _MAIN))

    def _pop_finally(self, place: _Place, draft: Draft) -> _Written:
        """A jump out of the ``finally`` body, with a value to return above what its end would have looked at."""
        state, kept = place.state, draft.arg
        if kept and state.top(1) != (None,):
            raise ValueError("there is nothing to return")
        state = state.without(kept)
        (slot,) = state.top(1)
        if slot is not None and slot.came_from >= 0:
            return _Written([], self._next(place, state.without(1).push_values(kept)))
        if not state.ends_in(*_EXCEPTION):
            raise ValueError("it does not end a finally body")
        width, state = _leave_handler(state.without(3))
        if width != 1:
            raise ValueError("it ends a with statement")
        under = [replace(draft, op=Op.SWAP, arg=2)] if kept else []
        made = [*under, replace(draft, op=Op.POP, arg=None), *under, replace(draft, op=Op.POP_EXC, arg=None)]
        return _Written(made, self._next(place, state.push_values(kept)))

    def _with_cleanup_start(self, place: _Place, draft: Draft) -> _Written:
        """Calls the exit function, which lies below what END_FINALLY looks at, and leaves None or the exception's
        type and the result above that. It takes the function away: with an exception, the normal form does so later."""
        state = place.state
        (slot,) = state.top(1)
        if slot is not None and slot.came_from >= 0 and state.ends_in(None, slot):
            made = [*[replace(draft, op=Op.CONST)] * 3, replace(draft, op=Op.CALL, arg=(3, (), ""))]
            return _Written(made, self._next(place, state.without(2).push(slot, _NOTHING, None)))
        if not state.ends_in(None, *_previous(2), *_EXCEPTION):
            raise ValueError("there is no exit function")
        moved = state.without(7).push(*_previous(3), _NOTHING, *_EXCEPTION, _NOTHING, None)
        handler = moved.blocks[-1]._replace(level=state.height - 7)
        behind = moved._replace(blocks=(*moved.blocks[:-1], handler))
        return _Written([replace(draft, op=Op.WITH_EXCEPT)], self._next(place, behind))

    def _with_cleanup_finish(self, place: _Place, draft: Draft) -> _Written:
        state = place.state
        if not state.ends_in(_NOTHING, None):
            raise ValueError("no exit function was called")
        state = state.without(2)
        if not state.ends_in(*_EXCEPTION):
            return _Written([replace(draft, op=Op.POP)], self._next(place, state))
        branch = replace(draft, op=Op.BRANCH, arg="false")
        return _Written([branch], _Place(place.at, state, _SUPPRESSED), ((0, self._next(place, state)),))

    def _suppressed(self, place: _Place, draft: Draft) -> _Written:
        """The exception goes, and END_FINALLY will find that there is none."""
        width, state = _leave_handler(place.state.without(4))
        pop = replace(draft, op=Op.POP)
        made = [pop, replace(draft, op=Op.POP_EXC), *[pop] * (width - 1)]
        return _Written(made, self._next(place, state.push(_Slot(_FALL_THROUGH, 0, place.at))))

    # --- all places

    def _in_order(self) -> List[Draft]:
        """All drafts, a copy of a ``finally`` body behind what began it."""
        order = sorted(self.written, key=_position)
        at = self._offsets(order)
        result: List[Draft] = []
        for place, following in zip(order, [*order[1:], None]):
            written = self.written[place]
            made = [replace(draft, offset=at[place]) for draft in written.drafts]
            for index, target in written.jumps:
                made[index].target = at[target]
            if written.after is not None and written.after != following:
                made.append(Draft(Op.JUMP, None, at[written.after], at[place], self.drafts[place.at].span))
            if written.handler is not None and written.handler[0] in at:
                target, depth, lasti = written.handler
                entry = ExceptionRange(0, 0, at[target], depth, lasti)
                for draft in made:
                    draft.handler = entry
            result.extend(made)
        return result

    def _offsets(self, order: List[_Place]) -> Dict[_Place, int]:
        """Offsets that grow in this order, and that ``byte_offset`` takes back to those in the bytecode."""
        at: Dict[_Place, int] = {}
        last, copies = (-1, -1), 0
        for place in order:
            offset = self.drafts[place.at].offset - (place.part == _ENTRY)
            if (offset + copies * COPY_STRIDE, place.at) <= last:
                copies += 1
            last = (offset + copies * COPY_STRIDE, place.at)
            at[place] = last[0]
        return at


def _position(place: _Place) -> Tuple[Tuple[int, int], ...]:
    """Where a place stands: in as many copies as there are ``finally`` bodies around it that did not begin with an
    exception, each behind what began it."""
    copies = [(slot.came_from, _COPIES) for _, slot in place.state.special if slot.came_from >= 0]
    return (*copies, (place.at, place.part))


def _leave_handler(state: _State) -> Tuple[int, _State]:
    """The state without the exception state of before, and how many values that is in the normal form. A value to
    return may have been put below it."""
    slot = state.top(3)[0]
    handler = _Block(state.height - 3, _HANDLER, slot is not None and slot.width > 1)
    if slot is None or slot.kind != "previous" or state.blocks[-1:] not in ((handler,), (_below(handler),)):
        raise ValueError("there is no handler to leave")
    return slot.width, state.without(3)._replace(blocks=state.blocks[:-1])


def _below(handler: _Block) -> _Block:
    return handler._replace(level=handler.level - 1)


def _values_of(slots: List[Tuple[int, Optional[_Slot]]]) -> List[Tuple[int, int]]:
    """The values of the normal form in numbered slots: the number of the slot, and which of its values it is."""
    return [(number, part) for number, slot in slots for part in range(1 if slot is None else slot.width)]


def _swaps(draft: Draft, now: List[Tuple[int, int]], wanted: List[Tuple[int, int]]) -> List[Draft]:
    """SWAPs that bring values from one order into another."""
    made: List[Draft] = []
    while now != wanted:
        place = wanted.index(now[-1])
        if place == len(now) - 1:
            place = next(index for index, value in enumerate(now) if value != wanted[index])
        now[place], now[-1] = now[-1], now[place]
        made.append(replace(draft, arg=len(now) - place))
    return made


_HELPERS: Dict[str, Tuple[int, int]] = {ANEXT: (1, 2)}
"""What operations take and leave that a later step takes away."""

_RULES: Dict[object, Callable[[_Walk, _Place, Draft], _Written]] = {
    Op.CONST: _Walk._const,
    Op.COPY: _Walk._copy,
    Op.SWAP: _Walk._swap,
    Op.POP: _Walk._pop,
    Op.POP_EXC: _Walk._pop_except,
    Op.WITH_EXCEPT: _Walk._with_except,
    SETUP_FINALLY: _Walk._setup,
    SETUP_WITH: _Walk._setup,
    POP_BLOCK: _Walk._pop_block,
    RERAISE: _Walk._reraise,
    EXC_MATCH: _Walk._exception_match,
    END_ASYNC_FOR: _Walk._end_async_for,
    BEGIN_FINALLY: _Walk._begin_finally,
    CALL_FINALLY: _Walk._call_finally,
    END_FINALLY: _Walk._end_finally,
    POP_FINALLY: _Walk._pop_finally,
    WITH_CLEANUP_START: _Walk._with_cleanup_start,
    WITH_CLEANUP_FINISH: _Walk._with_cleanup_finish,
}

_BLOCKS = frozenset({SETUP_FINALLY, SETUP_WITH, RERAISE, END_FINALLY, EXC_MATCH, POP_BLOCK})
