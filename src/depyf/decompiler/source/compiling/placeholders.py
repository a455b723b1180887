"""Placeholders: names in the text for objects and names that text can't express.

Objects without a literal pass through the compiler as replacement constants and are restored afterwards. The compiler
accepts only its own types of constants. A frozenset is one that it neither merges with another, nor uses in constant
folding, nor prints.
"""

from __future__ import annotations

import ast
import enum
from types import CodeType, ModuleType
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.source.rewriting import Node, Rewriter

_MARK = "depyf stand-in"

_LONGEST = 80

_ADDRESS = regex(r" at 0x[0-9a-fA-F]+")


class Kind(enum.Enum):
    """What text can't express."""

    CONSTANT = "constant"
    """An object in ``co_consts`` that has no literal."""
    NAME = "name"
    """A name in the bytecode that is not an identifier, or that would be read as another name."""
    CODE_NAME = "name in this text of the code called"
    """The name that the code of a function or class has for itself, where it is stored under another one."""
    QUALIFIED_NAME = "qualified name"
    """The ``__qualname__`` of a nested function, where the position of the function would give it another one."""


@dataclass(frozen=True)
class Placeholder:
    """An identifier ``name`` (for functions the qualified name) in the text that represents ``value``: an object, or
    the name in the bytecode."""

    name: str
    value: object
    kind: Kind

    def __str__(self) -> str:
        if self.kind is Kind.CONSTANT:
            return f"{self.name} is {described(self.value)}"
        return f"{self.name} is the {self.kind.value} {str(self.value)!r}"


def placeholders_of(
    constants: Mapping[str, object], names: Mapping[str, str], qualified: Mapping[str, str]
) -> Tuple[Placeholder, ...]:
    """Return all placeholders of a text, sorted by name for each kind."""

    def found() -> Iterator[Placeholder]:
        for kind, table in ((Kind.CONSTANT, constants), (Kind.NAME, names), (Kind.QUALIFIED_NAME, qualified)):
            for name, value in sorted(table.items()):
                yield Placeholder(name, value, kind)

    return tuple(found())


def head_comment(placeholders: Tuple[Placeholder, ...]) -> List[str]:
    """Return the comment lines at the head of a text with ``placeholders``. (The first two are fixed: Python reads the
    encoding of a file there.)"""
    lines = ["This text alone is not the original: it can't express what these names represent.", ""]
    lines += map(str, placeholders)
    return [f"# {' '.join(line.split())}".rstrip() for line in lines]


def described(value: object) -> str:
    """Return a short description of a constant without a literal that is the same in every run: no address, no set
    order."""
    if isinstance(value, CodeType):
        return f"the code of {value.co_name}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    kind = type(value).__name__
    if isinstance(value, (set, frozenset)):
        return f"a {kind}"
    try:
        text = " ".join(repr(value).split())
    except synchronous() as error:  # user code
        return f"a {kind} (its repr() raises {type(error).__name__})"
    return f"a {kind}" if len(text) > _LONGEST or not text.isprintable() else _ADDRESS.sub("", text)


class StandIns:
    """One replacement constant for each placeholder name."""

    def __init__(self, constants: Mapping[str, object]) -> None:
        self._stand_ins: Dict[str, FrozenSet[object]] = {}
        self._objects: Dict[FrozenSet[object], object] = {}
        for number, (name, value) in enumerate(constants.items()):
            stand_in = frozenset({(_MARK, number)})
            self._stand_ins[name] = stand_in
            self._objects[stand_in] = value

    def put_in(self, tree: Node) -> Node:
        """Return ``tree`` with the placeholder names replaced by constants."""
        return _Insertion(self._stand_ins).visit(tree) if self._stand_ins else tree

    def take_out(self, constant: object) -> object:
        """Return the constant with its replacement constants, at any depth, replaced by their objects."""
        if not self._objects:
            return constant
        if type(constant) is frozenset:
            if constant in self._objects:
                return self._objects[constant]
            return frozenset(self.take_out(item) for item in constant)
        if type(constant) is tuple:
            items: Tuple[object, ...] = tuple(self.take_out(item) for item in constant)
            return items
        if type(constant) is slice:
            return slice(self.take_out(constant.start), self.take_out(constant.stop), self.take_out(constant.step))
        return constant


class _Insertion(Rewriter):
    def __init__(self, stand_ins: Mapping[str, FrozenSet[object]]) -> None:
        super().__init__()
        self._stand_ins = stand_ins

    def visit_Name(self, node: ast.Name) -> ast.expr:
        stand_in: Any = self._stand_ins.get(node.id)
        if stand_in is None or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.Constant(value=stand_in, kind=None), node)
