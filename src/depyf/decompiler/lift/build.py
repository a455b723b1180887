"""Build ``ast`` expressions from operations and operands."""

from __future__ import annotations

import ast
import keyword
import unicodedata
from functools import lru_cache
from typing import Dict, List, Optional, Tuple, Type

from depyf.decompiler.lift.items import Augmented, ChainTest, Function
from depyf.decompiler.lift.node_attributes import attributes_of
from depyf.decompiler.lift.nodes import FunctionExpression, FunctionStatement
from depyf.decompiler.lift.spans import moved
from depyf.decompiler.normal.ops import Instr, Op

UNARY: Dict[str, Type[ast.unaryop]] = {"+": ast.UAdd, "-": ast.USub, "~": ast.Invert, "not": ast.Not}
BINARY: Dict[str, Type[ast.operator]] = {
    "+": ast.Add, "&": ast.BitAnd, "//": ast.FloorDiv, "<<": ast.LShift, "@": ast.MatMult, "*": ast.Mult,
    "%": ast.Mod, "|": ast.BitOr, "**": ast.Pow, ">>": ast.RShift, "-": ast.Sub, "/": ast.Div, "^": ast.BitXor,
}  # fmt: skip
_COMPARE: Dict[str, Type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, "==": ast.Eq, "!=": ast.NotEq, ">": ast.Gt, ">=": ast.GtE,
}  # fmt: skip


class Special(ast.Name):
    """A name that the compiler loads without a lookup: the exception of ``assert``."""


class CellName(ast.Name):
    """The cell object of a variable, which has no syntax outside a closure."""


class TestedAgain(ast.BoolOp):
    """An ``and`` or ``or`` whose value is tested by the next operator, though its own test has already decided that.
    ``chosen``: it is an arm of a choice that a constant decides."""

    chosen = False


class TestedByNot(ast.BoolOp):
    """An ``and`` or ``or`` whose value a ``not`` tests, while its operands are no jumps of the test around it."""


def tested_by_not(test: ast.expr) -> ast.expr:
    """Return ``test``, a value that is tested, with the operand of its ``not`` marked."""
    if not is_not(test):
        return test
    assert isinstance(test, ast.UnaryOp)
    operand = test.operand
    marked = TestedByNot(operand.op, operand.values) if type(operand) is ast.BoolOp else tested_by_not(operand)
    return test if marked is operand else ast.UnaryOp(ast.Not(), marked)


def tested_twice(test: ast.expr) -> ast.expr:
    """Return ``test`` with the two ``not`` that cancelled each other."""
    return ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), test))


def tested_again(expr: ast.expr, *, chosen: bool) -> ast.expr:
    """Return ``expr`` for use as a test."""
    if not isinstance(expr, ast.BoolOp):
        return expr
    again = TestedAgain(expr.op, expr.values)
    again.chosen = chosen
    return again


def after_test(test: ast.expr, value: ast.expr) -> ast.expr:
    """Return an expression that tests ``test`` and then is ``value``, whatever the result."""
    return ast.BoolOp(ast.Or(), [ast.IfExp(test, ast.Constant(False), ast.Constant(False)), value])


def constant(expr: Optional[ast.expr]) -> object:
    """Return the object that ``expr`` is a constant of, ``None`` for other expressions. Any object can be one."""
    return expr.value if isinstance(expr, ast.Constant) else None


def is_none(expr: ast.expr) -> bool:
    """Return whether ``expr`` is the constant ``None``."""
    return isinstance(expr, ast.Constant) and expr.value is None


def augmented(target: ast.expr, augmented: Augmented) -> ast.stmt:
    """Return ``target += operand``; the target is a name, attribute or item."""
    assert isinstance(target, (ast.Name, ast.Attribute, ast.Subscript))
    return ast.AugAssign(target, augmented.operator, augmented.operand)


def special(name: str) -> ast.expr:
    """Return the name that the compiler uses without a lookup, where dedicated syntax expresses it."""
    return (Special if name == "AssertionError" else ast.Name)(name, ast.Load())


def cell(name: str) -> ast.expr:
    return CellName(name, ast.Load())


def comparison(instr: Instr) -> ast.cmpop:
    if instr.op is Op.IS:
        return ast.IsNot() if instr.arg else ast.Is()
    if instr.op is Op.IN:
        return ast.NotIn() if instr.arg else ast.In()
    return _COMPARE[instr.arg]()


def longer(chain: ChainTest, operator: ast.cmpop, operand: ast.expr) -> ChainTest:
    return ChainTest(chain.left, [*chain.operators, operator], [*chain.operands, operand])


def chain_expression(chain: ChainTest) -> ast.expr:
    return ast.Compare(chain.left, list(chain.operators), list(chain.operands))


def failing_otherwise(test: ast.expr) -> ast.expr:
    """Return ``a < b is not None`` for ``not a < b is None`` and the reverse, where only the last comparison decides;
    any other test as it is."""
    whole = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if not isinstance(whole, ast.Compare) or not isinstance(whole.ops[-1], ast.Is):
        return test
    other = moved(ast.Compare(whole.left, [*whole.ops[:-1], ast.IsNot()], whole.comparators), whole)
    return other if whole is not test else ast.UnaryOp(ast.Not(), other)


