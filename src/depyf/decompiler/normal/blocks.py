"""Before 3.11: replace the block stack of a running frame with a handler for each operation.

SETUP_FINALLY, SETUP_WITH and POP_BLOCK set the exception handler at run time. An exception takes six slots of the
stack there (traceback, value and type of the exception that ``sys.exc_info`` showed before, then of the new one), but
two in the normal form: PREV and the exception. ``resolve_blocks`` computes the stacks on all paths (abstract
interpretation). Each slot counts as many values as the normal form has for it, so that operations on traceback and type
vanish.

In 3.8 the bytecode has one copy of a ``finally`` body. A value on the stack says how it was entered, and so what its
END_FINALLY does. Here it gets one copy for each entry, where the compilers since 3.9 put them.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.decompiler.normal.block_states import (
    COME_BACK,
    EXCEPTION,
    FALL_THROUGH,
    HANDLER,
    NOTHING,
    PLACEHOLDER,
    TYPE,
    BlockEntry,
    Slot,
    State,
    leave_handler,
    previous,
    values_of,
)
from depyf.decompiler.normal.block_visits import ENTRY, MAIN, SUPPRESSED, Emitted, Entry, Visit, in_order
from depyf.decompiler.normal.draft import Draft, IndexOf
from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.ops import ENDS, SILENT, Op
from depyf.decompiler.normal.rotations import swaps_between
from depyf.decompiler.normal.undo import ANEXT, END_ASYNC_FOR

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
    return _BlockWalk(drafts).run()


class _BlockWalk:
    def __init__(self, drafts: List[Draft]) -> None:
        self.drafts = drafts
        self.index_of = IndexOf(drafts)
        self.emitted: Dict[Visit, Emitted] = {}
        self.handlers: Dict[Tuple[object, ...], Entry] = {}

    def run(self) -> List[Draft]:
        todo = [Visit(0, State(), MAIN)]
        while todo:
            # Follow one path until it ends, or reaches a draft with stacks that are known there. The same draft with
            # other stacks is another visit: that makes the copies of ``finally`` bodies.
            visit = todo.pop()
            while visit not in self.emitted:
                if visit.at >= len(self.drafts):
                    raise ValueError("control reaches the end of the bytecode without a return")
                if len(self.emitted) > MOST_COPIES * len(self.drafts) + 1000:
                    raise ValueError("nested finally bodies have too many copies")
                emitted = self.emitted[visit] = self._emit(visit)
                if emitted.handler is not None and emitted.drafts:
                    todo.append(emitted.handler[0])
                todo.extend(target for _, target in emitted.jumps)
                if emitted.after is None:
                    break
                visit = emitted.after
        return in_order(self.drafts, self.emitted)

    # --- one draft with one state of the stacks

    def _emit(self, visit: Visit) -> Emitted:
        draft, state = self.drafts[visit.at], visit.state
        try:
            if visit.part == ENTRY:
                emitted = Emitted([draft.changed(op=Op.PUSH_EXC, arg=None, target=None)], visit._replace(part=MAIN))
            elif visit.part == SUPPRESSED:
                emitted = self._suppressed(visit, draft)
            else:
                emitted = _RULES.get(draft.op, _BlockWalk._plain)(self, visit, draft)
            if state.blocks:
                emitted.handler = self._handler(state, state.height - self._taken(visit))
        except synchronous(ValueError) as error:
            raise ValueError(f"{draft.op} at offset {draft.offset}: {error}") from None
        return emitted

    def _taken(self, visit: Visit) -> int:
        """Return how many values the operation has popped when it raises."""
        draft = self.drafts[visit.at]
        if visit.part != MAIN or not isinstance(draft.op, Op) or draft.op in SILENT:
            return 0
        return effect(draft.op, draft.arg)[0]

    def _handler(self, state: State, lowest: int) -> Optional[Entry]:
        """Return the first visit of the handler, how many values stay on the stack, and whether LASTI is pushed.

        ``lowest`` is the stack height when it is raised: less than the level of the block where the operation pops
        values below the block, as in Dynamo's code. The interpreter does not replace these.
        """
        # Blocks of handlers that run (HANDLER) catch nothing: the innermost SETUP does.
        for index in range(len(state.blocks) - 1, -1, -1):
            level, target, lasti = state.blocks[index]
            level = min(level, lowest)
            if target >= 0:
                key = (state.special, state.blocks, level)
                known = self.handlers.get(key)
                if known is None:
                    # The interpreter pops the block, cuts the stack to its level, pushes a block for the handler and
                    # six slots: the exception state before, and the new exception.
                    blocks = (*state.blocks[:index], BlockEntry(level, HANDLER, lasti))
                    kept = state.without(state.height - level)._replace(blocks=blocks)
                    at = self.index_of(target)
                    part = MAIN if self._is_bookkeeping(at) else ENTRY
                    entered = kept.push(*previous(1 + lasti), *EXCEPTION)
                    known = self.handlers[key] = Visit(at, entered, part), state.values(0, level), lasti
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

    def _jump(self, draft: Draft, state: State) -> Visit:
        assert draft.target is not None
        return Visit(self.index_of(draft.target), state, MAIN)

    @staticmethod
    def _next(visit: Visit, state: State) -> Visit:
        return Visit(visit.at + 1, state, MAIN)

    # --- transfer functions of the drafts

    def _plain(self, visit: Visit, draft: Draft) -> Emitted:
        """Write an operation of the normal form on plain values."""
        state = visit.state
        if isinstance(draft.op, Op):
            taken, left = effect(draft.op, draft.arg)
        elif draft.op in _HELPERS:
            taken, left = _HELPERS[draft.op]
        else:
            raise ValueError("it is outside of its usual pattern")
        below = state.without(taken)
        if below.special is not state.special:  # as ``except E as e``, which stores the exception
            if any(slot is not None and slot.width != 1 for slot in state.top(taken)):
                raise ValueError("its operand is not a value")
        after = below.push_values(left)
        emitted = Emitted([draft], None if draft.op in ENDS else self._next(visit, after))
        if draft.target is not None:
            emitted.jumps = ((0, self._jump(draft, below if draft.op is Op.FOR else after)),)
        return emitted

    def _const(self, visit: Visit, draft: Draft) -> Emitted:
        """Write a constant. In 3.8 a None below a ``try`` is a placeholder for a return value, where the ``finally``
        body may jump out and drop either."""
        after = self.drafts[visit.at + 1] if visit.at + 1 < len(self.drafts) else draft
        if draft.arg is None and after.op == SETUP_FINALLY:
            return Emitted([], self._next(visit, visit.state.push(PLACEHOLDER)))
        return self._plain(visit, draft)

    def _copy(self, visit: Visit, draft: Draft) -> Emitted:
        state = visit.state
        slot = state.top(draft.arg)[0]
        # ``except E:`` copies the type to compare it; CHECK_EXC of the normal form reads the exception, and no type.
        if slot is not None and slot.kind not in ("type", "exception"):
            raise ValueError("the slot that it copies is not a value")
        made = [draft.changed(arg=state.values(state.height - draft.arg, state.height))]
        if slot is TYPE:
            return Emitted([], self._next(visit, state.push(slot)))
        return Emitted(made, self._next(visit, state.push_values(1)))

    def _swap(self, visit: Visit, draft: Draft) -> Emitted:
        """Write SWAPs: values change their order only among themselves."""
        state = visit.state
        slots = list(enumerate(state.top(draft.arg)))  # the exception is one value there, its traceback and type none
        now = values_of(slots)
        slots[0], slots[-1] = slots[-1], slots[0]
        after = state.without(draft.arg).push(*[slot for _, slot in slots])
        swaps = [draft.changed(arg=depth) for depth in swaps_between(now, values_of(slots))]
        return Emitted(swaps, self._next(visit, after))

    def _pop(self, visit: Visit, draft: Draft) -> Emitted:
        (slot,) = visit.state.top(1)
        if slot is not None and slot.kind not in ("type", "exception", "traceback", "placeholder"):
            raise ValueError("its operand is not a value")
        return Emitted([draft] if slot is None or slot.width else [], self._next(visit, visit.state.without(1)))

    def _setup(self, visit: Visit, draft: Draft) -> Emitted:
        """Push a block. The handler of a ``with`` keeps the exit function, but not the result of entering above it."""
        assert draft.target is not None
        state, is_with = visit.state, draft.op == SETUP_WITH
        if state.height < 1 + is_with and is_with:
            raise ValueError("there is no exit function")
        block = BlockEntry(state.height - is_with, draft.target, is_with)
        return Emitted([], self._next(visit, state._replace(blocks=(*state.blocks, block))))

    def _pop_block(self, visit: Visit, draft: Draft) -> Emitted:
        state = visit.state
        if not state.blocks or state.blocks[-1].target == HANDLER:
            raise ValueError("the block stack is empty")
        return Emitted([], self._next(visit, state._replace(blocks=state.blocks[:-1])))

    def _pop_except(self, visit: Visit, draft: Draft) -> Emitted:
        width, state = leave_handler(visit.state)
        pops = [draft.changed(op=Op.POP) for _ in range(width - 1)]
        return Emitted([draft.changed(op=Op.POP_EXC), *pops], self._next(visit, state))

    def _reraise(self, visit: Visit, draft: Draft) -> Emitted:
        if not visit.state.ends_in(*EXCEPTION):
            raise ValueError("there is no exception to raise")
        return Emitted([draft.changed(op=Op.RERAISE, arg=None)])

    def _exception_match(self, visit: Visit, draft: Draft) -> Emitted:
        """Write the test of an ``except`` clause: ``type type E -> type bool``, or with a target ``-> type`` and a jump
        if the exception does not match."""
        # 3.8:  DUP_TOP; LOAD E; COMPARE_OP exception match; POP_JUMP_IF_FALSE next
        # 3.9:  DUP_TOP; LOAD E; JUMP_IF_NOT_EXC_MATCH next
        state = visit.state
        if not state.ends_in(*EXCEPTION, TYPE, None):
            raise ValueError("it does not test the exception being handled")
        state = state.without(2)
        test = draft.changed(op=Op.CHECK_EXC, target=None)
        if draft.target is None:
            return Emitted([test], self._next(visit, state.push_values(1)))
        branch = draft.changed(op=Op.BRANCH, arg="false")
        return Emitted([test, branch], self._next(visit, state), ((1, self._jump(draft, state)),))

    def _with_except(self, visit: Visit, draft: Draft) -> Emitted:
        state = visit.state
        if not state.ends_in(None, *previous(2), *EXCEPTION):
            raise ValueError("there is no exit function below the exception")
        return Emitted([draft], self._next(visit, state.push_values(1)))

    def _end_async_for(self, visit: Visit, draft: Draft) -> Emitted:
        state = visit.state
        if not state.ends_in(None, *previous(1), *EXCEPTION):
            raise ValueError("there is no iterator below the exception")
        _, state = leave_handler(state.without(3))
        return Emitted([draft], self._next(visit, state.without(1)))

    # --- 3.8

    # The body of ``finally`` stands once in the bytecode. What lies on top of the stack says how it was entered:
    #
    #   POP_BLOCK; BEGIN_FINALLY; <body>       pushes NULL: control goes on after END_FINALLY (FALL_THROUGH)
    #   CALL_FINALLY <body>                    pushes its own position: END_FINALLY goes back there (COME_BACK)
    #   <handler> <body>                       six slots: END_FINALLY raises the exception again
    #
    # Each of the first two pushes a slot with the index of the draft that entered, so that every entry gets its own
    # states, and with them its own copy.

    def _begin_finally(self, visit: Visit, draft: Draft) -> Emitted:
        return Emitted([], self._next(visit, visit.state.push(Slot(FALL_THROUGH, 0, visit.at))))

    def _call_finally(self, visit: Visit, draft: Draft) -> Emitted:
        return Emitted([], self._jump(draft, visit.state.push(Slot(COME_BACK, 0, visit.at))))

    def _end_finally(self, visit: Visit, draft: Draft) -> Emitted:
        state = visit.state
        (slot,) = state.top(1)
        if slot == TYPE:
            return self._reraise(visit, draft)
        if slot is None or slot.came_from < 0:
            raise ValueError("it does not end a finally body")
        index = slot.came_from if slot.kind == COME_BACK else visit.at
        return Emitted([], Visit(index + 1, state.without(1), MAIN))

    def _pop_finally(self, visit: Visit, draft: Draft) -> Emitted:
        """Write a jump out of the ``finally`` body, with a return value above the operand of END_FINALLY."""
        state, kept = visit.state, draft.arg
        if kept and state.top(1) != (None,):
            raise ValueError("there is nothing to return")
        state = state.without(kept)
        (slot,) = state.top(1)
        if slot is not None and slot.came_from >= 0:  # this copy was not entered by an exception: there is none to drop
            return Emitted([], self._next(visit, state.without(1).push_values(kept)))
        if not state.ends_in(*EXCEPTION):
            raise ValueError("it does not end a finally body")
        width, state = leave_handler(state.without(3))
        if width != 1:
            raise ValueError("it ends a with statement")
        # Drop the exception from under the return value, then restore the exception state before it.
        under = [draft.changed(op=Op.SWAP, arg=2)] if kept else []
        made = [*under, draft.changed(op=Op.POP, arg=None), *under, draft.changed(op=Op.POP_EXC, arg=None)]
        return Emitted(made, self._next(visit, state.push_values(kept)))

    def _with_cleanup_start(self, visit: Visit, draft: Draft) -> Emitted:
        """Call the exit function, which lies below the operand of END_FINALLY, and push None or the exception's type
        and the result above that. It removes the function: with an exception, the normal form does so later."""
        state = visit.state
        (slot,) = state.top(1)
        if slot is not None and slot.came_from >= 0 and state.ends_in(None, slot):
            # Left without an exception: the later compilers write ``exit(None, None, None)``.
            made = [*[draft.changed(op=Op.CONST)] * 3, draft.changed(op=Op.CALL, arg=(3, (), ""))]
            return Emitted(made, self._next(visit, state.without(2).push(slot, NOTHING, None)))
        if not state.ends_in(None, *previous(2), *EXCEPTION):
            raise ValueError("there is no exit function")
        # exit, previous state (3), exception (3): the interpreter moves the previous state down over the exit function,
        # leaves a NULL in the gap, and pushes the type and the result. The block of the handler moves down, too.
        moved = state.without(7).push(*previous(3), NOTHING, *EXCEPTION, NOTHING, None)
        handler = moved.blocks[-1]._replace(level=state.height - 7)
        after = moved._replace(blocks=(*moved.blocks[:-1], handler))
        return Emitted([draft.changed(op=Op.WITH_EXCEPT)], self._next(visit, after))

    def _with_cleanup_finish(self, visit: Visit, draft: Draft) -> Emitted:
        state = visit.state
        if not state.ends_in(NOTHING, None):
            raise ValueError("no exit function was called")
        state = state.without(2)
        if not state.ends_in(*EXCEPTION):
            return Emitted([draft.changed(op=Op.POP)], self._next(visit, state))
        # A true result suppresses the exception: that path continues at the same draft, as its SUPPRESSED part.
        branch = draft.changed(op=Op.BRANCH, arg="false")
        return Emitted([branch], Visit(visit.at, state, SUPPRESSED), ((0, self._next(visit, state)),))

    def _suppressed(self, visit: Visit, draft: Draft) -> Emitted:
        """Drop the exception, so that END_FINALLY finds none."""
        width, state = leave_handler(visit.state.without(4))
        pop = draft.changed(op=Op.POP)
        made = [pop, draft.changed(op=Op.POP_EXC), *[pop] * (width - 1)]
        return Emitted(made, self._next(visit, state.push(Slot(FALL_THROUGH, 0, visit.at))))


_HELPERS: Dict[str, Tuple[int, int]] = {ANEXT: (1, 2)}
"""The stack effects of operations that a later step removes."""

_RULES: Dict[object, Callable[[_BlockWalk, Visit, Draft], Emitted]] = {
    Op.CONST: _BlockWalk._const,
    Op.COPY: _BlockWalk._copy,
    Op.SWAP: _BlockWalk._swap,
    Op.POP: _BlockWalk._pop,
    Op.POP_EXC: _BlockWalk._pop_except,
    Op.WITH_EXCEPT: _BlockWalk._with_except,
    SETUP_FINALLY: _BlockWalk._setup,
    SETUP_WITH: _BlockWalk._setup,
    POP_BLOCK: _BlockWalk._pop_block,
    RERAISE: _BlockWalk._reraise,
    EXC_MATCH: _BlockWalk._exception_match,
    END_ASYNC_FOR: _BlockWalk._end_async_for,
    BEGIN_FINALLY: _BlockWalk._begin_finally,
    CALL_FINALLY: _BlockWalk._call_finally,
    END_FINALLY: _BlockWalk._end_finally,
    POP_FINALLY: _BlockWalk._pop_finally,
    WITH_CLEANUP_START: _BlockWalk._with_cleanup_start,
    WITH_CLEANUP_FINISH: _BlockWalk._with_cleanup_finish,
}
