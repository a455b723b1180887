"""The static facts of one side: operations with comparable names, join points, tested flags."""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.decompiler.bytecode.added_names import added_at_start
from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.bytecode.nesting import Names, qualified_name
from depyf.decompiler.normal.ops import ENDS, Instr, NormalCode, Op, is_silent

LOCAL_SCOPES = ("fast", "deref", "classderef", "bodyderef", "cell")
_ON_VARIABLES = (Op.LOAD, Op.STORE, Op.DELETE, Op.TAKE)
_READS = (Op.LOAD, Op.ATTR)

_ITS_LINE = object()
"""Replaces the line number that a class body stores as its first line."""


class Program:
    """The operations of one code object, local names mapped by ``renamed``.

    ``joins`` are the indices with more than one predecessor. ``locals`` are the names that its operations
    use as fast locals, ``used`` those of reachable operations: an operation that neither raises nor runs foreign code
    has no edge to its handler, so no path binds the names of such handlers alone (``try: pass``).
    A cell variable that no closure captures behaves like a fast local and is turned into one.
    ``changing_cells`` are variables that get new cells while the code runs, for inlined comprehensions: their current
    cell is a fast local called ``cell_name``.
    A class body stores its own qualified name: only the part after the name of the code ``around`` it is compared.
    Its first line, which it stores too (3.13), is not compared, nor is the order of its static attributes, which
    changes from run to run. Where these are stored, as a declaration in the body may say, is compared.
    """

    def __init__(self, normal: NormalCode, renamed: Mapping[str, str], around: Optional[Names]) -> None:
        self.normal, self.code = normal, normal.code
        ops, private = normal.ops, _private_cells(normal, renamed)
        if renamed or private:
            ops = tuple([_rename(instr, renamed, private) for instr in ops])
        self.changing_cells = _changing_cells(ops)
        if self.changing_cells:
            ops = tuple([_as_local(instr) if _cell_of(instr) in self.changing_cells else instr for instr in ops])
        self.ops = ops if self.code.co_flags & inspect.CO_OPTIMIZED else _comparable_facts(ops, self.code, around)

    @cached_property
    def joins(self) -> FrozenSet[int]:
        return _joins(self.ops)

    @cached_property
    def open_tests(self) -> FrozenSet[int]:
        """The indices of the tests that CPython's own handler around a generator does not cover: a StopIteration which
        they raise leaves it as it is. The normal form has no such handler: all other operations are covered. In a
        lambda that is a generator, none is."""
        offsets = self.normal.open_tests
        if offsets is None:
            return frozenset(range(len(self.ops)))
        tests = [index for index, instr in enumerate(self.ops) if instr.op is Op.BRANCH] if offsets else []
        return frozenset([index for index in tests if self.ops[index].offset in offsets])

    @cached_property
    def locals(self) -> FrozenSet[str]:
        return _fast_locals(self.ops)

    @cached_property
    def used(self) -> FrozenSet[str]:
        return _fast_locals([self.ops[index] for index in _reached(self.ops)])

    @cached_property
    def names(self) -> FrozenSet[str]:
        """The names that are read as variables or attributes."""
        read = [instr.arg if instr.op is Op.ATTR else instr.arg[1] for instr in self.ops if instr.op in _READS]
        return frozenset(read)

    @cached_property
    def changes_globals(self) -> bool:
        return any(instr.op in (Op.STORE, Op.DELETE) and instr.arg[0] in ("global", "name") for instr in self.ops)


