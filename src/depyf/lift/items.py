"""What lies on the symbolic stack: values that are not evaluated yet, and markers for everything else."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from depyf.bytecode.code import Code

COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
"""The names of code objects that are part of an expression, and called with what they run over."""


@dataclass(eq=False)
class Value:
    """An expression that stands for a value.

    ``stable``: evaluating it later gives the same value, unobserved (constants, temporaries, fast locals until they are
    stored). ``silent``: no program can observe when it was evaluated, but it is another object each time (a display of
    stable values). ``order`` says when it was evaluated, ``begun`` when the first of its operands was
    (0: with it). ``chain`` are the targets that already got the value (``a = b = value``); ``copies`` counts duplicates
    on the stack that stand for the same evaluation.
    ``kept_at``: where it was copied for a test that comes next, if that decides whether it stays.
    ``converted``: it is ``!r``, say, of this expression. ``whole``: a tuple display that is no list of arguments (3.8).
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
    augments: Any = None
    tests: Optional[ChainTest] = None
    converted: Optional[Tuple[str, ast.expr]] = None
    whole: bool = False
    begun: int = 0
    silent: bool = False


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


@dataclass(eq=False)
class Marker:
    """Everything on the stack that is no value: kind is one of null, iter, exit, exit_result, lasti, prev, exc,
    matched (result of CHECK_EXC), with_result, build_class; ``origin`` says whose."""

    kind: str
    origin: int = -1
    data: Any = None


@dataclass(eq=False)
class Target:
    """A value that only waits to be stored: what ``for`` and ``with`` bind, and the parts of an unpacking.

    ``fill`` is given the target expression; a part knows its ``group`` and ``index`` there, so that
    parts are filled in order. ``needed``: something has to be bound even if nobody reads it.
    """

    fill: Callable[[ast.expr], None]
    group: Any = None
    index: int = -1
    needed: bool = False


Item = Union[Value, Copy, Function, Marker, Target]


class Retry(Exception):
    """Lifting has to start again with one more decision: values at ``offset`` must be kept in temporaries."""

    def __init__(self, kind: str, key: Any) -> None:
        super().__init__(f"{kind} {key}")
        self.kind, self.key = kind, key
