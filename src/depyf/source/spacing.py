"""Blank lines around functions and classes."""

from __future__ import annotations

import ast
from typing import Any, Dict, Iterator, List, Tuple

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def needs_spacing(tree: ast.Module) -> bool:
    """Whether there is a definition in ``tree`` beside the one that stands first."""
    return any(
        isinstance(statement, _DEFINITIONS)
        for body, _ in _bodies(tree)
        for statement in (body[1:] if body is tree.body else body)
    )


def space_out(text: str, tree: ast.Module) -> str:
    """``text`` with two blank lines around definitions of a module, one around inner ones, and none elsewhere.

    ``tree`` is what ``text`` parses to; ``text`` has no comments.
    """
    wanted: Dict[int, int] = {}
    for body, depth in _bodies(tree):
        previous: Any = None
        for statement in body:
            blank = 0
            if previous is not None and (isinstance(previous, _DEFINITIONS) or isinstance(statement, _DEFINITIONS)):
                blank = 1 if depth else 2
            wanted[_first_line(statement)] = blank
            previous = statement
    return "\n".join(_spaced(text.split("\n"), wanted))


def _spaced(lines: List[str], wanted: Dict[int, int]) -> Iterator[str]:
    pending: List[str] = []
    for number, line in enumerate(lines, 1):
        if number in wanted:
            # Blank lines in front of a statement lie between statements, never in a string.
            pending = [""] * wanted[number]
        elif not line:
            pending.append(line)
            continue
        yield from pending
        pending = []
        yield line
    yield from pending


def _first_line(statement: Any) -> int:
    decorators = getattr(statement, "decorator_list", ())
    lines: List[int] = [statement.lineno] + [decorator.lineno for decorator in decorators]
    return min(lines)


def _bodies(tree: ast.Module) -> Iterator[Tuple[List[ast.stmt], int]]:
    """Every statement list with its depth."""
    pending: List[Tuple[Any, int]] = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body:
                yield body, depth
                pending.extend((statement, depth + 1) for statement in body)
        for field in ("handlers", "cases"):
            pending.extend((part, depth) for part in getattr(node, field, ()))
