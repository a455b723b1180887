"""The syntax of a source file, for a page and its model, from one syntax tree."""

from __future__ import annotations

import ast
import bisect
import functools
import itertools
import re
from typing import Dict, Iterable, Iterator, List, Mapping, Sequence, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
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
        return _facts(text)
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
        return SourceFacts({}, {}, ())


_DEFINED = "(?:@|def |class |async def )"
_DEFINITION = regex(rf"^(?:[ \t]*\n)+(?={_DEFINED})", re.M)
_METHOD = regex(rf"^(?:[ \t]*\n)+(?= {{4}}{_DEFINED})", re.M)
"""Blank lines before a definition that is not indented, and before one that is indented as a method is."""


def spans_with(text: str, lines: Iterable[int]) -> List[Tuple[int, int]]:
    """Return the ``spans`` of a source text that contain one of the lines, which are lines of code.

    A file of a library has thousands of lines, and a run names few lines: only the definitions around those lines are
    parsed.
    """
    wanted = set(lines)
    ends = [0, len(text)]
    definitions = [*ends, *(match.end() for match in _DEFINITION.finditer(text))] if wanted else ends
    methods = [*definitions, *(match.end() for match in _METHOD.finditer(text))] if wanted else ends
    # Where a line of a docstring was taken for a definition, the part does not parse, and a larger one is read.
    found: Set[Tuple[int, int]] = set()
    left = wanted
    for cuts in (methods, definitions, ends):
        left = _read_around(left, text, sorted(set(cuts)), found)
    return sorted(span for span in found if any(span[0] <= line <= span[1] for line in wanted))


def _read_around(lines: Set[int], text: str, cuts: Sequence[int], found: Set[Tuple[int, int]]) -> Set[int]:
    """Add to ``found`` the spans in the parts of the text that have these lines; return the lines whose part does not
    parse."""
    firsts = list(itertools.accumulate((text.count("\n", *pair) for pair in zip(cuts, cuts[1:])), initial=1))
    parts: Dict[int, Set[int]] = {}
    for line in lines:
        parts.setdefault(bisect.bisect_right(firsts, line, hi=len(firsts) - 1) - 1, set()).add(line)
    failed: Set[int] = set()
    for at, inside in parts.items():
        part, before = text[cuts[at] : cuts[at + 1]], firsts[at] - 1
        if part.startswith(" "):
            part, before = f"if 1:\n{part}", before - 1
        try:
            found.update((first + before, last + before) for first, last in _facts(part).spans)
        except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
            failed |= inside
    return failed


def _facts(text: str) -> SourceFacts:
    """Return the facts about a text. Raises what the parser raises."""
    tree = parse(text)
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
