"""Which expressions an edit may evaluate although the program would not: decided by their syntax, and conservative.

``torch.where`` evaluates both sides. A side that is not chosen must raise nothing, have no side effect, have the shape
of the other side, and leave the gradient alone: the gradient of the side that is not chosen is zero times its
derivative, which is NaN where the derivative is not finite (of ``1 / x`` and ``sqrt`` at 0, of ``x * y`` where ``y`` is
infinite). So a side consists of one tensor and of operations whose derivatives are constants. Where no gradient is
computed, any operation on each element alone will do.
"""

from __future__ import annotations

import ast
import math
from typing import List, Mapping, Optional, Set, Tuple, Type, Union

from depyf.fixing.edits import NoEdit, dotted

REDUCTIONS = frozenset(
    ("sum", "mean", "max", "min", "amax", "amin", "norm", "any", "all", "std", "var", "prod", "median")
)
"""Methods that, without arguments, return a tensor without dimensions."""

_TESTS = frozenset(("isnan", "isinf", "isfinite"))
_TEXTS: Mapping[Type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="
}  # fmt: skip
_COMPARED = tuple(_TEXTS)
_LARGEST = 1e4
"""Constants in a side are at most so large: those that overflow a dtype would be infinite derivatives."""

_ELEMENTWISE = frozenset(
    ("relu", "abs", "neg", "exp", "log", "sqrt", "rsqrt", "square", "sin", "cos", "tanh", "sigmoid", "reciprocal")
)
"""Methods and functions that, of floating point numbers, compute each element alone, keep the dtype and never raise."""

_WITH_GRADIENT = ("relu",)
"""The methods and functions whose derivative is finite everywhere."""

_FRESH = REDUCTIONS | _TESTS | frozenset(
    ("abs", "neg", "exp", "log", "sqrt", "rsqrt", "square", "sin", "cos", "tanh", "sigmoid", "relu", "std", "var",
     "argmax", "argmin", "numel", "size", "dim", "clone", "prod", "item")
)  # fmt: skip
"""Methods and functions whose result is new, and shares no memory with a tensor."""

_FACTS = frozenset(("shape", "dtype", "device", "ndim", "requires_grad"))
"""Attributes of a tensor that no operation on it changes."""


def number(node: ast.expr) -> Optional[float]:
    """Return the value of a literal number; None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        inner = number(node.operand)
        return None if inner is None else -inner if isinstance(node.op, ast.USub) else inner
    value = node.value if isinstance(node, ast.Constant) else None
    return float(value) if type(value) in (int, float) and math.isfinite(value) else None  # type: ignore[arg-type]


def check_test(node: ast.expr, torch: str, known: Mapping[str, ast.expr]) -> None:
    """Raise ``NoEdit`` unless a test is a tensor of one bool without dimensions, for any tensors in it. ``known`` are
    the values of variables."""
    node = _value(node, known)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _COMPARED):
        sides = [_value(each, known) for each in (node.left, node.comparators[0])]
        reduced = [_is_reduction(each, torch) for each in sides]
        if any(reduced) and all(is_one or number(each) is not None for is_one, each in zip(reduced, sides)):
            return
    elif isinstance(node, ast.Call) and _method(node) in ("any", "all") and _is_reduction(node, torch):
        # Of bools alone the result is a bool: any() of uint8 is uint8.
        reduced_value = node.args[0] if node.args else node.func.value  # type: ignore[attr-defined]
        is_test = isinstance(reduced_value, ast.Call) and _method(reduced_value) in _TESTS
        if is_test or isinstance(reduced_value, ast.Compare):
            return
    raise NoEdit("the test is not known to be one bool without dimensions (x.sum() > 0, torch.isnan(x).any())")


def _value(node: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    """Return the value of a variable, if it is known; any other expression as it is."""
    return known.get(node.id, node) if isinstance(node, ast.Name) else node


def parts_of_test(node: ast.expr, torch: str, known: Mapping[str, ast.expr]) -> Tuple[List[Union[ast.expr, str]], bool]:
    """Return a test as a tensor of one bool, in parts: expressions of the source and the text between; and whether the
    test is the opposite of that bool. ``bool(x.any())``, ``x.any().item()`` and ``x.sum().item() > 0`` are tests of
    numbers of Python, which are the same tests without these calls. Raises ``NoEdit``."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        parts, is_opposite = parts_of_test(node.operand, torch, known)
        return parts, not is_opposite
    inner = without_item(node, "bool")
    if inner is not node:
        return parts_of_test(inner, torch, known)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        check_test(node, torch, known)
        return [node], False
    sides = [node.left, node.comparators[0]]
    tensors = [without_item(each, "float") for each in sides]
    if tensors == sides:
        check_test(node, torch, known)
        return [node], False
    # A tensor compares in its own dtype, a number of Python in double precision: 0.1 is another number in float32. All
    # dtypes of integers and of floating point have numbers of at most 8 binary digits up to 127.
    constants = [0.5 if value == 0 else value for value in map(number, tensors) if value is not None]
    if not any(2**-8 <= each <= 127 and (math.frexp(each)[0] * 256).is_integer() for each in constants):
        raise NoEdit(
            "the test compares a number that was read out of a tensor, and not with a constant that all dtypes have "
            "(0, 1, 0.5): without item() the comparison may have another result"
        )
    check_test(ast.Compare(tensors[0], node.ops, tensors[1:]), torch, known)
    return [tensors[0], f" {_TEXTS[type(node.ops[0])]} ", tensors[1]], False


