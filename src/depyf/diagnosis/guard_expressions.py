"""Parse guards that PyTorch prints as Python expressions."""

from __future__ import annotations

import ast
from typing import Optional, Tuple

from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.bytecode.syntax_trees import walk
from depyf.diagnosis.guard import Guard, GuardKind
from depyf.diagnosis.guard_sources import with_names_of_classes
from depyf.quick_dataclass import replace
from depyf.source.printing.unparsing import unparse
from depyf.torch_trace.guard_comments import find_outside_strings

_OPERATORS = (" == ", " is not ", " is ")
_OF_SIZES = (".size()", ".stride()", ".storage_offset()")
_ITERATORS = {
    "___tuple_iterator_len": GuardKind.ITERATOR_LENGTH,
    "___normalize_range_iter": GuardKind.ITERATOR_STATE,
    "___normalize_count_iter": GuardKind.ITERATOR_STATE,
}
_METHODS = frozenset(("size", "stride", "keys", "item"))
_NOT_OF_THE_FRAME = frozenset(
    ("bool", "complex", "device", "dict", "float", "hasattr", "inf", "int", "isinstance", "len", "list", "math", "nan")
    + ("set", "str", "torch", "tuple", "type")
)


def read_expression(code: str) -> Guard:
    """Return the guard of an expression; one of kind UNKNOWN if its form is unknown or nested too deep."""
    operands = operands_of(code)
    try:
        guard = _of_tree(parse(with_names_of_classes(code), mode="eval").body, operands)
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):  # MemoryError: nested deep, up to 3.8
        guard = None
    return guard or Guard(GuardKind.UNKNOWN, operands=operands)


def operands_of(code: str) -> Tuple[str, ...]:
    """Return the texts of the two sides of a comparison, which may not be Python; empty if there is none."""
    for operator in _OPERATORS:
        at = find_outside_strings(code, operator)
        if at is not None and at >= 0:
            return code[:at], code[at + len(operator) :]
    return ()


def _of_tree(tree: ast.expr, operands: Tuple[str, ...]) -> Optional[Guard]:
    if isinstance(tree, ast.Compare):
        return _comparison(tree, operands)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        if isinstance(tree.operand, ast.Call):
            return _call(tree.operand, holds=False)
        return Guard(GuardKind.EMPTY, unparse(tree.operand), "empty")
    if isinstance(tree, ast.Call):
        return _call(tree, holds=True)
    if isinstance(tree, ast.BoolOp) and "isnan" in unparse(tree):
        return Guard(GuardKind.NAN, _subject(tree), "nan")
    return None


def _comparison(tree: ast.Compare, operands: Tuple[str, ...]) -> Guard:
    # Each text is made once: that of a small expression takes longer than all else.
    left, right, operator = tree.left, tree.comparators[-1], tree.ops[0]
    left_text, expected = unparse(left), unparse(right)
    node = _subject_node(tree)
    subject = left_text if node is left else "" if node is None else unparse(node)
    operands = operands or (left_text, expected)
    if isinstance(operator, (ast.In, ast.NotIn)):
        return Guard(GuardKind.CONTAINS, expected, detail=left_text, holds=isinstance(operator, ast.In))
    is_range = len(tree.ops) > 1 or not isinstance(operator, (ast.Eq, ast.Is, ast.IsNot))
    if is_range or any(each in left_text or each in expected for each in _OF_SIZES):
        return Guard(GuardKind.RELATION, subject, detail=unparse(tree), operands=operands)
    if isinstance(operator, (ast.Is, ast.IsNot)):
        if isinstance(right, ast.Constant) and right.value is None:
            was = "None" if isinstance(operator, ast.Is) else "not None"
            return Guard(GuardKind.NONE, subject, was, detail=left_text, operands=operands)
        same = isinstance(operator, ast.Is)
        return Guard(GuardKind.SAME_OBJECT, subject, holds=same, operands=(left_text, expected))
    called = unparse(left.func) if isinstance(left, ast.Call) else ""
    if isinstance(left, ast.Call) and called == "len" and left.args:
        return Guard(GuardKind.LENGTH, unparse(left.args[0]), expected, operands=operands)
    if "dict.keys(" in left_text or ".keys()" in left_text:
        return Guard(GuardKind.KEYS, subject, expected, detail=left_text, operands=operands)
    kind = _ITERATORS.get(called) or kind_of_value(subject, right)
    return Guard(kind, subject, expected, detail=left_text, operands=operands)


def of_constant(guard: Guard, constant: str) -> Guard:
    """Return a guard on the identity of an object that is this constant as one on its value."""
    kind = GuardKind.TRAINING if guard.source.endswith(".training") else GuardKind.CHOICE
    operands, code = (guard.source, constant), f"{guard.source} == {constant}"
    return replace(guard, kind=kind, expected=constant, detail=guard.source, operands=operands, code=code)


def kind_of_value(source: str, value: ast.expr) -> GuardKind:
    """Return the kind of a guard that compares a value with this one."""
    if source.endswith(".training"):
        return GuardKind.TRAINING
    constant = value.operand if isinstance(value, ast.UnaryOp) else value
    is_constant = isinstance(constant, ast.Constant) and not isinstance(constant.value, bool)
    is_number = is_constant and isinstance(constant.value, (int, float, complex))  # type: ignore[attr-defined]
    return GuardKind.NUMBER if is_number or unparse(value) in ("inf", "-inf") else GuardKind.CHOICE


def _call(tree: ast.Call, *, holds: bool) -> Optional[Guard]:
    called, arguments = unparse(tree.func), [unparse(each) for each in tree.args]
    if called == "hasattr" and len(arguments) == 2:
        return Guard(GuardKind.ATTRIBUTE, arguments[0], detail=arguments[1].strip("'\""), holds=holds)
    if called in ("___dict_contains", "set.__contains__", "___set_contains") and len(arguments) == 2:
        key, container = arguments if called == "___dict_contains" else reversed(arguments)
        return Guard(GuardKind.CONTAINS, container, detail=key, holds=holds)
    if called.endswith("isnan"):
        return Guard(GuardKind.NAN, _subject(tree) or called, holds=holds)
    return None


def _subject(tree: ast.AST) -> str:
    """Return the first value of the frame that an expression reads, with its attributes and items."""
    node = _subject_node(tree)
    return "" if node is None else unparse(node)


def _subject_node(tree: ast.AST) -> Optional[ast.expr]:
    """Return the node of the first value of the frame that an expression reads, ``None`` if it reads none."""
    nodes = list(walk(tree))
    methods = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Name)):
            root: ast.AST = node
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if isinstance(root, ast.Name) and root.id not in _NOT_OF_THE_FRAME and not root.id.startswith("__"):
                is_method = id(node) in methods and isinstance(node, ast.Attribute) and node.attr in _METHODS
                return node.value if is_method and isinstance(node, ast.Attribute) else node
    left = getattr(tree, "left", None)
    return left if isinstance(left, ast.Name) else None
