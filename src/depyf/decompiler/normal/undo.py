"""Steps that merge the sequences that compilers emit for one operation, on drafts whose jumps are byte offsets.

SEND loops          ->  YIELD_FROM
GET_ANEXT ... END_ASYNC_FOR  ->  FOR (async)
LOAD_SPECIAL __exit__ ... CALL  ->  WITH
COPY 3, POP_EXCEPT, RERAISE  ->  gone: the normal form unwinds the exception state with the stack
inverted branches  ->  covered by the handler of the code before them
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Dict, List, Optional, Tuple

from depyf.decompiler.normal.draft import Draft
from depyf.decompiler.normal.ops import Handler, Op
from depyf.decompiler.normal.slots import SECOND_SLOT

LOAD_SPECIAL = "LOAD_SPECIAL"
SEND = "SEND"
ANEXT = "GET_ANEXT"
END_ASYNC_FOR = "END_ASYNC_FOR"
END_SEND = "END_SEND"
CLEANUP_THROW = "CLEANUP_THROW"
STOP_ITERATION = "STOPITERATION_ERROR"
CLEANUP = (Op.COPY, Op.POP_EXC, Op.RERAISE)


def join_with_entries(drafts: List[Draft]) -> List[Draft]:
    """Merge the six instructions that enter a ``with`` (3.14) into WITH."""
    # manager
    # COPY 1                      manager manager
    # LOAD_SPECIAL __exit__       manager exit self
    # SWAP 2; SWAP 3              exit self manager
    # LOAD_SPECIAL __enter__      exit self enter self
    # CALL 0                      exit self entered
    targets = _targets(drafts)
    result: List[Draft] = []
    index = 0
    while index < len(drafts):
        entry = drafts[index : index + 6]
        op = None
        if tuple(draft.op for draft in entry) == _WITH_ENTRY:
            op = _WITH_ENTRIES.get(tuple(draft.arg for draft in entry))
        if op is None or not _is_joined(entry[0], entry[-1], targets) or len({draft.handler for draft in entry}) > 1:
            result.append(drafts[index])
            index += 1
        else:
            first = entry[0]
            result.append(first.changed(op=op, arg=None))  # exit entered
            # ``self`` of the exit method is a slot that the normal form lacks: slots.py removes it.
            result.append(first.changed(op=SECOND_SLOT, arg=None))
            result.append(first.changed(op=Op.SWAP, arg=2))
            index += len(entry)
    return result


_WITH_ENTRY: Tuple[object, ...] = (Op.COPY, LOAD_SPECIAL, Op.SWAP, Op.SWAP, LOAD_SPECIAL, Op.CALL)
_WITH_ENTRIES: Dict[Tuple[object, ...], Op] = {
    (1, leave, 2, 3, enter, (0, (), "above")): op
    for leave, enter, op in (("__exit__", "__enter__", Op.WITH), ("__aexit__", "__aenter__", Op.ASYNC_WITH))
}


def join_send_loops(drafts: List[Draft]) -> List[Draft]:
    """Merge the loop of ``await`` and ``yield from`` into one YIELD_FROM. A loop with any other jump stays."""
    # 1: SEND -> 2; YIELD_VALUE; RESUME; JUMP_BACKWARD_NO_INTERRUPT -> 1
    # 2: END_SEND                                since 3.12; YIELD_FROM includes it
    #
    # 3: CLEANUP_THROW; JUMP_BACKWARD -> 2       since 3.12, elsewhere: the handler of the YIELD_VALUE for exceptions
    #                                            from ``throw``; unreachable once the YIELD_VALUE is gone
    position = {draft.offset: index for index, draft in enumerate(drafts)}
    targets = _targets(drafts)
    result: List[Draft] = []
    index = 0
    while index < len(drafts):
        if drafts[index].op == SEND and _is_send_loop(drafts, index, targets, position):
            result.append(drafts[index].changed(op=Op.YIELD_FROM, arg=None, target=None))
            index += 3  # SEND, YIELD, JUMP; RESUME was lowered to nothing
            while index < len(drafts) and drafts[index].op in (END_SEND, CLEANUP_THROW):
                index += 1
            continue
        result.append(drafts[index])
        index += 1
    return result


def _targets(drafts: List[Draft]) -> List[int]:
    """Return the targets of jumps and exceptions, sorted."""
    found = {draft.target for draft in drafts if draft.target is not None}
    found.update(draft.handler.target for draft in drafts if draft.handler is not None)
    return sorted(found)


def _is_joined(first: Draft, last: Draft, targets: List[int]) -> bool:
    """Return whether each draft after ``first``, up to ``last``, is only reached from the one before it."""
    return bisect_right(targets, first.offset) == bisect_right(targets, last.offset)


def _is_send_loop(drafts: List[Draft], index: int, targets: List[int], position: Dict[int, int]) -> bool:
    if index + 3 >= len(drafts):
        return False
    send, sent, jump, after = drafts[index : index + 4]
    if after.op == CLEANUP_THROW:  # the handler of this loop may stand between the loop and its END_SEND
        (after,) = drafts[index + 4 : index + 5] or [after]
    if sent.op is not Op.YIELD or jump.op is not Op.JUMP or jump.target is None or send.target is None:
        return False
    # The jump leads back to the SEND, and the SEND leaves to what follows the jump.
    if not sent.offset > jump.target >= send.offset or not jump.offset < send.target <= after.offset:
        return False
    if not _is_joined(send, jump, targets):
        return False
    if after.op != END_SEND:  # before 3.12
        return True
    # ``throw`` has to end where the loop does, at the END_SEND: YIELD_FROM means that.
    start = None if sent.handler is None else position.get(sent.handler.target)
    if start is None or drafts[start].op != CLEANUP_THROW:
        return False
    (end,) = drafts[start + 1 : start + 2] or [jump]
    return end.op == END_SEND or (end.op is Op.JUMP and end.target == after.offset)


def join_async_for(drafts: List[Draft]) -> List[Draft]:
    """Merge the start of an ``async for`` and the handler that ends it into one FOR."""
    # 1: GET_ANEXT; CONST None; YIELD_FROM     all with handler 2    ->   1: FOR (async) -> 3
    #    ... the body ...; JUMP -> 1                                         ... the body ...; JUMP -> 1
    # 2: END_ASYNC_FOR                         StopAsyncIteration         2: (unreachable)
    # 3:                                       ends the loop              3:
    position = {draft.offset: index for index, draft in enumerate(drafts)}
    targets = _targets(drafts)
    result: List[Draft] = []
    index = 0
    while index < len(drafts):
        draft = drafts[index]
        if draft.op == ANEXT and draft.handler is not None:
            end = position.get(draft.handler.target)
            waits = drafts[index + 1 : index + 3]
            if (
                end is not None
                and drafts[end].op == END_ASYNC_FOR
                and end + 1 < len(drafts)
                and [wait.op for wait in waits] == [Op.CONST, Op.YIELD_FROM]
                and waits[0].arg is None
                and waits[1].handler is not None
                and waits[1].handler.target == draft.handler.target
                and _is_joined(draft, waits[1], targets)
            ):
                exhausted = drafts[end + 1].offset
                # END_ASYNC_FOR raises every other exception again: the handler outside of the loop gets it.
                result.append(draft.changed(op=Op.FOR, arg=True, target=exhausted, handler=drafts[end].handler))
                index += 3
                continue
        result.append(draft)
        index += 1
    return result


def skip_cleanup_handlers(drafts: List[Draft]) -> List[Draft]:
    """Skip the handlers that only restore ``sys.exc_info`` and unwind further."""
    # 1: PUSH_EXC_INFO; ... the body of ``except`` or ``finally`` ...      with handler 2
    # 2: COPY 3; POP_EXCEPT; RERAISE 1                                     with the handler around the statement
    #
    # In the normal form, unwinding restores the exception state: 1 gets the handler of 2's RERAISE.
    outer: Dict[int, Optional[Handler]] = {}
    for index in [index for index, draft in enumerate(drafts) if draft.op is Op.POP_EXC]:
        pattern = drafts[max(index - 1, 0) : index + 2]
        if tuple(draft.op for draft in pattern) == CLEANUP and pattern[0].arg == 3:
            outer[pattern[0].offset] = pattern[2].handler
    for draft in [draft for draft in drafts if draft.handler is not None]:
        for _ in outer:  # no more often: a handler made by hand may lead back to itself
            if draft.handler is None or draft.handler.target not in outer:
                break
            draft.handler = outer[draft.handler.target]
    return drafts


def skip_stop_iteration_handlers(drafts: List[Draft]) -> List[Draft]:
    """Skip the handler ``CALL_INTRINSIC_1 STOPITERATION_ERROR; RERAISE`` around the whole body of a generator (3.12).

    It makes a StopIteration that would leave the generator a RuntimeError (PEP 479). The interpreter did that before:
    every generator has it, so the normal form omits it.
    """
    handlers = {
        draft.offset
        for draft, after in zip(drafts, drafts[1:])
        if draft.op == STOP_ITERATION and after.op is Op.RERAISE
    }
    return [
        draft.changed(handler=None) if draft.handler is not None and draft.handler.target in handlers else draft
        for draft in drafts
    ]


_TRUTHS = frozenset({Op.IS, Op.IN, Op.CHECK_EXC, Op.MATCH_MAPPING, Op.MATCH_SEQUENCE})


def guard_turned_branches(drafts: List[Draft]) -> List[Draft]:
    """Cover inverted branches by the handler of the code before them.

    Since 3.12 a branch back to a loop header is inverted, ``POP_JUMP_IF_TRUE 1; JUMP_BACKWARD loop; 1:``, and the
    exception table omits the jump, since 3.13 the branch as well.
    """
    result = list(drafts)
    for index in [index for index, draft in enumerate(drafts) if draft.op is Op.BRANCH]:
        if not 0 < index < len(drafts) - 2:
            continue
        branch, jump = drafts[index : index + 2]
        if (
            jump.op is Op.JUMP
            and branch.target is not None
            and jump.offset < branch.target <= drafts[index + 2].offset  # there may be a NOP, of a ``continue``
            and jump.target is not None
            and jump.target < jump.offset
        ):
            # A branch on a bool or on None can't raise, so the exception table may omit it: branch and jump get the
            # handler of the operation before. A branch that may run ``__bool__`` has the right handler, which the jump
            # gets, too.
            before = drafts[index - 1]
            silent = branch.arg in ("none", "not none") or (before.op, before.arg) == (Op.UNARY, "not")
            handler = before.handler if silent or before.op in _TRUTHS else branch.handler
            result[index], result[index + 1] = branch.changed(handler=handler), jump.changed(handler=handler)
    return result
