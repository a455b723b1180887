"""Read one pattern from the flow graph by symbolic execution of its success path.

    case [A(), x]:      COPY 1; MATCH_SEQUENCE; BRANCH false -> 2
                        GET_LEN; CONST 2; COMPARE ==; BRANCH false -> 2
                        UNPACK 2; A; CONST (); MATCH_CLASS 0; COPY 1; BRANCH none -> 1
                        UNPACK 0; STORE x; ... the body ...
                        1: POP; 2: POP; ... the next case         the ladder

Each test that fails jumps to a ladder of POPs that leads to the next case (or to the next alternative of an
or-pattern). Unpacked values stay on the stack; captured values are rotated below them and stored when all tests have
passed. The pattern ends when the stack has its initial height.
"""

from __future__ import annotations

import ast
from typing import Callable, Dict, List, Mapping, Optional, Set, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.flow.graph import Branch, End, FlowGraph, Jump, Test
from depyf.decompiler.flow.match.items import ExtractedParts, Item, Shared, Tested
from depyf.decompiler.flow.match.parts import Either, IsSingleton, NotAPattern, Part
from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.ops import Instr, Op

Position = Tuple[int, int]

Rule = Callable[["PatternReader", Instr], None]
"""What an operation does to the symbolic values."""


@dataclass
class Reading:
    """A pattern, the position after it, where control goes when it fails (None: it can't), and its last line.
    ``tests``: the pattern reads the subject; ``[x] | x`` does, although it can't fail."""

    pattern: ast.pattern
    end: Position
    fail: Optional[Position]
    last_line: int
    tests: bool


@dataclass
class _Alternative:
    """The or-pattern alternative that is being read: the height of the stack with its value, and where the next
    alternative starts."""

    height: int
    following: Optional[Position] = None


@dataclass
class _Read:
    """A complete alternative, where it ends, and the values that it has captured."""

    part: Part
    end: Position
    captured: List[Item]


