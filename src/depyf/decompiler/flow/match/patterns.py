"""Find ``match`` statements in the flow graph: the blocks of each pattern become the terminator of one block.

    match a:                    a; COPY 1; CONST 1; COMPARE ==; BRANCH false -> 2
        case 1: b()             POP; b(); JUMP -> 3              the body drops the subject
        case x if c: d()        2: STORE x; c; BRANCH false -> 3; d()
                                3:

A statement is a chain of cases. All but the last keep a copy of the subject on the stack for the next one; a case that
fails leads to the next one. A chain that can't be read to its end stays unchanged.
"""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.lines import line_ranges
from depyf.decompiler.flow.graph import Block, Branch, End, FlowGraph, For, Jump, Test
from depyf.decompiler.flow.match.operations import read_pattern
from depyf.decompiler.flow.match.reader import Position, Reading
from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.ops import Instr, Op

_LONGEST_GUARD = 60
_LONGEST_TEST = 200
"""The limits for a guard that only the subject below it identifies: its blocks, and the operations of one test."""

_FIRST = frozenset([Op.MATCH_CLASS, Op.MATCH_MAPPING, Op.MATCH_SEQUENCE, Op.COPY])


@dataclass
class PatternBranch(Branch):
    """A branch to ``fall`` if the subject, which is on the stack, matches.

    ``keeps``: the subject stays on the stack. ``guarded``: a test that follows is a guard. ``default``: the bytecode
    shows that ``case _`` starts where it fails.
    """

    pattern: Optional[ast.pattern] = None
    keeps: bool = False
    guarded: bool = False
    default: bool = False


@dataclass
class PatternJump(Jump):
    """A pattern that takes the subject and can't fail; ``guarded``: a guard follows."""

    pattern: Optional[ast.pattern] = None
    guarded: bool = False


@dataclass
class Case:
    start: Position
    reading: Reading
    keeps: bool


def recover_matches(graph: FlowGraph) -> None:
    """Replace the patterns of all ``match`` statements in ``graph`` by ``PatternBranch`` and ``PatternJump``."""
    may_match = hasattr(ast, "Match") and not _FIRST.isdisjoint(graph.code.kinds)
    if may_match and any(map(_starts, graph.blocks.values())):
        _Recovery(graph).run()


def _starts(block: Block) -> List[int]:
    """Return where a pattern may start in ``block``. A copy that is tested for its truth is an operand of ``and``."""
    ops = block.ops
    found = [at for at, instr in enumerate(ops) if instr.op in _FIRST and (instr.op is not Op.COPY or instr.arg == 1)]
    tested = isinstance(block.term, Branch) and block.term.test is Test.TRUTH and ops and ops[-1].op is Op.COPY
    return [at for at in found if at != len(ops) - 1] if tested else found


