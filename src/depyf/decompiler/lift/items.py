"""The items of the symbolic stack: values that are not evaluated yet, and markers for everything else."""

from __future__ import annotations

import ast
from dataclasses import field
from typing import Callable, Dict, List, Literal, Optional, Protocol, Tuple, Union

from depyf.base.quick_dataclass import dataclass
from depyf.base.quick_enum import Enum
from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.lift.node_attributes import attributes_of


@dataclass(eq=False)
class Value:
    """An expression that represents a value.

    ``stable``: later evaluation gives the same value, unobserved (constants, temporaries, fast locals until they are
    stored). ``silent``: no program can observe when it was evaluated, but each evaluation makes another object (a
    display of stable values). ``order``: when it was evaluated; ``begun``: when its first operand was (0: at
    ``order``). ``chain``: the targets that have received the value (``a = b = value``). ``copies``: the number of
    duplicates on the stack that represent the same evaluation. ``kept_at``: the offset of the copy for a test that
    decides whether the value stays. ``iterated_at``: the offset of the ITER that makes the value an iterator, which a
    loop or comprehension does with the expression. ``converted``: the conversion, such as ``!r``, and the expression
    that it applies to. ``whole``: a tuple or dict display that is not an argument list (3.8).
    """

    expr: ast.expr
    stable: bool = False
    local: Optional[str] = None
    order: int = 0
    born: int = 0
    chain: List[ast.expr] = field(default_factory=list)
    copies: int = 0
    copied_at: int = -1
    swapped_at: int = -1
    kept_at: int = -1
    iterated_at: int = -1
    augments: Union[ReadAt, Augmented, None] = None
    tests: Optional[ChainTest] = None
    converted: Optional[Tuple[str, ast.expr]] = None
    whole: bool = False
    begun: int = 0
    silent: bool = False

    def again(self) -> Value:
        """Return a stable copy."""
        return Value(self.expr, True, self.local, self.order, iterated_at=self.iterated_at)


@dataclass(eq=False)
class ReadAt:
    """A value was read from a location whose operands, ``bases``, are still on the stack, as in ``a[i] += v``."""

    bases: Tuple[Value, ...]


@dataclass(eq=False)
class Augmented:
    """The value of ``target += operand``, if it is stored there next; ``target`` is a name, or the operands."""

    target: Union[ast.expr, Tuple[Value, ...]]
    operator: ast.operator
    operand: ast.expr


@dataclass(eq=False)
class Copy:
    """A duplicate of an unstable value further down the stack."""

    of: Value
    offset: int


@dataclass(eq=False)
class ChainTest:
    """``a < b < ...`` so far; the value that carries it is the last operand."""

    left: ast.expr
    operators: List[ast.cmpop]
    operands: List[ast.expr]


GENERIC_PREFIX = "<generic parameters of "
"""The prefix of the name of a code object that makes type parameters; the name of their owner follows."""
GENERIC_BASE = ".generic_base"
"""The base class that a generic class gets: a variable of that code object."""
DEFAULTS = ".defaults"
KW_DEFAULTS = ".kwdefaults"
"""The names of its parameters, whichever of the two it receives (a single one is always called DEFAULTS)."""


@dataclass(eq=False)
class Function:
    """A function object under construction, with the operands of MAKE_FUNCTION; ``annotate`` makes its annotations.

    ``inherits``: the parameters of the enclosing code object that are its DEFAULTS and KW_DEFAULTS. ``generic``: it
    makes type parameters and their owner, and was called with these arguments. ``is_alias``: it returns the value of a
    type alias.
    """

    code: Code
    defaults: List[ast.expr] = field(default_factory=list)
    kw_defaults: Dict[str, ast.expr] = field(default_factory=dict)
    annotations: Dict[str, ast.expr] = field(default_factory=dict)
    annotate: Optional[Function] = None
    decorators: List[ast.expr] = field(default_factory=list)
    order: int = 0
    class_arguments: Optional[Tuple[List[ast.expr], List[ast.keyword]]] = None
    type_parameters: List[ast.expr] = field(default_factory=list)
    inherits: Dict[str, str] = field(default_factory=dict)
    generic: Optional[List[ast.expr]] = None
    is_alias: bool = False

    @property
    def name(self) -> str:
        """The name of the function, class or alias in its own code object."""
        name = self.code.co_name
        return name[len(GENERIC_PREFIX) : -1] if name.startswith(GENERIC_PREFIX) else name

    @property
    def is_lambda(self) -> bool:
        """Whether it has expression syntax, and needs no name."""
        return self.code.co_name == "<lambda>"


