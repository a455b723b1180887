"""Split a printed guard into its code and the comment after it, which names the user's line."""

from __future__ import annotations

import functools
import re
from typing import Optional, Pattern, Tuple

from depyf.base.late_regex import regex
from depyf.torch_trace.tracebacks import Frame

_CODE = regex(r"""(?:[^'"#]+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*""", re.S)
"""The text up to the first ``#`` outside of strings, or to a quote that does not open a string."""
_WITH_CODE = regex(r"#\s*([^#]*?)\s*#\s*(\S[^#]*?):(\d{1,9}) in (\S+)?")
_WITHOUT_CODE = regex(r"#\s*([^\s#]+|[^#]*?\.py):(\d{1,9}) in (\S+)")


@functools.lru_cache(maxsize=4096)  # PyTorch's trace, the live guards and the model of the run have the same texts
def split_comment(text: str) -> Tuple[str, str]:
    """Return the code, and the comment with its ``#``; the code may have ``#`` in strings."""
    end = end_of_code(text)
    return text[:end].strip(), text[end:].strip()


def end_of_code(text: str) -> int:
    """Return where the comment of a guard's text starts, or its length."""
    # ``L['#'] == 1  # if n:  # a.py:9 in f``: the first ``#`` is in a string, the second starts the comment.
    end = _CODE.match(text).end()  # type: ignore[union-attr]
    if end < len(text) and text[end] != "#":  # words, with apostrophes that end no string
        end = text.find("  #")
    return len(text) if end < 0 else end


_HINT = regex(r"\((?:HINT: |to avoid this specialization, )(.*)\)\s*\Z", re.S)


def hint_in(text: str) -> str:
    """Return what PyTorch recommends at the end of a guard's text; empty if it recommends nothing."""
    match = _HINT.search(text) if "(HINT: " in text or "(to avoid" in text else None
    return "" if match is None else match[1]


def find_outside_strings(text: str, wanted: str) -> Optional[int]:
    """Return where ``wanted`` first stands outside of the strings in ``text``; -1 where it does not.

    None where a string does not end before: the text is no Python.
    """
    if wanted not in text:
        return -1
    for match in _strings_or(wanted).finditer(text):
        if match.group() == wanted:
            return match.start()
        if len(match.group()) == 1:  # a quote that opens no string
            return None
    return -1


@functools.lru_cache(maxsize=None)
def _strings_or(wanted: str) -> Pattern[str]:
    strings = r"'(?:[^'\\]|\\.)*'", r'"(?:[^"\\]|\\.)*"'
    return re.compile("|".join([*strings, "['\"]", re.escape(wanted)]), re.S)


def users_line(comment: str) -> Optional[Tuple[str, Frame]]:
    """Return the user's line in a comment, its code and location; None if it has none.

    ``# if n:  # some/user.py:9 in f``. PyTorch leaves out the beginning of the path.
    """
    match = _WITH_CODE.search(comment)
    return None if match is None else (match[1], (match[2], int(match[3]), match[4] or ""))


def frame_of(comment: str) -> Optional[Frame]:
    """Return the frame that a comment names, which may be one of PyTorch's own: those come without code."""
    line = users_line(comment)
    match = _WITHOUT_CODE.search(comment) if line is None else None
    return (match[1], int(match[2]), match[3]) if match is not None else line and line[1]
