"""Blank lines around functions and classes, and the layout of the text as a whole."""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, Mapping, Tuple

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def needs_spacing(tree: ast.Module) -> bool:
    """Whether there is a definition in ``tree`` beside the one that stands first."""
    return any(
        isinstance(statement, _DEFINITIONS)
        for body, _ in _bodies(tree)
        for statement in (body[1:] if body is tree.body else body)
    )


def blank_lines(tree: ast.Module) -> Dict[int, int]:
    """How many blank lines are wanted in front of the lines (1-based) on which the statements of ``tree`` begin.

    Two around definitions of a module, one around inner ones, none elsewhere.
    """
    wanted: Dict[int, int] = {}
    for body, depth in _bodies(tree):
        previous: object = None
        for statement in body:
            blank = 0
            if previous is not None and (isinstance(previous, _DEFINITIONS) or isinstance(statement, _DEFINITIONS)):
                blank = 1 if depth else 2
            wanted[_first_line(statement)] = blank
            previous = statement
    return wanted


def laid_out(text: str, wanted: Mapping[int, int], instead: Mapping[int, List[str]]) -> str:
    """``text`` with the blank lines ``wanted``, and some of its lines replaced; it has no comments."""
    return "\n".join(_laid_out(text.split("\n"), wanted, instead))


def _laid_out(lines: List[str], wanted: Mapping[int, int], instead: Mapping[int, List[str]]) -> Iterator[str]:
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
        yield from instead.get(number, (line,))
    yield from pending


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", ())
    lines: List[int] = [statement.lineno] + [decorator.lineno for decorator in decorators]
    return min(lines)


def _bodies(tree: ast.Module) -> Iterator[Tuple[List[ast.stmt], int]]:
    """Every statement list with its depth."""
    pending: List[Tuple[object, int]] = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body:
                yield body, depth
                pending.extend((statement, depth + 1) for statement in body)
        for field in ("handlers", "cases"):
            pending.extend((part, depth) for part in getattr(node, field, ()))
