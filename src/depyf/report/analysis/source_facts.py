"""The syntax of a source file, for a page and its model, from one syntax tree."""

from __future__ import annotations

import ast
import functools
from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.syntax import children, parse

_Function = Tuple[str, int]
"""The name and the first line of a function, decorators included."""


@dataclass(frozen=True)
class SourceFacts:
    """``definitions``: qualified name and last line of every function. ``stars``: last line, and the names of the ``*``
    and ``**`` parameters. ``spans``: first and last lines of the statements that take several lines.
    """

    definitions: Mapping[_Function, Tuple[str, int]]
    stars: Mapping[_Function, Tuple[int, str, str]]
    spans: Sequence[Tuple[int, int]]


_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""The fields that hold statements, or what holds them."""


@functools.lru_cache(maxsize=32)
def source_facts(text: str) -> SourceFacts:
    """Return the facts about a source text, none if it does not parse (another Python version, or not Python)."""
    try:
        tree = parse(text)
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
        return SourceFacts({}, {}, ())
    # Only a lambda is a function inside of an expression, and most of a tree is expressions.
    children_of = children if "lambda" in text else _statements
    definitions: Dict[_Function, Tuple[str, int]] = {}
    stars: Dict[_Function, Tuple[int, str, str]] = {}
    spans: List[Tuple[int, int]] = []
    todo: List[Tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, prefix = todo.pop()
        for child in children_of(node):
            below = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                # Code objects start at the first decorator.
                first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                definitions[child.name, first] = (prefix + child.name, child.end_lineno or first)
                stars[child.name, first] = _stars(child, child.args)
                below = f"{prefix}{child.name}.<locals>."
            elif isinstance(child, ast.Lambda):
                key = ("<lambda>", child.lineno)
                definitions.setdefault(key, (prefix + "<lambda>", child.end_lineno or child.lineno))
                stars[key] = _stars(child, child.args)
                below = f"{prefix}<lambda>.<locals>."
            elif isinstance(child, ast.ClassDef):
                below = f"{prefix}{child.name}."
            # A simple statement over several lines; blocks are none.
            elif isinstance(child, ast.stmt) and child.end_lineno != child.lineno:
                if not (hasattr(child, "body") or hasattr(child, "cases")):
                    spans.append((child.lineno, child.end_lineno or child.lineno))
            todo.append((child, below))
    return SourceFacts(definitions, stars, sorted(spans))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for name in _BLOCKS:
        yield from getattr(node, name, ())


def _stars(node: ast.expr | ast.stmt, arguments: ast.arguments) -> Tuple[int, str, str]:
    positional, keywords = ("" if each is None else each.arg for each in (arguments.vararg, arguments.kwarg))
    return node.end_lineno or node.lineno, positional, keywords
