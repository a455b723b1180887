"""Reads one pattern from the flow graph by running its success path on symbolic values.

The compiler makes a pattern of tests; each that fails jumps to a ladder of POPs that leads to the next case (or to the
next alternative of an or-pattern). What the pattern takes apart stays on the stack; what it captures is rotated below
and stored when all tests have passed. The pattern ends when the stack is as high as before.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple

from depyf.flow.graph import Branch, End, FlowGraph, Jump
from depyf.flow.patterns_items import FromBack, Keys, Known, Length, Rest, Shared, Test, Values
from depyf.flow.patterns_parts import (
    Either,
    Equals,
    IsInstance,
    IsMapping,
    IsSequence,
    IsSingleton,
    NotAPattern,
    Part,
)
from depyf.flow.stack import effect
from depyf.normal.ops import Instr, Op

Position = Tuple[int, int]


@dataclass
class Reading:
    """A pattern, the position behind it, where control goes when it fails (None: it can't), and its last line."""

    pattern: Any
    end: Position
    fail: Optional[Position]
    last_line: int


@dataclass
class _Alternative:
    """An alternative of an or-pattern that is being read: the height of the stack with the value it is tried on,
    and where the next alternative begins."""

    height: int
    following: Optional[Position] = None


class PatternReader:
    """Reads the pattern that begins at ``start`` with the subject on the stack; ``copied``: the operation there is
    the COPY that keeps the subject for the next case. ``sources`` counts the normal edges into each block."""

    def __init__(self, graph: FlowGraph, sources: Dict[int, int], start: Position, copied: bool) -> None:
        self.graph, self.sources = graph, sources
        self.region = graph.blocks[start[0]].region
        self.block, self.index = graph.blocks[start[0]], start[1] + copied
        self.subject = Part()
        self.base = 1 if copied else 0
        self.floor = self.base
        self.stack: List[Any] = [self.subject, self.subject] if copied else [self.subject]
        self.fail: Optional[Position] = None
        self.stored = False
        self.last_line = 0
        self.alternatives: List[_Alternative] = []

    def read(self) -> Reading:
        """Raises ``NotAPattern`` when the operations are none."""
        while len(self.stack) > self.base:
            target = self._step()
            if target is not None:
                self._enter(target, len(self.stack) == self.base)
        return Reading(self.subject.pattern(), (self.block.id, self.index), self.fail, self.last_line)

    # --- control -----------------------------------------------------------------------------------------------

    def _step(self) -> Optional[int]:
        """Run one operation; the block to go on with if the current one ended."""
        if self.index < len(self.block.ops):
            instr = self.block.ops[self.index]
            self.index += 1
            self.last_line = max(self.last_line, instr.line or 0)
            rule = _RULES.get(instr.op)
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

    def _enter(self, id: int, done: bool) -> None:
        block = self.graph.blocks[id]
        if not done and (self.sources[id] > 1 or block.region != self.region or block.leaves):
            raise NotAPattern("other code comes in the way")
        self.block, self.index = block, 0

    def _branch(self, term: Branch) -> int:
        if self.stored:
            raise NotAPattern("a test behind the names")
        item = self._pop()
        self.last_line = max(self.last_line, term.instr.line or 0)
        yes, no = (term.target, term.fall) if term.jump_when else (term.fall, term.target)
        if term.test == "truth" and isinstance(item, Test):
            item.learn()
        elif term.test == "none" and isinstance(item, Part):
            item.learn(IsSingleton(None))
        elif term.test == "none" and isinstance(item, Values):
            yes, no = no, yes
        else:
            raise NotAPattern("something else than a test is branched on")
        self._fails_to(no)
        return yes

    def _fails_to(self, target: int) -> None:
        rest, height = self._ladder(target, len(self.stack), self.base)
        if height == self.base:
            if self.fail is None:
                self.fail = rest
            elif not same_tail(self.graph, self.fail, rest):
                raise NotAPattern("two tests fail to different places")
            return
        alternative = next((open_ for open_ in self.alternatives if open_.height == height), None)
        if alternative is None or alternative.following not in (None, rest):
            raise NotAPattern("a failed test leaves values behind")
        alternative.following = rest

    def _ladder(self, target: int, height: int, floor: int) -> Tuple[Position, int]:
        """Where the POPs behind a failed test lead to, and how high the stack is there."""
        position = self._settle((target, 0))
        while height > floor:
            ops = self.graph.blocks[position[0]].ops
            if position[1] >= len(ops) or ops[position[1]].op is not Op.POP:
                break
            height -= 1
            position = self._settle((position[0], position[1] + 1))
        return position, height

    def _settle(self, position: Position) -> Position:
        """Go on through jumps, but not out of the region."""
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

    def _pop(self) -> Any:
        if len(self.stack) <= self.floor:
            raise NotAPattern("more than the subject is used")
        return self.stack.pop()

    def _peek(self, depth: int) -> Any:
        if len(self.stack) - depth < self.floor:
            raise NotAPattern("more than the subject is used")
        return self.stack[-depth]

    def _part(self, item: Any) -> Part:
        if not isinstance(item, Part):
            raise NotAPattern("a pattern is tried on something that is no part of the subject")
        return item

    # --- or-patterns -------------------------------------------------------------------------------------------

    def begins_alternatives(self) -> bool:
        """Whether the COPY at hand begins an or-pattern: some test behind it fails to a place where the value that
        was copied is copied again."""
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
        """The target of the next branch; ``slots`` follows what lies where on the stack (-1: something new)."""
        id, index = position
        for _ in range(len(self.graph.blocks)):
            block = self.graph.blocks[id]
            for instr in block.ops[index:]:
                if instr.op is Op.STORE:
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
        """An or-pattern; the COPY of the first alternative was just taken."""
        below, floor = list(self.stack), self.floor
        subject = self._part(below[-1])
        parts: List[Part] = []
        captured: List[List[Any]] = []
        ends: List[Position] = []
        alternative = _Alternative(len(below))
        self.alternatives.insert(0, alternative)
        self.floor = len(below)
        while True:
            alternative.following = None
            parts.append(Part())
            self.stack = [*below, parts[-1]]
            ends.append(self._run_to_join())
            captured.append(self.stack[len(below) :])
            following: Any = alternative.following  # set while the alternative was read
            if following is None:
                break
            self._begin_at(following)
        self.alternatives.remove(alternative)
        self.floor = floor
        if len({len(items) for items in captured}) != 1 or len(parts) < 2:
            raise NotAPattern("the alternatives do not capture the same")
        if not all(same_tail(self.graph, ends[-1], end) for end in ends):
            raise NotAPattern("the alternatives do not come together")
        subject.learn(Either(parts))
        self.stack = [*below, *[Shared(items) for items in zip(*captured)]]
        self.block, self.index = self.graph.blocks[ends[-1][0]], ends[-1][1]
        if self.block.region != self.region or self.block.leaves:
            raise NotAPattern("the alternatives come together in another region")

    def _run_to_join(self) -> Position:
        """Read an alternative. It ends where others come in, or, if its end was copied, where the value that it is
        tried on is moved or dropped."""
        while True:
            if self.index < len(self.block.ops) and self._is_behind(self.block.ops[self.index]):
                return self.block.id, self.index
            target = self._step()
            if target is not None:
                if self.sources[target] > 1:
                    return target, 0
                self._enter(target, False)

    def _is_behind(self, instr: Instr) -> bool:
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
    """What ``instr`` does to the places of values."""
    takes, leaves = effect(instr)
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
    """Whether two positions are the same, or copies of the same short way out of the function."""
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


# --- operations ----------------------------------------------------------------------------------------------------


def _copy(reader: PatternReader, instr: Instr) -> None:
    item = reader._peek(instr.arg)
    if instr.arg == 1 and isinstance(item, Part) and not reader.stored and reader.begins_alternatives():
        reader.read_alternatives()
    else:
        reader.stack.append(item)


def _swap(reader: PatternReader, instr: Instr) -> None:
    stack, count = reader.stack, instr.arg
    if len(stack) - count < reader.floor:
        raise NotAPattern("more than the subject is moved")
    stack[-1], stack[-count] = stack[-count], stack[-1]


def _pop(reader: PatternReader, instr: Instr) -> None:
    reader._pop()


def _store(reader: PatternReader, instr: Instr) -> None:
    item = reader._pop()
    if reader.alternatives or not isinstance(item, (Part, Rest, Shared)):
        raise NotAPattern("something is stored that is not captured")
    if isinstance(item, Rest) and (item.fact is None or item.deleted != len(item.fact.keys)):
        raise NotAPattern("the rest of a mapping is stored too early")
    item.bind(instr.arg[1])
    reader.stored = True


def _const(reader: PatternReader, instr: Instr) -> None:
    reader.stack.append(Known(ast.Constant(instr.arg)))


def _load(reader: PatternReader, instr: Instr) -> None:
    reader.stack.append(Known(ast.Name(instr.arg[1], ast.Load())))


def _attr(reader: PatternReader, instr: Instr) -> None:
    base = reader._pop()
    if not isinstance(base, Known) or isinstance(base.expr, ast.Constant):
        raise NotAPattern("an attribute of a part of the subject")
    reader.stack.append(Known(ast.Attribute(base.expr, instr.arg, ast.Load())))


def _compare(reader: PatternReader, instr: Instr) -> None:
    known, item = reader._pop(), reader._pop()
    if isinstance(item, Length) and isinstance(known, Known) and known.is_constant(int):
        reader.stack.append(Test(_length_learner(item.part, instr.arg, known.constant)))
    elif instr.arg == "==" and isinstance(known, Known) and known.can_be_value():
        part, value = reader._part(item), known.expr
        reader.stack.append(Test(lambda: part.learn(Equals(value))))
    else:
        raise NotAPattern("another comparison than patterns make")


def _length_learner(part: Part, operator: str, count: int) -> Callable[[], None]:
    def learn() -> None:
        fact = part.fact
        if isinstance(fact, IsSequence) and fact.length is None and operator in ("==", ">="):
            fact.length = (operator, count)
        elif isinstance(fact, IsMapping) and fact.count is None and operator == ">=":
            fact.count = count
        else:
            raise NotAPattern("a length is tested that no pattern asks for")

    return learn


def _is(reader: PatternReader, instr: Instr) -> None:
    known, item = reader._pop(), reader._pop()
    if not isinstance(known, Known) or not known.is_constant(bool, type(None)):
        raise NotAPattern("the identity of something else than a singleton is tested")
    if isinstance(item, Values) and instr.arg and known.constant is None:
        reader.stack.append(Test(lambda: None))
    elif not instr.arg:
        part, value = reader._part(item), known.constant
        reader.stack.append(Test(lambda: part.learn(IsSingleton(value))))
    else:
        raise NotAPattern("a negated identity is tested")


def _match_sequence(reader: PatternReader, instr: Instr) -> None:
    part = reader._part(reader._peek(1))
    reader.stack.append(Test(lambda: part.learn(IsSequence())))


def _match_mapping(reader: PatternReader, instr: Instr) -> None:
    part = reader._part(reader._peek(1))
    reader.stack.append(Test(lambda: part.learn(IsMapping())))


def _get_len(reader: PatternReader, instr: Instr) -> None:
    reader.stack.append(Length(reader._part(reader._peek(1))))


def _binary(reader: PatternReader, instr: Instr) -> None:
    known, item = reader._pop(), reader._pop()
    if instr.arg != "-" or not isinstance(item, Length) or not isinstance(known, Known) or not known.is_constant(int):
        raise NotAPattern("patterns do not calculate")
    reader.stack.append(FromBack(item.part, known.constant))


def _subscr(reader: PatternReader, instr: Instr) -> None:
    index, part = reader._pop(), reader._part(reader._pop())
    fact, element = part.fact, Part()
    if not isinstance(fact, IsSequence) or fact.elements is not None:
        raise NotAPattern("an element of no sequence")
    if isinstance(index, FromBack) and index.part is part and index.count not in fact.back:
        fact.back[index.count] = element
    elif isinstance(index, Known) and index.is_constant(int) and index.constant not in fact.front and not fact.back:
        fact.front[index.constant] = element
    else:
        raise NotAPattern("an element is looked at in a way that patterns do not")
    reader.stack.append(element)


def _unpack(reader: PatternReader, instr: Instr) -> None:
    item = reader._pop()
    before, after = (instr.arg, 0) if instr.op is Op.UNPACK else instr.arg
    count = instr.arg if instr.op is Op.UNPACK else before + 1 + after
    if isinstance(item, Part) and isinstance(item.fact, IsSequence) and item.fact.elements is None:
        parts: List[Any] = [Part() for _ in range(count)]
        item.fact.elements, item.fact.star = parts, before if instr.op is Op.UNPACK_EX else None
    elif isinstance(item, Values) and instr.op is Op.UNPACK and len(item.parts) == count:
        parts = list(item.parts)
    elif isinstance(item, Keys) and instr.op is Op.UNPACK and len(item.fact.keys) == count:
        parts = [item] * count
    else:
        raise NotAPattern("something else than a part of the subject is unpacked")
    reader.stack.extend(reversed(parts))


def _match_keys(reader: PatternReader, instr: Instr) -> None:
    keys, part = reader._peek(1), reader._part(reader._peek(2))
    fact = part.fact
    if not isinstance(fact, IsMapping) or fact.keys or not isinstance(keys, Known):
        raise NotAPattern("keys of no mapping")
    if isinstance(keys.expr, ast.Tuple):
        fact.keys = list(keys.expr.elts)
    elif keys.is_constant(tuple):
        fact.keys = [ast.Constant(key) for key in keys.constant]
    fact.values = [Part() for _ in fact.keys]
    reader.stack[-1] = Keys(fact)
    reader.stack.append(Values(fact.values))


def _match_class(reader: PatternReader, instr: Instr) -> None:
    names, cls, part = reader._pop(), reader._pop(), reader._part(reader._pop())
    if not isinstance(names, Known) or not names.is_constant(tuple) or not isinstance(cls, Known):
        raise NotAPattern("a class pattern without names")
    if isinstance(cls.expr, ast.Constant):
        raise NotAPattern("a class pattern without class")
    attributes = [Part() for _ in range(instr.arg + len(names.constant))]
    part.learn(IsInstance(cls.expr, instr.arg, names.constant, attributes))
    reader.stack.append(Values(attributes))


def _build(reader: PatternReader, instr: Instr) -> None:
    kind, count = instr.arg
    if (kind, count) == ("map", 0):
        reader.stack.append(Rest())
        return
    items = [reader._pop() for _ in range(count)]
    if kind != "tuple" or not all(isinstance(item, Known) for item in items):
        raise NotAPattern("patterns build nothing but keys")
    reader.stack.append(Known(ast.Tuple([item.expr for item in reversed(items)], ast.Load())))


def _update(reader: PatternReader, instr: Instr) -> None:
    part = reader._part(reader._pop())
    rest = reader._peek(instr.arg[1])
    if not isinstance(rest, Rest) or rest.fact is not None or not isinstance(part.fact, IsMapping):
        raise NotAPattern("the rest of no mapping")
    rest.fact = part.fact


def _delete_subscr(reader: PatternReader, instr: Instr) -> None:
    key, rest = reader._pop(), reader._pop()
    if not isinstance(rest, Rest) or not isinstance(key, Keys) or key.fact is not rest.fact:
        raise NotAPattern("patterns delete nothing but keys")
    rest.deleted += 1


_RULES: Dict[Op, Callable[[PatternReader, Instr], None]] = {
    Op.COPY: _copy, Op.SWAP: _swap, Op.POP: _pop, Op.STORE: _store, Op.CONST: _const, Op.LOAD: _load,
    Op.ATTR: _attr, Op.COMPARE: _compare, Op.IS: _is, Op.MATCH_SEQUENCE: _match_sequence,
    Op.MATCH_MAPPING: _match_mapping, Op.GET_LEN: _get_len, Op.BINARY: _binary, Op.SUBSCR: _subscr,
    Op.UNPACK: _unpack, Op.UNPACK_EX: _unpack, Op.MATCH_KEYS: _match_keys, Op.MATCH_CLASS: _match_class,
    Op.BUILD: _build, Op.UPDATE: _update, Op.DELETE_SUBSCR: _delete_subscr,
}  # fmt: skip
