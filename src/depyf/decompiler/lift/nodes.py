"""The result of lifting: a graph of nodes, each a list of statements and one terminator.

Besides ``ast`` statements a node may hold marks for the start or end of a ``with``, and for where an exception starts
or stops being handled. Structuring turns them into syntax.
"""

from __future__ import annotations

import ast
from dataclasses import field
from typing import Dict, List, Optional, Tuple, Union

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.flow.graph import Region
from depyf.decompiler.lift.items import Container, Function, Item, Value


@dataclass
class WithEnter:
    """``with manager as target``: the last statement of its node."""

    origin: int
    manager: ast.expr
    async_: bool
    target: Optional[ast.expr] = None


@dataclass
class WithExit:
    """The call of the manager's exit on a normal exit; ``pending`` was evaluated before."""

    origin: int
    pending: Tuple[ast.expr, ...] = ()


@dataclass
class BindException:
    """The store of the handled exception (``as name``), or its removal if ``target`` is None."""

    handler: int
    target: Optional[ast.expr]


@dataclass
class PopException:
    """The exception of ``handler`` stops being handled on a normal exit; ``pending`` was evaluated before."""

    handler: int
    pending: Tuple[ast.expr, ...] = ()
    offset: int = -1


@dataclass
class Accumulate:
    """The addition of ``element`` (with ``key``, for a dict) to the result of a comprehension."""

    kind: str
    element: ast.expr
    key: Optional[ast.expr] = None


Statement = Union[ast.stmt, WithEnter, WithExit, BindException, PopException, Accumulate]


class _Terminator:
    def successors(self) -> Tuple[int, ...]:
        return ()


@dataclass
class Goto(_Terminator):
    target: int

    def successors(self) -> Tuple[int, ...]:
        return (self.target,)


@dataclass
class Condition(_Terminator):
    """A branch to ``fall`` if ``test`` holds, else to ``target``.

    With ``keep`` it branches to ``target`` if the truth of ``test`` is ``jump_when``, and the tested value stays on the
    stack on that edge; its copy was made at offset ``copied_at``.
    """

    test: ast.expr
    jump_when: bool
    target: int
    fall: int
    keep: bool = False
    copied_at: int = -1

    def successors(self) -> Tuple[int, ...]:
        return (self.fall, self.target)


@dataclass
class Loop(_Terminator):
    """A ``for`` loop; ``iterable`` is evaluated before the first iteration. ``span``: its source span, if known."""

    async_: bool
    body: int
    exhausted: int
    iterable: Optional[ast.expr] = None
    target: Optional[ast.expr] = None
    span: Optional[Span] = None

    def successors(self) -> Tuple[int, ...]:
        return (self.body, self.exhausted)


@dataclass
class ExceptionTest(_Terminator):
    """``except type``: a branch to ``match`` if the handled exception is of ``type``, else to ``other``."""

    handler: int
    type: ast.expr
    match: int
    other: int
    group: bool = False

    def successors(self) -> Tuple[int, ...]:
        return (self.match, self.other)


@dataclass
class Return(_Terminator):
    """A return. ``span``: its source span, if known."""

    value: ast.expr
    span: Optional[Span] = None


@dataclass
class Raise(_Terminator):
    statement: ast.Raise


@dataclass
class Reraise(_Terminator):
    """The exception of ``handler`` (or, with None, the exception ``value``) is raised again."""

    handler: Optional[int]
    value: Optional[ast.expr] = None


@dataclass
class Overridden(_Terminator):
    """An exit of a ``try`` whose ``finally`` body never terminates normally: the body decides where control goes."""


@dataclass
class WithDecision(_Terminator):
    """The end of a ``with`` handler: a branch to ``suppressed`` if the manager suppressed the exception."""

    suppressed: int
    other: int

    def successors(self) -> Tuple[int, ...]:
        return (self.suppressed, self.other)


@dataclass
class MatchTest(_Terminator):
    """A case of the ``match`` statement with the first node ``statement``.

    It branches to ``success`` if ``pattern`` matches, else to ``fail`` (None: it always matches). ``subject`` is set in
    the first case only. ``keeps``: another case follows. ``guarded``: a condition at ``success`` is the guard of the
    case. ``default``: the bytecode has a ``case _``.
    """

    statement: int
    subject: Optional[ast.expr]
    pattern: ast.pattern
    success: int
    fail: Optional[int]
    keeps: bool = False
    guarded: bool = False
    default: bool = False

    def successors(self) -> Tuple[int, ...]:
        return (self.success,) if self.fail is None else (self.success, self.fail)


