"""Operations before they are in normal form, and the context that the rules of a version can read."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from depyf.bytecode.code import fast_slots
from depyf.bytecode.instructions import Decoded, ExceptionRange, Instruction
from depyf.bytecode.lines import Span
from depyf.normal.effects import effect
from depyf.normal.ops import ENDS, Op
from depyf.quick_dataclass import dataclass


@dataclass
class Draft:
    """An operation whose jump and handler are still byte offsets. ``op`` may be a helper name that a step removes."""

    op: Any
    arg: Any = None
    target: Optional[int] = None
    offset: int = -1
    span: Optional[Span] = None
    handler: Optional[ExceptionRange] = None


class IndexOf:
    """The index of the first draft at or behind a byte offset (an instruction may lower to nothing); the number of
    drafts where there is none."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._first_at: Dict[int, int] = {}
        for index in range(len(drafts) - 1, -1, -1):
            self._first_at[drafts[index].offset] = index
        self._offsets = sorted(self._first_at)
        self._count = len(drafts)

    def __call__(self, offset: int) -> int:
        found = self._first_at.get(offset)
        if found is not None:
            return found
        position = bisect_left(self._offsets, offset)
        return self._first_at[self._offsets[position]] if position < len(self._offsets) else self._count


class Lowering:
    """The context of a rule: the code object's names, the neighbouring instructions, the state set by prefixes."""

    def __init__(self, decoded: Decoded) -> None:
        code = decoded.code
        self.code = code
        self.table = decoded.table
        self.instructions = decoded.instructions
        self.index = 0
        """The index of the instruction that is lowered."""
        self.drafts: List[Draft] = []
        """The drafts of the instructions before it."""
        self.idle: List[Span] = []
        """The locations of those of them that lowered to nothing."""
        self.targets = {instruction.target for instruction in decoded.instructions}
        self.targets.update(entry.target for entry in decoded.exceptions)
        # The interpreter makes new tuples on each access (since 3.11).
        self.locals: Tuple[str, ...] = code.co_varnames
        self.cells = frozenset(code.co_cellvars)
        self.closure: Tuple[str, ...] = (*code.co_cellvars, *code.co_freevars)
        """The variables that the arguments of LOAD_DEREF index before 3.11."""
        self.cells_and_free = frozenset(self.closure)
        self.locals_plus = fast_slots(code)
        self.keyword_names: Tuple[str, ...] = ()
        self.left_to_next = False
        """Set by a rule whose instruction is lowered with the next one: those drafts raise at its offset."""

    def is_cell(self, index: int) -> bool:
        """Return whether the local at ``index`` is a cell. A name may have two: an iteration variable of an inlined
        comprehension, and a free variable (3.12)."""
        return index >= len(self.locals) or self.locals[index] in self.cells

    def take_keyword_names(self) -> Tuple[str, ...]:
        """Return and clear the names that KW_NAMES set for the call behind it (3.11 and 3.12)."""
        names, self.keyword_names = self.keyword_names, ()
        return names

    def neighbour(self, distance: int) -> str:
        """Return the name of the instruction ``distance`` behind (or, if negative, before) the one that is lowered."""
        index = self.index + distance
        return self.instructions[index].name if 0 <= index < len(self.instructions) else ""

    def take_previous(self, op: Op, ins: Instruction) -> Draft:
        """Remove and return the draft just before ``ins``, which ``ins`` completes. Raises ``ValueError`` if it is not
        an ``op`` that always runs before ``ins``."""
        if not self.drafts or self.drafts[-1].op is not op or ins.offset in self.targets:
            raise ValueError(f"{self.code.co_name}: {ins.name} at offset {ins.offset} has no {op.value} before it")
        return self.drafts.pop()

    def pushed(self, ins: Instruction) -> Optional[Draft]:
        """Return the draft that pushed the top of the stack at ``ins``; None if more than one path leads there from it,
        or no straight one. Dynamo pushes other values between the two and swaps them away."""
        depth, index = 1, self.index
        for draft in reversed(self.drafts):
            while index >= 0 and self.instructions[index].offset > draft.offset:
                if self.instructions[index].offset in self.targets:
                    return None
                index -= 1
            if not isinstance(draft.op, Op) or draft.op in ENDS:
                return None
            if draft.op is Op.SWAP:
                depth = {1: draft.arg, draft.arg: 1}.get(depth, depth)
                continue
            if draft.op is Op.COPY:
                depth = draft.arg if depth == 1 else depth - 1
                continue
            taken, left = effect(draft.op, draft.arg)
            if depth <= left and draft.op not in (Op.ADD, Op.UPDATE):  # those keep the values that they read
                return draft
            depth += taken - left
        return None


Rule = Callable[[Lowering, Instruction], List[Draft]]
Step = Callable[[List[Draft]], List[Draft]]


@dataclass(frozen=True)
class Dialect:
    """How one CPython version spells the normal form.

    ``rules`` turn one instruction each into a few drafts; ``steps`` then merge, in this order, the sequences that the
    compiler emits for one operation. ``copies_loop_tests``, ``forgets_behind_jumps``: see ``NormalCode``.
    """

    rules: Mapping[str, Rule]
    steps: Tuple[Step, ...] = ()
    copies_loop_tests: bool = False
    forgets_behind_jumps: bool = False

    def changed(
        self,
        rules: Mapping[str, Rule],
        without: Iterable[str] = (),
        steps: Optional[Tuple[Step, ...]] = None,
        *,
        copies_loop_tests: Optional[bool] = None,
    ) -> Dialect:
        """Return this dialect with other ``rules`` for some instructions and ``without`` removed ones."""
        gone = frozenset(without)
        unknown = gone - self.rules.keys()
        if unknown:
            raise ValueError(f"the version before has no {', '.join(sorted(unknown))}")
        kept = {name: rule for name, rule in self.rules.items() if name not in gone}
        return Dialect(
            {**kept, **rules},
            self.steps if steps is None else steps,
            self.copies_loop_tests if copies_loop_tests is None else copies_loop_tests,
        )