class PatternReader:
    """Reads the pattern at ``start``, where the subject is on the stack.

    ``copied``: the operation there is the COPY that keeps the subject for the next case. ``sources`` counts the normal
    edges into each block. ``unlike``, shared by all readers of a graph: the positions where no or-pattern starts that
    is the whole pattern of a case, since an alternative does not fit. Without it, each case of a long ``match`` would
    be tried as an or-pattern of all cases that follow.
    """

    def __init__(
        self,
        rules: Mapping[Op, Rule],
        graph: FlowGraph,
        sources: Dict[int, int],
        start: Position,
        unlike: Set[Position],
        *,
        copied: bool,
    ) -> None:
        self.rules, self.graph, self.sources = rules, graph, sources
        self.region = graph.blocks[start[0]].region
        self.block, self.index = graph.blocks[start[0]], start[1] + copied
        self.subject = Part()
        self.base = 1 if copied else 0
        self.floor = self.base
        self.stack: List[Item] = [self.subject, self.subject] if copied else [self.subject]
        self.fail: Optional[Position] = None
        self.stored = False
        self.last_line = 0
        self.alternatives: List[_Alternative] = []
        self.unlike = unlike

    def read(self) -> Reading:
        """Read the pattern. Raises ``NotAPattern`` when the operations are not one."""
        # The subject, and all that is taken out of it, is above ``base``.
        while len(self.stack) > self.base:
            target = self._step()
            if target is not None:
                self._enter(target, done=len(self.stack) == self.base)
        end, tests = (self.block.id, self.index), self.subject.fact is not None
        return Reading(self.subject.pattern(), end, self.fail, self.last_line, tests)

    # --- control -----------------------------------------------------------------------------------------------

    def _step(self) -> Optional[int]:
        """Run one operation; return the next block if the current one ended."""
        if self.index < len(self.block.ops):
            instr = self.block.ops[self.index]
            self.index += 1
            self.last_line = max(self.last_line, instr.line or 0)
            rule = self.rules.get(instr.op)
            if rule is None:
                raise NotAPattern(f"{instr.op.name} is in no pattern")
            rule(self, instr)
            return None
        term = self.block.term
        if isinstance(term, Branch):
            return self._branch(term)
        if type(term) is Jump:
            return term.target
        raise NotAPattern("the function ends in the middle of the pattern")

    def _enter(self, id: int, *, done: bool) -> None:
        block = self.graph.blocks[id]
        if not done and (self.sources[id] > 1 or block.region != self.region or block.leaves):
            raise NotAPattern("other code comes in the way")
        self.block, self.index = block, 0

    def _branch(self, term: Branch) -> int:
        if self.stored:
            raise NotAPattern("a test after the names")
        # The value that the branch tests decides where the pattern goes on: if a comparison is true, if a part is None
        # (the pattern ``None``), or if the result of MATCH_CLASS or MATCH_KEYS is not None.
        item = self.pop()
        self.last_line = max(self.last_line, term.instr.line or 0)
        yes, no = (term.target, term.fall) if term.jump_when else (term.fall, term.target)
        if term.test is Test.TRUTH and isinstance(item, Tested):
            item.learn()
            yes, no = (no, yes) if item.negated else (yes, no)
        elif term.test is Test.NONE and isinstance(item, Part):
            item.learn(IsSingleton(None))
        elif term.test is Test.NONE and isinstance(item, ExtractedParts):
            yes, no = no, yes
        else:
            raise NotAPattern("something else than a test is branched on")
        self._fails_to(no)
        return yes

    def _fails_to(self, target: int) -> None:
        # All the way down: the whole pattern fails. To the height of an or-pattern's value: its next alternative.
        rest, height = self._ladder(target, len(self.stack), self.base)
        if height == self.base:
            if self.fail is None:
                self.fail = rest
            elif not same_tail(self.graph, self.fail, rest):
                raise NotAPattern("two tests fail to different positions")
            return
        alternative = next((open_ for open_ in self.alternatives if open_.height == height), None)
        if alternative is None or alternative.following not in (None, rest):
            raise NotAPattern("a failed test leaves values behind")
        alternative.following = rest

    def _ladder(self, target: int, height: int, floor: int) -> Tuple[Position, int]:
        """Return where the POPs after a failed test lead, and the stack height there."""
        position = self._settle((target, 0))
        while height > floor:
            ops = self.graph.blocks[position[0]].ops
            if position[1] >= len(ops) or ops[position[1]].op is not Op.POP:
                break
            height -= 1
            position = self._settle((position[0], position[1] + 1))
        return position, height

    def _settle(self, position: Position) -> Position:
        """Follow jumps, but not out of the region."""
        seen = set()
        while position[0] not in seen:
            block = self.graph.blocks[position[0]]
            seen.add(block.id)
            if position[1] < len(block.ops) or type(block.term) is not Jump or block.leaves:
                break
            if block.region != self.region:
                break
            position = (block.term.target, 0)
        return position

    # --- the stack ---------------------------------------------------------------------------------------------

    def pop(self) -> Item:
        """Pop the top. Raises ``NotAPattern`` when it is not the pattern's."""
        if len(self.stack) <= self.floor:
            raise NotAPattern("more than the subject is used")
        return self.stack.pop()

    def peek(self, depth: int) -> Item:
        """Return the ``depth``-th item from the top."""
        if len(self.stack) - depth < self.floor:
            raise NotAPattern("more than the subject is used")
        return self.stack[-depth]

    def part(self, item: Item) -> Part:
        """Return ``item``. Raises ``NotAPattern`` if it is not a part of the subject."""
        if not isinstance(item, Part):
            raise NotAPattern("a pattern is tried on something that is no part of the subject")
        return item

    # --- or-patterns -------------------------------------------------------------------------------------------

    def begins_alternatives(self) -> bool:
        """Return whether the COPY just executed starts an or-pattern: a test after it fails to another COPY of the same
        value."""
        # COPY 1; ... the first alternative ...; BRANCH -> 1
        # 1: POP ...; COPY 1; ... the second: follow the failing jumps down the ladder until the value is on top again;
        # ``slots`` shows that it is the same one.
        height = len(self.stack)
        position, slots = (self.block.id, self.index - 1), list(range(height))
        for _ in range(len(self.graph.blocks)):
            target = self._first_branch(position, slots)
            if target is None:
                return False
            position, now = self._ladder(target, len(slots), height)
            del slots[now:]
            ops = self.graph.blocks[position[0]].ops
            if position[1] >= len(ops) or (ops[position[1]].op, ops[position[1]].arg) != (Op.COPY, 1):
                return False
            if slots[height - 1] != height - 1:
                return False
            if now == height:
                return True
        return False

    def _first_branch(self, position: Position, slots: List[int]) -> Optional[int]:
        """Return the target of the next branch, if any. ``slots`` tracks the positions of values on the stack (-1: a
        new value)."""
        id, index = position
        for _ in range(len(self.graph.blocks)):
            block = self.graph.blocks[id]
            for at in range(index, len(block.ops)):
                instr = block.ops[at]
                if instr.op is Op.STORE or instr.op not in self.rules:
                    return None
                _move(slots, instr)
            if type(block.term) is Branch:
                slots.pop()
                return block.term.target
            if type(block.term) is not Jump:
                return None
            id, index = block.term.target, 0
        return None

    def read_alternatives(self) -> None:
        """Read an or-pattern; the COPY of the first alternative was just executed."""
        # COPY 1; ... the alternative ...; JUMP -> end          each with the captured values on top
        # ... the next: COPY 1; ...; the last fails to the ladder of the whole pattern
        # end: SWAP ...; POP                                    drops the value below them
        below, floor = list(self.stack), self.floor
        subject = self.part(below[-1])
        alternative = _Alternative(len(below))
        self.alternatives.insert(0, alternative)
        self.floor = len(below)
        read: List[_Read] = []
        begins: List[Position] = []
        following: Optional[Position] = (self.block.id, self.index - 1)
        whole = len(below) == 1 and not self.base
        while following is not None:
            alone = self.fail is None
            try:
                if whole and following in self.unlike:
                    raise NotAPattern("the alternatives do not come together")
                self._read_alternative(alternative, following, below, read)
            except NotAPattern:
                if whole and alone:  # nothing before it is involved
                    self.unlike.update(begins)
                raise
            begins.append(following)
            following = alternative.following
        # What was captured is one item for each name from here on; ``bind`` gives the name to all alternatives.
        self.alternatives.remove(alternative)
        self.floor = floor
        if len(read) < 2:
            raise NotAPattern("there is only one alternative")
        subject.learn(Either([each.part for each in read]))
        self.stack = [*below, *[Shared(items) for items in zip(*[each.captured for each in read])]]
        self.block, self.index = self.graph.blocks[read[-1].end[0]], read[-1].end[1]
        if self.block.region != self.region or self.block.leaves:
            raise NotAPattern("the alternatives come together in another region")

    def _read_alternative(
        self, alternative: _Alternative, begin: Position, below: List[Item], read: List[_Read]
    ) -> None:
        """Read the alternative with the COPY at ``begin`` and add it to those read, which it must be like."""
        alternative.following = None
        self._begin_at(begin)
        part = Part()
        self.stack = [*below, part]
        end = self._run_to_join()
        read.append(_Read(part, end, self.stack[len(below) :]))
        if len(read[0].captured) != len(read[-1].captured) or not same_tail(self.graph, read[0].end, end):
            raise NotAPattern("the alternatives do not capture the same, or do not come together")

    def _run_to_join(self) -> Position:
        """Read an alternative; return its end. It ends where other edges join, or, if its end was copied, where the
        value that it tests is moved or dropped."""
        while True:
            if self.index < len(self.block.ops) and self._is_after(self.block.ops[self.index]):
                return self.block.id, self.index
            target = self._step()
            if target is not None:
                if self.sources[target] > 1:
                    return target, 0
                self._enter(target, done=False)

    def _is_after(self, instr: Instr) -> bool:
        if instr.op is Op.STORE:
            return True
        count = instr.arg if instr.op is Op.SWAP else 1 if instr.op is Op.POP else 0
        return bool(len(self.stack) - count < self.floor)

    def _begin_at(self, position: Position) -> None:
        self.block, self.index = self.graph.blocks[position[0]], position[1] + 1
        instr = self.block.ops[position[1]] if position[1] < len(self.block.ops) else None
        if instr is None or (instr.op, instr.arg) != (Op.COPY, 1):
            raise NotAPattern("the next alternative does not begin with a copy")