Terminator = Union[Goto, Condition, Loop, ExceptionTest, Return, Raise, Reraise, Overridden, WithDecision, MatchTest]


@dataclass(eq=False)
class Node:
    """A list of statements and a terminator.

    ``silent``: nothing in it can raise, so it may be inside or outside of any region. ``leaves``: the regions whose
    ``finally`` body runs at its start. ``handling``: the entries of the handlers that are active. ``offset`` and
    ``extent``: its first and last byte offset. ``last_block``: its last block. ``kept``: the value that a condition
    with ``keep`` leaves on the stack. ``marks``: the statements that exit a region with a value pending.
    ``containers``: the variables that hold a tracked container that was not built. ``tested``: an expression whose test
    decides nothing; it is part of the value that is pushed next.
    """

    id: int
    region: Optional[Region]
    statements: List[Statement] = field(default_factory=list)
    terminator: Optional[Terminator] = None
    silent: bool = True
    leaves: Tuple[Region, ...] = ()
    handling: Tuple[int, ...] = ()
    offset: int = 0
    extent: int = -1
    base: List[Item] = field(default_factory=list)
    stack: List[Item] = field(default_factory=list)
    containers: Dict[str, Container] = field(default_factory=dict)
    marks: List[Union[WithExit, PopException]] = field(default_factory=list)
    last_block: int = -1
    kept: Optional[Value] = None
    tested: Optional[ast.expr] = None

    def evaluate(self, expr: ast.expr, statement: ast.stmt) -> None:
        """Add ``statement``, which contains ``expr``, inside of the region that was exited while ``expr`` was pending,
        if any."""
        index = self.left_with(expr)
        self.statements.insert(len(self.statements) if index < 0 else index, statement)

    def left_with(self, expr: ast.expr) -> int:
        """Return the index of the statement that exits a region while ``expr`` is pending; -1 if none does."""
        for mark in self.marks:
            if any(expr is pending for pending in mark.pending):
                return next(index for index, other in enumerate(self.statements) if other is mark)
        return -1

    def leave(self, mark: Union[WithExit, PopException]) -> None:
        """Add ``mark``, which exits a region."""
        self.statements.append(mark)
        self.marks.append(mark)

    def holds_values(self) -> bool:
        """Return whether it has evaluated something that is still pending."""
        return any(isinstance(item, (Value, Function)) and not getattr(item, "stable", False) for item in self.stack)

    def outlives_test(self) -> bool:
        """Return whether a value that was evaluated before its test would be written after it, in both branches.
        Otherwise the test has become part of the expression that uses the value."""
        if not isinstance(self.terminator, Condition) or isinstance(self.terminator.test, ast.Constant):
            return False
        return any(isinstance(item, Value) and not (item.stable or item.silent) for item in self.stack)

    def successors(self) -> Tuple[int, ...]:
        return () if self.terminator is None else self.terminator.successors()

    def redirect(self, old: int, new: int) -> None:
        """Redirect every edge to ``old`` to ``new``."""
        term = self.terminator
        for name in ("target", "fall", "body", "exhausted", "match", "other", "suppressed", "success", "fail"):
            if not isinstance(term, Loop) or name != "target":
                if getattr(term, name, None) == old:
                    setattr(term, name, new)


@dataclass
class LiftedGraph:
    """The nodes by id, the id of the entry node, and the number of temporaries."""

    nodes: Dict[int, Node]
    entry: int
    temporaries: int = 0


class FunctionExpression(ast.expr):
    """Represents a lambda (or another function used as a value) until its code object is decompiled."""

    _fields = ("defaults", "kw_defaults", "annotations")
    function: Function


class FunctionStatement(ast.stmt):
    """Represents a ``def`` or ``class`` until its code object is decompiled."""

    _fields = ("defaults", "kw_defaults", "annotations", "decorators", "bases", "keywords")
    function: Function
    name: str


class AnnotationMark(ast.stmt):
    """Marks where control passes an annotation of a class or module (3.14): number ``number`` in ``__annotate__``."""

    _fields = ()
    number: int


class TypeParameter(ast.expr):
    """Represents a type parameter; ``kind`` is its ``ast`` class, ``bound`` and ``default`` are functions."""

    _fields = ()
    kind: str
    name: str
    bound: Optional[Function]
    default: Optional[Function]


class ComprehensionExpression(ast.expr):
    """Represents a comprehension or generator expression over ``iterable``."""

    _fields = ("iterable",)
    function: Function
    iterable: ast.expr
    awaited = False
