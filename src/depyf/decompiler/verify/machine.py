"""The symbolic machine: run one side alone to its next stop.

A rule (``operations.RULES``) takes the machine, the side and the operation. It executes the operation and returns
``None`` (continue at the next operation) or ``MOVED`` (it has set the position), or it changes nothing and returns the
stop.
"""

from __future__ import annotations

from typing import AbstractSet, Callable, Dict, Iterable, List, Mapping, Set, Tuple, Union

from depyf.decompiler.normal.ops import Instr, Op
from depyf.decompiler.verify.comparison import Finding, MismatchError
from depyf.decompiler.verify.program import Program
from depyf.decompiler.verify.side import Side
from depyf.decompiler.verify.stops import Exit, Stop
from depyf.decompiler.verify.values import NULL, Ref, Term, Value, ValueTable


class Moved:
    """Signal that a rule has set the position itself."""


MOVED = Moved()
Answer = Union[None, Moved, Stop]
Rule = Callable[["Machine", Side, Instr], Answer]

SILENT_EFFORT = 50
"""The limit on operations executed without a stop, per operation of the program."""


class Machine:
    """What execution needs besides the side: the rules, the value tables and the ``facts`` of the current path."""

    def __init__(
        self, rules: Mapping[Op, Rule], values: ValueTable, *, counted_globals: bool, stable_globals: AbstractSet[str]
    ) -> None:
        self.rules = rules
        self.values = values
        self.counted_globals = counted_globals
        self.stable_globals = stable_globals
        self.facts: Dict[Value, Value] = {}
        self.steps = 0
        self._program_rules: Dict[Program, List[Rule]] = {}

    def resolve(self, value: Value) -> Value:
        """Return ``value`` with the facts of the current path applied."""
        facts = self.facts
        if not facts:
            return value
        if isinstance(value, Term) and value.kind == "not":
            return self.values.negate(self.resolve(value.left))
        return facts.get(value, value)

    def run(self, side: Side) -> Stop:
        """Execute silent operations and return the stop that the side reaches."""
        program = side.program
        ops, joins = program.ops, program.joins
        rules = self._program_rules.get(program)
        if rules is None:
            rules = self._program_rules[program] = [self.rules[instr.op] for instr in ops]
        # Comparing whole states is slow, so it starts after more steps than a run usually takes.
        patience = self.steps + 2 * len(ops) + 100
        seen: Set[Tuple[object, ...]] = set()
        known = frozenset(side.heap)
        while True:
            position = side.position
            # An exception has left the function (``side.has_left``).
            if position < 0:  # as side.has_left, in the inner loop
                return Exit("raise", side.leaving)
            instr = ops[position]
            self.steps += 1
            answer = rules[position](self, side, instr)
            if answer is None:
                side.position = position + 1
            elif not isinstance(answer, Moved):
                return answer
            # A silent step: no stop yet, so the other side is not needed for it.
            side.moved = True
            # A loop passes a join point in each turn, so it is enough to look for endless loops there.
            if side.position in joins:
                side.crossed = True
                if self.steps > patience:
                    # ``while True: pass`` returns to the same state and diverges. ``while True: x.append(1)`` with a
                    # new list ``x`` never returns to a state; it is given up.
                    if _was_here(side, known, seen):
                        return Exit("diverge", NULL)
                    if self.steps > patience + SILENT_EFFORT * len(ops) + 1000:
                        raise MismatchError(Finding.UNVERIFIED, f"it loops silently at offset {instr.offset}")


def _was_here(side: Side, known: AbstractSet[Ref], seen: Set[Tuple[object, ...]]) -> bool:
    """Return whether ``side`` has been in this state, up to which objects those are that it has made since its stop.

    From such a state it loops for ever without a stop: no rule depends on an object but for its contents, for where
    else it is referred to, and for the facts about it. The first two are in the state. There are facts about ``known``
    objects alone, which are in the state as themselves: no fact is added without a stop.
    """
    numbers: Dict[Ref, int] = {}
    made: List[Ref] = []

    def name(value: Value) -> object:
        if not isinstance(value, Ref) or value in known:
            return value
        if value not in numbers:
            numbers[value] = len(made)
            made.append(value)
        return numbers[value]

    def names(values: Iterable[Value]) -> Tuple[object, ...]:
        return tuple([name(each) for each in values])

    # The roots first, in an order that does not depend on identities; then the objects of earlier stops, and last the
    # new ones, each under the number that its first reference got.
    state: List[object] = [side.position, side.handled, names(side.stack), *side.locals, names(side.locals.values())]
    for ref, fresh in side.heap.items():
        if ref in known:
            state.append((ref, fresh.kind, fresh.detail, names(fresh.items)))
    # The list grows while it is read: the items of these objects may be new objects as well.
    for ref in made:  # those that its items are come behind it meanwhile
        fresh = side.heap[ref]
        state.append((fresh.kind, fresh.detail, names(fresh.items)))
    if tuple(state) in seen:
        return True
    seen.add(tuple(state))
    return False
