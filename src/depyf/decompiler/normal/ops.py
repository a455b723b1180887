"""The normal form: a stack machine of a few dozen operations that every CPython version is lowered to.

Stack effects have the top at the right. The first column names ``arg``; it is ``None`` for operations without one.

Values
    CONST value             ->  value
    NULL                    ->  NULL          the marker that 3.11+ pushes beside a callable
    LOAD (scope, name)      ->  value         scope: "fast", "deref", "global", "name", "classderef"; of type
                                              parameters and annotations in a class: "bodyglobal", "bodyderef"
    NAMESPACE               ->  mapping       the namespace of a class body, as ``locals()`` gives it
    CLOSURE name            ->  cell          the cell object of a cell or free variable
    SPECIAL name            ->  value         "__build_class__", "AssertionError" or another builtin (3.14) that is
                                              not looked up
    STORE (scope, name)     value ->          scope: "fast", "deref", "global", "name"; "cell" after TAKE
    DELETE (scope, name)    ->
    TAKE (scope, name)      ->  saved         the variable's value, if it is bound; the variable is then unbound;
                                              STORE restores it. "fast", or "cell": the cell object itself
    MAKE_CELL name          ->                a new cell for the variable (at the start of an inlined comprehension)

Stack
    COPY n                  push the n-th value from the top (1 is the top)
    SWAP n                  exchange the top with the n-th value
    POP                     value ->

Operators
    UNARY symbol            a -> r            "+", "-", "~", "not"
    BINARY symbol           a b -> r          "+", "-", ... (never in place)
    INPLACE symbol          a b -> r          "+", "-", ... (for ``a += b``)
    COMPARE symbol          a b -> r          "<", "<=", "==", "!=", ">", ">="
    IS negated              a b -> bool
    IN negated              a b -> bool       is ``a`` in ``b``
    SUBSCR                  a i -> r
    STORE_SUBSCR            v a i ->          a[i] = v
    DELETE_SUBSCR           a i ->
    ATTR name               a -> r
    STORE_ATTR name         v a ->            a.name = v
    DELETE_ATTR name        a ->
    SUPER_ATTR (name, args) super cls self -> r      ``super().name``; args: ``super(cls, self).name`` was written
    INTRINSIC (name, n)     n values -> r     no operation of its own: type parameters, type aliases

Containers
    BUILD (kind, n)         n values -> r     "tuple", "list", "set", "string", "slice"; "map" takes 2n values;
                                              "const_key_map" takes n values and a tuple of keys above them;
                                              "tuple_of", "list_of", "set_of", "map_of" unpack n values (3.8), and
                                              so do "arguments_of" and "keywords_of" for a call
    ADD (kind, i)           v ->              "list", "set"; "map" takes k v: add to the container that is the
                                              i-th value once the operands are popped
    COMPREHENSION code      iterator -> r     the result of an inlined comprehension (made by flow/)
    UPDATE (kind, i)        v ->              "list", "set", "map"; "kwargs" is "map" that raises on duplicates
    LIST_TO_TUPLE           a -> r
    UNPACK n                a -> vn ... v1
    UNPACK_EX (n, m)        a -> vm' ... v1' list vn ... v1
    CONVERT conv            a -> str          "s", "r", "a" (3.13: before the format specification is evaluated)
    FORMAT (conv, spec)     a [spec] -> str   conv: "", "s", "r", "a"; spec: bool
    INTERPOLATION (conv, spec)   a text [spec] -> field   a field of a t-string, with the text of its expression
    TEMPLATE                strings fields -> template

Calls and functions
    CALL (n, names, null)   callable n values -> r   the last len(names) values are keywords; null says where a
                                              NULL lies: "below" the callable, "above" it, or "" for none. Two
                                              values in these slots are a callable and its first argument.
    CALL_EX (keywords, null)  callable args [kwargs] -> r   null as for CALL, with nothing but a NULL in its slot
    MAKE_FUNCTION flags     [defaults] [kwdefaults] [annotations] [closure] code -> function
                                              flags 1, 2, 4, 8 say which are there; 16 in place of 4: the
                                              function that makes the annotations on demand
    IMPORT (name, when)     level fromlist -> module   when: "", or since 3.15 "lazy" (as written) or "eager" (inside
                                              of a function, class or ``try``)
    IMPORT_FROM name        module -> module value
    IMPORT_STAR             module ->
    SETUP_ANNOTATIONS       ->
    PRINT                   value ->          show a result at an interactive prompt

Iteration, generators, coroutines
    ITER                    a -> iterator
    YIELD_FROM_ITER         a -> iterator     what ``yield from`` does to its operand
    AITER                   a -> async iterator
    AWAITABLE where         a -> iterator     where: 0, 1 (__aenter__), 2 (__aexit__); only for error messages
    YIELD                   v -> sent
    YIELD_FROM              iterator None -> r   the whole SEND loop as one operation
    FOR (async_)            iterator -> iterator value, or iterator -> and jump to ``target`` when exhausted

Control
    JUMP                    to ``target``
    BRANCH kind             v ->              jump to ``target`` if v is "true", "false", "none", "not none"
    RETURN                  v ->
    RAISE n                 n values ->       n = 0 re-raises the exception being handled; 2: exception, cause
    RERAISE                 exc ->            continue unwinding with ``exc`` unchanged

Exceptions. An instruction may have a ``handler``. When it raises, the stack is cut to ``handler.depth``, a LASTI marker
is pushed if ``handler.lasti``, then the exception, and control goes to ``handler.target``. The exception that
``sys.exc_info`` shows belongs to the stack: PUSH_EXC leaves a PREV marker on it, and cutting the stack below a PREV
marker restores the previous one. (CPython does that with extra cleanup handlers; lowering removes them.)
    PUSH_EXC                exc -> PREV exc   exc is now the exception being handled
    POP_EXC                 PREV ->           restore the one before
    CHECK_EXC               exc type -> exc bool
    CHECK_EXC_GROUP         exc type -> rest match   (except*); a match that is not None is now the exception being
                                              handled
    PREP_RERAISE_STAR       orig list -> exc or None
    WITH                    manager -> exit entered
    ASYNC_WITH              manager -> exit awaitable
    WITH_EXCEPT             exit LASTI PREV exc -> exit LASTI PREV exc r      r = exit(type, exc, traceback)

Matching
    MATCH_MAPPING           a -> a bool
    MATCH_SEQUENCE          a -> a bool
    GET_LEN                 a -> a len
    MATCH_KEYS              a keys -> a keys values-or-None
    MATCH_CLASS n           a cls names -> values-or-None
"""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar, Union