def _comparable_facts(operations: Sequence[Instr], code: Code, around: Optional[Names]) -> Tuple[Instr, ...]:
    """Return the operations of a class body or module with what it stores of itself in comparable form."""
    ops = list(operations)
    # Only what the compiler itself stores, which comes first: the body may assign these names, too.
    own_names = {*added_at_start(code)} & {"__qualname__", "__firstlineno__"}
    last_attributes: Optional[int] = None  # what the compiler adds at the end of a class body that stores its line
    for index, instr in enumerate(ops[1:]):
        # CONST value; STORE name: what the compiler writes into the namespace of a class body.
        before = ops[index]
        if before.op is not Op.CONST or instr.op is not Op.STORE:
            continue
        name = instr.arg[1]
        is_own = name in own_names
        own_names.discard(name)
        if is_own and name == "__qualname__" and isinstance(before.arg, str):
            # ``__qualname__ = 'f.<locals>.C'``: the part that names the code around it may differ, as it is decompiled
            # alone.
            if before.arg in (code.co_name, qualified_name(code)):
                ops[index] = before.changed(arg=relative_name(before.arg, code, around))
        elif is_own and name == "__firstlineno__" and before.arg == code.co_firstlineno:
            ops[index] = before.changed(arg=_ITS_LINE)
            last_attributes = _last_store(ops, "__static_attributes__")
        # ``__static_attributes__ = ('a', 'b')``: a tuple that the compiler makes of a set.
        elif index + 1 == last_attributes and _are_names(before.arg):
            ops[index] = before.changed(arg=tuple(sorted(before.arg)))
    return tuple(ops)


def _fast_locals(ops: Sequence[Instr]) -> FrozenSet[str]:
    return frozenset([instr.arg[1] for instr in ops if instr.op in _ON_VARIABLES and instr.arg[0] == "fast"])


def _reached(ops: Sequence[Instr]) -> Set[int]:
    """Return the indices of reachable operations, whatever the values."""
    todo, reached = [0], set()  # type: Tuple[List[int], Set[int]]
    while todo:
        for index in range(todo.pop(), len(ops)):
            # Follow the code in order until it ends or meets code that was followed before.
            if index in reached:
                break
            reached.add(index)
            instr = ops[index]
            if instr.target is not None:
                todo.append(instr.target)
            # The handler of ``try: pass`` is never entered: its operations raise nothing.
            if instr.handler is not None and not is_silent(instr):
                todo.append(instr.handler.target)
            if instr.op in ENDS:
                break
    return reached


def _last_store(ops: Sequence[Instr], name: str) -> Optional[int]:
    found = [index for index, instr in enumerate(ops) if instr.op is Op.STORE and instr.arg[1] == name]
    return found[-1] if found else None


def _are_names(value: object) -> bool:
    return type(value) is tuple and all(type(name) is str for name in value)


def relative_name(qualified: str, code: Code, around: Optional[Names]) -> str:
    """Return the part of a qualified name of ``code`` that is relative to the code around it."""
    if around is None:
        return code.co_name
    return qualified[len(around.own) :] if qualified.startswith(f"{around.own}.") else qualified


def _private_cells(normal: NormalCode, renamed: Mapping[str, str]) -> FrozenSet[str]:
    """Return the cell variables (by their mapped names) whose cell object is never loaded."""
    if not normal.code.co_cellvars:
        return frozenset()
    captured = {instr.arg for instr in normal.ops if instr.op is Op.CLOSURE}
    return frozenset(renamed.get(name, name) for name in normal.code.co_cellvars if name not in captured)


def _rename(instr: Instr, renamed: Mapping[str, str], private: FrozenSet[str]) -> Instr:
    if instr.op in (Op.CLOSURE, Op.MAKE_CELL):
        return instr.changed(arg=renamed[instr.arg]) if instr.arg in renamed else instr
    if instr.op in _ON_VARIABLES and instr.arg[0] in LOCAL_SCOPES:
        scope, name = instr.arg
        name = renamed.get(name, name)
        if scope == "deref" and name in private:
            scope = "fast"
        if (scope, name) != instr.arg:
            return instr.changed(arg=(scope, name))
    return instr


def cell_name(variable: str) -> str:
    """Return the fast local that stores the cell of ``variable``; no variable has this name."""
    return f"cell of {variable}"


