"""Objects without a literal through the compiler: stand-ins go in where the placeholders are, the objects come out.

The compiler takes only its own kinds of constants. A frozenset is one that it neither merges with another, nor
computes with when it folds constants, nor prints.
"""

from __future__ import annotations

import ast
from typing import Any, Dict, FrozenSet, Mapping, Tuple

from depyf.source.rewriting import Rewriter

_MARK = "depyf stand-in"


class StandIns:
    """One stand-in for each placeholder name."""

    def __init__(self, constants: Mapping[str, object]) -> None:
        self._stand_ins: Dict[str, FrozenSet[Any]] = {}
        self._objects: Dict[FrozenSet[Any], object] = {}
        for number, (name, value) in enumerate(constants.items()):
            stand_in = frozenset({(_MARK, number)})
            self._stand_ins[name] = stand_in
            self._objects[stand_in] = value

    def put_in(self, tree: Any) -> Any:
        """``tree`` with the placeholder names replaced by constants."""
        return _Insertion(self._stand_ins).visit(tree) if self._stand_ins else tree

    def take_out(self, constant: Any) -> Any:
        """The constant with the objects in it, at any depth, that the stand-ins stand for."""
        if not self._objects:
            return constant
        if type(constant) is frozenset:
            if constant in self._objects:
                return self._objects[constant]
            return frozenset(self.take_out(item) for item in constant)
        if type(constant) is tuple:
            items: Tuple[Any, ...] = tuple(self.take_out(item) for item in constant)
            return items
        if type(constant) is slice:
            return slice(self.take_out(constant.start), self.take_out(constant.stop), self.take_out(constant.step))
        return constant


class _Insertion(Rewriter):
    def __init__(self, stand_ins: Mapping[str, FrozenSet[Any]]) -> None:
        super().__init__()
        self._stand_ins = stand_ins

    def visit_Name(self, node: ast.Name) -> ast.expr:
        stand_in: Any = self._stand_ins.get(node.id)
        if stand_in is None or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.Constant(value=stand_in, kind=None), node)
