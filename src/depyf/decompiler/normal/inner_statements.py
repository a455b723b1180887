"""The statements inside of a compound statement, recovered from bytecode: single-entry single-exit regions.

    4  LOAD x; BRANCH to 8       begins a region that ends at 10, the first operation which all paths from 4 reach
    6  LOAD g; CALL; POP         with the stack as high as before
    7  JUMP to 10
    8  LOAD h; CALL; POP
    10 ...

A region is a statement if it uses no earlier values of the stack, and no jump enters or leaves it elsewhere.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, Optional, Set, Tuple

from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.ops import Handler, NormalCode, Op
from depyf.decompiler.normal.spine import Segment, immediate_dominators, successors
from depyf.decompiler.normal.stack_check import stack_depths


class InnerStatements:
    """The inner statements of one code object."""

    def __init__(self, normal: NormalCode) -> None:
        self._ops, self._depths = normal.ops, stack_depths(normal)
        count = len(self._ops)
        self._into: List[Set[int]] = [set() for _ in range(count)]
        backwards: List[List[int]] = [[] for _ in range(count + 1)]
        for index, instr in enumerate(self._ops):
            following = successors(self._ops, index)
            for each in following:
                self._into[each].add(index)
            # The end of a statement is sought on paths without exceptions: its handlers are a part of it.
            for each in following[:-1] if instr.handler is not None else following:
                backwards[each].append(index)
            if instr.op in (Op.RETURN, Op.RERAISE):  # the end of a handler has a ``finally`` body before it
                backwards[count].append(index)
        self._post_dominators = immediate_dominators(backwards, count)  # the dominators of the reversed graph
        self._added = frozenset(self._nobody_wrote())
        self._bound = dict(self._bindings())

    def within(self, segment: Segment) -> List[Segment]:
        """Return the outermost statements inside of ``segment``, in the order of the bytecode."""
        whole = self.members(segment)
        if whole is None:
            return []
        # Every operation may begin a statement, covered by its own handler or by one further out.
        found: List[Tuple[FrozenSet[int], Segment]] = []
        for start in sorted(whole):
            for handler in self._handlers(start):
                inner = self._from(start, handler, whole, segment.end)
                if inner is not None:
                    members = self.members(inner)
                    if members is not None and inner != segment and members <= whole and not members <= self._added:
                        found.append((members, inner))
        # Of a try statement and the first one in it, which have the same operations then, the outer one comes first.
        found.sort(key=lambda each: (-len(each[0]), each[1].start, self._nesting(each[1].handler)))
        # The largest come first; smaller ones inside of them are found when these are searched.
        taken: Set[int] = set()
        result: List[Segment] = []
        for members, inner in found:
            same = members == whole and self._nesting(inner.handler) <= self._nesting(segment.handler)
            if not same and not members & taken:
                taken |= members
                result.append(inner)
        return sorted(result)

    def members(self, segment: Segment) -> Optional[FrozenSet[int]]:
        """Return the operations of ``segment``; ``None`` if it is not a statement."""
        start, end, guard = segment
        base = self._depths.get(start)
        outside = set(self._targets(guard))
        seen: Set[int] = set()
        todo = [start]
        while todo:
            index = todo.pop()
            if index in seen or index == end or index in outside:
                continue
            instr = self._ops[index]
            # It returns, or takes a value from below its own: no statement.
            if base is None or instr.op is Op.RETURN or self._depths[index] - effect(instr.op, instr.arg)[0] < base:
                return None
            seen.add(index)
            todo.extend(successors(self._ops, index))
        if any(not self._into[index] <= seen for index in seen if index != start):
            return None  # a jump from elsewhere leads into it
        if any(self._bound.get(index, index) not in seen for index in seen):
            return None  # part of an except clause with a name, not a try statement
        return frozenset(seen) if seen else None

    def _from(self, start: int, handler: Optional[Handler], whole: FrozenSet[int], end: int) -> Optional[Segment]:
        """Return the region from ``start``, covered by ``handler``, to where the stack has the same height again."""
        at = self._post_dominators.get(start)
        while at is not None and (at in whole or at == end):
            if self._depths.get(at) == self._depths[start]:
                return Segment(start, at, handler)
            if at == end:
                break
            at = self._post_dominators.get(at)
        return None

    def _handlers(self, start: int) -> Iterator[Optional[Handler]]:
        """Yield the possible handlers of the statement that begins at ``start``: it may be or be in a ``try``."""
        handler = self._ops[start].handler
        yield handler
        # Where no predecessor is under the handler, a ``try`` may begin: then the handler around that covers it.
        while handler is not None and all(self._ops[before].handler != handler for before in self._into[start]):
            handler = self._ops[handler.target].handler
            yield handler

    def _targets(self, handler: Optional[Handler]) -> Iterator[int]:
        known: Dict[int, None] = {}
        while handler is not None and handler.target not in known:
            known[handler.target] = None
            handler = self._ops[handler.target].handler
        return iter(known)

    def _nobody_wrote(self) -> Iterator[int]:
        """Yield the indices of operations without a statement of their own: jumps, and ``name = None; del name`` at the
        end of ``except E as name``."""
        ops = self._ops
        for index, instr in enumerate(ops):
            if instr.op is Op.JUMP:
                yield index
            if [each.op for each in ops[index : index + 3]] == [Op.CONST, Op.STORE, Op.DELETE]:
                if instr.arg is None and ops[index + 1].arg == ops[index + 2].arg:
                    yield from range(index, index + 3)

    def _bindings(self) -> Iterator[Tuple[int, int]]:
        """Yield the handlers that delete the name of an exception, each with the index where it is bound."""
        # STORE name                       the operation before the range of the handler binds the name
        # ... the clause ...               with the handler entry: CONST None; STORE name; DELETE name; RERAISE
        ops = self._ops
        for index, instr in enumerate(ops):
            entry = None if instr.handler is None else instr.handler.target
            if index and entry is not None and entry in self._added and ops[index - 1].handler != instr.handler:
                if ops[index - 1].op is Op.STORE and ops[index - 1].arg == ops[entry + 1].arg:
                    yield entry, index - 1

    def _nesting(self, handler: Optional[Handler]) -> int:
        return len(list(self._targets(handler)))
