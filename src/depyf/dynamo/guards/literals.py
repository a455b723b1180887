"""Values as the text of a guard shows them: which texts are safe to evaluate, and their values."""

from __future__ import annotations

import ast
import importlib
from typing import Dict, Tuple

from depyf.base.asynchronous import synchronous
from depyf.decompiler.syntax import parse
from depyf.dynamo.guards import runtime as guard_runtime

_LITERAL_NAMES = frozenset({"frozenset", "set", "device", "torch", "np", "inf"})
_CONSTRUCTORS = frozenset({"frozenset", "set", "range", "slice", "device", "float", "complex"})
"""Calls that are allowed in a shown value: they only make a small object."""

_OF_MODULES = {"torch": ("Size", "device"), "np": ("bool", "int", "uint", "float", "complex")}
"""The same in modules; those of numpy may have a number of bits."""


def is_literal(node: ast.AST) -> bool:
    """Return whether an expression is built of constants and of the few calls that show values of common types."""
    if isinstance(node, ast.Expression):
        return is_literal(node.body)
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        return node.id in _LITERAL_NAMES
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, (ast.Name, ast.Attribute)) and is_literal(node.value)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return all(map(is_literal, node.elts))
    if isinstance(node, ast.Dict):
        return all(key is not None and is_literal(key) for key in node.keys) and all(map(is_literal, node.values))
    if isinstance(node, ast.UnaryOp):
        return is_literal(node.operand)
    if isinstance(node, ast.BinOp):
        # A complex number, ``(1+2j)``.
        return isinstance(node.op, (ast.Add, ast.Sub)) and is_literal(node.left) and is_literal(node.right)
    if isinstance(node, ast.Call):
        keywords = all(is_literal(keyword.value) for keyword in node.keywords)
        return _is_constructor(node.func) and all(map(is_literal, node.args)) and keywords
    return False


def _is_constructor(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in _CONSTRUCTORS
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    module, name = function.value.id, function.attr
    return (name.rstrip("0123456789") if module == "np" else name) in _OF_MODULES.get(module, ())


def _literal_namespace() -> Dict[str, object]:
    names = guard_runtime.torch_guard_names()
    try:
        names["np"] = importlib.import_module("numpy")
    except ImportError:
        # Without numpy there are no numpy values to show.
        return names
    return names


def literal_value(text: str) -> Tuple[bool, object]:
    """Return (True, value) for a text that ``is_literal`` accepts, otherwise (False, None)."""
    try:
        tree = parse(text, mode="eval")
        if is_literal(tree):
            return True, eval(compile(tree, "<guard>", "eval"), _literal_namespace())
    except synchronous():
        # Not Python, or a value that the type rejects: not a literal.
        return False, None
    return False, None