def without_item(node: ast.expr, function: str) -> ast.expr:
    """Return ``x`` of ``x.item()`` and of ``function(x)``; any other expression as it is."""
    if not isinstance(node, ast.Call) or node.keywords:
        return node
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        return node.func.value
    is_converted = dotted(node.func) == function and len(node.args) == 1
    return without_item(node.args[0], function) if is_converted else node


def _method(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _is_reduction(node: ast.expr, torch: str) -> bool:
    """Return whether an expression reduces a tensor to one value: ``x.sum()``, ``torch.sum(x)``."""
    if not isinstance(node, ast.Call) or node.keywords or _method(node) not in REDUCTIONS:
        return False
    if dotted(node.func) == f"{torch}.{_method(node)}":
        return len(node.args) == 1 and _is_tested(node.args[0], torch)
    return isinstance(node.func, ast.Attribute) and not node.args and _is_tested(node.func.value, torch)


def _is_tested(node: ast.expr, torch: str) -> bool:
    """Return whether an expression may stand in a reduction: it is evaluated once, in both programs."""
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Compare):
        return (
            len(node.ops) == 1
            and isinstance(node.ops[0], _COMPARED)
            and all(number(each) is not None or _is_tested(each, torch) for each in (node.left, node.comparators[0]))
        )
    if isinstance(node, ast.BinOp):
        return all(number(each) is not None or _is_tested(each, torch) for each in (node.left, node.right))
    if isinstance(node, ast.Call) and not node.keywords and _method(node) in (*_TESTS, "abs", "square"):
        if dotted(node.func) == f"{torch}.{_method(node)}":
            return len(node.args) == 1 and _is_tested(node.args[0], torch)
        return isinstance(node.func, ast.Attribute) and not node.args and _is_tested(node.func.value, torch)
    return False


def base_of_side(node: ast.expr, torch: str, *, has_gradient: bool = True) -> str:
    """Return the one variable that a side is computed from. Raises ``NoEdit`` for a side that may not be evaluated
    where the program would not. Without gradients a side may be anything that is computed for each element alone."""
    names: Set[str] = set()
    _check_side(node, torch, names, has_gradient=has_gradient)
    if names & {"self", "cls"}:
        raise NoEdit("a side is computed by methods of the program, which may do anything")
    if len(names) != 1:
        raise NoEdit("a side is not computed from one variable alone, so that the shapes of both may differ")
    return names.pop()


def _check_side(node: ast.expr, torch: str, names: Set[str], *, has_gradient: bool) -> None:
    if isinstance(node, ast.Name):
        names.add(node.id)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        _check_side(node.operand, torch, names, has_gradient=has_gradient)
    elif isinstance(node, ast.BinOp):
        _check_operation(node, torch, names, has_gradient=has_gradient)
    elif (
        isinstance(node, ast.Call)
        and not node.keywords
        and _method(node) in (_WITH_GRADIENT if has_gradient else _ELEMENTWISE)
    ):
        name = _method(node)
        is_function = dotted(node.func) in (f"{torch}.{name}", f"{torch}.nn.functional.{name}")
        if is_function and len(node.args) == 1:
            _check_side(node.args[0], torch, names, has_gradient=has_gradient)
        elif isinstance(node.func, ast.Attribute) and not node.args and not is_function:
            _check_side(node.func.value, torch, names, has_gradient=has_gradient)
        else:
            raise NoEdit(f"{name} with other arguments")
    elif number(node) is not None:
        raise NoEdit("a side is a number, and no tensor")
    else:
        raise NoEdit(
            f"a side is more than sums and multiples of one tensor ({_what(node)}): evaluated where it is not chosen, "
            "it may raise, have a side effect, or make gradients NaN"
        )


