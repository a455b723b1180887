"""A guard as PyTorch prints it, cut into its code and the comment behind it, which names the user's line."""

from __future__ import annotations

import re
from typing import Optional, Tuple

_LINE = re.compile(r"#\s*((?:[^#])*?)\s*#\s*(\S[^#]*?):(\d{1,9}) in (\S+)?")


def split_comment(text: str) -> Tuple[str, str]:
    """Return the code, and the comment with its ``#``; the code may have ``#`` in strings."""
    end = end_of_code(text)
    return text[:end].strip(), text[end:].strip()


def end_of_code(text: str) -> int:
    """Return where the comment of a guard's text begins, or its length."""
    at = find_outside_strings(text, "#")
    if at is None:  # words, with apostrophes that end no string
        at = text.find("  #")
    return len(text) if at < 0 else at


def find_outside_strings(text: str, wanted: str) -> Optional[int]:
    """Return where ``wanted`` first stands outside of the strings in ``text``; -1 where it does not.

    None where a string does not end before: the text is no Python.
    """
    if wanted not in text:
        return -1
    quote, index = "", 0
    while index < len(text):
        character = text[index]
        if quote:
            if character == "\\":
                index += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif text.startswith(wanted, index):
            return index
        index += 1
    return None if quote else -1


def users_line(comment: str) -> Tuple[str, Optional[Tuple[str, int]]]:
    """Return the user's line of code, and its file and number, that a comment names; empty and None where it has none.

    ``# if n:  # some/user.py:9 in f``
    """
    match = _LINE.search(comment)
    return ("", None) if match is None else (match[1], (match[2], int(match[3])))
