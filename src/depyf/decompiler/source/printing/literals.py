"""Constants to expressions that compile back to the same constant; placeholder names for those without a literal."""

from __future__ import annotations

import ast
import re
import types
from typing import Callable, Dict, FrozenSet, Iterable, Iterator, List, Optional, Set, Tuple, TypeVar, Union

from depyf.decompiler.bytecode.floats import float_bits, nans_in
from depyf.decompiler.bytecode.set_order import display_order
from depyf.decompiler.bytecode.syntax_trees import walk
from depyf.decompiler.source.names import fresh_name, strings_of

# repr() and the parser refuse longer ones in decimal (sys.get_int_max_str_digits); 640 is the lowest limit allowed.
_LONGEST_DECIMAL_BITS = 2000

LARGEST_PLAIN_NUMBER = 1 << 100
"""Below it, numbers are printed as they are."""

_NAMED_TYPES = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


class Literals:
    """The forms of the constants of a tree. Objects without an expression get readable names that are unique in it:
    ``__const_device_0``."""

    def __init__(self, tree: ast.AST) -> None:
        self.objects: Dict[str, object] = {}
        self._tree = tree
        self._taken: Set[str] = set()
        self._names: Dict[int, str] = {}
        self._shared_nans: Optional[FrozenSet[int]] = None

    def expression(self, value: object) -> ast.expr:
        """Return an expression that compiles to the constant ``value``, or the name of a placeholder."""
        return literal(value, self.name, self._identical(value))

    def name(self, value: object, kind: Optional[str] = None) -> ast.Name:
        """Return the name to load for ``value``, the same one for the same object; ``kind`` is the middle part of the
        name."""
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

    def as_set(self, node: ast.Constant, *, in_order: bool = False) -> Optional[ast.Set]:
        """Return a frozenset as a set display: after ``in`` and as an iterable the compiler turns it into one again.
        ``in_order``: the iteration order must be the same as well. Return ``None`` if ``node`` is not a frozenset, or
        no display has its order."""
        value: object = node.value
        if type(value) is not frozenset or not value:
            return None
        members = display_order(value)
        if members is None:
            if in_order:
                return None
            members = list(value)
        return ast.Set(elts=[self.expression(item) for item in members])

    def _identical(self, value: object) -> FrozenSet[int]:
        """Return the ``id`` of each NaN in ``value`` that the tree contains several times, and perhaps of others."""
        if next(nans_in(value), None) is None:
            return frozenset()
        if self._shared_nans is None:
            self._shared_nans = self._find_shared_nans()
        return self._shared_nans

    def _find_shared_nans(self) -> FrozenSet[int]:
        """Return the ``id`` of each NaN that the tree holds several times. An expression would make another object each
        time, which programs can observe."""
        seen: Set[int] = set()
        shared: Set[int] = set()
        for node in walk(self._tree):
            for nan in nans_in(node.value) if isinstance(node, ast.Constant) else ():
                (shared if id(nan) in seen else seen).add(id(nan))
        return frozenset(shared)


def literal(
    value: object, placeholder: Callable[[object], ast.expr], identical: FrozenSet[int] = frozenset()
) -> ast.expr:
    """Return an expression that compiles to the constant ``value``. ``placeholder`` is called for objects that have
    none, and for those whose ``id`` is in ``identical``."""
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
    # Infinity has no literal, but a literal that is too large has that value.
    return verbatim("1e309") if value == float("inf") else ast.Constant(value=value, kind=None)


def _signed(value: Number, *, negative: bool, positive: Callable[[Number], ast.expr]) -> ast.expr:
    if negative:
        return ast.UnaryOp(op=ast.USub(), operand=positive(-value))
    return positive(value)


def _complex(value: complex) -> Optional[ast.expr]:
    """Return the first sum or difference of literals with the same bits as ``value``; ``None`` if all differ."""
    return _first_with_bits(_complex_candidates(value), value)


def _first_with_bits(candidates: Iterable[Tuple[ast.expr, complex]], value: complex) -> Optional[ast.expr]:
    """Return the first expression whose value has the same bits as ``value``, signs of zeros and of NaN included."""
    wanted = float_bits(value)
    return next((expression for expression, result in candidates if float_bits(result) == wanted), None)


def _nan_candidates() -> Iterator[Tuple[ast.expr, float]]:
    """Yield two expressions for NaN, which the compiler folds; the processor decides which has a sign."""
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
    # The values that the compiler computes when it folds the expression; complex(...) would keep other signs of zero.
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
    """Return an atom that is printed as ``text``: printers write the name of a ``Name`` unchanged."""
    return ast.Name(id=text, ctx=ast.Load())
