"""Docstrings in triple quotes."""

from __future__ import annotations

import ast
import re
from typing import Any, List, Match, Union

from depyf.source.printing.literals import verbatim
from depyf.source.rewriting import Rewriter, replaced

# Everything but these, printable characters, can't stand in a text as it is or would not be seen there.
_RAW_WHITESPACE = "\n\t "


def print_docstrings(tree: ast.Module) -> ast.Module:
    """``tree`` with the docstrings of modules, classes and functions as atoms that hold their text."""
    result: ast.Module = _Docstrings().visit(tree)
    return result


def triple_quoted(text: str) -> str:
    """A literal for ``text`` in triple double quotes, raw if that saves backslashes."""
    odd = [character for character in text if not (character.isprintable() or character in _RAW_WHITESPACE)]
    if "\\" in text and not odd and '"""' not in text and not text.endswith(("\\", '"')):
        return f'r"""{text}"""'
    quoted_end = text.endswith('"')
    body = (text[:-1] if quoted_end else text).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if quoted_end:
        body += '\\"'
    body = re.sub(r"[^\n\t ]", _escape_unprintable, body) if odd else body
    return f'"""{body}"""'


def is_kept_as_docstring(text: str) -> bool:
    """Whether a docstring of this text is stored as it is: since 3.13 the compiler takes away the indentation."""
    module = compile(repr(text), "", "exec", dont_inherit=True, optimize=0)
    return text in module.co_consts


def _escape_unprintable(match: Match[str]) -> str:
    character: str = match.group()
    return character if character.isprintable() else repr(character)[1:-1]


_Documented = Union[ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]


class _Docstrings(Rewriter):
    """Visits statements only; there is no docstring in an expression."""

    def _visit_documented(self, node: _Documented) -> object:
        body: List[ast.stmt] = self.visit_list(node.body)
        first = body[0] if body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
            body = [replaced(first, value=verbatim(triple_quoted(first.value.value)))] + body[1:]
        return node if body is node.body else replaced(node, body=body)

    visit_Module = _visit_documented
    visit_FunctionDef = _visit_documented
    visit_AsyncFunctionDef = _visit_documented
    visit_ClassDef = _visit_documented

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.expr) else super().visit(node)