def _changing_cells(ops: Sequence[Instr]) -> FrozenSet[str]:
    return frozenset(
        instr.arg if instr.op is Op.MAKE_CELL else instr.arg[1]
        for instr in ops
        if instr.op is Op.MAKE_CELL or (instr.op in _ON_VARIABLES and instr.arg[0] == "cell")
    )


def _cell_of(instr: Instr) -> Optional[str]:
    """Return the variable whose cell object ``instr`` uses."""
    if instr.op is Op.CLOSURE:
        name: str = instr.arg
        return name
    return instr.arg[1] if instr.op in _ON_VARIABLES and instr.arg[0] == "cell" else None


def _as_local(instr: Instr) -> Instr:
    """Return ``instr``, which uses a cell object, rewritten to the fast local that represents it."""
    if instr.op is Op.CLOSURE:
        return instr.changed(op=Op.LOAD, arg=("fast", cell_name(instr.arg)))
    return instr.changed(arg=("fast", cell_name(instr.arg[1])))


def _joins(ops: Sequence[Instr]) -> FrozenSet[int]:
    """Return the indices with two or more predecessors (the function entry is one), and all handlers."""
    ways = [0] * (len(ops) + 1)
    # The caller is a predecessor of the first operation: a jump back to it makes two.
    ways[0] = 1
    handlers: Set[int] = set()
    for index, instr in enumerate(ops):
        if instr.op not in ENDS:
            ways[index + 1] += 1
        if instr.target is not None:
            ways[instr.target] += 1
        if instr.handler is not None:
            handlers.add(instr.handler.target)
    return frozenset(index for index, count in enumerate(ways) if count > 1) | handlers


def live_flags(program: Program, names: FrozenSet[str]) -> Mapping[int, FrozenSet[str]]:
    """Return the ``names`` that are live at each operation of ``program`` and used in some test.

    Their constants are kept apart where paths meet: they control dispatch loops and a loop's ``else`` flag.
    """
    ops = program.ops
    # Liveness (Aho, Lam, Sethi, Ullman: Compilers, 2nd edition, 9.2.5), for these names alone. Iterating backwards
    # makes most functions need two rounds.
    flags = _tested(ops, names) if names else names
    if not flags:
        return {}
    live: List[Set[str]] = [set() for _ in range(len(ops) + 1)]
    changed = True
    while changed:
        changed = False
        for index in range(len(ops) - 1, -1, -1):
            after = _live_after(ops, live, index)
            instr = ops[index]
            if instr.op in _ON_VARIABLES and instr.arg[0] == "fast" and instr.arg[1] in flags:
                # live before = (live after - written) | read. STORE and DELETE write.
                uses = instr.op in (Op.LOAD, Op.TAKE)
                after = after | {instr.arg[1]} if uses else after - {instr.arg[1]}
            if after != live[index]:
                live[index] = after
                changed = True
    return {index: frozenset(names) for index, names in enumerate(live) if names}


def _live_after(ops: Sequence[Instr], live: Sequence[Set[str]], index: int) -> Set[str]:
    instr = ops[index]
    after: Set[str] = set() if instr.op in ENDS else set(live[index + 1])
    if instr.target is not None:
        after |= live[instr.target]
    if instr.handler is not None:
        after |= live[instr.handler.target]
    return after


def _tested(ops: Sequence[Instr], names: FrozenSet[str]) -> FrozenSet[str]:
    """Return the ``names`` that are tested: directly, or compared with a constant first."""
    found: Set[str] = set()
    for index, instr in enumerate(ops):
        if instr.op is not Op.LOAD or instr.arg[0] != "fast" or instr.arg[1] not in names:
            continue
        following = [later.op for later in ops[index + 1 : index + 4]]
        if (
            # ``if x``, ``if not x``, ``if x == 1`` and ``if x is None``
            following[:1] == [Op.BRANCH]
            or following[:2] == [Op.UNARY, Op.BRANCH]
            or following in ([Op.CONST, Op.COMPARE, Op.BRANCH], [Op.CONST, Op.IS, Op.BRANCH])
        ):
            found.add(instr.arg[1])
    return frozenset(found)