from depyf.base.quick_dataclass import dataclass, replace
from depyf.base.quick_enum import Enum
from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.bytecode.lines import Span


class Op(Enum):
    """The operations; the module's docstring has the stack effect of each."""

    CONST = "const"
    NULL = "null"
    LOAD = "load"
    NAMESPACE = "namespace"
    CLOSURE = "closure"
    SPECIAL = "special"
    STORE = "store"
    DELETE = "delete"
    TAKE = "take"
    MAKE_CELL = "make_cell"
    COPY = "copy"
    SWAP = "swap"
    POP = "pop"
    UNARY = "unary"
    BINARY = "binary"
    INPLACE = "inplace"
    COMPARE = "compare"
    IS = "is"
    IN = "in"
    SUBSCR = "subscr"
    STORE_SUBSCR = "store_subscr"
    DELETE_SUBSCR = "delete_subscr"
    ATTR = "attr"
    STORE_ATTR = "store_attr"
    DELETE_ATTR = "delete_attr"
    SUPER_ATTR = "super_attr"
    INTRINSIC = "intrinsic"
    BUILD = "build"
    ADD = "add"
    COMPREHENSION = "comprehension"
    UPDATE = "update"
    LIST_TO_TUPLE = "list_to_tuple"
    UNPACK = "unpack"
    UNPACK_EX = "unpack_ex"
    CONVERT = "convert"
    FORMAT = "format"
    INTERPOLATION = "interpolation"
    TEMPLATE = "template"
    CALL = "call"
    CALL_EX = "call_ex"
    MAKE_FUNCTION = "make_function"
    IMPORT = "import"
    IMPORT_FROM = "import_from"
    IMPORT_STAR = "import_star"
    SETUP_ANNOTATIONS = "setup_annotations"
    PRINT = "print"
    ITER = "iter"
    YIELD_FROM_ITER = "yield_from_iter"
    AITER = "aiter"
    AWAITABLE = "awaitable"
    YIELD = "yield"
    YIELD_FROM = "yield_from"
    FOR = "for"
    JUMP = "jump"
    BRANCH = "branch"
    RETURN = "return"
    RAISE = "raise"
    RERAISE = "reraise"
    PUSH_EXC = "push_exc"
    POP_EXC = "pop_exc"
    CHECK_EXC = "check_exc"
    CHECK_EXC_GROUP = "check_exc_group"
    PREP_RERAISE_STAR = "prep_reraise_star"
    WITH = "with"
    ASYNC_WITH = "async_with"
    WITH_EXCEPT = "with_except"
    MATCH_MAPPING = "match_mapping"
    MATCH_SEQUENCE = "match_sequence"
    GET_LEN = "get_len"
    MATCH_KEYS = "match_keys"
    MATCH_CLASS = "match_class"


