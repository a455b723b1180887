"""Mark the statements that Dynamo adds around graphs for PyTorch's profiler, so that the program stands out."""

from __future__ import annotations

import io
import re
import tokenize
from typing import Iterator, Set, Tuple

from depyf.asynchronous import synchronous
from depyf.lazy_pattern import re_compile

MARK = "  # for PyTorch's profiler"

_OF_PROFILER = re_compile(r"_is_profiler_enabled|\brecord_pregraph_bytecode_(?:enter|exit)\b")
_NAMED = re_compile(r"^\s*(\w+) = |\b(\w+)\.record_pregraph")
_MADE = re_compile(r"^\s*(\w+) = (?:None|__import_torch_dot_\w+)$|^\s*if (\w+)(?: is not None)?:$")
"""Statements that only make or test what the others use."""


def with_profiler_lines_marked(source: str) -> str:
    """Append a comment to the lines of ``source`` that are for the profiler; nothing else changes."""
    if not _OF_PROFILER.search(source):
        return source
    lines = source.split("\n")
    try:
        statements = list(_statements_of_one_line(source))
    except synchronous(tokenize.TokenError, SyntaxError):
        return source
    found = {row for row, text in statements if _OF_PROFILER.search(text)}
    names: Set[str] = set()
    for row in found:
        names.update(name for match in _NAMED.finditer(lines[row - 1]) for name in match.groups() if name)
    for row, text in statements:
        made = _MADE.match(text)
        if made is not None and (made.group(1) or made.group(2)) in names:
            found.add(row)
    return "\n".join(f"{line}{MARK}" if row in found else line for row, line in enumerate(lines, 1))


def _statements_of_one_line(source: str) -> Iterator[Tuple[int, str]]:
    """Yield the rows that are one logical line without a comment, with their text."""
    first, commented = 0, False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NEWLINE:
            if first == token.start[0] and not commented:
                yield first, re.sub(r"[\r\n]+$", "", token.line)
            first, commented = 0, False
        elif token.type == tokenize.COMMENT:
            commented = True
        elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT) and not first:
            first = token.start[0]
