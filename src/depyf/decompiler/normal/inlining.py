"""Inline the comprehensions of a compiler before 3.12, as later compilers do (PEP 709), so that both are comparable.

    CLOSURE y; BUILD tuple; CONST <listcomp>; MAKE_FUNCTION 8; LOAD xs; ITER; CALL

becomes the listing in ``flow/comprehensions.py``: the loop replaces the call, uses variables of the enclosing code, and
saves their values meanwhile. A comprehension that can't be inlined safely stays a call.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Callable, Dict, List, Optional, Set, Tuple, Union

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.code import Code, is_code
from depyf.decompiler.normal.effects import effect
from depyf.decompiler.normal.ops import Handler, Instr, NormalCode, Op
from depyf.decompiler.normal.stack_check import stack_depths

COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})
_WAITING = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@dataclass(frozen=True)
class _Call:
    """A comprehension of ``body``, whose function is made at ``first`` to ``made`` and called at ``call``."""

    first: int
    made: int
    call: int
    body: NormalCode
    variables: Tuple[str, ...]


def put_in_line(normal: NormalCode, lower: Callable[[Code], NormalCode]) -> NormalCode:
    """Return ``normal`` with its comprehensions inlined; ``lower`` returns the normal form of their code objects."""
    depths = stack_depths(normal)
    # A variable of a comprehension becomes one of the enclosing code: where a nested function there uses a variable of
    # that name as a cell, the two would be mixed up. A call that is not inlined keeps its own cells: look again.
    found = [call for call in (_call_at(normal, at, depths, lower) for at in range(len(normal.ops))) if call]
    while True:
        kept = [call for call in found if not set(call.variables) & _captured(normal, found)]
        if len(kept) == len(found):
            break
        found = kept
    return _Writer(normal, depths, found).run() if found else normal


def _call_at(
    normal: NormalCode, at: int, depths: Dict[int, int], lower: Callable[[Code], NormalCode]
) -> Optional[_Call]:
    """Return the comprehension whose code object is pushed at ``at``."""
    ops = normal.ops
    code = ops[at].arg
    if ops[at].op is not Op.CONST or not is_code(code) or code.co_name not in COMPREHENSIONS or at + 1 >= len(ops):
        return None
    if ops[at + 1].op is not Op.MAKE_FUNCTION or ops[at + 1].arg not in (0, 8):
        return None
    # CLOSURE a; CLOSURE b; BUILD tuple 2; CONST <listcomp>; MAKE_FUNCTION 8: the cells are part of the call.
    first = at
    if ops[at + 1].arg == 8:
        cells = ops[at - 1]
        if not at or cells.op is not Op.BUILD or cells.arg[0] != "tuple" or cells.arg[1] >= at:
            return None
        first = at - 1 - cells.arg[1]
        if any(instr.op is not Op.CLOSURE for instr in ops[first : at - 1]):
            return None
    call = _taker(ops, at + 1, depths)
    if call is None or not _is_apart(ops, first, call):
        return None
    # The body must begin with ``BUILD list 0; LOAD .0; FOR`` and not use the iterator again: then the enclosing code
    # can have it on its stack. A comprehension that awaits, or has cells, stays a call: 3.12 has another form for it.
    body = put_in_line(lower(code), lower)
    plain = not code.co_flags & _WAITING and not code.co_cellvars
    begins = [instr.op for instr in body.ops[:3]] == [Op.BUILD, Op.LOAD, Op.FOR] and body.ops[1].arg == ("fast", ".0")
    again = any(instr.arg == ("fast", ".0") for instr in body.ops[2:])
    if not plain or not begins or again:
        return None
    return _Call(first, at + 1, call, body, tuple(name for name in code.co_varnames if name != ".0"))


def _taker(ops: Tuple[Instr, ...], made: int, depths: Dict[int, int]) -> Optional[int]:
    """Return where the function made at ``made`` is called with one iterator, if nothing uses it before."""
    # Follow the straight code until an operation takes the function from the stack: it must be CALL 1 just after ITER.
    floor = depths[made] - effect(ops[made].op, ops[made].arg)[0] + 1
    for at in range(made + 1, len(ops)):
        instr = ops[at]
        taken, _left = effect(instr.op, instr.arg)
        if instr.handler is not None and instr.handler.depth >= floor:
            return None
        if depths[at] - taken < floor:
            called = instr.op is Op.CALL and taken == 2 and not instr.arg[1] and depths[at] == floor + 1
            return at if called and ops[at - 1].op is Op.ITER else None
    return None


def _is_apart(ops: Tuple[Instr, ...], first: int, call: int) -> bool:
    """Return whether ``first`` is the only entry to the operations between, and ``call`` the only exit."""
    for at, instr in enumerate(ops):
        inside = first <= at <= call
        if instr.target is not None and inside != (first < instr.target <= call):
            if inside or first < instr.target <= call:
                return False
        if instr.handler is not None and first < instr.handler.target <= call:
            return False
        if inside and instr.op in (Op.RETURN, Op.RERAISE):
            return False
    return True


def _captured(normal: NormalCode, calls: List[_Call]) -> Set[str]:
    """Return the variables whose cells are still loaded when ``calls`` are inlined."""
    gone = {at for call in calls for at in range(call.first, call.made)}
    taken = {instr.arg for at, instr in enumerate(normal.ops) if instr.op is Op.CLOSURE and at not in gone}
    return taken | set(normal.code.co_freevars)


_Label = Union[int, Tuple[Union[int, str], int]]
"""The label of an operation: its original index, with one in a call, or ``end`` or ``cleanup`` of a call."""
_Guard = Optional[Tuple[_Label, Handler]]
"""A label and the handler at it."""


def _guard(instr: Instr) -> _Guard:
    return None if instr.handler is None else (instr.handler.target, instr.handler)


class _Writer:
    """Rewrites the operations; jumps target labels until all have an index."""

    def __init__(self, normal: NormalCode, depths: Dict[int, int], calls: List[_Call]) -> None:
        self.normal, self.depths = normal, depths
        self.calls = {call.call: call for call in calls}
        self.gone = {at for call in calls for at in range(call.first, call.made + 1)}
        self.ops: List[Instr] = []
        self.to: List[Tuple[Optional[_Label], _Guard]] = []
        self.labels: Dict[_Label, int] = {}
        code = normal.code
        self.is_module = code.co_name == "<module>" and not code.co_flags & inspect.CO_OPTIMIZED

    def run(self) -> NormalCode:
        for at, instr in enumerate(self.normal.ops):
            self.labels[at] = len(self.ops)
            if at in self.calls:
                self.loop(self.calls[at], instr)
            elif at not in self.gone:
                self.write(instr, instr.target, _guard(instr))
        for call in self.calls.values():
            self.cleanup(call, self.normal.ops[call.call])
        return replace(self.normal, ops=tuple(map(self.placed, self.ops, self.to)))

    def write(self, instr: Instr, target: Optional[_Label], handler: _Guard) -> None:
        self.ops.append(instr)
        self.to.append((target, handler))

    def placed(self, instr: Instr, to: Tuple[Optional[_Label], _Guard]) -> Instr:
        target, handler = to
        return instr.changed(
            target=None if target is None else self.labels[target],
            handler=handler and replace(handler[1], target=self.labels[handler[0]]),
        )

    def loop(self, call: _Call, instr: Instr) -> None:
        # iterator                          before the call
        # TAKE x ...; SWAP                  the variables of the enclosing code are saved, below the iterator
        # BUILD list; SWAP 2; FOR ...       the body: its ``LOAD .0`` is the iterator, its RETURN a jump to the end
        # SWAP; STORE x ...                 restore the variables, below the result
        around = _guard(instr)
        count = len(call.variables)
        # The stack below the loop: without the functions of this and the enclosing calls, which are not made any more.
        functions = sum(other.made < call.first and other.call > call.call for other in self.calls.values())
        base = self.depths[call.first] - functions + count
        cleanup = ("cleanup", call.call), Handler(-1, base + 1, False)
        for name in call.variables:
            self.write(instr.changed(op=Op.TAKE, arg=("fast", name)), None, around)
        self.write(instr.changed(op=Op.SWAP, arg=count + 1), None, around)
        for at, inner in enumerate(call.body.ops):
            self.labels[call.call, at] = len(self.ops)
            guard: _Guard = cleanup
            if inner.handler is not None:
                depth = base + inner.handler.depth
                guard = (call.call, inner.handler.target), replace(inner.handler, depth=depth)
            target = None if inner.target is None else (call.call, inner.target)
            if inner.op is Op.RETURN:
                self.write(inner.changed(op=Op.JUMP, arg=None), ("end", call.call), guard)
            elif inner.arg == ("fast", ".0"):
                self.write(inner.changed(op=Op.SWAP, arg=2), None, guard)
            elif self.is_module and inner.op is Op.LOAD and inner.arg[0] == "global":
                self.write(inner.changed(arg=("name", inner.arg[1])), None, guard)
            else:
                self.write(inner, target, guard)
        self.labels["end", call.call] = len(self.ops)
        self.put_back(call, instr, around)

    def cleanup(self, call: _Call, instr: Instr) -> None:
        # The handler of the loop: drop the unfinished result, restore the variables, raise again.
        around = _guard(instr)
        self.labels["cleanup", call.call] = len(self.ops)
        self.write(instr.changed(op=Op.SWAP, arg=2), None, around)
        self.write(instr.changed(op=Op.POP, arg=None), None, around)
        self.put_back(call, instr, around)
        self.write(instr.changed(op=Op.RERAISE, arg=None), None, around)

    def put_back(self, call: _Call, instr: Instr, around: _Guard) -> None:
        self.write(instr.changed(op=Op.SWAP, arg=len(call.variables) + 1), None, around)
        for name in reversed(call.variables):
            self.write(instr.changed(op=Op.STORE, arg=("fast", name)), None, around)