def negate(test: ast.expr) -> ast.expr:
    """Return ``not test`` in idiomatic form. Only for tests whose truth alone is used."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Constant) and isinstance(test.value, bool):
        return ast.Constant(not test.value)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        opposite = _OPPOSITES.get(type(test.ops[0]))
        with_none = is_none(test.comparators[0])
        if opposite is not None and (_NOT_IS_FOLDED or with_none):
            turned = moved(ast.Compare(test.left, [opposite()], test.comparators), test)
            attributes_of(turned)["turned"] = not with_none and not _is_turned(test)
            return turned
    if isinstance(test, ast.BoolOp) and not isinstance(test, TestedByNot):
        values = [negate(value) for value in test.values]
        if _changes(values) <= _changes(test.values):
            # not (not (a and b) or not c)  ->  a and b and c
            #
            # It is flat: ``author_form`` tells ``if`` from ``and`` by the operands.
            return both(ast.And() if isinstance(test.op, ast.Or) else ast.Or(), *values)
    return ast.UnaryOp(ast.Not(), test)


_NOT_IS_FOLDED = compile("if not a in b: c", "", "exec").co_code == compile("if a not in b: c", "", "exec").co_code
"""Whether the compiler makes the same of ``not a in b`` and ``a not in b`` in a test (up to 3.13)."""

_OPPOSITES = {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}


def _changes(tests: List[ast.expr]) -> Tuple[int, int]:
    """Return how many of ``tests`` are comparisons with another operator than in the bytecode, and how many begin with
    ``not``."""
    return sum(map(_is_turned, tests)), sum(map(is_not, tests))


def _is_turned(test: ast.expr) -> bool:
    """Return whether ``test`` is a comparison whose operator is the opposite of the operator in the bytecode. A
    comparison with ``None`` has no operator there: a jump tests for it (since 3.11)."""
    return attributes_of(test).get("turned", False)


def is_not(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def both(operator: ast.boolop, *tests: ast.expr) -> ast.BoolOp:
    """Return ``a and/or b``, flat where an operand has the same operator."""
    values: List[ast.expr] = []
    for test in tests:
        same = type(test) is ast.BoolOp and type(test.op) is type(operator)
        values.extend(test.values if same else [test])  # type: ignore[attr-defined]
    return ast.BoolOp(operator, values)


def without_knot(test: ast.expr) -> ast.expr:
    """Return ``a or not b`` for ``not (not a and b)``, unless that makes more ``not``; any other test as it is. Only
    for tests that have jumps alone: a ``not`` whose operand is a value computes another value."""
    inner = test.operand if isinstance(test, ast.UnaryOp) and is_not(test) else test
    if inner is test or type(inner) is not ast.BoolOp or not any(map(is_not, inner.values)):
        return test
    values = [negate(value) for value in inner.values]
    if sum(map(is_not, values)) > 1 + sum(map(is_not, inner.values)):
        return test
    return ast.BoolOp(ast.And() if isinstance(inner.op, ast.Or) else ast.Or(), values)


def slice_of(parts: List[ast.expr]) -> ast.expr:
    def bound(part: ast.expr) -> Optional[ast.expr]:
        return None if isinstance(part, ast.Constant) and part.value is None else part

    return ast.Slice(bound(parts[0]), bound(parts[1]), parts[2] if len(parts) == 3 else None)


def subscript(base: ast.expr, key: ast.expr, context: ast.expr_context) -> ast.Subscript:
    """Return ``base[key]``. A constant key, which compilers since 3.14 fold, is written as the slices that it holds."""
    value = constant(key)
    parts: List[ast.expr] = []
    if isinstance(key, ast.Tuple):
        parts = key.elts
    elif type(value) is tuple:
        parts = [ast.Constant(part) for part in value]
    if any(type(constant(part)) is slice for part in parts):
        key = ast.Tuple([_with_slice(part) for part in parts], ast.Load())
    else:
        key = _with_slice(key)
    return ast.Subscript(base, key, context)


def _with_slice(part: ast.expr) -> ast.expr:
    value = constant(part)
    if type(value) is not slice:
        return part
    bounds: List[ast.expr] = [ast.Constant(value.start), ast.Constant(value.stop)]
    return slice_of(bounds if value.step is None else [*bounds, ast.Constant(value.step)])


@lru_cache(maxsize=4096)
def is_writable(name: str) -> bool:
    """Return whether ``name`` is a valid identifier that is read as exactly this name."""
    return (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and name != "__debug__"
        and (name.isascii() or unicodedata.normalize("NFKC", name) == name)
    )


def names_match(code_name: str, stored: str) -> bool:
    """Return whether a definition called ``code_name`` may be stored as ``stored`` (private names are mangled)."""
    if code_name == stored:
        return True
    return (
        code_name.startswith("__")
        and not code_name.endswith("__")
        and stored.startswith("_")
        and stored.endswith(code_name)
    )


def function_expression(function: Function) -> ast.expr:
    expression = FunctionExpression()
    expression.function = function
    return expression


def function_statement(function: Function, name: str) -> ast.stmt:
    statement = FunctionStatement()
    statement.function = function
    statement.name = name
    return statement
