"""Parse guards that PyTorch prints as Python expressions. The most common forms never come here: ``plain_guards``."""

from __future__ import annotations

import ast
from typing import Iterator, Mapping, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import replace
from depyf.decompiler.syntax import parse, unparse, walk
from depyf.diagnosis.guard import Guard, GuardKind
from depyf.diagnosis.guard_sources import with_names_of_classes
from depyf.torch_trace.guard_comments import find_outside_strings

_OPERATORS = ("==", "is not", "is")
_SIGNS: Mapping[type, str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
}
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
    operands, operators = _sides(code)
    python = with_names_of_classes(code)  # ``L['x'] == <class 'a.B'>`` can be parsed as ``L['x'] == B``
    try:
        guard = _of_tree(parse(python, mode="eval").body, operands)
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):  # MemoryError: nested deep, up to 3.8
        guard = None
    if guard is None:
        return Guard(GuardKind.UNKNOWN, operands=operands, operators=operators)
    # ``B`` is a name for people: no expression that is evaluated may be made of it.
    return guard if python == code else replace(guard, arguments=())


def _sides(code: str) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """Return the texts of the two sides of a comparison, which may not be Python, and its operator; empty tuples if
    there is none.
    """
    for operator in _OPERATORS:
        at = find_outside_strings(code, f" {operator} ")
        if at is not None and at >= 0:
            return (code[:at], code[at + len(operator) + 2 :]), (operator,)
    return (), ()


def _of_tree(tree: ast.expr, operands: Tuple[str, ...]) -> Optional[Guard]:
    if isinstance(tree, ast.Compare):
        return _comparison(tree, operands)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        if isinstance(tree.operand, ast.Call):
            return _call(tree.operand, holds=False)
        value = unparse(tree.operand)
        return Guard(GuardKind.EMPTY, value, "empty", arguments=(value,))
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
    # ``'a' in L['d']``
    if isinstance(operator, (ast.In, ast.NotIn)):
        return Guard(GuardKind.CONTAINS, expected, detail=left_text, holds=isinstance(operator, ast.In))
    operators = tuple(_SIGNS[type(each)] for each in tree.ops if type(each) in _SIGNS)
    if len(operators) > 1:  # ``2 <= L['x'].size()[0] <= 7``
        operands = (left_text, *map(unparse, tree.comparators))
    guard = Guard(GuardKind.CHOICE, subject, expected, operands=operands or (left_text, expected), operators=operators)
    # ``L['x'].size()[0] == L['y'].size()[0]``, ``L['n'] != 3``
    is_range = len(tree.ops) > 1 or not isinstance(operator, (ast.Eq, ast.Is, ast.IsNot))
    if is_range or any(each in left_text or each in expected for each in _OF_SIZES):
        sizes = tuple(dict.fromkeys(_sizes_in(tree))) or ((subject,) if subject else ())
        return replace(guard, kind=GuardKind.RELATION, expected=None, detail=unparse(tree), sizes=sizes)
    # ``L['x'] is None``, ``L['x'] is not L['y']``
    if isinstance(operator, (ast.Is, ast.IsNot)):
        same = isinstance(operator, ast.Is)
        if isinstance(right, ast.Constant) and right.value is None:
            return replace(guard, kind=GuardKind.NONE, expected="None" if same else "not None", detail=left_text)
        sides = (left_text, expected)
        return replace(guard, kind=GuardKind.SAME_OBJECT, expected=None, holds=same, operands=sides)
    # ``len(L['xs']) == 2``
    called = unparse(left.func) if isinstance(left, ast.Call) else ""
    arguments = tuple(map(unparse, left.args)) if isinstance(left, ast.Call) else ()
    if called == "len" and arguments:
        return replace(guard, kind=GuardKind.LENGTH, source=arguments[0], arguments=arguments)
    if "dict.keys(" in left_text or ".keys()" in left_text:
        # All keys, or each with its position: ``list(dict.keys(L['d']))[2] == 'b'``.
        at = left_text.rpartition("[")[2].rstrip("]")
        position = int(at) if at.isdigit() else None
        return replace(guard, kind=GuardKind.KEYS, detail=left_text, position=position)
    # ``___tuple_iterator_len(L['it']) == 2``, and last ``L['n'] == 3``
    if called in _ITERATORS:
        return replace(guard, kind=_ITERATORS[called], detail=left_text, arguments=arguments)
    return replace(guard, kind=kind_of_value(subject, right), detail=left_text)


def _sizes_in(tree: ast.AST) -> Iterator[str]:
    """Yield the values that a relation compares: ``L['x'].size()[0]``, ``L['x'].stride()[1]``, a storage offset."""
    for node in walk(tree):
        is_offset = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "storage_offset"
        is_item = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call)
        if isinstance(node, ast.expr) and (is_offset or is_item):
            yield unparse(node)


def of_constant(guard: Guard, constant: str) -> Guard:
    """Return a guard on the identity of an object that is this constant as one on its value."""
    kind = GuardKind.TRAINING if guard.source.endswith(".training") else GuardKind.CHOICE
    operands, code = (guard.source, constant), f"{guard.source} == {constant}"
    return replace(
        guard, kind=kind, expected=constant, detail=guard.source, operands=operands, operators=("==",), code=code
    )


def kind_of_value(source: str, value: ast.expr) -> GuardKind:
    """Return the kind of a guard that compares a value with this one."""
    if source.endswith(".training"):
        return GuardKind.TRAINING
    if isinstance(value, ast.BinOp):  # ``1 + 2j``
        return GuardKind.NUMBER if isinstance(value.left, ast.Constant) else GuardKind.CHOICE
    constant = value.operand if isinstance(value, ast.UnaryOp) else value
    is_constant = isinstance(constant, ast.Constant) and not isinstance(constant.value, bool)
    is_number = is_constant and isinstance(constant.value, (int, float, complex))  # type: ignore[attr-defined]
    return GuardKind.NUMBER if is_number or unparse(value) in ("inf", "-inf") else GuardKind.CHOICE


def _call(tree: ast.Call, *, holds: bool) -> Optional[Guard]:
    called, arguments = unparse(tree.func), [unparse(each) for each in tree.args]
    if called == "hasattr" and len(arguments) == 2:
        name = arguments[1].strip("'\"")
        return Guard(GuardKind.ATTRIBUTE, arguments[0], detail=name, holds=holds, arguments=tuple(arguments))
    if called in ("___dict_contains", "set.__contains__", "___set_contains") and len(arguments) == 2:
        key, container = arguments if called == "___dict_contains" else reversed(arguments)
        return Guard(GuardKind.CONTAINS, container, detail=key, holds=holds, arguments=tuple(arguments))
    if called.endswith("isnan"):
        return Guard(GuardKind.NAN, _subject(tree) or called, holds=holds)
    return None


def _subject(tree: ast.AST) -> str:
    """Return the first value of the frame that an expression reads, with its attributes and items."""
    node = _subject_node(tree)
    return "" if node is None else unparse(node)


def _subject_node(tree: ast.AST) -> Optional[ast.expr]:
    """Return the node of the first value of the frame that an expression reads, ``None`` if it reads none."""
    # ``str(L['x'].dtype) == 'a'`` reads ``L['x'].dtype``, and not ``str``; ``L['x'].size()[0] == 2`` reads ``L['x']``,
    # and not the method. ``walk`` yields outer nodes first, so the longest chain of attributes and items comes first.
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