class _Recovery:
    def __init__(self, graph: FlowGraph) -> None:
        self.graph = graph
        # How many normal edges lead to each block. A handler counts as several: no pattern goes on in one.
        self.sources: Dict[int, int] = {id: len(sources) for id, sources in graph.predecessors().items()}
        for region in graph.regions():
            self.sources[region.entry] += 2
        self.consumed: Set[int] = set()
        self.idle: Optional[Set[int]] = None
        self.unlike: Set[Position] = set()
        self.predecessors: Optional[Dict[int, List[int]]] = None

    def run(self) -> None:
        todo = list(reversed(self.graph.blocks))
        changed = False
        while todo:
            block = self.graph.blocks[todo.pop()]
            if block.id in self.consumed:
                continue
            cases = self._find(block)
            if cases:
                changed = True
                todo.extend(reversed(self._apply(cases)))
        if changed:
            self.graph.drop_unreachable()

    # --- finding -----------------------------------------------------------------------------------------------

    def _find(self, block: Block) -> List[Case]:
        """Return the cases of the first statement that starts in ``block``; an empty list if none does."""
        # Every operation of a pattern may be its first; most are read in vain. A class is loaded before MATCH_CLASS.
        for index in _starts(block):
            start = _class_begins(block.ops, index) if block.ops[index].op is Op.MATCH_CLASS else index
            cases = self._statement((block.id, start))
            if cases:
                return [*self._wildcards_before(cases[0].start), *cases]
        return []

    def _statement(self, start: Position) -> List[Case]:
        cases: List[Case] = []
        position: Optional[Position] = start
        seen: Set[Position] = set()
        while position is not None and position not in seen:
            seen.add(position)
            case = self._case(position, first=not cases)
            if case is None:
                return []
            cases.append(case)
            if not case.keeps:
                return cases
            position = case.reading.fail
        return []

    def _case(self, start: Position, *, first: bool) -> Optional[Case]:
        # 1. The last case takes the subject itself. (``COPY 1; STORE`` keeps it, and can't be tested any more; a first
        #    case that can't fail, and tests nothing, is an assignment.)
        reading = None if first and self._captures_at_once(start) else self._read(start, copied=False)
        if reading is not None and (reading.fail is not None or reading.tests or not first):
            return Case(start, reading, False)
        # 2. Without a copy of the subject, it is a guard alone: ``case _ if a``.
        ops = self.graph.blocks[start[0]].ops
        if start[1] >= len(ops) or (ops[start[1]].op, ops[start[1]].arg) != (Op.COPY, 1):
            return None if first else self._wildcard(start)
        # 3. A case that keeps the subject. If its pattern can't fail, its guard can: there the next case starts.
        reading = self._read(start, copied=True)
        if reading is None:
            return None
        if reading.fail is None:
            reading.fail = self._fail_of_guard(reading.end)
        if reading.fail is None or self._op_at(reading.fail) is Op.POP:
            return None
        return Case(start, reading, True)

    # Since 3.12 ``case _ if guard`` starts with its guard: no operation reads the subject.

    def _wildcard(self, start: Position) -> Optional[Case]:
        """Return the case at ``start`` if it is only a guard, with the subject below on the stack; else ``None``."""
        fail = self._fail_of_guard(start, alone=True)
        if fail is None or self._op_at(fail) is Op.POP:
            return None
        return Case(start, Reading(ast.MatchAs(None, None), start, fail, 0, tests=False), True)

    def _wildcards_before(self, start: Position) -> List[Case]:
        """Return the first cases of a statement that seems to start at ``start``, as far as they are such guards."""
        cases: List[Case] = []
        while start[1] == 0:
            found = min(self._positions_before(start), default=None)
            case = self._wildcard(found[1]) if found is not None else None
            if case is None:
                break
            cases.insert(0, case)
            start = case.start
        return cases

    def _positions_before(self, start: Position) -> Iterator[Tuple[Tuple[int, int], Position]]:
        """Yield the positions of guards that may lead to ``start`` when they fail, with their order in the bytecode."""
        if self.predecessors is None:
            self.predecessors = self.graph.predecessors()
        todo, seen = list(self.predecessors.get(start[0], ())), {start[0]}
        while todo and len(seen) < _LONGEST_GUARD:
            id = todo.pop()
            block = self.graph.blocks.get(id)
            if id in seen or block is None or id in self.consumed or block.region != self.graph.blocks[start[0]].region:
                continue
            seen.add(id)
            first = max(0, len(block.ops) - _LONGEST_TEST) if isinstance(block.term, Branch) else len(block.ops)
            for index in range(first, len(block.ops)):
                if self._fail_of_guard((id, index), alone=True) == start:
                    yield (block.offset(), index), (id, index)
                    break
            todo.extend(self.predecessors.get(id, ()))

    def _captures_at_once(self, start: Position) -> bool:
        ops = self.graph.blocks[start[0]].ops[start[1] : start[1] + 2]
        return [instr.op for instr in ops] == [Op.COPY, Op.STORE]

    def _read(self, start: Position, *, copied: bool) -> Optional[Reading]:
        return read_pattern(self.graph, self.sources, start, self.unlike, copied=copied)

    def _op_at(self, position: Position) -> Optional[Op]:
        ops = self.graph.blocks[position[0]].ops
        return ops[position[1]].op if position[1] < len(ops) else None

    def _fail_of_guard(self, start: Position, *, alone: bool = False) -> Optional[Position]:
        """Return where the guard after a pattern that can't fail jumps when it does not hold; ``None`` if unknown.

        The subject is on the stack: the body drops it first, the next case reads it first. ``alone``: the next case may
        be a guard as well.
        """
        found = self._after_guard(start, None)
        if found is None:
            return None
        fails, bodies, seen = found
        # Two bodies: the next case is a guard as well, and the first block with one body and one fail is its start.
        if alone and len(bodies) > 1:
            for id in sorted(seen, key=lambda id: self.graph.blocks[id].offset()):
                found = self._after_guard(start, id)
                if found is not None and found[0] == {(id, 0)} and len(found[1]) == 1:
                    return (id, 0)
        return next(iter(fails)) if bodies and len(fails) == 1 else None

    def _after_guard(
        self, start: Position, following: Optional[int]
    ) -> Optional[Tuple[Set[Position], Set[int], Set[int]]]:
        """Return where the next case starts (in block ``following``, if given), the bodies, and the blocks in between.
        Return ``None`` if the operations from ``start`` on are not a guard."""
        # Follow all paths of the guard; ``height`` counts the subject and the values above it. What uses the subject
        # ends a path: a POP at the start of a block is a body, anything else there the next case.
        fails: Set[Position] = set()
        bodies: Set[int] = set()
        todo: List[Tuple[Position, int]] = [(start, 1)]
        seen: Set[int] = set()
        while todo:
            position, height = todo.pop()
            block = self.graph.blocks[position[0]]
            if block.id == following:
                fails.add(position)
                continue
            touched, height, at = _touches_subject(block.ops, position[1], height)
            if touched:
                if at == position[1] and block.ops[at].op is Op.POP:
                    bodies.add(block.id)
                elif position[1] == 0 and position != start:
                    fails.add(position)
                else:
                    return None
                continue
            if isinstance(block.term, End) or block.region != self.graph.blocks[start[0]].region:
                return None
            height -= isinstance(block.term, Branch)
            for target in block.successors():
                if target not in seen:
                    seen.add(target)
                    todo.append(((target, 0), height))
        return fails, bodies, seen

    # --- replacing ---------------------------------------------------------------------------------------------

    def _apply(self, cases: List[Case]) -> List[int]:
        """Rewrite the graph; return the blocks after the patterns."""
        # Each pattern gets a block of its own, without operations, whose terminator is the pattern.
        blocks = self._split(
            [case.start for case in cases]
            + [case.reading.end for case in cases]
            + [case.reading.fail for case in cases if case.reading.fail is not None]
        )
        following: List[int] = []
        for case in cases:
            block = self.graph.blocks[blocks[case.start]]
            end = blocks[case.reading.end] if case.reading.end != case.start else self._move_down(block).id
            following.append(end)
            self._replace(block, case, end, blocks)
            self.consumed.add(block.id)
        self.unlike.clear()
        last = cases[-1].reading.fail
        return following if last is None else [*following, blocks[last]]

    def _update_predecessors(self, block: Block, before: Sequence[int]) -> None:
        """Record the successors of ``block``; ``before`` are its former successors."""
        if self.predecessors is not None:
            for id in before:
                self.predecessors[id].remove(block.id)
            for id in block.successors():
                self.predecessors.setdefault(id, []).append(block.id)

    def _replace(self, block: Block, case: Case, end: int, blocks: Dict[Position, int]) -> None:
        before = block.successors()
        fail, pattern = case.reading.fail, case.reading.pattern
        block.jumps_from = max(block.extent(), block.jumps_from)
        guarded = case.keeps or self._guarded(self.graph.blocks[end], case.reading.last_line)
        if fail is None:
            block.term = PatternJump(end, block.offset(), pattern, guarded)
        else:
            default = not case.keeps and self._is_default(self.graph.blocks[blocks[fail]])
            first = block.ops[0] if block.ops else block.term.instr if isinstance(block.term, (Branch, For)) else None
            assert first is not None
            block.term = PatternBranch(
                Test.PATTERN, False, blocks[fail], end, first, pattern, case.keeps, guarded, default
            )
        block.ops = []
        self._update_predecessors(block, before)

    def _move_down(self, block: Block) -> Block:
        """Return a new block with the operations of ``block`` as its successor; the caller empties ``block``."""
        rest = self._cut(block, 0)
        block.ops = rest.ops
        return rest

    def _cut(self, block: Block, index: int) -> Block:
        """Cut ``block`` before its operation ``index``; return the new block with the rest."""
        before = block.successors()
        rest = self.graph.cut(block, index)
        rest.implicit, rest.jumps_from = block.implicit, block.jumps_from
        self.sources[rest.id] = 1
        self._update_predecessors(rest, ())
        self._update_predecessors(block, before)
        return rest

    def _is_default(self, block: Block) -> bool:
        """Return whether the line ``case _:`` precedes ``block``."""
        if self.idle is None:
            self.idle = _after_idle_lines(self.graph)
        return block.offset() in self.idle

    def _guarded(self, block: Block, line: int) -> bool:
        """Return whether a test follows on the last line of the pattern or before."""
        return type(block.term) is Branch and (block.term.instr.line or 0) <= line

    def _split(self, positions: List[Position]) -> Dict[Position, int]:
        """Make each position the start of a block; return the ids of these blocks."""
        result: Dict[Position, int] = {}
        for id, index in sorted(set(positions), reverse=True):
            block = self.graph.blocks[id]
            if index == 0:
                result[id, index] = id
                continue
            result[id, index] = self._cut(block, index).id
        return result


def _class_begins(ops: List[Instr], index: int) -> int:
    """Return where the class of a class pattern is loaded: ``LOAD; ATTR ...; CONST names; MATCH_CLASS``."""
    start = index - 2
    while start > 0 and ops[start].op is Op.ATTR:
        start -= 1
    return max(start, 0)


def _touches_subject(ops: List[Instr], index: int, height: int) -> Tuple[bool, int, int]:
    """Return whether operations from ``index`` on use the subject, the height after them, and the index of the first
    use. The subject is below the values that ``height`` counts above 1."""
    for at in range(index, len(ops)):
        takes, leaves = effect(ops[at].op, ops[at].arg)
        if takes > height - 1:
            return True, height, at
        height += leaves - takes
    return False, height, len(ops)


def _after_idle_lines(graph: FlowGraph) -> Set[int]:
    """Return the offsets after a NOP with a line of its own, such as the one for ``case _``."""
    known = {instr.offset for instr in graph.code.ops}
    ranges = line_ranges(graph.code.code)
    return {end for start, end, line in ranges if line is not None and end - start == 2 and start not in known}
