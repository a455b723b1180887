"""Sizes of tensors in bytes, from types as PyTorch prints them: ``f32[s77, 64][64, 1]cpu``."""

from __future__ import annotations

import ast
import operator
from typing import Callable, Dict, List, Mapping, Optional

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.decompiler.syntax import parse

_TYPE = regex(r"([a-z]+)(\d+)(?:x\d|e\d+m\d+\w*)?\[([^\]]*)\](?:\[([^\]]*)\])?")
_BITS = regex(r"torch\.[a-z]+(\d+)")

_OPERATORS: Dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,  # of symbols, printed where it is exact
    ast.Mod: operator.mod,
}
_FUNCTIONS: Dict[str, Callable[..., int]] = {
    "Max": max,
    "max": max,
    "Min": min,
    "min": min,
    "Mod": operator.mod,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
}
_LARGEST = 1 << 62
"""A size above this is an error of the text; it may be a stranger's."""


class UnknownSizeError(ValueError):
    """The type holds a symbol without a value, or another form of size."""


def bytes_of_type(text: str, symbols: Mapping[str, int]) -> Optional[int]:
    """Return the size of a tensor's memory by its printed type; None for the type of something else. Raises
    ``UnknownSizeError``."""
    match = _TYPE.match(text)
    if match is None:
        return None
    return extent(match[3], match[4], symbols) * max(1, int(match[2]) // 8)


def bytes_of_strided(sizes: str, strides: Optional[str], dtype: str, symbols: Mapping[str, int]) -> int:
    """Return the number of bytes that ``empty_strided`` allocates, or ``empty`` (no ``strides``). Raises
    ``UnknownSizeError``."""
    match = _BITS.match(dtype)
    return extent(sizes, strides, symbols) * (1 if match is None else max(1, int(match[1]) // 8))


def extent(sizes: str, strides: Optional[str], symbols: Mapping[str, int]) -> int:
    """Return the number of elements between the first and the last of a tensor, inclusive. Raises
    ``UnknownSizeError``."""
    shape = [_value(each, symbols) for each in _parts(sizes)]
    steps = None if strides is None else [_value(each, symbols) for each in _parts(strides)]
    if 0 in shape:
        return 0
    if steps is not None and len(steps) == len(shape):
        return _checked(1 + sum((size - 1) * step for size, step in zip(shape, steps)))
    count = 1
    for size in shape:
        count = _checked(count * size)
    return count


def _checked(value: int) -> int:
    if not 0 <= value <= _LARGEST:
        raise UnknownSizeError(f"a size of {value}")
    return value


def _parts(text: str) -> List[str]:
    """Return the parts of a list between its commas, except those in parentheses."""
    found, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            found.append(text[begin:at])
            begin = at + 1
    return [part for part in (each.strip() for each in (*found, text[begin:])) if part]


def _value(text: str, symbols: Mapping[str, int]) -> int:
    if text.isdigit() and len(text) < 20:
        return int(text)
    known = symbols.get(text)
    if known is not None:
        return known
    if len(text) > 500:
        raise UnknownSizeError(text[:60])
    try:
        return _checked(_evaluated(parse(text, mode="eval").body, symbols))
    except synchronous(ValueError, ArithmeticError, RecursionError, TypeError, SyntaxError) as error:
        raise UnknownSizeError(f"{text}: {error}") from error


def _evaluated(tree: ast.expr, symbols: Mapping[str, int]) -> int:
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.Name) and tree.id in symbols:
        return symbols[tree.id]
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -_evaluated(tree.operand, symbols)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATORS:
        left, right = _evaluated(tree.left, symbols), _evaluated(tree.right, symbols)
        return _within(_OPERATORS[type(tree.op)](left, right))
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow):
        left, right = _evaluated(tree.left, symbols), _evaluated(tree.right, symbols)
        if 0 <= right <= 62 and abs(left) <= 1 << 20:
            return _within(left**right)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in _FUNCTIONS:
        return _within(_FUNCTIONS[tree.func.id](*(_evaluated(each, symbols) for each in tree.args)))
    raise UnknownSizeError("not a size that is known")


def _within(value: int) -> int:
    if abs(value) > _LARGEST:
        raise UnknownSizeError("too large")
    return value
