"""What a text can't say, by the names that it has instead: ``Placeholder`` describes one of them to the reader.

Objects without a literal go through the compiler as stand-ins, and come out as themselves.

The compiler takes only its own kinds of constants. A frozenset is one that it neither merges with another, nor
computes with when it folds constants, nor prints.
"""

from __future__ import annotations

import ast
import enum
from types import CodeType, ModuleType
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Tuple

from depyf.asynchronous import synchronous
from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import dataclass
from depyf.source.rewriting import Node, Rewriter

_MARK = "depyf stand-in"

_LONGEST = 80

_ADDRESS = re_compile(r" at 0x[0-9a-fA-F]+")


class Kind(enum.Enum):
    """What a text can't say."""

    CONSTANT = "constant"
    """An object in ``co_consts`` that has no literal."""
    NAME = "name"
    """A name in the bytecode that is no identifier, or would be read as another one where it stands."""
    QUALIFIED_NAME = "qualified name"
    """The ``__qualname__`` of a nested function, where it is not the one of its place."""


@dataclass(frozen=True)
class Placeholder:
    """``name``, an identifier (of functions the qualified name) that has a meaning in the text, represents ``value``:
    an object, or the name as it is in the bytecode."""

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
    """All of a text, in the order of their names."""

    def found() -> Iterator[Placeholder]:
        for kind, table in ((Kind.CONSTANT, constants), (Kind.NAME, names), (Kind.QUALIFIED_NAME, qualified)):
            for name, value in sorted(table.items()):
                yield Placeholder(name, value, kind)

    return tuple(found())


def head_comment(placeholders: Tuple[Placeholder, ...]) -> List[str]:
    """The comment lines at the head of a text with ``placeholders``. (The first two are fixed: Python looks for the
    encoding of a file there.)"""
    lines = ["This text alone is not the original: it can't say what these names represent.", ""]
    lines += map(str, placeholders)
    return [f"# {' '.join(line.split())}".rstrip() for line in lines]


def described(value: object) -> str:
    """A constant without a literal in a few words, the same in every run: no address, no order of a set."""
    if isinstance(value, CodeType):
        return f"the code of {value.co_name}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    kind = type(value).__name__
    if isinstance(value, (set, frozenset)):
        return f"a {kind}"
    try:
        text = " ".join(repr(value).split())
    except synchronous() as error:  # anybody's code
        return f"a {kind} (its repr() raises {type(error).__name__})"
    return f"a {kind}" if len(text) > _LONGEST or not text.isprintable() else _ADDRESS.sub("", text)


class StandIns:
    """One stand-in for each placeholder name."""

    def __init__(self, constants: Mapping[str, object]) -> None:
        self._stand_ins: Dict[str, FrozenSet[object]] = {}
        self._objects: Dict[FrozenSet[object], object] = {}
        for number, (name, value) in enumerate(constants.items()):
            stand_in = frozenset({(_MARK, number)})
            self._stand_ins[name] = stand_in
            self._objects[stand_in] = value

    def put_in(self, tree: Node) -> Node:
        """``tree`` with the placeholder names replaced by constants."""
        return _Insertion(self._stand_ins).visit(tree) if self._stand_ins else tree

    def take_out(self, constant: object) -> object:
        """The constant with the objects in it, at any depth, that the stand-ins stand for."""
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
