"""Trees to the text that a person reads."""

from __future__ import annotations

import ast
from typing import Dict, Tuple

from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.lift.build import TestedAgain
from depyf.normal.modes import Mode
from depyf.result import DecompilationError
from depyf.source.deep_stack import with_deep_stack
from depyf.source.inventory import take_inventory
from depyf.source.names import is_writable, make_writable
from depyf.source.printing.docstrings import print_docstrings
from depyf.source.printing.fstrings import FORMATTED, print_fstrings
from depyf.source.printing.literals import Placeholders, make_literal
from depyf.source.printing.parentheses import PARENTHESISED, drop_parentheses
from depyf.source.printing.repeated_tests import print_repeated_tests, unbreakable_lines
from depyf.source.printing.spacing import blank_lines, laid_out, needs_spacing
from depyf.source.printing.unparsing import unparse
from depyf.source.printing.wrapping import wrapped_lines
from depyf.source.source_text import SourceText


def to_source(tree: ast.Module, mode: Mode = Mode.EXEC) -> SourceText:
    """The text of ``tree``, which is compiled in ``mode``, with what is needed to make the original code object again.

    Constants of ``tree`` may be any objects and its names any strings; ``tree`` is left as it is. Raises
    ``DecompilationError`` when there is no text for it.
    """
    return with_deep_stack(lambda: _to_source(tree, mode))


def to_text(tree: ast.Module) -> str:
    """The text of ``tree`` alone."""
    return to_source(tree).text


def _to_source(tree: ast.Module, mode: Mode) -> SourceText:
    inventory = take_inventory(tree)
    names: Dict[str, str] = {}
    if ast.ClassDef in inventory.kinds or not all(map(is_writable, inventory.names)):
        tree, names = make_writable(tree)
    placeholders = Placeholders(tree)
    tree = print_docstrings(tree)
    if not inventory.plain:
        tree = make_literal(tree, placeholders)
    if TestedAgain in inventory.kinds:
        tree = print_repeated_tests(tree, unparse)
    if not inventory.kinds.isdisjoint(FORMATTED):
        tree = print_fstrings(tree, placeholders, unparse)
    if not inventory.kinds.isdisjoint(PARENTHESISED) or not inventory.plain:
        tree = drop_parentheses(tree, unparse)
    text = unparse(tree).strip("\n") + "\n"
    parsed = _parse(text)
    if mode is Mode.SINGLE and len(parsed.body) > 1:
        return SourceText(*_in_one_line(text, parsed), placeholders.objects, names, mode)
    wrapped = wrapped_lines(text, parsed)
    for line in unbreakable_lines(parsed) if wrapped else ():
        wrapped.pop(line, None)
    if wrapped or needs_spacing(parsed):
        text = laid_out(text, blank_lines(parsed), wrapped)
        parsed = _parse(text)
    return SourceText(text=text, tree=parsed, constants=placeholders.objects, names=names, mode=mode)


def _in_one_line(text: str, parsed: ast.Module) -> Tuple[str, ast.Module]:
    """What is typed at a prompt is one line, or one statement that holds others."""
    lines = text.splitlines(keepends=True)
    starts = [statement.lineno - 1 for statement in parsed.body]
    parts = ["".join(lines[start:end]).rstrip("\n") for start, end in zip(starts, [*starts[1:], len(lines)])]
    joined = "; ".join(parts) + "\n"
    return joined, _parse(joined)


def _parse(text: str) -> ast.Module:
    try:
        return parse(text)
    except synchronous(SyntaxError, ValueError) as error:
        raise DecompilationError(f"the source that was made is no Python: {error}") from error
