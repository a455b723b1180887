"""Options for the layout of the source text: depth of indentation, names of temporaries."""

from __future__ import annotations

import io
import re
import tokenize
from typing import FrozenSet, Set

from depyf.base.late_regex import regex

_TEMPORARY = regex(r"\b__temp_(?=\d+\b)")


def reindented(text: str, spaces: int) -> str:
    """Return ``text``, which is indented by 4, indented by ``spaces``; lines inside of strings do not change."""
    if spaces == 4:
        return text
    inside = lines_inside_strings(text)
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        stripped = line.lstrip(" ")
        depth = len(line) - len(stripped)
        if number not in inside and depth:
            lines[number - 1] = " " * (depth // 4 * spaces + depth % 4) + stripped
    return "".join(lines)


def with_temporaries_called(text: str, prefix: str) -> str:
    """Return ``text`` with ``__temp_0``, ... renamed to ``<prefix>0``, ..."""
    return text if prefix == "__temp_" else _TEMPORARY.sub(lambda match: prefix, text)


_MAY_CONTINUE = regex(r"\"\"\"|'''|\\\r?\n|[fFtT][rR]?[\"']")
"""What a string that continues on the next line has: three quotes, a backslash, or, since 3.12, replacement fields."""

_WITH_FIELDS = regex(r"(?<!\w)(?:[fFtT][rR]?|[rR][fFtT])[\"']")

_STRING = regex(
    r"#[^\n]*|(\"\"\"|''')(?:[^\\]|\\.)*?\1|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|(?P<open>[\"'])", re.DOTALL
)
"""A comment, or a string; ``open`` is a quote that begins none."""


def has_fields(source: str) -> bool:
    """Return whether there may be strings with replacement fields, which may hold others, in the same quotes."""
    return _WITH_FIELDS.search(source) is not None


def lines_inside_strings(source: str) -> FrozenSet[int]:
    """Return the numbers (from 1) of the lines that begin inside of a string literal."""
    inside: Set[int] = set()
    if not _MAY_CONTINUE.search(source):
        return frozenset()
    # In a source without replacement fields (``f"{x}"``) a pattern finds all strings, faster than the tokenizer. The
    # tokenizer decides for other sources, and if a quote is left over.
    if not has_fields(source):
        line, end = 1, 0
        for match in _STRING.finditer(source):
            if match["open"]:
                break
            line += source.count("\n", end, match.start())
            end = match.end()
            last = line + match.group().count("\n")
            inside.update(range(line + 1, last + 1))
            line = last
        else:
            return frozenset(inside)
        inside.clear()
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            # Also the middle parts of f-strings, which are tokens of their own since 3.12.
            if token.type == tokenize.STRING or tokenize.tok_name[token.type].startswith(("FSTRING", "TSTRING")):
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        # The tokenizer has stopped early: the lines found before the error are still right.
        return frozenset(inside)
    return frozenset(inside)
