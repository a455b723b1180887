"""Remove the second stack slot of values that have one slot in the normal form.

Since 3.14 ``with`` keeps its exit method and the object it is called on, since 3.15 a ``for`` loop keeps its iterator
and an index. The normal form has one slot for either. The rules of these versions write a SECOND_SLOT where the other
slot is pushed; ``forget_second_slots`` tracks the stack from there and adjusts the arguments that count slots.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Optional, Tuple

from depyf.decompiler.normal.draft import Draft, IndexOf
from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.ops import ENDS, Handler, Op
from depyf.decompiler.normal.rotations import swaps_between

SECOND_SLOT = "SECOND_SLOT"

Slots = Tuple[bool, ...]
"""The stack, top at the right: for each slot, whether the normal form has it."""


def forget_second_slots(drafts: List[Draft]) -> List[Draft]:
    """Return ``drafts`` with one slot per value. Raises ``ValueError`` where the second slot of a value is used."""
    if not any(draft.op == SECOND_SLOT for draft in drafts):
        return drafts
    return _SlotWalk(drafts).run()


class _SlotWalk:
    def __init__(self, drafts: List[Draft]) -> None:
        self.drafts = drafts
        self.index_of = IndexOf(drafts)
        jumps = {draft.target for draft in drafts if draft.target is not None}
        jumps.update(draft.handler.target for draft in drafts if draft.handler is not None)
        self.targets = {self.index_of(offset) for offset in jumps}
        self.before: Dict[int, Slots] = {}
        """The stack before each draft that is a jump target."""
        self.after: Dict[int, List[Draft]] = {}
        """The replacement of each reachable draft."""
        self.todo: List[int] = []

    def run(self) -> List[Draft]:
        self._goes_to(0, ())
        while self.todo:
            # Follow the code from a jump target, until it ends or leads into code that is known.
            index = self.todo.pop()
            stack: Optional[List[bool]] = list(self.before[index])
            while stack is not None and index not in self.after and index < len(self.drafts):
                stack = self._step(index, stack)
                index += 1
                if stack is not None and index in self.targets:
                    self._goes_to(index, tuple(stack))
        result: List[Draft] = []
        for index in range(len(self.drafts)):
            result.extend(self.after.get(index, ()))
        return result

    def _goes_to(self, index: int, stack: Slots) -> None:
        if index >= len(self.drafts):
            return
        if index not in self.before:
            self.before[index] = stack
            self.todo.append(index)
        elif self.before[index] != stack:
            raise ValueError(f"the stack at offset {self.drafts[index].offset} depends on the path to it")

    def _step(self, index: int, stack: List[bool]) -> Optional[List[bool]]:
        """Return the stack after the draft at ``index``; None if control never continues there."""
        draft = self.drafts[index]
        handler = self._handler(draft, stack)
        self.after[index] = [made.changed(handler=handler) for made in self._rewritten(draft, stack)]
        if draft.target is not None:
            left = stack
            if draft.op is Op.FOR:
                left = stack[:-1]  # neither the value nor the iterator, which the loop pops at its end
                while left and not left.pop():
                    pass
            self._goes_to(self.index_of(draft.target), tuple(left))
        return None if draft.op in ENDS else stack

    def _handler(self, draft: Draft, stack: List[bool]) -> Optional[Handler]:
        entry = draft.handler
        if entry is None:
            return None
        kept = stack[: entry.depth]
        self._goes_to(self.index_of(entry.target), (*kept, *[True] * (1 + entry.lasti)))
        return replace(entry, depth=sum(kept))

    def _rewritten(self, draft: Draft, stack: List[bool]) -> List[Draft]:
        """Return ``draft`` in the normal form; update ``stack`` to that after it."""
        op, arg = draft.op, draft.arg
        if op == SECOND_SLOT:
            stack.append(False)
            return []
        if not isinstance(op, Op):
            raise ValueError(f"{op} at offset {draft.offset} is outside of its usual pattern")
        if op in (Op.SWAP, Op.COPY) and not 0 < arg <= len(stack):
            raise ValueError(f"{op} at offset {draft.offset} looks below the stack")
        if op is Op.SWAP:
            return self._swap(draft, stack)
        if op is Op.COPY:  # of a slot that the normal form lacks: no copy; else the depth counts only slots it has
            stack.append(stack[-arg])
            return [draft.changed(arg=sum(stack[-arg - 1 : -1]))] if stack[-1] else []
        if op is Op.POP:
            return [draft] if stack.pop() else []
        if op in (Op.FOR, Op.WITH_EXCEPT):  # they do not pop what they read
            stack.append(True)
            return [draft]
        if op in (Op.ADD, Op.UPDATE):  # the operands are popped, then the depth of the container is counted
            kind, depth = arg
            taken = effect(op, arg)[0] - depth
            self._pop(draft, stack, taken)
            return [draft.changed(arg=(kind, sum(stack[-depth:])))]
        if op is Op.CALL and len(stack) > arg[0] and not stack[-arg[0] - 1]:
            # exit self None None None; CALL 3: ``self`` is in the slot where a NULL may be, and the normal form has
            # neither.
            count, names, _ = arg
            self._pop(draft, stack, count)
            del stack[-2:]
            stack.append(True)
            return [draft.changed(arg=(count, names, ""))]
        # Everything else takes and leaves values.
        taken, left = effect(op, arg)
        self._pop(draft, stack, taken)
        stack.extend([True] * left)
        return [draft]

    def _pop(self, draft: Draft, stack: List[bool], count: int) -> None:
        if count > len(stack) or not all(stack[len(stack) - count :]):
            raise ValueError(f"{draft.op} at offset {draft.offset} pops the second slot of a value")
        del stack[len(stack) - count :]

    def _swap(self, draft: Draft, stack: List[bool]) -> List[Draft]:
        """Rewrite SWAPs: values change their order only among themselves."""
        # ``exit self entered; SWAP 3`` only exchanges ``exit`` and ``entered`` in the normal form: one SWAP 2.
        window = list(range(len(stack) - draft.arg, len(stack)))
        now = [slot for slot in window if stack[slot]]
        window[0], window[-1] = window[-1], window[0]
        wanted = [slot for slot in window if stack[slot]]
        stack[-1], stack[-draft.arg] = stack[-draft.arg], stack[-1]
        return [draft.changed(arg=depth) for depth in swaps_between(now, wanted)]
