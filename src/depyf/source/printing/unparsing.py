"""Any tree to plain text."""

from __future__ import annotations

import ast

from depyf.source.printing.literals import Literals
from depyf.source.printing.statements import Statements


def unparse(node: ast.AST) -> str:
    """Return the text of any node. Only constants and names with a text come back as they are."""
    writer = Statements(Literals(node))
    if isinstance(node, (ast.Module, ast.Interactive)):
        return writer.module(node.body).rstrip("\n")
    if isinstance(node, ast.stmt):
        return writer.module([node]).rstrip("\n")
    return writer.text(node.body if isinstance(node, ast.Expression) else node)
