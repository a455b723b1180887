"""The defaults and annotations of a function object, as expressions that have the same value where the function is
defined."""

from __future__ import annotations

import ast
import builtins
import inspect
from dataclasses import field
from types import FunctionType, ModuleType
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.parsing import parse
from depyf.decompiler.source.futures import ANNOTATIONS
from depyf.decompiler.source.printing.literals import literal

_DEEPEST = 20


@dataclass(frozen=True)
class FunctionFacts:
    """The defaults and annotations of a function. ``unwritten``: descriptions of those that have no expression."""

    defaults: List[ast.expr] = field(default_factory=list)
    kw_defaults: Dict[str, ast.expr] = field(default_factory=dict)
    annotations: Dict[str, ast.expr] = field(default_factory=dict)
    unwritten: List[str] = field(default_factory=list)


def facts_of(function: FunctionType) -> FunctionFacts:
    """Return the facts of ``function``; a default without an expression becomes ``...``, such an annotation is omitted.
    ``unwritten`` mentions both."""
    unwritten: List[str] = []
    known = _Namespace(function.__globals__)
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]

    def default(name: str, value: object) -> ast.expr:
        expression = known.expression(value)
        if expression is None:
            unwritten.append(f"the default of {name} is a {type(value).__name__} without a name here")
            return ast.Constant(value=..., kind=None)
        return expression

    values = function.__defaults__ or ()
    names = positional[len(positional) - len(values) :]
    defaults = [default(name, value) for name, value in zip(names, values)]
    kw_defaults = {name: default(name, value) for name, value in (function.__kwdefaults__ or {}).items()}
    annotations: Dict[str, ast.expr] = {}
    as_text = bool(code.co_flags & ANNOTATIONS)
    for name, value in _annotations(function).items():
        expression = _parsed(value) if as_text and type(value) is str else known.expression(value)
        if expression is None:
            unwritten.append(f"the annotation of {name} is a {type(value).__name__} without a name here")
        else:
            annotations[name] = expression
    return FunctionFacts(defaults, kw_defaults, annotations, unwritten)


def _annotations(function: FunctionType) -> Mapping[str, object]:
    try:
        found = function.__annotations__
    except synchronous():  # since 3.14 they are evaluated on demand, and may use undefined names
        return {}
    return found if isinstance(found, dict) else {}


def _parsed(text: str) -> Optional[ast.expr]:
    try:
        return parse(text, mode="eval").body
    except synchronous(SyntaxError, ValueError):
        return None


class _Namespace:
    """The values of the names in a module."""

    def __init__(self, names: Mapping[str, object]) -> None:
        self.names = names
        self.by_id: Optional[Dict[int, str]] = None

    def expression(self, value: object, depth: int = 0) -> Optional[ast.expr]:
        """Return an expression with the value ``value`` in this module, or ``None``."""
        kind = type(value)
        if kind in (list, dict, set, tuple, frozenset) and depth < _DEEPEST:
            return self._display(value, depth + 1)
        if value is None or kind in (bool, int, float, complex, str, bytes, type(...)):
            return literal(value, lambda _: ast.Constant(value=..., kind=None))
        return self._named(value)

    def _display(self, value: Any, depth: int) -> Optional[ast.expr]:
        if isinstance(value, dict):
            keys, values = self._all(value, depth), self._all(value.values(), depth)
            return None if keys is None or values is None else ast.Dict(keys=list(keys), values=values)
        items = self._all(value, depth)
        if items is None or (isinstance(value, (set, frozenset)) and not items):
            return None  # an empty set has no literal
        if isinstance(value, tuple):
            return ast.Tuple(elts=items, ctx=ast.Load())
        if isinstance(value, list):
            return ast.List(elts=items, ctx=ast.Load())
        if isinstance(value, frozenset):
            return None
        return ast.Set(elts=items)

    def _all(self, values: Iterable[object], depth: int) -> Optional[List[ast.expr]]:
        found = [self.expression(value, depth) for value in values]
        return None if None in found else [each for each in found if each is not None]

    def _named(self, value: object) -> Optional[ast.expr]:
        for text in self._candidates(value):
            tree = _parsed(text)
            if tree is not None:
                try:
                    meant = self._evaluate(tree)
                except (LookupError, AttributeError, TypeError):
                    continue
                if meant is value or (type(meant) is type(value) and _is_alias(value) and meant == value):
                    return tree
        return None

    def _candidates(self, value: object) -> Iterator[str]:
        """Yield texts that may have the value ``value``."""
        # A global of that value; the qualified name, alone, after its module, or after an alias of its module; an enum
        # member; the text of a generic alias, with and without "typing.". Each is evaluated before it is believed.
        if self.by_id is None:
            self.by_id = {id(each): name for name, each in reversed(list(self.names.items()))}
        own = self.by_id.get(id(value))
        if own is not None:
            yield own
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        if isinstance(name, str):
            yield name
            module = getattr(value, "__module__", None)
            if isinstance(module, str):
                yield f"{module}.{name}"
                for alias, each in list(self.names.items()):
                    if isinstance(each, ModuleType) and each.__name__ == module:
                        yield f"{alias}.{name}"
        member = getattr(value, "_name_", None)
        if isinstance(member, str):  # of an Enum
            yield f"{type(value).__qualname__}.{member}"
        if _is_alias(value) or type(value).__module__.partition(".")[0] in self.names:
            try:
                text = repr(value)
            except synchronous():  # user code
                return
            yield text
            yield text.replace("typing.", "")

    def _evaluate(self, node: ast.expr) -> Any:
        """Return the value of an expression of names, attributes, subscripts and ``|``. Raises ``LookupError`` for
        others."""
        if isinstance(node, ast.Name):
            return self.names[node.id] if node.id in self.names else vars(builtins)[node.id]
        if isinstance(node, ast.Attribute):
            return inspect.getattr_static(self._evaluate(node.value), node.attr)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Tuple):
            return tuple(map(self._evaluate, node.elts))
        if isinstance(node, ast.List):
            return list(map(self._evaluate, node.elts))
        if isinstance(node, ast.Subscript):
            index = node.slice
            return self._evaluate(node.value)[self._evaluate(getattr(index, "value", index))]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._evaluate(node.left) | self._evaluate(node.right)
        raise LookupError(ast.dump(node))


def _is_alias(value: object) -> bool:
    """Return whether ``value`` is like ``List[int]``, ``list[int]`` or ``int | None``."""
    return type(value).__module__ in ("typing", "types") and not isinstance(value, (FunctionType, ModuleType))
