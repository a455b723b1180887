"""Constants to expressions that compile back to the same constant; names in the place of those that have no literal."""

from __future__ import annotations

import ast
import re
import types
from typing import Callable, Dict, FrozenSet, Iterable, Iterator, List, Optional, Set, Tuple, TypeVar, Union

from depyf.bytecode.floats import float_bits, nans_in
from depyf.bytecode.set_order import display_order
from depyf.bytecode.syntax_trees import walk
from depyf.source.names import fresh_name, strings_of
from depyf.source.rewriting import Rewriter, replaced

# repr() and the parser refuse longer ones in decimal (sys.get_int_max_str_digits); 640 is the lowest limit allowed.
_LONGEST_DECIMAL_BITS = 2000

_NAMED_TYPES = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


def make_literal(tree: ast.Module, placeholders: Placeholders) -> ast.Module:
    """``tree`` with every constant in a form that can be printed."""
    result: ast.Module = _Constants(placeholders).visit(tree)
    return result


class Placeholders:
    """Readable names, unique in a tree, for objects that no expression can make: ``__const_device_0``."""

    def __init__(self, tree: ast.AST) -> None:
        self.objects: Dict[str, object] = {}
        self._tree = tree
        self._taken: Set[str] = set()
        self._names: Dict[int, str] = {}

    def name(self, value: object, kind: Optional[str] = None) -> ast.Name:
        """The name to load for ``value``, the same one for the same object; ``kind`` is what it says in the middle."""
        known = self._names.get(id(value))
        if known is None:
            if not self._taken:
                self._taken.update(strings_of(self._tree))
            count, stem = 0, f"__const_{kind or _kind(value)}"
            while f"{stem}_{count}" in self._taken:
                count += 1
            known = self._names[id(value)] = fresh_name(f"{stem}_{count}", self._taken)
            self.objects[known] = value
        return ast.Name(id=known, ctx=ast.Load())

    def shared_nans(self) -> FrozenSet[int]:
        """The ``id`` of each NaN that the tree holds several times: from an expression each time, it would be another
        object, which programs can observe."""
        seen: Set[int] = set()
        shared: Set[int] = set()
        for node in walk(self._tree):
            for nan in nans_in(node.value) if isinstance(node, ast.Constant) else ():
                (shared if id(nan) in seen else seen).add(id(nan))
        return frozenset(shared)


def literal(
    value: object, placeholder: Callable[[object], ast.expr], identical: FrozenSet[int] = frozenset()
) -> ast.expr:
    """An expression that compiles to the constant ``value``; objects without one are left to ``placeholder``, and those
    whose ``id`` is in ``identical``."""
    kind = type(value)
    if value is None or value is Ellipsis or (isinstance(value, (bool, str, bytes)) and kind in (bool, str, bytes)):
        return ast.Constant(value=value, kind=None)
    if isinstance(value, (int, float, complex)) and kind in (int, float, complex):
        number = None if id(value) in identical else _number(value)
        return placeholder(value) if number is None else number
    if isinstance(value, tuple) and kind is tuple:
        return ast.Tuple(elts=[literal(item, placeholder, identical) for item in value], ctx=ast.Load())
    return placeholder(value)


def _kind(value: object) -> str:
    if value != value and type(value) in (float, complex):
        return "nan"
    name = value.__name__ if isinstance(value, _NAMED_TYPES) else type(value).__name__
    return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "object"


def _number(value: Union[int, float, complex]) -> Optional[ast.expr]:
    if isinstance(value, int):
        return _signed(value, negative=value < 0, positive=_integer)
    if isinstance(value, float):
        if value != value:
            return _first_with_bits(_nan_candidates(), value)
        return _signed(value, negative=repr(value).startswith("-"), positive=_float)
    return _complex(value)


Number = TypeVar("Number", int, float)


def _integer(value: int) -> ast.expr:
    if value.bit_length() > _LONGEST_DECIMAL_BITS:
        return verbatim(hex(value))
    return ast.Constant(value=value, kind=None)


def _float(value: float) -> ast.expr:
    # No literal says infinity, but one that is too large does.
    return verbatim("1e309") if value == float("inf") else ast.Constant(value=value, kind=None)


def _signed(value: Number, *, negative: bool, positive: Callable[[Number], ast.expr]) -> ast.expr:
    if negative:
        return ast.UnaryOp(op=ast.USub(), operand=positive(-value))
    return positive(value)


def _complex(value: complex) -> Optional[ast.expr]:
    """The first sum or difference of literals that has the very bits of ``value``."""
    return _first_with_bits(_complex_candidates(value), value)