def _check_operation(node: ast.BinOp, torch: str, names: Set[str], *, has_gradient: bool) -> None:
    values = [number(node.left), number(node.right)]
    if any(each is not None and abs(each) > _LARGEST for each in values):
        raise NoEdit("a side has a large constant")
    if isinstance(node.op, (ast.Add, ast.Sub)):
        pass
    elif not has_gradient and isinstance(node.op, (ast.Mult, ast.Div, ast.Pow)):
        pass  # no derivative that could be NaN, and a division by zero is infinite
    elif isinstance(node.op, ast.Mult):
        if values == [None, None]:
            raise NoEdit("a side multiplies two tensors: its gradient is NaN where one is infinite and not chosen")
    elif isinstance(node.op, ast.Div):
        if values[1] is None:
            raise NoEdit("a side divides by a tensor: evaluated where it is not chosen, its gradient may be NaN")
        if abs(values[1]) < 1 / _LARGEST:
            raise NoEdit("a side divides by zero, or nearly")
    else:
        raise NoEdit(f"a side uses an operator whose gradient may be NaN ({_what(node)})")
    if None not in values:
        raise NoEdit("a side is a number, and no tensor")
    for operand, value in zip((node.left, node.right), values):
        if value is None:
            _check_side(operand, torch, names, has_gradient=has_gradient)


def _what(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return f"a call of {dotted(node.func) or 'a function'}"
    return type(node.op).__name__ if isinstance(node, ast.BinOp) else type(node).__name__


def is_fresh(node: ast.expr) -> bool:
    """Return whether the value of an expression shares no memory with a tensor that anything else refers to, if its
    operands are tensors and numbers."""
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.UAdd)  # +x is x
    if isinstance(node, ast.Call):
        if node.keywords or dotted(node.func) == "len":
            return not node.keywords
        # self.norm(x) is the call of a module, which may return x: of methods only those with numbers count.
        return _method(node) in _FRESH and (has_numbers_only(node) or dotted(node.func) == f"torch.{_method(node)}")
    return isinstance(node, (ast.BinOp, ast.Compare))


def has_numbers_only(node: ast.Call) -> bool:
    """Return whether all arguments of a call are literal numbers, and it is no method of ``self``: it is a method of a
    tensor then, and no module."""
    of = dotted(node.func).rpartition(".")[0]
    return (
        of not in ("self", "cls") and not of.startswith("super") and all(number(each) is not None for each in node.args)
    )


def is_fact(node: ast.expr) -> bool:
    """Return whether an expression is known without the values of tensors: of types, numbers of dimensions and
    constants alone. A shape may depend on the values of another tensor."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Attribute):
        return node.attr in _FACTS and node.attr != "shape"
    if isinstance(node, ast.Call):
        is_method = _method(node) == "dim" and has_numbers_only(node)
        return is_method or dotted(node.func) in ("isinstance", "hasattr", "callable", "torch.is_tensor")
    parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
    return isinstance(node, (ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Tuple)) and all(map(is_fact, parts))


def is_fixed_when_printed(node: ast.expr) -> bool:
    """Return whether an argument of ``print`` prints the same later: what it shows can't be changed in place."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.JoinedStr):
        parts: List[ast.expr] = list(node.values)
        return all(
            isinstance(each, ast.Constant)
            or (isinstance(each, ast.FormattedValue) and is_fixed_when_printed(each.value))
            for each in parts
        )
    if isinstance(node, ast.Attribute):
        return node.attr in _FACTS
    if isinstance(node, ast.Subscript):
        return is_fixed_when_printed(node.value)
    if (
        isinstance(node, ast.Call)
        and dotted(node.func) in ("tuple", "list", "str", "int", "float")
        and not node.keywords
    ):
        return all(map(is_fixed_when_printed, node.args))
    return is_fresh(node)
