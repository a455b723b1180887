"""How source text is laid out where a caller wants it otherwise: depth of indentation, names of temporaries."""

from __future__ import annotations

import io
import tokenize
from typing import Set

from depyf.lazy_pattern import re_compile

_TEMPORARY = re_compile(r"\b__temp_(?=\d+\b)")


def reindented(text: str, spaces: int) -> str:
    """``text``, which is indented by 4, indented by ``spaces``; lines inside of strings stay as they are."""
    if spaces == 4:
        return text
    inside = _lines_inside_strings(text)
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        stripped = line.lstrip(" ")
        depth = len(line) - len(stripped)
        if number not in inside and depth:
            lines[number - 1] = " " * (depth // 4 * spaces + depth % 4) + stripped
    return "".join(lines)


def with_temporaries_called(text: str, prefix: str) -> str:
    """``text`` with ``__temp_0`` ... called ``<prefix>0`` ..."""
    return text if prefix == "__temp_" else _TEMPORARY.sub(lambda match: prefix, text)


def _lines_inside_strings(text: str) -> Set[int]:
    inside: Set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING and token.end[0] > token.start[0]:
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
    return inside
