"""The items of the symbolic stack: values that are not evaluated yet, and markers for everything else."""

from __future__ import annotations

import ast
import enum
from dataclasses import field
from typing import TYPE_CHECKING, Callable, Dict, List, Literal, Optional, Protocol, Tuple, Union

from depyf.bytecode.code import Code
from depyf.quick_dataclass import dataclass

if TYPE_CHECKING:
    from depyf.lift.simulator import Simulator

COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
"""The names of code objects that are part of an expression, and called with what they run over."""


@dataclass(eq=False)
class Value:
    """An expression that represents a value.

    ``stable``: evaluating it later gives the same value, unobserved (constants, temporaries, fast locals until they are
    stored). ``silent``: no program can observe when it was evaluated, but it is another object each time (a display of
    stable values). ``order`` says when it was evaluated, ``begun`` when the first of its operands was
    (0: with it). ``chain`` are the targets that already got the value (``a = b = value``); ``copies`` counts duplicates
    on the stack that stand for the same evaluation.
    ``kept_at``: where it was copied for a test that comes next, if that decides whether it stays.
    ``converted``: it is ``!r``, say, of this expression. ``whole``: a tuple or dict display that is no list of
    arguments (3.8).
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
    iterator: bool = False
    augments: Union[ReadAt, Augmented, None] = None
    tests: Optional[ChainTest] = None
    converted: Optional[Tuple[str, ast.expr]] = None
    whole: bool = False
    begun: int = 0
    silent: bool = False


@dataclass(eq=False)
class ReadAt:
    """A value was read at a place whose operands, ``bases``, still lie on the stack: ``a[i] += v`` begins so."""

    bases: Tuple[Value, ...]


@dataclass(eq=False)
class Augmented:
    """A value is what ``place += operand`` stores, if it is stored there next; ``place`` is a name, or operands."""

    place: Union[ast.expr, Tuple[Value, ...]]
    operator: ast.operator
    operand: ast.expr


@dataclass(eq=False)
class Copy:
    """A duplicate of an unstable value further down the stack."""

    of: Value
    offset: int


@dataclass(eq=False)
class ChainTest:
    """``a < b < ...`` so far; the value it stands for is the last operand."""

    left: ast.expr
    operators: List[ast.cmpop]
    operands: List[ast.expr]


GENERIC_PREFIX = "<generic parameters of "
"""How the code object is called that makes type parameters, before the name of what has them."""
GENERIC_BASE = ".generic_base"
"""The base that a class with type parameters gets: a variable of that code object."""
DEFAULTS = ".defaults"
KW_DEFAULTS = ".kwdefaults"
"""Its parameters, by these names whichever of the two it is given (a single one is called DEFAULTS in any case)."""


@dataclass(eq=False)
class Function:
    """A function object under construction, with what MAKE_FUNCTION was given; ``annotate`` makes its annotations.

    ``inherits`` says which parameters of the code object around it are its DEFAULTS and KW_DEFAULTS. ``generic``: it
    makes type parameters and what has them, and was called with these arguments. ``is_alias``: it gives the value of a
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
        """What the function, class or alias calls itself."""
        name = self.code.co_name
        return name[len(GENERIC_PREFIX) : -1] if name.startswith(GENERIC_PREFIX) else name

    @property
    def is_lambda(self) -> bool:
        """Whether it has an expression of its own, and needs no name."""
        return self.code.co_name == "<lambda>"


class Mark(enum.Enum):
    """What a marker is; the value is how messages call it."""

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
    """What ``except* type`` leaves to be tested."""
    WITH_RESULT = "with_result"
    BUILD_CLASS = "build_class"
    SUBJECT = "subject"
    """A subject that is kept for the next case; its origin is the node of the first case."""
    MODULE = "module"
    IMPORTED = "imported"


@dataclass(eq=False)
class Marker:
    """What is on the stack and no value; ``origin`` says whose. ``expr``: what is iterated over, or the type that is
    tested. ``copied``: the same one lies below."""

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
        """``import alias`` or ``from name import alias``."""
        statement: ast.stmt
        if self.names is None:
            statement = ast.Import([alias])
        else:
            statement = ast.ImportFrom(self.name or None, [alias], self.level)
        if self.lazy:
            statement.__dict__["is_lazy"] = 1  # a field since 3.15
        return statement


class ImportMarker(Marker):
    """A module, or the object imported from it as ``name``."""

    def __init__(self, request: Import, name: Optional[str] = None) -> None:
        super().__init__(Mark.MODULE if name is None else Mark.IMPORTED)
        self.request, self.name = request, name


class Group(Protocol):
    """The targets of one statement, which is complete when all are there; ``temporaries`` has those made up."""

    temporaries: Dict[int, str]

    def continue_in(self, simulator: Simulator) -> None:
        """The next target is given by ``simulator``."""

    def give_up(self, simulator: Simulator) -> None:
        """Something else happens first: what is missing becomes temporaries."""


@dataclass(eq=False)
class Target:
    """A value that only waits to be stored: what ``for`` and ``with`` bind, and the parts of an unpacking.

    ``fill`` is given the target expression; a part knows its ``group`` and ``index`` there, so that
    parts are filled in order. ``needed``: something has to be bound even if nobody reads it.
    """

    fill: Callable[[ast.expr], None]
    group: Optional[Group] = None
    index: int = -1
    needed: bool = False


Display = Literal["list", "tuple", "dict"]


@dataclass(eq=False)
class Container:
    """A display whose elements are still items. Several slots may hold the same one."""

    kind: Display
    elements: List[Item]
    keys: Optional[List[str]] = None
    offset: int = -1


@dataclass(eq=False)
class BoundMethod:
    """A method of a container that is loaded but not called yet."""

    container: Container
    name: str


Item = Union[Value, Copy, Function, Marker, Target, Container, BoundMethod]


Decision = Literal["spill", "spill_end", "spill_locals", "containers", "kept_results", "plain_swap", "phi"]
"""The sets of ``Decisions``."""


class Retry(Exception):
    """Raised to restart lifting with one more decision: values at ``offset`` must be kept in temporaries."""

    def __init__(self, kind: Decision, key: Union[int, bool, Tuple[int, int]]) -> None:
        super().__init__(f"{kind} {key}")
        self.kind, self.key = kind, key
