"""Before 3.11: replace the block stack of a running frame with a handler for each operation.

SETUP_FINALLY, SETUP_WITH and POP_BLOCK set the exception handler at run time. An exception takes six slots of the
stack there (the traceback, value and type that ``sys.exc_info`` showed before, and those of the new one), but two in
the normal form: PREV and the exception. ``resolve_blocks`` computes the stacks on all paths (abstract interpretation).
Each slot counts as many values as the normal form has for it, so that operations on traceback and type vanish.

In 3.8 the bytecode has one copy of a ``finally`` body. A value on the stack says how it was entered, and so what its
END_FINALLY does. Here it gets one copy for each entry, where the compilers since 3.9 put them.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Tuple

from depyf.asynchronous import synchronous
from depyf.normal.block_places import ENTRY, MAIN, SUPPRESSED, Entry, Place, Written, in_order
from depyf.normal.block_states import (
    COME_BACK,
    EXCEPTION,
    FALL_THROUGH,
    HANDLER,
    NOTHING,
    PLACEHOLDER,
    TYPE,
    Block,
    Slot,
    State,
    leave_handler,
    previous,
    values_of,
)
from depyf.normal.draft import Draft, IndexOf
from depyf.normal.effects import effect
from depyf.normal.ops import ENDS, SILENT, Op
from depyf.normal.swaps import swaps_between
from depyf.normal.undo import ANEXT, END_ASYNC_FOR

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
"""The limit on the growth of the code, as a factor."""


def resolve_blocks(drafts: List[Draft]) -> List[Draft]:
    """Return ``drafts`` with handlers in place of blocks. Raises ``ValueError`` where the stacks are inconsistent."""
    return _Walk(drafts).run()


class _Walk:
    def __init__(self, drafts: List[Draft]) -> None:
        self.drafts = drafts
        self.index_of = IndexOf(drafts)
        self.written: Dict[Place, Written] = {}
        self.handlers: Dict[Tuple[object, ...], Entry] = {}

    def run(self) -> List[Draft]:
        todo = [Place(0, State(), MAIN)]
        while todo:
            place = todo.pop()
            while place not in self.written:
                if place.at >= len(self.drafts):
                    raise ValueError("control reaches the end of the bytecode without a return")
                if len(self.written) > MOST_COPIES * len(self.drafts) + 1000:
                    raise ValueError("nested finally bodies have too many copies")
                written = self.written[place] = self._write(place)
                if written.handler is not None and written.drafts:
                    todo.append(written.handler[0])
                todo.extend(target for _, target in written.jumps)
                if written.after is None:
                    break
                place = written.after
        return in_order(self.drafts, self.written)

    # --- one place

    def _write(self, place: Place) -> Written:
        draft, state = self.drafts[place.at], place.state
        try:
            if place.part == ENTRY:
                written = Written([draft.changed(op=Op.PUSH_EXC, arg=None, target=None)], place._replace(part=MAIN))
            elif place.part == SUPPRESSED:
                written = self._suppressed(place, draft)
            else:
                written = _RULES.get(draft.op, _Walk._plain)(self, place, draft)
            if state.blocks:
                written.handler = self._handler(state, state.height - self._taken(place))
        except synchronous(ValueError) as error:
            raise ValueError(f"{draft.op} at offset {draft.offset}: {error}") from None
        return written

    def _taken(self, place: Place) -> int:
        """Return how many values the operation has popped when it raises."""
        draft = self.drafts[place.at]
        if place.part != MAIN or not isinstance(draft.op, Op) or draft.op in SILENT:
            return 0
        return effect(draft.op, draft.arg)[0]

    def _handler(self, state: State, lowest: int) -> Optional[Entry]:
        """Return the handler's place, how many values stay on the stack, and whether LASTI is pushed.

        ``lowest`` is the stack height when it is raised: less than the level of the block where the operation pops
        values below the block, as in Dynamo's code. The interpreter does not replace these.
        """
        for index in range(len(state.blocks) - 1, -1, -1):
            level, target, lasti = state.blocks[index]
            level = min(level, lowest)
            if target >= 0:
                key = (state.special, state.blocks, level)
                known = self.handlers.get(key)
                if known is None:
                    blocks = (*state.blocks[:index], Block(level, HANDLER, lasti))
                    kept = state.without(state.height - level)._replace(blocks=blocks)
                    at = self.index_of(target)
                    part = MAIN if self._is_bookkeeping(at) else ENTRY
                    entered = kept.push(*previous(1 + lasti), *EXCEPTION)
                    known = self.handlers[key] = Place(at, entered, part), state.values(0, level), lasti
                return known
        return None

    def _is_bookkeeping(self, index: int) -> bool:
        """Return whether the compiler added the handler: the end of ``async for``, or ``name = None; del name``.
        The exception being handled is not observable there, and 3.11 does not even set it."""
        ops = [draft.op for draft in self.drafts[index : index + 4]]
        return ops[:1] == [END_ASYNC_FOR] or (
            ops in ([Op.CONST, Op.STORE, Op.DELETE, RERAISE], [Op.CONST, Op.STORE, Op.DELETE, END_FINALLY])
            and self.drafts[index].arg is None
            and self.drafts[index + 1].arg == self.drafts[index + 2].arg
        )

    def _jump(self, draft: Draft, state: State) -> Place:
        assert draft.target is not None
        return Place(self.index_of(draft.target), state, MAIN)

    @staticmethod
    def _next(place: Place, state: State) -> Place:
        return Place(place.at + 1, state, MAIN)

    # --- transfer functions of the drafts

    def _plain(self, place: Place, draft: Draft) -> Written:
        """Write an operation of the normal form on plain values."""
        state = place.state
        if isinstance(draft.op, Op):
            taken, left = effect(draft.op, draft.arg)
        elif draft.op in _HELPERS:
            taken, left = _HELPERS[draft.op]
        else:
            raise ValueError("it is outside of its usual pattern")
        below = state.without(taken)
        if below.special is not state.special:
            if any(slot is not None and slot.width != 1 for slot in state.top(taken)):
                raise ValueError("its operand is not a value")
        behind = below.push_values(left)
        written = Written([draft], None if draft.op in ENDS else self._next(place, behind))
        if draft.target is not None:
            written.jumps = ((0, self._jump(draft, below if draft.op is Op.FOR else behind)),)
        return written

    def _const(self, place: Place, draft: Draft) -> Written:
        """Write a constant. In 3.8 a None below a ``try`` is a placeholder for a return value, where the ``finally``
        body may jump out and drop either."""
        behind = self.drafts[place.at + 1] if place.at + 1 < len(self.drafts) else draft
        if draft.arg is None and behind.op == SETUP_FINALLY:
            return Written([], self._next(place, place.state.push(PLACEHOLDER)))
        return self._plain(place, draft)

    def _copy(self, place: Place, draft: Draft) -> Written:
        state = place.state
        slot = state.top(draft.arg)[0]
        if slot is not None and slot.kind not in ("type", "exception"):
            raise ValueError("the slot that it copies is not a value")
        made = [draft.changed(arg=state.values(state.height - draft.arg, state.height))]
        if slot is TYPE:
            return Written([], self._next(place, state.push(slot)))
        return Written(made, self._next(place, state.push_values(1)))

    def _swap(self, place: Place, draft: Draft) -> Written:
        """Write SWAPs: values change their order only among themselves."""
        state = place.state
        slots = list(enumerate(state.top(draft.arg)))
        now = values_of(slots)
        slots[0], slots[-1] = slots[-1], slots[0]
        behind = state.without(draft.arg).push(*[slot for _, slot in slots])
        swaps = [draft.changed(arg=depth) for depth in swaps_between(now, values_of(slots))]
        return Written(swaps, self._next(place, behind))

    def _pop(self, place: Place, draft: Draft) -> Written:
        (slot,) = place.state.top(1)
        if slot is not None and slot.kind not in ("type", "exception", "traceback", "placeholder"):
            raise ValueError("its operand is not a value")
        return Written([draft] if slot is None or slot.width else [], self._next(place, place.state.without(1)))

    def _setup(self, place: Place, draft: Draft) -> Written:
        """Push a block. The handler of a ``with`` keeps the exit function, but not the result of entering above it."""
        assert draft.target is not None
        state, is_with = place.state, draft.op == SETUP_WITH
        if state.height < 1 + is_with and is_with:
            raise ValueError("there is no exit function")
        block = Block(state.height - is_with, draft.target, is_with)
        return Written([], self._next(place, state._replace(blocks=(*state.blocks, block))))

    def _pop_block(self, place: Place, draft: Draft) -> Written:
        state = place.state
        if not state.blocks or state.blocks[-1].target == HANDLER:
            raise ValueError("the block stack is empty")
        return Written([], self._next(place, state._replace(blocks=state.blocks[:-1])))

    def _pop_except(self, place: Place, draft: Draft) -> Written:
        width, state = leave_handler(place.state)
        pops = [draft.changed(op=Op.POP) for _ in range(width - 1)]
        return Written([draft.changed(op=Op.POP_EXC), *pops], self._next(place, state))

    def _reraise(self, place: Place, draft: Draft) -> Written:
        if not place.state.ends_in(*EXCEPTION):
            raise ValueError("there is no exception to raise")
        return Written([draft.changed(op=Op.RERAISE, arg=None)])

    def _exception_match(self, place: Place, draft: Draft) -> Written:
        """Write ``type type E -> type bool``, or with a target ``type type E -> type`` and a jump if it does not
        match."""
        state = place.state
        if not state.ends_in(*EXCEPTION, TYPE, None):
            raise ValueError("it does not test the exception being handled")
        state = state.without(2)
        test = draft.changed(op=Op.CHECK_EXC, target=None)
        if draft.target is None:
            return Written([test], self._next(place, state.push_values(1)))
        branch = draft.changed(op=Op.BRANCH, arg="false")
        return Written([test, branch], self._next(place, state), ((1, self._jump(draft, state)),))

    def _with_except(self, place: Place, draft: Draft) -> Written:
        state = place.state
        if not state.ends_in(None, *previous(2), *EXCEPTION):
            raise ValueError("there is no exit function below the exception")
        return Written([draft], self._next(place, state.push_values(1)))

    def _end_async_for(self, place: Place, draft: Draft) -> Written:
        state = place.state
        if not state.ends_in(None, *previous(1), *EXCEPTION):
            raise ValueError("there is no iterator below the exception")
        _, state = leave_handler(state.without(3))
        return Written([draft], self._next(place, state.without(1)))

    # --- 3.8

    def _begin_finally(self, place: Place, draft: Draft) -> Written:
        return Written([], self._next(place, place.state.push(Slot(FALL_THROUGH, 0, place.at))))

    def _call_finally(self, place: Place, draft: Draft) -> Written:
        return Written([], self._jump(draft, place.state.push(Slot(COME_BACK, 0, place.at))))

    def _end_finally(self, place: Place, draft: Draft) -> Written:
        state = place.state
        (slot,) = state.top(1)
        if slot == TYPE:
            return self._reraise(place, draft)
        if slot is None or slot.came_from < 0:
            raise ValueError("it does not end a finally body")
        index = slot.came_from if slot.kind == COME_BACK else place.at
        return Written([], Place(index + 1, state.without(1), MAIN))

    def _pop_finally(self, place: Place, draft: Draft) -> Written:
        """Write a jump out of the ``finally`` body, with a return value above the operand of END_FINALLY."""
        state, kept = place.state, draft.arg
        if kept and state.top(1) != (None,):
            raise ValueError("there is nothing to return")
        state = state.without(kept)
        (slot,) = state.top(1)
        if slot is not None and slot.came_from >= 0:
            return Written([], self._next(place, state.without(1).push_values(kept)))
        if not state.ends_in(*EXCEPTION):
            raise ValueError("it does not end a finally body")
        width, state = leave_handler(state.without(3))
        if width != 1:
            raise ValueError("it ends a with statement")
        under = [draft.changed(op=Op.SWAP, arg=2)] if kept else []
        made = [*under, draft.changed(op=Op.POP, arg=None), *under, draft.changed(op=Op.POP_EXC, arg=None)]
        return Written(made, self._next(place, state.push_values(kept)))

    def _with_cleanup_start(self, place: Place, draft: Draft) -> Written:
        """Call the exit function, which lies below the operand of END_FINALLY, and push None or the exception's type
        and the result above that. It removes the function: with an exception, the normal form does so later."""
        state = place.state
        (slot,) = state.top(1)
        if slot is not None and slot.came_from >= 0 and state.ends_in(None, slot):
            made = [*[draft.changed(op=Op.CONST)] * 3, draft.changed(op=Op.CALL, arg=(3, (), ""))]
            return Written(made, self._next(place, state.without(2).push(slot, NOTHING, None)))
        if not state.ends_in(None, *previous(2), *EXCEPTION):
            raise ValueError("there is no exit function")
        moved = state.without(7).push(*previous(3), NOTHING, *EXCEPTION, NOTHING, None)
        handler = moved.blocks[-1]._replace(level=state.height - 7)
        behind = moved._replace(blocks=(*moved.blocks[:-1], handler))
        return Written([draft.changed(op=Op.WITH_EXCEPT)], self._next(place, behind))

    def _with_cleanup_finish(self, place: Place, draft: Draft) -> Written:
        state = place.state
        if not state.ends_in(NOTHING, None):
            raise ValueError("no exit function was called")
        state = state.without(2)
        if not state.ends_in(*EXCEPTION):
            return Written([draft.changed(op=Op.POP)], self._next(place, state))
        branch = draft.changed(op=Op.BRANCH, arg="false")
        return Written([branch], Place(place.at, state, SUPPRESSED), ((0, self._next(place, state)),))

    def _suppressed(self, place: Place, draft: Draft) -> Written:
        """Drop the exception, so that END_FINALLY finds none."""
        width, state = leave_handler(place.state.without(4))
        pop = draft.changed(op=Op.POP)
        made = [pop, draft.changed(op=Op.POP_EXC), *[pop] * (width - 1)]
        return Written(made, self._next(place, state.push(Slot(FALL_THROUGH, 0, place.at))))


_HELPERS: Dict[str, Tuple[int, int]] = {ANEXT: (1, 2)}
"""The stack effects of operations that a later step removes."""

_RULES: Dict[object, Callable[[_Walk, Place, Draft], Written]] = {
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
