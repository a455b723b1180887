"""Operations on constants that the compiler did not fold, since it folds first and removes tests of constants then.

-(1 or b)           is an operation on 1
x in (() or [y])    searches a list, where ``x in [y]`` searches a tuple
(x and None) and y  has an operand more than ``x and None and y``
"""

from __future__ import annotations

import ast
from types import CodeType
from typing import Callable, List, Union

from depyf.base.without_warnings import without_warnings
from depyf.decompiler.bytecode.parsing import parse
from depyf.decompiler.lift import build
from depyf.decompiler.lift.spans import moved
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import Op


def not_folded(value: ast.Constant, operation: Callable[[ast.expr], ast.expr]) -> ast.expr:
    """Return an expression of constants that becomes ``value`` when it is too late to fold ``operation`` on it;
    ``value`` if the compiler does not fold ``operation`` anyway."""
    # LOAD_CONST 1; UNARY_NEGATIVE      was ``-(1 or b)``: b is gone, and ``-1`` would be one constant
    #
    # ``-(1 or 1)`` gives the same operations from 3.10 on, ``-(1 if True else 1)`` before.
    if not folds(operation(value)):
        return value
    copies = [ast.Constant(value.value) for _ in range(2)]
    operator: ast.boolop = ast.Or() if value.value else ast.And()
    forms = [ast.BoolOp(operator, list(copies)), ast.IfExp(ast.Constant(True), *copies)]  # 3.8 tests the operand
    for form in forms:
        if _length(operation(form)) == _length(operation(_OPERAND)):
            return moved(form, value)
    return value


def searched(container: ast.expr) -> ast.expr:
    """Return ``container``, the right side of ``in``, in a form that the compiler leaves as it is."""
    return _kept(container, lambda display: ast.Expr(ast.Compare(_OPERAND, [ast.In()], [display])))


def iterated(iterable: ast.expr) -> ast.expr:
    """Return ``iterable``, over which a loop iterates, in a form that the compiler leaves as it is."""
    return _kept(iterable, lambda display: ast.For(ast.Name("item", ast.Store()), display, [ast.Pass()], []))


def _kept(display: ast.expr, use: Callable[[ast.expr], ast.stmt]) -> ast.expr:
    """Return ``display``, or a conditional expression of it if the compiler turns a list into a tuple in this ``use``,
    or a set into a frozenset."""
    # x in (() or [y])      LOAD x; LOAD y; BUILD_LIST 1; CONTAINS_OP
    # x in [y]              LOAD x; LOAD y; BUILD_TUPLE 1; CONTAINS_OP
    #
    # A list in the bytecode was no display on the right of ``in``: only a display itself is converted. ``x in ([y] if
    # True else None)`` gives a list as well.
    if not isinstance(display, (ast.List, ast.Set)) or any(isinstance(each, ast.Starred) for each in display.elts):
        return display
    items: List[ast.expr] = [
        ast.Constant("item") if isinstance(each, ast.Constant) else _OPERAND for each in display.elts
    ]
    same = ast.Set(items) if isinstance(display, ast.Set) else ast.List(items, ast.Load())
    ops = lower(_compiled(ast.Module([use(same)], []), "exec")).ops
    made = any(instr.op is Op.BUILD and instr.arg[0] in ("list", "set") for instr in ops)
    if made and not any(instr.op is Op.LIST_TO_TUPLE for instr in ops):
        return display
    return moved(ast.IfExp(ast.Constant(True), display, ast.Constant(None)), display)


def both_made(operator: ast.boolop, left: ast.expr, right: ast.expr, *, by_jumps: bool) -> ast.BoolOp:
    """Return the value ``left and/or right``, grouped so that the compiler keeps both operands. ``by_jumps``: the
    operands of ``left`` jump over ``right``; else its value is tested (3.12)."""
    # (x and None) and y    LOAD x; JUMP_IF_FALSE_OR_POP 1; LOAD None; JUMP_IF_FALSE_OR_POP 1; LOAD y; 1:
    # x and None and y      LOAD x; JUMP_IF_FALSE_OR_POP 1; LOAD None; 1:
    #
    # In one ``and``, operands that follow a constant that decides are dropped. The outer ``and`` of two is not joined
    # with the inner one, and keeps its operands.
    whole = build.both(operator, left, right)
    values = left.values if type(left) is ast.BoolOp and type(left.op) is type(operator) else [left]
    constant = values[-1]
    if not isinstance(constant, ast.Constant) or type(constant.value) not in _DECIDE:
        return whole
    # Compile it flat: where the compiler loads y nevertheless, no grouping is needed.
    flat = ast.BoolOp(operator, [*[_OPERAND] * (len(values) - 1), _as_parsed(constant), _OPERAND])
    loads = [instr for instr in lower(_compiled(ast.Expression(flat), "eval")).ops if instr.op is Op.LOAD]
    if len(loads) == len(values):
        return whole
    if by_jumps or len(values) == 1:
        # ``x and (None and None) and y``: the constant is in an ``and`` of its own, and x still jumps over y.
        kept = ast.BoolOp(operator, [ast.Constant(constant.value), constant])
        return build.both(operator, ast.BoolOp(operator, [*values[:-1], kept]), right)
    whole = build.both(operator, _OPERAND, right)  # ``(x and None) and y``, not flattened
    whole.values[0] = left
    return whole


_DECIDE = (type(None), bool, int, float, complex, str, bytes, tuple)


def _as_parsed(constant: ast.Constant) -> ast.expr:
    """Return ``constant`` as the parser makes it. A tuple and ``-1`` are folded when it is too late to decide
    (3.14)."""
    value: object = constant.value
    if isinstance(value, tuple):
        return ast.Tuple([constant] * bool(value), ast.Load())
    if isinstance(value, int):  # repr refuses long ones
        return ast.UnaryOp(ast.USub(), ast.Constant(-value)) if value < 0 else constant
    if isinstance(value, (float, complex)):
        return parse(repr(value).replace("inf", "1e309").replace("nan", "(1e309 - 1e309)"), mode="eval").body
    return constant


def item_of(base: ast.expr, key: ast.expr) -> ast.expr:
    """Return ``base[key]`` as the parser makes it, for ``not_folded``: before 3.9 the key is in a node of its own."""
    key = build.subscript(base, key, ast.Load()).slice
    subscript, parts = parse("base[key]", mode="eval").body, {"base": base, "key": key}
    for node in list(ast.walk(subscript)):
        for field, child in ast.iter_fields(node):
            if isinstance(child, ast.Name):
                setattr(node, field, parts[child.id])
    return subscript


def is_not_folded(expr: ast.AST) -> bool:
    """Return whether ``expr`` was made by ``not_folded`` before Python 3.10."""
    if not isinstance(expr, ast.IfExp) or build.constant(expr.test) is not True:
        return False
    return isinstance(expr.body, ast.Constant) and build.constant(expr.body) is build.constant(expr.orelse)


def folds(operation: ast.expr) -> bool:
    """Return whether the compiler folds ``operation`` on constants."""
    return _length(operation) == 1


def _length(operation: ast.expr) -> int:
    """Return the number of operations that ``operation`` is compiled to."""
    compiled = _compiled(ast.Expression(operation), "eval")
    return sum(instr.op not in (Op.JUMP, Op.RETURN) for instr in lower(compiled).ops)


def _compiled(tree: Union[ast.Module, ast.Expression], mode: str) -> CodeType:
    with without_warnings():
        compiled: CodeType = compile(ast.fix_missing_locations(tree), "<operation>", mode)
    return compiled


_OPERAND = ast.Name("operand", ast.Load())