class Mark(Enum):
    """The kind of a marker; the value is its name in messages."""

    NULL = "null"
    ITER = "iter"
    EXIT = "exit"
    EXIT_RESULT = "exit_result"
    LASTI = "lasti"
    PREV = "prev"
    EXC = "exc"
    MATCHED = "matched"
    """The result of CHECK_EXC."""
    MATCHED_GROUP = "matched_group"
    """The operand of ``except* type`` that is tested next."""
    WITH_RESULT = "with_result"
    BUILD_CLASS = "build_class"
    SUBJECT = "subject"
    """A subject that is kept for the next case; its origin is the node of the first case."""
    MODULE = "module"
    IMPORTED = "imported"


@dataclass(eq=False)
class Marker:
    """A stack slot without a plain value; ``origin`` identifies its owner. ``expr``: the iterable, or the exception
    type that is tested. ``copied``: the original is below it on the stack."""

    kind: Mark
    origin: int = -1
    expr: Optional[ast.expr] = None
    copied: bool = False


@dataclass(frozen=True)
class Import:
    """The operands of an IMPORT operation."""

    name: str
    level: int
    names: Optional[Tuple[str, ...]]
    lazy: bool

    def statement(self, alias: ast.alias) -> ast.stmt:
        """Return ``import alias`` or ``from name import alias``."""
        statement: ast.stmt
        if self.names is None:
            statement = ast.Import([alias])
        else:
            statement = ast.ImportFrom(self.name or None, [alias], self.level)
        if self.lazy:
            attributes_of(statement)["is_lazy"] = 1
        return statement


class ImportMarker(Marker):
    """A module, or the object imported from it as ``name``."""

    def __init__(self, request: Import, name: Optional[str] = None) -> None:
        super().__init__(Mark.MODULE if name is None else Mark.IMPORTED)
        self.request, self.name = request, name


class Emitter(Protocol):
    """The execution of one block, as far as the targets of a statement need it."""

    stack: List[Item]

    @property
    def node(self) -> object:
        """The node whose statements are emitted."""

    def emit(self, statement: ast.stmt, stores: Optional[str] = None) -> None:
        """Add a statement that stores these variables; "*" for all names in it."""

    def fill(self, item: Target, target: ast.expr) -> None:
        """Give a target its expression."""


class Group(Protocol):
    """The targets of one statement, which is complete when all are known; ``temporaries`` has the generated ones."""

    temporaries: Dict[int, str]

    def continue_in(self, emitter: Emitter) -> None:
        """Receive the next target from ``emitter``."""

    def give_up(self, emitter: Emitter) -> None:
        """Store the missing targets in temporaries, because another effect happens first."""


@dataclass(eq=False)
class Target:
    """A value that can only be stored: the target of ``for`` or ``with``, or one part of an unpacking.

    ``fill`` receives the target expression; a part has its ``group`` and ``index`` there, so that parts are filled in
    order. ``needed``: a target must be bound even if nothing reads it.
    """

    fill: Callable[[ast.expr], None]
    group: Optional[Group] = None
    index: int = -1
    needed: bool = False


Display = Literal["list", "tuple", "dict"]


@dataclass(eq=False)
class Container:
    """A display whose elements are still stack items. Several slots may hold the same container."""

    kind: Display
    elements: List[Item]
    keys: Optional[List[str]] = None
    offset: int = -1


@dataclass(eq=False)
class BoundMethod:
    """A method of a container that is loaded and not called yet."""

    container: Container
    name: str


Item = Union[Value, Copy, Function, Marker, Target, Container, BoundMethod]


Decision = Literal["spill", "spill_end", "spill_locals", "containers", "kept_results", "plain_swap", "phi", "iterators"]
"""The names of the sets of ``Decisions``."""


class Retry(Exception):
    """Raised to restart lifting with one more decision: pending values at ``key`` are stored in temporaries."""

    def __init__(self, kind: Decision, key: Union[int, bool, Tuple[int, int]]) -> None:  # noqa: FBT001
        super().__init__(f"{kind} {key}")
        self.kind, self.key = kind, key