ENDS = frozenset({Op.JUMP, Op.RETURN, Op.RAISE, Op.RERAISE})
"""Operations after which control never continues at the next one."""

SILENT = frozenset({
    Op.CONST, Op.NULL, Op.NAMESPACE, Op.CLOSURE, Op.SPECIAL, Op.TAKE, Op.MAKE_CELL, Op.COPY, Op.SWAP, Op.POP, Op.JUMP,
    Op.RETURN, Op.IS, Op.PUSH_EXC, Op.POP_EXC,
})  # fmt: skip
"""Operations that can neither raise nor run foreign code (STORE to "fast" and "deref" are silent too;
the finalizer of a value that POP or STORE drops is ignored here)."""

COPY_STRIDE = 1 << 26


def byte_offset(offset: int) -> int:
    """Return the bytecode offset of an operation's ``offset``. Before 3.11 some operations have offsets of their own:
    those at the start of a handler without an instruction (odd, before the handler), and those in further copies of a
    ``finally`` body (larger by a multiple of ``COPY_STRIDE``)."""
    return (offset + 1 & ~1) % COPY_STRIDE


@dataclass(frozen=True)
class Handler:
    """The target of an exception: an index into ``NormalCode.ops``, and the stack depth to keep."""

    target: int
    depth: int
    lasti: bool


_Operation = TypeVar("_Operation", bound="Instr")


class Instr:
    """One operation. ``target`` is an index into ``NormalCode.ops``; ``offset`` is its position in the bytecode,
    ``span`` in the source. It is not changed once it is in normal form. (Not a dataclass: there are more operations
    than anything else.)"""

    __slots__ = ("arg", "handler", "offset", "op", "span", "target")

    op: Op
    arg: Any

    def __init__(
        self,
        op: Union[Op, str],
        arg: object = None,
        offset: int = -1,
        span: Optional[Span] = None,
        target: Optional[int] = None,
        handler: Optional[Handler] = None,
    ) -> None:
        self.op = op  # type: ignore[assignment]
        self.arg = arg
        self.offset = offset
        self.span = span
        self.target = target
        self.handler = handler

    def __eq__(self, other: object) -> bool:
        return self.__class__ is other.__class__ and _fields(self) == _fields(other)

    def __hash__(self) -> int:
        return hash((self.op, self.offset, self.target))

    def changed(self: _Operation, **fields: object) -> _Operation:
        """Return a copy with other values of some fields."""
        made = object.__new__(self.__class__)
        made.op, made.arg, made.offset = self.op, self.arg, self.offset
        made.span, made.target, made.handler = self.span, self.target, self.handler
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    def retargeted(self: _Operation, new_index: Mapping[int, int]) -> _Operation:
        """Return the operation with other indices for the targets of its jump and of its handler."""
        if self.target is None and self.handler is None:
            return self
        target = None if self.target is None else new_index[self.target]
        handler = self.handler and replace(self.handler, target=new_index[self.handler.target])
        return self.changed(target=target, handler=handler)

    @property
    def line(self) -> Optional[int]:
        """Return the line that it was compiled from; ``None`` where the compiler gave none."""
        return None if self.span is None else self.span.line

    def __repr__(self) -> str:
        arg = "" if self.arg is None else f" {self.arg!r}"
        target = "" if self.target is None else f" ->{self.target}"
        handler = "" if self.handler is None else f"  !{self.handler.target}[{self.handler.depth}]"
        return f"{self.op.name}{arg}{target}{handler}"