def _first_with_bits(candidates: Iterable[Tuple[ast.expr, complex]], value: complex) -> Optional[ast.expr]:
    """The first expression whose value is ``value`` to the bit: signs of zeros and of NaN included."""
    wanted = float_bits(value)
    return next((expression for expression, result in candidates if float_bits(result) == wanted), None)


def _nan_candidates() -> Iterator[Tuple[ast.expr, float]]:
    """The compiler folds both; which of them has a sign depends on the processor."""
    infinity = float("inf")
    made = infinity - infinity
    difference = ast.BinOp(left=verbatim("1e309"), op=ast.Sub(), right=verbatim("1e309"))
    yield difference, made
    yield ast.UnaryOp(op=ast.USub(), operand=difference), -made


def _complex_candidates(value: complex) -> Iterator[Tuple[ast.expr, complex]]:
    for imaginary_part, zero_j in _imaginary_candidates(abs(value.imag)):
        yield imaginary_part, zero_j
        yield ast.UnaryOp(op=ast.USub(), operand=imaginary_part), -zero_j
        yield from _sums(_signed_candidates(abs(value.real)), imaginary_part, zero_j)


def _imaginary_candidates(value: float) -> Iterator[Tuple[ast.expr, complex]]:
    if value == value:
        yield _imaginary(value), complex(0.0, value)
        return
    infinity = complex(0.0, float("inf"))
    made = infinity - infinity
    difference = ast.BinOp(left=verbatim("1e309j"), op=ast.Sub(), right=verbatim("1e309j"))
    yield difference, made
    yield ast.UnaryOp(op=ast.USub(), operand=difference), -made


def _signed_candidates(value: float) -> List[Tuple[ast.expr, float]]:
    if value != value:
        return list(_nan_candidates())
    return [(_float(value), value), (ast.UnaryOp(op=ast.USub(), operand=_float(value)), -value)]


def _sums(
    signed: List[Tuple[ast.expr, float]], imaginary_part: ast.expr, zero_j: complex
) -> Iterator[Tuple[ast.expr, complex]]:
    # What the compiler computes when it folds the expression; complex(...) would keep other signs of zero.
    for left, number in signed:
        yield ast.BinOp(left=left, op=ast.Add(), right=imaginary_part), number + zero_j
        yield ast.BinOp(left=left, op=ast.Sub(), right=imaginary_part), number - zero_j
    for left, number in signed:
        plus = ast.BinOp(left=left, op=ast.Add(), right=imaginary_part)
        minus = ast.BinOp(left=left, op=ast.Sub(), right=imaginary_part)
        yield ast.UnaryOp(op=ast.USub(), operand=plus), -(number + zero_j)
        yield ast.UnaryOp(op=ast.USub(), operand=minus), -(number - zero_j)


def _imaginary(value: float) -> ast.expr:
    return verbatim("1e309j") if value == float("inf") else ast.Constant(value=complex(0.0, value), kind=None)


def verbatim(text: str) -> ast.Name:
    """An atom that is printed as ``text``, whatever that is: printers write the name of a ``Name`` as it stands."""
    return ast.Name(id=text, ctx=ast.Load())


class _Constants(Rewriter):
    def __init__(self, placeholders: Placeholders) -> None:
        super().__init__()
        self._placeholders = placeholders
        self._shared_nans = placeholders.shared_nans()

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        value = node.value
        if value.__class__ is str or value is None:
            return node
        return literal(value, self._placeholders.name, self._shared_nans)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        # The pieces of text in it are no expressions.
        values = [value if isinstance(value, ast.Constant) else self.visit(value) for value in node.values]
        return replaced(node, values=values)

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        operands: List[ast.expr] = []
        for operator, operand in zip(node.ops, node.comparators):
            as_set = self._set(operand) if isinstance(operator, (ast.In, ast.NotIn)) else None
            operands.append(as_set or self.visit(operand))
        return replaced(node, left=self.visit(node.left), comparators=operands)

    def _visit_for(self, node: Union[ast.For, ast.comprehension]) -> object:
        as_set = self._set(node.iter, in_order=True)
        # The set has no constants that need another visit.
        return self.rewrite_children(replaced(node, iter=as_set) if as_set else node)

    visit_For = _visit_for
    visit_comprehension = _visit_for

    def _set(self, node: ast.expr, *, in_order: bool = False) -> Optional[ast.Set]:
        """A frozenset as a set display: behind ``in`` and as what a loop goes over, the compiler makes it one again.

        ``in_order``: it must be gone through in the same order as well; ``None`` if no display does that.
        """
        value: object = node.value if isinstance(node, ast.Constant) else None
        if type(value) is not frozenset or not value:
            return None
        members = display_order(value)
        if members is None:
            if in_order:
                return None
            members = list(value)
        return ast.Set(elts=[literal(item, self._placeholders.name, self._shared_nans) for item in members])
