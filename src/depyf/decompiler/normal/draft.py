"""Operations before they are in normal form; what the rules of a version are, and the context that they can read."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

from depyf.base.quick_dataclass import dataclass
from depyf.base.quick_enum import Enum
from depyf.decompiler.bytecode.code import fast_slots
from depyf.decompiler.bytecode.instructions import Decoded, Instruction
from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.ops import ENDS, Instr, Op

_LOADS = frozenset({Op.LOAD, Op.CONST})


class Draft(Instr):
    """An operation that is being lowered: targets of jumps and handlers are still byte offsets, and ``op`` may be a
    helper name, which a step removes. It becomes an operation without being copied, so that it may be in a list once
    only."""

    __slots__ = ()

    op: Union[Op, str]  # type: ignore[assignment]


class IndexOf:
    """The index of the first draft at or after a byte offset (an instruction may lower to nothing); the number of
    drafts for an offset after the last."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._drafts, self._count = drafts, len(drafts)
        self._offsets: List[int] = []

    @cached_property
    def _first_at(self) -> Dict[int, int]:
        return {draft.offset: index for index, draft in zip(range(self._count)[::-1], reversed(self._drafts))}

    def __call__(self, offset: int) -> int:
        found = self._first_at.get(offset)
        if found is not None:
            return found
        if not self._offsets:
            self._offsets = sorted(self._first_at)
        position = bisect_left(self._offsets, offset)
        return self._first_at[self._offsets[position]] if position < len(self._offsets) else self._count


class Lowering:
    """The context of a rule: the code object's names, the neighbouring instructions, the state set by prefixes."""

    def __init__(self, decoded: Decoded) -> None:
        code = decoded.code
        self.code = code
        self.table = decoded.table
        self.instructions, self.exceptions = decoded.instructions, decoded.exceptions
        self.index = 0
        """The index of the instruction that is lowered."""
        self.drafts: List[Draft] = []
        """The drafts of the instructions before it."""
        self.idle: List[Span] = []
        """The spans of the instructions before it that lowered to nothing."""
        self.tables: Dict[MakeTable, Table] = {}
        """The tables of templates, by the functions that make them."""
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

    def table_of(self, make: MakeTable) -> Table:
        """Return the table that ``make`` makes of this code object; it is made once."""
        known = self.tables.get(make)
        if known is None:
            known = self.tables[make] = make(self)
        return known

    @cached_property
    def targets(self) -> Set[Optional[int]]:
        """The offsets that jumps and exceptions lead to."""
        found = {instruction.target for instruction in self.instructions}
        found.update(entry.target for entry in self.exceptions)
        return found

    def is_cell(self, index: int) -> bool:
        """Return whether the local at ``index`` is a cell. A name may have two: an iteration variable of an inlined
        comprehension, and a free variable (3.12)."""
        return index >= len(self.locals) or self.locals[index] in self.cells

    def take_keyword_names(self) -> Tuple[str, ...]:
        """Return and clear the names that KW_NAMES set for the next call (3.11 and 3.12)."""
        names, self.keyword_names = self.keyword_names, ()
        return names

    def neighbour(self, distance: int) -> str:
        """Return the name of the instruction ``distance`` after (or, if negative, before) the one that is lowered."""
        index = self.index + distance
        return self.instructions[index].name if 0 <= index < len(self.instructions) else ""

    def take_previous(self, op: Op, ins: Instruction) -> Draft:
        """Remove and return the draft just before ``ins``, which ``ins`` completes. Raises ``ValueError`` if it is not
        an ``op`` that always runs before ``ins``."""
        if not self.drafts or self.drafts[-1].op is not op or ins.offset in self.targets:
            raise ValueError(f"{self.code.co_name}: {ins.name} at offset {ins.offset} has no {op.value} before it")
        return self.drafts.pop()

    def null_below(self, ins: Instruction) -> List[Draft]:
        """Return the operations that put a NULL below the top of the stack. There are none where it can be put before
        the load of a variable or constant, as compilers do where they call an attribute of an imported name (3.11)."""
        if self.drafts and ins.offset not in self.targets:
            loaded = self.drafts[-1]
            if loaded.op in _LOADS and loaded.offset == self.instructions[self.index - 1].offset:
                self.drafts[-1:] = Draft(Op.NULL, None, loaded.offset, loaded.span, None, loaded.handler), loaded
                return []
        return [Draft(Op.NULL), Draft(Op.SWAP, 2)]

    def pushed(self, ins: Instruction) -> Optional[Draft]:
        """Return the draft that pushed the top of the stack at ``ins``; None if the code from there is not straight.
        Dynamo pushes other values between the two and swaps them away."""
        # Backwards from ``ins``: ``depth`` is where the value lies before each draft, 1 on top.
        depth, index = 1, self.index
        for draft in reversed(self.drafts):
            # A jump to an instruction in between could come with another value.
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


Table = Sequence[Any]
"""Arguments of operations, or operations with their arguments, by the argument of an instruction."""

MakeTable = Callable[[Lowering], Table]


class Source(Enum):
    """Where the argument of an operation comes from: see ``Template.arg``."""

    GIVEN = "given"
    """The operation has ``arg`` as argument."""
    OWN = "own"
    """The operation has the argument of the instruction."""
    KIND = "kind"
    """The operation has a pair as argument: ``arg`` and the argument of the instruction."""
    TABLE = "table"
    """``arg`` makes a table of arguments, which the argument of the instruction is an index into."""
    VARIABLES = "variables"
    """``arg`` makes a table of operations with their arguments, likewise."""


class Template(NamedTuple):
    """The one operation that an instruction is lowered to; it jumps where the instruction does."""

    op: Union[Op, str]
    source: Source = Source.GIVEN
    arg: Any = None


Rule = Union[Template, Callable[[Lowering, Instruction], List[Draft]], None]
"""How an instruction is lowered; ``None``: to nothing."""


class Step(NamedTuple):
    """``run`` merges the sequences that a compiler emits for one operation. Each sequence has one of the instructions
    ``needed``; ``None``: the step always runs."""

    run: Callable[[List[Draft]], List[Draft]]
    needed: Optional[FrozenSet[str]] = None


@dataclass(frozen=True)
class Dialect:
    """How one CPython version spells the normal form.

    ``rules`` turn one instruction each into a few drafts; then ``steps`` run, in this order. ``copies_loop_tests``,
    ``forgets_after_jumps``, ``threads_tests``, ``threads_operands``: see ``NormalCode``.
    """

    rules: Mapping[str, Rule]
    steps: Tuple[Step, ...] = ()
    copies_loop_tests: bool = False
    forgets_after_jumps: bool = False
    threads_tests: bool = False
    threads_operands: bool = False

    def changed(
        self,
        rules: Mapping[str, Rule],
        without: Iterable[str] = (),
        steps: Optional[Tuple[Step, ...]] = None,
        *,
        copies_loop_tests: Optional[bool] = None,
        threads_tests: bool = False,
        threads_operands: Optional[bool] = None,
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
            threads_tests=threads_tests or self.threads_tests,
            threads_operands=self.threads_operands if threads_operands is None else threads_operands,
        )
