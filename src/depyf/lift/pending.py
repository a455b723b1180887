"""What a node has evaluated that is still pending on its operand stack."""

from __future__ import annotations

import ast

from depyf.lift.items import Function, Value
from depyf.lift.nodes import Condition, Node


def holds_values(node: Node) -> bool:
    """Return whether ``node`` has evaluated something that is still pending."""
    return any(isinstance(item, (Value, Function)) and not getattr(item, "stable", False) for item in node.stack)


def outlives_test(node: Node) -> bool:
    """Return whether a value that was evaluated before the test of ``node`` would be written after it, in both of its
    branches. Otherwise the test has become part of the expression that uses the value."""
    test = node.terminator.test if isinstance(node.terminator, Condition) else None
    if test is None or isinstance(test, ast.Constant):
        return False
    return any(isinstance(item, Value) and not (item.stable or item.silent) for item in node.stack)