_fields = attrgetter(*Instr.__slots__)


@dataclass(frozen=True)
class NormalCode:
    """A code object in normal form.

    Unreachable operations are removed; ``code`` is the object it was made from. ``copies_loop_tests``: this version's
    compiler emits the test of a ``while`` loop at its top and at its bottom. ``forgets_after_jumps``: a jump out of
    ``except E as name`` pops the exception before it deletes the name, and the end of the clause after that.
    ``threads_tests``: a test of a value skips the next test of the same value; ``threads_operands``: if it is in an
    operand that the next one tests. ``idle``: the locations of instructions without effect, such as ``pass``.
    ``open_tests``: the offsets of the branches whose test may let a StopIteration out of a generator (3.14); ``None``
    if all operations may, as in a lambda (3.12).
    """

    code: Code
    ops: Tuple[Instr, ...]
    copies_loop_tests: bool = False
    forgets_after_jumps: bool = False
    idle: Tuple[Span, ...] = ()
    threads_tests: bool = False
    threads_operands: bool = False
    open_tests: Optional[Tuple[int, ...]] = ()

    @cached_property
    def kinds(self) -> FrozenSet[Op]:
        """The operations that occur: most steps look for a few that most code has not."""
        return frozenset([instr.op for instr in self.ops])

    @cached_property
    def returns_value(self) -> bool:
        """Whether a value other than a constant None is returned, or None on several paths."""
        ops = self.ops
        returns = [index for index, instr in enumerate(ops) if instr.op is Op.RETURN]
        if any(ops[index - 1].op is not Op.CONST or ops[index - 1].arg is not None for index in returns):
            return True
        return not {instr.target for instr in ops}.isdisjoint(returns)

    def listing(self) -> str:
        """Return the operations, one per line, for debugging the decompiler."""
        return "\n".join(f"{index:5} {instr.offset:5} L{instr.line} {instr!r}" for index, instr in enumerate(self.ops))


def reachable(groups: Sequence[Tuple[int, Sequence[Instr]]]) -> Tuple[Instr, ...]:
    """Return the operations of the reachable ``groups``, with their targets renumbered.

    Control starts at the first group and continues at the next one. Targets are the numbers that groups come with.
    """
    position = {number: index for index, (number, _) in enumerate(groups)}
    reached: Set[int] = set()
    todo = [0]
    while todo:
        index = todo.pop()
        while index not in reached:
            reached.add(index)
            group = groups[index][1]
            for instr in group:
                if instr.target is not None:
                    todo.append(position[instr.target])
                if instr.handler is not None:
                    todo.append(position[instr.handler.target])
            if group[-1].op in ENDS:
                break
            index += 1
    # The index of the first operation of each group that is left.
    order = sorted(reached)
    new_index: Dict[int, int] = {}
    count = 0
    for index in order:
        number, group = groups[index]
        new_index[number] = count
        count += len(group)
    result: List[Instr] = []
    for index in order:
        result.extend(instr.retargeted(new_index) for instr in groups[index][1])
    return tuple(result)


def is_silent(instr: Instr) -> bool:
    """Return whether ``instr`` can neither raise nor run observable code."""
    if instr.op is Op.STORE:
        return instr.arg[0] in ("fast", "deref", "cell")
    if instr.op is Op.BRANCH:
        return instr.arg in ("none", "not none")
    return instr.op in SILENT or (instr.op is Op.BUILD and instr.arg[0] in ("tuple", "list", "slice"))
