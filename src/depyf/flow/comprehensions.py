"""Turn inlined comprehensions (PEP 709, 3.12) into code objects of their own, as in older versions.

iterator                    LOAD xs; GET_ITER
TAKE x ...; SWAP            the iteration variables are saved, below the iterator
BUILD list 0; SWAP 2
1: FOR 2                    ... STORE x ... ADD list; JUMP 1
2: SWAP; STORE x ...        and restored, below the result
3: SWAP 2; POP; SWAP; STORE x ...; RERAISE      the same when the loop raises

3.15 makes the iterator just before the loop; until then the iterable is in its place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import AbstractSet, Dict, FrozenSet, List, Optional, Sequence, Set, Tuple

from depyf.normal.effects import FIXED, effect
from depyf.normal.inlined import inlined_code
from depyf.normal.ops import ENDS, Handler, Instr, NormalCode, Op
from depyf.quick_dataclass import dataclass

_NAMES = {"list": "<listcomp>", "set": "<setcomp>", "map": "<dictcomp>"}
_RESULT = "the result"
_HOUSEKEEPING = frozenset({Op.SWAP, Op.STORE, Op.POP, Op.RERAISE})


def outline(normal: NormalCode) -> NormalCode:
    """Return ``normal`` with a COMPREHENSION in place of every loop that is one. Other loops are not changed."""
    found = list(_Search(normal).run())
    if not found:
        return normal
    ops = normal.ops
    kept = dict(enumerate(ops))
    for loop in found:
        for at in (*loop.members, *loop.ends, *range(loop.start, loop.header + 1)):
            del kept[at]
        kept[loop.start] = _operation(normal, loop)
    order = sorted(kept)
    going_on = {loop.start: loop.behind for loop in found}
    listed: List[Tuple[int, Instr]] = []
    for at, following in zip(order, [*order[1:], len(ops)]):
        listed.append((at, kept[at]))
        if going_on.get(at, following) != following:
            listed.append((len(ops) + at, kept[at].changed(op=Op.JUMP, arg=None, target=going_on[at])))
    return replace(normal, ops=_renumbered(listed))


@dataclass(frozen=True)
class _Loop:
    """Indices of a comprehension: ``start`` is its first operation after the iterator, ``build`` makes the result,
    ``header`` is the FOR."""

    start: int
    build: int
    header: int
    kind: str
    taken: Tuple[Tuple[str, str], ...]
    members: FrozenSet[int]
    ends: FrozenSet[int]
    """The operations that restore the variables, after the loop and when it raises."""
    below: int
    """The number of values below its result and its iterator."""
    behind: int
    """Where control continues with the result: anywhere, since the end of ``async for`` may have been moved."""


class _Search:
    def __init__(self, normal: NormalCode) -> None:
        self.normal, self.ops = normal, normal.ops
        self.known_depths: Optional[Dict[int, int]] = None
        self.known_sources: Optional[List[List[int]]] = None

    def run(self) -> List[_Loop]:
        """Return all outermost comprehensions."""
        found: List[_Loop] = []
        inside: Set[int] = set()
        if not self.normal.kinds >= {Op.BUILD, Op.SWAP, Op.FOR}:
            return found
        for at, instr in enumerate(self.ops[:-2]):
            if instr.op is not Op.BUILD or at in inside:
                continue
            loop = self._loop(at)
            if loop is not None:
                found.append(loop)
                inside |= loop.members
        return found

    def _loop(self, build: int) -> Optional[_Loop]:
        """Return the comprehension whose empty result is made at ``build``."""
        ops = self.ops
        kind, count = ops[build].arg
        header = build + (3 if ops[build + 2].op in (Op.ITER, Op.AITER) else 2)
        exhausted = ops[header].target if ops[header].op is Op.FOR else None
        if kind not in _NAMES or count or (ops[build + 1].op, ops[build + 1].arg) != (Op.SWAP, 2) or exhausted is None:
            return None
        start, taken = self._takes(build)
        below = self._depths().get(header, 0) - 2
        cleanup = self._cleanup(ops[header].handler, len(taken)) if taken else set()
        members = self._members(header, exhausted, {ops[start].handler, ops[header].handler if cleanup else None})
        if members is None or self._entered(members, {header}):
            return None
        if self._entered(cleanup, members.union(range(start, header + 1))):
            return None
        behind = self._behind(exhausted) if taken else exhausted
        restores = self._restores(behind, taken)
        if restores is None or (restores and self._entered(set(range(behind, max(restores) + 1)), {header, exhausted})):
            return None
        ends = restores | cleanup | ({exhausted} if behind != exhausted else set())
        while behind in ends:
            behind += 1
        return _Loop(start, build, header, kind, tuple(taken), frozenset(members), frozenset(ends), below, behind)

    def _takes(self, build: int) -> Tuple[int, List[Tuple[str, str]]]:
        """Return where the comprehension begins and the variables that it saves."""
        ops = self.ops
        if build and ops[build - 1].op is Op.SWAP:
            start = build - 1
            taken: List[Tuple[str, str]] = []
            while start and len(taken) < ops[build - 1].arg - 1 and ops[start - 1].op in (Op.TAKE, Op.MAKE_CELL):
                start -= 1
                if ops[start].op is Op.TAKE:
                    taken.insert(0, ops[start].arg)
            if taken and len(taken) == ops[build - 1].arg - 1:
                return start, taken
        return build, []

    def _cleanup(self, handler: Optional[Handler], count: int) -> Set[int]:
        """Return the operations of ``handler`` if it only restores ``count`` variables."""
        if handler is None:
            return set()
        end = handler.target
        while self.ops[end].op in _HOUSEKEEPING and self.ops[end].op is not Op.RERAISE:
            end += 1
        cleanup = self.ops[handler.target : end + 1]
        stores = [instr for instr in cleanup if instr.op is Op.STORE]
        if cleanup[-1].op is Op.RERAISE and cleanup[1].op is Op.POP and len(stores) == count:
            return set(range(handler.target, end + 1))
        return set()

    def _members(self, header: int, exhausted: int, outer: Set[Optional[Handler]]) -> Optional[Set[int]]:
        """Return the operations of the loop; None if it has another exit than its end."""
        members: Set[int] = set()
        todo = [header + 1]
        while todo:
            at = todo.pop()
            if at == header or at in members:
                continue
            instr = self.ops[at]
            if at == exhausted or instr.op is Op.RETURN:
                return None
            members.add(at)
            if instr.op not in ENDS:
                todo.append(at + 1)
            if instr.target is not None:
                todo.append(instr.target)
            if instr.handler is not None and instr.handler not in outer:
                todo.append(instr.handler.target)
        return members

    def _entered(self, members: Set[int], known: AbstractSet[int]) -> bool:
        """Return whether ``members`` have predecessors other than ``known`` operations."""
        return any(source not in known and source not in members for at in members for source in self._sources()[at])

    def _sources(self) -> List[List[int]]:
        """Return the predecessors of each operation."""
        if self.known_sources is None:
            sources = self.known_sources = [[] for _ in range(len(self.ops) + 1)]
            for at, instr in enumerate(self.ops):
                if instr.op not in ENDS:
                    sources[at + 1].append(at)
                if instr.target is not None:
                    sources[instr.target].append(at)
                if instr.handler is not None:
                    sources[instr.handler.target].append(at)
        return self.known_sources

    def _behind(self, exhausted: int) -> int:
        """Return the successor of the exhausted loop, behind the cleanup where that is in between."""
        instr = self.ops[exhausted]
        return instr.target if instr.op is Op.JUMP and instr.target is not None else exhausted

    def _restores(self, behind: int, taken: List[Tuple[str, str]]) -> Optional[Set[int]]:
        """Return the operations that restore variables, from ``behind`` on; None if not all are restored. The compiler
        turns ``SWAP 2; STORE x; STORE result`` into ``STORE result; STORE x``, so that uses of the result may come
        between."""
        stack: List[object] = [_RESULT, *taken]
        stack[0], stack[-1] = stack[-1], stack[0]
        restores: Set[int] = set()
        at = behind
        while any(item is not _RESULT for item in stack):
            instr = self.ops[at]
            if instr.op is Op.SWAP and instr.arg <= len(stack):
                stack[-1], stack[-instr.arg] = stack[-instr.arg], stack[-1]
                restores.add(at)
            elif instr.op in (Op.STORE, Op.POP):
                item = stack.pop()
                if item is not _RESULT:
                    if instr.op is Op.STORE and instr.arg != item:
                        return None
                    restores.add(at)
            else:
                return None
            at += 1
        return restores

    def _depths(self) -> Dict[int, int]:
        """Return the stack depth before each operation."""
        if self.known_depths is None:
            depths = self.known_depths = {}
            todo = [(0, 0)]
            while todo:
                at, depth = todo.pop()
                while at not in depths:
                    depths[at] = depth
                    instr = self.ops[at]
                    if instr.handler is not None:
                        todo.append((instr.handler.target, instr.handler.depth + instr.handler.lasti + 1))
                    takes, leaves = FIXED.get(instr.op) or effect(instr.op, instr.arg)
                    if instr.target is not None:
                        todo.append((instr.target, depth - 1 if instr.op is Op.FOR else depth - takes + leaves))
                    if instr.op in ENDS:
                        break
                    at, depth = at + 1, depth - takes + leaves
        return self.known_depths


def _operation(normal: NormalCode, loop: _Loop) -> Instr:
    """Return the COMPREHENSION for ``loop``."""
    ops = normal.ops
    build, header = ops[loop.build], ops[loop.header]
    assert header.target is not None
    first = build.changed(handler=None)
    argument = build.changed(op=Op.LOAD, arg=("fast", ".0"), handler=None)
    end = ops[header.target].changed(op=Op.RETURN, arg=None, target=None, handler=None)
    inner: List[Tuple[int, Instr]] = [(loop.build, first), (loop.build + 1, argument)]
    body_first = sorted(loop.members, key=lambda at: (at < loop.header, at))
    inner.extend((at, _inside(ops[at], loop)) for at in (loop.header, *body_first))
    known = replace(normal, ops=_renumbered([*inner, (header.target, end)]), open_tests=_open_tests(normal, loop))
    body = outline(known).ops
    cells = tuple(ops[at].arg for at in range(loop.start, loop.header) if ops[at].op is Op.MAKE_CELL)
    variables = tuple(name for _, name in loop.taken if name not in cells)
    without_cell = frozenset(name for scope, name in loop.taken if scope == "cell" and name not in cells)
    if without_cell:
        body = _on_values(body, without_cell)
    code = inlined_code(normal.code, _NAMES[loop.kind], variables, cells, body, known.open_tests)
    return build.changed(op=Op.COMPREHENSION, arg=code, handler=ops[loop.start].handler)


def _open_tests(normal: NormalCode, loop: _Loop) -> Optional[Tuple[int, ...]]:
    """Return the offsets of the tests that the handlers around the code do not cover, or not that of ``loop``; ``None``
    if none is covered."""
    if normal.open_tests is None:
        return None
    handler = normal.ops[loop.header].handler
    tests = [at for at in loop.members if normal.ops[at].op is Op.COPY and normal.ops[at + 1].op is Op.BRANCH]
    others = [normal.ops[at + 1].offset for at in tests if normal.ops[at].handler is None and handler is not None]
    return (*normal.open_tests, *sorted(others))


def _on_values(ops: Sequence[Instr], names: FrozenSet[str]) -> Tuple[Instr, ...]:
    """Return ``ops`` with accesses of the value for accesses of a cell. A variable of another scope's cell that is no
    cell in this comprehension has its value in the slot of the cell."""
    result: List[Instr] = []
    for instr in ops:
        if instr.op is Op.CLOSURE and instr.arg in names:
            instr = instr.changed(op=Op.LOAD, arg=("fast", instr.arg))
        elif instr.op is Op.STORE and instr.arg[0] == "cell" and instr.arg[1] in names:
            instr = instr.changed(arg=("fast", instr.arg[1]))
        elif instr.op is Op.COMPREHENSION:
            inner = names.difference(instr.arg.co_varnames, instr.arg.co_cellvars)
            instr = instr.changed(arg=replace(instr.arg, ops=_on_values(instr.arg.ops, inner)))
        result.append(instr)
    return tuple(result)


def _inside(instr: Instr, loop: _Loop) -> Instr:
    """Return ``instr`` for a code object of its own: with the loop's handlers only."""
    handler = instr.handler
    if handler is None:
        return instr
    own = handler.target in loop.members
    return instr.changed(handler=replace(handler, depth=handler.depth - loop.below) if own else None)


def _renumbered(kept: Sequence[Tuple[int, Instr]]) -> Tuple[Instr, ...]:
    """Return the reachable operations; targets refer to the indices that come with them."""
    place = {at: index for index, (at, _) in enumerate(kept)}
    reached: Set[int] = set()
    todo = [0]
    while todo:
        index = todo.pop()
        while index not in reached:
            reached.add(index)
            instr = kept[index][1]
            if instr.target is not None:
                todo.append(place[instr.target])
            if instr.handler is not None:
                todo.append(place[instr.handler.target])
            if instr.op in ENDS:
                break
            index += 1
    order = sorted(reached)
    new = {kept[index][0]: position for position, index in enumerate(order)}
    result: List[Instr] = []
    for index in order:
        instr = kept[index][1]
        target = None if instr.target is None else new[instr.target]
        handler = instr.handler
        if target is not None or handler is not None:
            handler = handler and replace(handler, target=new[handler.target])
            instr = instr.changed(target=target, handler=handler)
        result.append(instr)
    return tuple(result)
