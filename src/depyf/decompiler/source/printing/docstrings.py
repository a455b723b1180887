"""Docstrings in triple quotes."""

from __future__ import annotations

import re
from itertools import compress
from typing import Match

_LAID_OUT = str.maketrans("", "", "\n\t ")
"""All characters but these and printable ones need an escape sequence, or would be invisible."""


def triple_quoted(text: str) -> str:
    """Return a literal for ``text`` in triple double quotes, raw if that saves backslashes."""
    odd = not text.translate(_LAID_OUT).isprintable()
    if "\\" in text and not odd and '"""' not in text and not text.endswith(("\\", '"')):
        return f'r"""{text}"""'
    quoted_end = text.endswith('"')
    body = (text[:-1] if quoted_end else text).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if quoted_end:
        body += '\\"'
    body = re.sub(r"[^\n\t ]", _escape_unprintable, body) if odd else body
    return f'"""{body}"""'


def is_kept_as_docstring(text: str) -> bool:
    """Return whether the compiler stores a docstring of this text unchanged: since 3.13 it removes the indentation."""
    module = compile(repr(text), "", "exec", dont_inherit=True, optimize=0)
    return text in module.co_consts


_INDENTATION_IS_REMOVED = not is_kept_as_docstring("a\n b")


def indented(text: str, indent: str) -> str:
    """Return the docstring ``text`` with ``indent`` before its lines, where the compiler removes that again; ``text``
    itself elsewhere."""
    # The compiler removes the smallest indentation of the lines after the first: added here, the text stays the same.
    _, *lines = text.split("\n")
    blank = [not line.strip(" ") for line in lines]
    if not _INDENTATION_IS_REMOVED or all(blank) or any(compress(lines, blank)):
        return text
    if all(line.startswith(" ") for line in lines if line):
        return text  # it has its own
    return re.sub(r"\n(?!\n)", f"\n{indent}", text)


def _escape_unprintable(match: Match[str]) -> str:
    character: str = match.group()
    return character if character.isprintable() else repr(character)[1:-1]
