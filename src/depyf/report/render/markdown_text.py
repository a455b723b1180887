"""Text of unknown origin as Markdown: everything that reports write in Markdown comes from here.

Names, paths, keys and messages of errors may hold anything. They appear as they are, and are no markup for GitHub or
CommonMark. Reports are read in terminals as well, so only what would be markup is escaped: ``torch._dynamo``,
``L['x'].size()[0]`` and ``C:\\run`` stay as they are.
"""

from __future__ import annotations

import re
from typing import List, Match
from urllib.parse import quote

from depyf.base.late_regex import regex

_CODE = regex(r"(?<!`)`([^`|\n]+)`(?!`)")
_MARKUP = regex(
    r"""
      (?P<backslash>\\)(?=[!-/:-@\[-`{-~]|$)    # an escape, or a break at the end of a line
    | (?P<plain>[`*|$])
    | (?P<closing>(?:(?<=[^\s_])|^)_+(?!\w)|(?<=\S)~+)  # the end of emphasis: without an end there is none
    | (?P<link>\]\()
    | (?P<html><)
    | (?P<entity>&)(?=\#?\w+;)
    """,
    re.VERBOSE,
)
_BLOCK = regex(r"^(?:[#>\[]|[-+=](?=[\s\-+=]|$)|(?P<number>\d{1,9})(?=[.)](?:\s|$)))")


def inline(text: object) -> str:
    """Return the text on one line, for any place: a paragraph, a heading, a cell of a table, the text of a link.

    A piece in single backticks is code, as in the texts of PyTorch and depyf.
    """
    line = " ".join(str(text).split())
    pieces = _CODE.split(line)  # text, code, text, code, ..., text
    shown = "".join(f"`{piece}`" if index % 2 else _MARKUP.sub(_escaped, piece) for index, piece in enumerate(pieces))
    return _BLOCK.sub(_not_a_block, shown)


def _escaped(match: Match[str]) -> str:
    found = match.group()
    if match.lastgroup == "link":
        return "]\\("
    return "".join(f"\\{character}" for character in found)


def _not_a_block(match: Match[str]) -> str:
    return f"{match.group()}\\" if match.group("number") else f"\\{match.group()}"


def code(text: object, *, in_table: bool = False) -> str:
    """Return the text on one line as code. A bar in a cell of a table has a backslash, which is shown elsewhere."""
    line = " ".join(str(text).split())
    if not line:
        return ""
    ticks = "`" * (_longest_run(line) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    shown = f"{ticks}{space}{line}{space}{ticks}"
    return shown.replace("|", "\\|") if in_table else shown


def fenced(text: str, language: str = "text") -> List[str]:
    """Return the lines of a block of code that holds the text."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return [f"{fence}{language}", *text.splitlines(), fence]


def link(text: str, path: str) -> str:
    """Return a link to a file beside the report."""
    shown = re.sub(r"[\[\]]", r"\\\g<0>", _MARKUP.sub(_escaped, " ".join(text.split())).replace("]\\(", "]("))
    return f"[{shown}]({quote(path.encode('utf-8', 'surrogatepass'))})"


def html(text: object) -> str:
    """Return the text on one line inside of an HTML element, as GitHub allows a few."""
    line = inline(text)
    for character, name in (("\\<", "&lt;"), ("\\&", "&amp;"), ("`", "&#96;"), (">", "&gt;")):
        line = line.replace(character, name)
    return line


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
