"""Parse the most common forms of guards with one pattern instead of Python's parser. A model has a thousand guards, and
most of the time to parse them goes into syntax trees and the texts of their parts. Guards of other forms are left to
``guard_expressions`` and ``to_python``, which give the same result for these forms.
"""

from __future__ import annotations

import keyword
import re
from typing import FrozenSet, Optional

from depyf.base.late_regex import regex
from depyf.diagnosis.guard import Guard, GuardKind

_STRING = r"'[\w .:/-]*'"
_INTEGER = r"(?:0|-?[1-9]\d{0,17})"
_KEYWORDS = "|".join(keyword.kwlist)
_KEYWORD = regex(rf"\.(?:{_KEYWORDS})\b|[(, ](?:{_KEYWORDS})=(?!=)", re.ASCII)
"""A keyword where the other patterns take a name: no Python. One pattern that is searched, as it would stand in them a
dozen times, and compiling them took a third of what all patterns of a first session take."""
_ATTRIBUTE = r"\.[A-Za-z_]\w*"
_STEPS = rf"(?:{_ATTRIBUTE}|\[{_STRING}\]|\[(?:0|[1-9]\d{{0,8}})\])*"
_VALUE = rf"[LG]\[{_STRING}\]{_STEPS}"
_TEXT = rf"(?:{_STRING}|{_INTEGER})"

_NUMBER = rf"(?:\d{{1,9}}\.\d{{1,9}}|[1-9]e-\d\d|{_INTEGER})"

_COMPARISON = regex(
    rf"(?P<value>{_VALUE}) "
    rf"(?:== (?P<constant>True|False|None|{_NUMBER}|\({_INTEGER},\)|{_STRING})|is (?P<no>not )?None)",
    re.ASCII,  # the parser takes other digits for no digits, and makes one name of several
)
_LENGTH = regex(rf"(?P<length>len\((?P<value>{_VALUE})\)) == (?P<constant>{_INTEGER})", re.ASCII)
_KEY = regex(
    rf"(?P<key>list\(dict\.keys\((?P<value>{_VALUE})\)\)\[(?P<at>0|[1-9]\d{{0,8}})\]) == (?P<constant>{_TEXT})",
    re.ASCII,
)
_CALL = regex(
    rf"(?P<no>not )?(?:___dict_contains\((?P<key>{_STRING}), (?P<container>{_VALUE})\)"
    rf"|hasattr\((?P<value>{_VALUE}), '(?P<attribute>\w+)'\))",
    re.ASCII,
)


def read_plain(code: str) -> Optional[Guard]:
    """Return the guard of ``code``; None if it does not have one of these forms."""
    found = _read(code)
    return None if found is not None and _KEYWORD.search(code) else found


def _read(code: str) -> Optional[Guard]:
    match = _COMPARISON.fullmatch(code)
    if match is not None:
        value, constant, no = match.groups()
        if constant is None:
            operator, expected = ("is not", "not None") if no else ("is", "None")
            operands = (value, "None")
            return Guard(GuardKind.NONE, value, expected, detail=value, operands=operands, operators=(operator,))
        is_number = constant[-1].isdigit()
        if is_number and repr(float(constant) if "." in constant or "e" in constant else int(constant)) != constant:
            return None  # a tree would have another text
        kind = GuardKind.NUMBER if is_number else GuardKind.CHOICE
        if value.endswith(".training"):
            kind = GuardKind.TRAINING
        return Guard(kind, value, constant, detail=value, operands=(value, constant), operators=("==",))
    match = _LENGTH.fullmatch(code)
    if match is not None:
        length, value, constant = match.groups()
        operands, arguments = (length, constant), (value,)
        return Guard(GuardKind.LENGTH, value, constant, operands=operands, operators=("==",), arguments=arguments)
    match = _KEY.fullmatch(code)
    if match is not None:
        key, value, at, constant = match.groups()
        operands = (key, constant)
        return Guard(
            GuardKind.KEYS, value, constant, detail=key, operands=operands, operators=("==",), position=int(at)
        )
    match = _CALL.fullmatch(code)
    if match is not None:
        holds = match["no"] is None
        _, key, container, value, name = match.groups()
        if key is not None:
            return Guard(GuardKind.CONTAINS, container, detail=key, holds=holds, arguments=(key, container))
        return Guard(GuardKind.ATTRIBUTE, value, detail=name, holds=holds, arguments=(value, f"'{name}'"))
    return None


_OBJECT = rf"(?:[LG]|___(?:ids|names))\[{_STRING}\]{_STEPS}"
_DTYPE = r"torch\.[a-z]\w*"
_SIZES = rf"\[(?:(?:None|{_INTEGER})(?:, (?:None|{_INTEGER}))*)?\]"
_STRINGS = r"'[\w .,:/-]*'"
_CONSTANT = rf"True|False|None|{_NUMBER}|\({_INTEGER},\)"
_ARGUMENT = rf"(?:[a-z_]+=)?(?:{_OBJECT}|{_STRINGS}|{_DTYPE}|{_SIZES}|{_CONSTANT})"
_PLAIN = regex(
    rf"(?:(?:not )?(?P<called>___\w+|hasattr|len)\({_ARGUMENT}(?:, {_ARGUMENT})*\)|{_OBJECT})"
    rf"(?: (?:==|is(?: not)?) (?:True|False|None|{_INTEGER}))?",
    re.ASCII,
)
_POSITIONAL_AFTER_KEYWORD = regex(rf"[(,] ?[a-z_]+={_ARGUMENT}, (?![a-z_]+=)", re.ASCII)
_SAME_KEYWORD_TWICE = regex(r"[(,] ?([a-z_]+=).*, \1")
_TORCH = regex(r"\btorch(?=\.)")
_VALUES = regex(r"(?:^|[( =])(L|G|___ids|___names)\['")
"""The names that values begin with, where one is an argument of a call, or compared."""


def names_of_plain(expression: str) -> Optional[FrozenSet[str]]:
    """Return the names that an expression reads, ``None`` if it is not of a form that is known here to be Python. In
    these forms are no displays, no numbers in names, and none of the names that guards in a file have others for."""
    match = _PLAIN.fullmatch(expression)
    if match is None or _KEYWORD.search(expression):
        return None
    if "=" in expression.replace("==", "") and (  # few have keywords
        _POSITIONAL_AFTER_KEYWORD.search(expression) or _SAME_KEYWORD_TWICE.search(expression)
    ):
        return None
    names = _VALUES.findall(expression)  # strings have no brackets, so these are names wherever they stand
    if match["called"] is not None:
        names.append(match["called"])
    if "torch." in expression and _TORCH.search(expression):
        names.append("torch")
    return frozenset(names)
