"""Turn inlined comprehensions (PEP 709, 3.12) into code objects of their own, as in older versions.

iterator                    LOAD xs; GET_ITER
TAKE x ...; SWAP            the iteration variables are saved, below the iterator
BUILD list 0; SWAP 2
1: FOR 2                    ... STORE x ... ADD list; JUMP 1
2: SWAP; STORE x ...        and restored, below the result
3: SWAP 2; POP; SWAP; STORE x ...; RERAISE      the same when the loop raises

3.15 makes the iterator just before the loop: until there, the stack has the iterable.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import AbstractSet, Dict, FrozenSet, List, Optional, Sequence, Set, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.normal.inlined import inlined_code
from depyf.decompiler.normal.ops import ENDS, Handler, Instr, NormalCode, Op, reachable
from depyf.decompiler.normal.spine import successors
from depyf.decompiler.normal.stack_check import stack_depths

_NAMES = {"list": "<listcomp>", "set": "<setcomp>", "map": "<dictcomp>"}
_RESULT = "the result"
_HOUSEKEEPING = frozenset({Op.SWAP, Op.STORE, Op.POP, Op.RERAISE})


def outline(normal: NormalCode) -> NormalCode:
    """Return ``normal`` with every loop that is an inlined comprehension replaced by a COMPREHENSION."""
    found = list(_Search(normal).run())
    if not found:
        return normal
    # Of each comprehension only its first operation is kept, and becomes the COMPREHENSION: iterator -> result.
    ops = normal.ops
    kept = dict(enumerate(ops))
    for loop in found:
        for at in (*loop.members, *loop.ends, *range(loop.start, loop.header + 1)):
            del kept[at]
        kept[loop.start] = _operation(normal, loop)
    # The result is used where the loop was exhausted. If that is not what follows now, a jump leads there; its index is
    # beyond all others, so that it can't be a target.
    order = sorted(kept)
    going_on = {loop.start: loop.after for loop in found}
    listed: List[Tuple[int, List[Instr]]] = []
    for at, following in zip(order, [*order[1:], len(ops)]):
        listed.append((at, [kept[at]]))
        if going_on.get(at, following) != following:
            listed.append((len(ops) + at, [kept[at].changed(op=Op.JUMP, arg=None, target=going_on[at])]))
    return replace(normal, ops=reachable(listed))


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
    after: int
    """Where control continues with the result: anywhere, since the end of ``async for`` may have been moved."""


class _Search:
    def __init__(self, normal: NormalCode) -> None:
        self.normal, self.ops = normal, normal.ops

    @cached_property
    def _depths(self) -> Dict[int, int]:
        """The stack depth before each operation."""
        return stack_depths(self.normal)

    def run(self) -> List[_Loop]:
        """Return all outermost comprehensions."""
        found: List[_Loop] = []
        inside: Set[int] = set()
        if not self.normal.kinds >= {Op.BUILD, Op.SWAP, Op.FOR}:
            return found
        # Inner comprehensions are found when the code of the outer one is outlined in turn.
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
        # BUILD list 0; SWAP 2; (ITER;) FOR
        ops = self.ops
        kind, count = ops[build].arg
        header = build + (3 if ops[build + 2].op in (Op.ITER, Op.AITER) else 2)
        exhausted = ops[header].target if ops[header].op is Op.FOR else None
        if kind not in _NAMES or count or (ops[build + 1].op, ops[build + 1].arg) != (Op.SWAP, 2) or exhausted is None:
            return None
        # Without variables to save, as in ``[f() for a.b in c]``, there is no handler to restore them either.
        start, taken = self._takes(build)
        below = self._depths.get(header, 0) - 2
        cleanup = self._cleanup(ops[header].handler, len(taken)) if taken else set()
        members = self._members(header, exhausted, {ops[start].handler, ops[header].handler if cleanup else None})
        # Only the header leads into the loop, and only the loop to the handler: else the code is no comprehension.
        if members is None or self._entered(members, {header}):
            return None
        if self._entered(cleanup, members.union(range(start, header + 1))):
            return None
        after = self._after(exhausted) if taken else exhausted
        restores = self._restores(after, taken)
        if restores is None or (restores and self._entered(set(range(after, max(restores) + 1)), {header, exhausted})):
            return None
        ends = restores | cleanup | ({exhausted} if after != exhausted else set())
        # A use of the result may stand between the operations that restore: control continues at the first one kept.
        while after in ends:
            after += 1
        return _Loop(start, build, header, kind, tuple(taken), frozenset(members), frozenset(ends), below, after)

    def _takes(self, build: int) -> Tuple[int, List[Tuple[str, str]]]:
        """Return where the comprehension begins and the variables that it saves."""
        # TAKE x; MAKE_CELL x; TAKE y; SWAP 3: the SWAP counts the variables and the iterator
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
        # SWAP 2; POP; SWAP; STORE x ...; RERAISE
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
            # Handlers of an inner comprehension are a part of the loop; handlers around it are not.
            if instr.handler is not None and instr.handler not in outer:
                todo.append(instr.handler.target)
        return members

    def _entered(self, members: Set[int], known: AbstractSet[int]) -> bool:
        """Return whether ``members`` have predecessors other than ``known`` operations."""
        return any(source not in known and source not in members for at in members for source in self._sources[at])

    @cached_property
    def _sources(self) -> List[List[int]]:
        """The predecessors of each operation."""
        sources: List[List[int]] = [[] for _ in range(len(self.ops) + 1)]
        for at in range(len(self.ops)):
            for following in successors(self.ops, at):
                sources[following].append(at)
        return sources

    def _after(self, exhausted: int) -> int:
        """Return where control continues after the exhausted loop: a jump may lead around the cleanup."""
        instr = self.ops[exhausted]
        return instr.target if instr.op is Op.JUMP and instr.target is not None else exhausted

    def _restores(self, after: int, taken: List[Tuple[str, str]]) -> Optional[Set[int]]:
        """Return the operations that restore variables, from ``after`` on; None if not all are restored. The compiler
        turns ``SWAP 2; STORE x; STORE result`` into ``STORE result; STORE x``, so that uses of the result may come
        between."""
        # iterable; TAKE x; TAKE y        iterable x y
        # SWAP 3                          y x iterable    the loop leaves its result on top
        # Execute what follows until all saved values are stored in their variables.
        stack: List[object] = [_RESULT, *taken]
        stack[0], stack[-1] = stack[-1], stack[0]
        restores: Set[int] = set()
        at = after
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


def _operation(normal: NormalCode, loop: _Loop) -> Instr:
    """Return the COMPREHENSION for ``loop``."""
    # <listcomp>:  BUILD list 0; LOAD .0; 1: FOR -> 2; ... the body ...; JUMP -> 1; 2: RETURN
    ops = normal.ops
    build, header = ops[loop.build], ops[loop.header]
    assert header.target is not None
    first = build.changed(handler=None)
    argument = build.changed(op=Op.LOAD, arg=("fast", ".0"), handler=None)
    end = ops[header.target].changed(op=Op.RETURN, arg=None, target=None, handler=None)
    inner: List[Tuple[int, List[Instr]]] = [(loop.build, [first]), (loop.build + 1, [argument])]
    # Code of the loop that stands before its header (moved there) comes last, so that the FOR follows the LOAD.
    body_first = sorted(loop.members, key=lambda at: (at < loop.header, at))
    inner.extend((at, [_inside(ops[at], loop)]) for at in (loop.header, *body_first))
    known = replace(normal, ops=reachable([*inner, (header.target, [end])]), open_tests=_open_tests(normal, loop))
    body = outline(known).ops
    # A saved variable for which no cell is made has its plain value in the slot, although it is a cell outside.
    cells = tuple(ops[at].arg for at in range(loop.start, loop.header) if ops[at].op is Op.MAKE_CELL)
    variables = tuple(name for _, name in loop.taken if name not in cells)
    without_cell = frozenset(name for scope, name in loop.taken if scope == "cell" and name not in cells)
    if without_cell:
        body = _on_values(body, without_cell)
    code = inlined_code(normal.code, _NAMES[loop.kind], variables, cells, body, known.open_tests)
    return build.changed(op=Op.COMPREHENSION, arg=code, handler=ops[loop.start].handler)


def _open_tests(normal: NormalCode, loop: _Loop) -> Optional[Tuple[int, ...]]:
    """Return the offsets of the tests that the handlers around the code, or the handler of ``loop``, do not cover;
    ``None`` if no test is covered."""
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
