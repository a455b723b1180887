"""The value of a size as graphs write it (``s0*8``, ``((s0 + 1)//2)``), without running text from a file."""

from __future__ import annotations

import ast
import operator
from typing import Callable, Dict, Mapping, Type

from depyf.bytecode.parsing import parse

LARGEST = 1 << 40
"""No size is larger, and no intermediate result of one."""

_LONGEST = 1000

_OPERATORS: Dict[Type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: pow,
}
_FUNCTIONS: Dict[str, Callable[..., int]] = {
    "Max": max,
    "Min": min,
    "FloorDiv": operator.floordiv,
    "CeilDiv": lambda one, other: -(-one // other),
    "Mod": operator.mod,
    "PythonMod": operator.mod,
}


def size_of(text: str, symbols: Mapping[str, int]) -> int:
    """Return the value of the expression ``text``, with ``symbols`` for its names. Raises ``ValueError`` if it is not
    such an expression, or if a result in it is beyond all sizes."""
    if len(text) > _LONGEST:
        raise ValueError(f"{len(text)} characters are not a size")
    try:
        return _value(parse(text.strip(), mode="eval").body, symbols)
    except (SyntaxError, ArithmeticError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text!r} is not a size: {error}") from error


def _value(node: ast.expr, symbols: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        number = node.value
    elif isinstance(node, ast.Name):
        number = symbols[node.id]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = -_value(node.operand, symbols)
    elif isinstance(node, ast.BinOp):
        one, other = _value(node.left, symbols), _value(node.right, symbols)
        if isinstance(node.op, ast.Pow) and not 0 <= other <= 40:
            raise ValueError(f"a power of {other}")
        number = _OPERATORS[type(node.op)](one, other)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        number = _FUNCTIONS[node.func.id](*(_value(argument, symbols) for argument in node.args))
    else:
        raise ValueError(f"{type(node).__name__} can't be in a size")
    if not -LARGEST <= number <= LARGEST:
        raise ValueError("a number beyond all sizes")
    return number
