"""The result of lifting: a graph of nodes, each a list of statements and one terminator.

Beside ``ast`` statements a node may hold marks, which say where a ``with`` begins or ends and where an exception
starts or stops being handled. Structuring turns them into syntax.
"""

from __future__ import annotations

import ast
from dataclasses import field
from typing import Dict, List, Optional, Tuple, Union

from depyf.bytecode.lines import Span
from depyf.flow.graph import Region
from depyf.lift.items import Container, Function, Item, Value
from depyf.quick_dataclass import dataclass


@dataclass
class WithEnter:
    """``with manager as target``: the last statement of its node."""

    origin: int
    manager: ast.expr
    async_: bool
    target: Optional[ast.expr] = None


@dataclass
class WithExit:
    """The manager's exit is called on a normal way out; ``pending`` was evaluated before."""

    origin: int
    pending: Tuple[ast.expr, ...] = ()


@dataclass
class BindException:
    """The handled exception is stored (``as name``) or, with ``name`` None, dropped."""

    handler: int
    target: Optional[ast.expr]


@dataclass
class PopException:
    """The exception of ``handler`` stops being handled on a normal way out; ``pending`` was evaluated before."""

    handler: int
    pending: Tuple[ast.expr, ...] = ()
    offset: int = -1


@dataclass
class Accumulate:
    """A comprehension adds ``element`` (and ``key`` in front of it for a dict) to its result."""

    kind: str
    element: ast.expr
    key: Optional[ast.expr] = None


Statement = Union[ast.stmt, WithEnter, WithExit, BindException, PopException, Accumulate]


@dataclass
class Goto:
    target: int


@dataclass
class Condition:
    """Goes to ``fall`` if ``test`` holds, else to ``target``. With ``keep`` it goes to ``target`` if the truth of
    ``test`` is ``jump_when``, and the tested value stays on the stack on the way there; the copy of it was made at
    offset ``copied_at``."""

    test: ast.expr
    jump_when: bool
    target: int
    fall: int
    keep: bool = False
    copied_at: int = -1


@dataclass
class Loop:
    """A ``for``: ``iterable`` is evaluated before the loop is entered the first time. ``span``: where it was written,
    if that is known."""

    async_: bool
    body: int
    exhausted: int
    iterable: Optional[ast.expr] = None
    target: Optional[ast.expr] = None
    span: Optional[Span] = None


@dataclass
class ExceptionTest:
    """``except type``: to ``match`` if the handled exception is of ``type``, else to ``other``."""

    handler: int
    type: ast.expr
    match: int
    other: int
    group: bool = False


@dataclass
class Return:
    """``span``: where it was written, if that is known."""

    value: ast.expr
    span: Optional[Span] = None


@dataclass
class Raise:
    statement: ast.Raise


@dataclass
class Reraise:
    """The exception of ``handler`` (None: some value, ``value``) goes on as if it had not been caught."""

    handler: Optional[int]
    value: Optional[ast.expr] = None


@dataclass
class Overridden:
    """The end of a way out of a ``try`` whose ``finally`` body never ends normally: that decides where control goes."""


@dataclass
class WithDecision:
    """The end of a ``with`` handler: to ``suppressed`` if the manager swallowed the exception."""

    suppressed: int
    other: int


@dataclass
class MatchTest:
    """A case of the ``match`` statement that began at node ``statement``: to ``success`` if ``pattern`` matches, else
    to ``fail`` (None: it always matches). ``subject`` is there in the first case only. ``keeps``: another case follows;
    ``guarded``: if ``success`` is a condition, it is the case's guard; ``default``: the bytecode shows a ``case _``."""

    statement: int
    subject: Optional[ast.expr]
    pattern: ast.pattern
    success: int
    fail: Optional[int]
    keeps: bool = False
    guarded: bool = False
    default: bool = False


Terminator = Union[Goto, Condition, Loop, ExceptionTest, Return, Raise, Reraise, Overridden, WithDecision, MatchTest]


@dataclass(eq=False)
class Node:
    """A list of statements and where control goes behind it.

    ``silent``: nothing in it can raise, so it may stand inside or outside of any region. ``leaves``: regions whose
    ``finally`` body runs as the node begins. ``handling``: entries of handlers the node runs under. ``offset`` and
    ``extent``: the first and last byte offset that belong to it. ``last_block``: the block it ends with. ``kept``: the
    value that a condition with ``keep`` leaves on the stack.
    ``marks``: the statements that leave a region with something pending.
    ``containers``: variables that hold a container which is followed element by element and was not built.
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

    def evaluate(self, expr: ast.expr, statement: ast.stmt) -> None:
        """Add ``statement``, which holds ``expr``: inside of the region, if one was left while that was pending."""
        index = self.left_with(expr)
        self.statements.insert(len(self.statements) if index < 0 else index, statement)

    def left_with(self, expr: ast.expr) -> int:
        """Which statement leaves a region while ``expr`` is pending; -1 if none does."""
        for mark in self.marks:
            if any(expr is pending for pending in mark.pending):
                return next(index for index, other in enumerate(self.statements) if other is mark)
        return -1

    def leave(self, mark: Union[WithExit, PopException]) -> None:
        """Add ``mark``, with which a region is left."""
        self.statements.append(mark)
        self.marks.append(mark)

    def successors(self) -> Tuple[int, ...]:
        term = self.terminator
        if isinstance(term, Goto):
            return (term.target,)
        if isinstance(term, Condition):
            return (term.fall, term.target)
        if isinstance(term, Loop):
            return (term.body, term.exhausted)
        if isinstance(term, ExceptionTest):
            return (term.match, term.other)
        if isinstance(term, WithDecision):
            return (term.suppressed, term.other)
        if isinstance(term, MatchTest):
            return (term.success,) if term.fail is None else (term.success, term.fail)
        return ()

    def redirect(self, old: int, new: int) -> None:
        """Make every edge to ``old`` go to ``new``."""
        term = self.terminator
        for name in ("target", "fall", "body", "exhausted", "match", "other", "suppressed", "success", "fail"):
            if not isinstance(term, Loop) or name != "target":
                if getattr(term, name, None) == old:
                    setattr(term, name, new)


@dataclass
class LiftedGraph:
    """``handlers`` maps each region to the node where its handler begins."""

    nodes: Dict[int, Node]
    entry: int
    temporaries: int = 0


class FunctionExpression(ast.expr):
    """Stands for a lambda (or any function used as a value) until its code object is decompiled."""

    _fields = ("defaults", "kw_defaults", "annotations")
    function: Function


class FunctionStatement(ast.stmt):
    """Stands for a ``def`` or ``class`` until its code object is decompiled."""

    _fields = ("defaults", "kw_defaults", "annotations", "decorators", "bases", "keywords")
    function: Function
    name: str


class AnnotationMark(ast.stmt):
    """Control passes an annotation of a class or module (3.14): the one of this number in its ``__annotate__``."""

    _fields = ()
    number: int


class TypeParameter(ast.expr):
    """Stands for a type parameter; ``kind`` is the ``ast`` class of it, ``bound`` and ``default`` are functions."""

    _fields = ()
    kind: str
    name: str
    bound: Optional[Function]
    default: Optional[Function]


class ComprehensionExpression(ast.expr):
    """Stands for a comprehension or generator expression over ``iterable``."""

    _fields = ("iterable",)
    function: Function
    iterable: ast.expr
    awaited = False