def _move(slots: List[int], instr: Instr) -> None:
    """Apply ``instr`` to the positions of values."""
    takes, leaves = effect(instr.op, instr.arg)
    if takes > len(slots):
        slots[:0] = [-1] * (takes - len(slots))
    if instr.op is Op.COPY:
        slots.append(slots[-instr.arg])
    elif instr.op is Op.SWAP:
        slots[-1], slots[-instr.arg] = slots[-instr.arg], slots[-1]
    else:
        del slots[len(slots) - takes :]
        slots.extend([-1] * leaves)


def same_tail(graph: FlowGraph, one: Position, two: Position) -> bool:
    """Return whether two positions are the same, or copies of the same short exit of the function."""
    # In lockstep: follow jumps on either side, compare operations; the copies end where the function does.
    for _ in range(2 * len(graph.blocks)):
        if one == two:
            return True
        first, second = graph.blocks[one[0]], graph.blocks[two[0]]
        if one[1] == len(first.ops) and type(first.term) is Jump and not first.leaves:
            one = (first.term.target, 0)
        elif two[1] == len(second.ops) and type(second.term) is Jump and not second.leaves:
            two = (second.term.target, 0)
        elif one[1] == len(first.ops) or two[1] == len(second.ops):
            return one[1] == len(first.ops) and two[1] == len(second.ops) and first.term == second.term == End()
        elif not _same(first.ops[one[1]], second.ops[two[1]]):
            return False
        else:
            one, two = (one[0], one[1] + 1), (two[0], two[1] + 1)
    return False


def _same(one: Instr, two: Instr) -> bool:
    return one.op is two.op and (one.arg is two.arg or (one.op is not Op.CONST and bool(one.arg == two.arg)))
