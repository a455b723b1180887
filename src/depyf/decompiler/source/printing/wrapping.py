"""Break long lines as a developer would: inside of brackets, at commas and operators."""

from __future__ import annotations

import io
import itertools
import tokenize
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from depyf.base.late_regex import regex
from depyf.decompiler.source.printing.layout import has_fields

WIDTH = 100

_MANY, _SHORT = 10, 20

_STEP = "    "

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_OPENED = frozenset(_CLOSING.values())

# The operators at which to break an expression without commas, lowest precedence first. The break precedes them.
_OPERATORS = (("if", "else"), ("or",), ("and",), ("|",), ("+", "-"), ("*", "/", "@", "%"))

_WITH_CONDITION = ("if", "elif", "while", "return", "assert")


def wrap(line: str) -> List[str]:
    """Return the logical line ``line``, now one physical line, as several of at most ``WIDTH`` where possible."""
    if not _BREAKABLE.search(line):
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    tokens = _tokens(line[len(indent) :])
    return _Breaker(tokens).broken(indent, 0, len(tokens), bracketed=False) if tokens else [line]


_BREAKABLE = regex(r"[(\[{]|\b(?:and|or|del|import)\b")
"""What a line has that can be broken: brackets, or words that parentheses may follow."""


class _Token(NamedTuple):
    """A token other than white space; ``depth`` is its bracket depth, ``before`` the space in front."""

    text: str
    depth: int
    before: str


_TOKEN = regex(
    r"""( *)((?:[bB]?[rR]?|[uU])(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|[^\W\d]\w*"""
    r"""|0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[jJ]?"""
    r"""|\*\*=|//=|>>=|<<=|\.\.\.|->|:=|\*\*|//|<<|>>|[-+*/%@&|^=!<>]=|.)"""
)
"""A token of a line without f-strings, and the space in front."""


def _tokens(line: str) -> List[_Token]:
    if "'''" in line or '"""' in line or has_fields(line):
        return _tokenized(line)
    result: List[_Token] = []
    depth = 0
    for before, text in _TOKEN.findall(line):
        if text in _OPENED:
            depth -= 1
        result.append(_Token(text, depth, before))
        if text in _CLOSING:
            depth += 1
    return result


def _tokenized(line: str) -> List[_Token]:
    """Return the tokens of a line that may have f-strings or t-strings, which contain others."""
    result: List[_Token] = []
    depth, position, in_fstring = 0, 0, 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            if token.start[0] != 1 or token.type in (tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.INDENT):
                continue
            kind = tokenize.tok_name[token.type]
            text = line[token.start[1] : token.end[1]]
            before = line[position : token.start[1]]
            position = token.end[1]
            starts = kind in ("FSTRING_START", "TSTRING_START")
            in_fstring += starts
            if in_fstring:
                # Since 3.12 the parts of such a string are tokens; it must not be broken between them.
                if starts and in_fstring == 1:
                    result.append(_Token(text, depth, before))
                else:
                    last = result[-1]
                    result[-1] = _Token(last.text + before + text, last.depth, last.before)
                in_fstring -= kind in ("FSTRING_END", "TSTRING_END")
                continue
            if text in _OPENED:
                depth -= 1
            result.append(_Token(text, depth, before))
            if text in _CLOSING:
                depth += 1
    except (tokenize.TokenError, IndentationError):
        # The header of a statement alone is not complete; its tokens are.
        pass
    return result


class _Breaker:
    """Breaks the tokens of one line; ranges are a start and an end in them. Brackets are balanced in a range, except
    for a closing one at its start. ``ends`` has the length of the text up to the end of each token, ``closing`` the
    closing bracket of each opening one."""

    def __init__(self, tokens: List[_Token]) -> None:
        self.tokens = tokens
        self.ends = [0, *itertools.accumulate(len(token.before) + len(token.text) for token in tokens)]
        self.closing: Dict[int, int] = {}
        opened: Dict[int, int] = {}  # by depth
        for index, token in enumerate(tokens):
            if token.text in _CLOSING:
                opened[token.depth] = index
            elif token.depth in opened and token.text == _CLOSING[tokens[opened[token.depth]].text]:
                self.closing[opened.pop(token.depth)] = index

    def text(self, start: int, end: int) -> str:
        return "".join(token.before + token.text for token in self.tokens[start:end]).lstrip()

    def length(self, start: int, end: int) -> int:
        """Return the length of ``text``."""
        return self.ends[end] - self.ends[start] - len(self.tokens[start].before) if start < end else 0

    def outermost(self, start: int, end: int) -> Iterator[int]:
        """Yield the tokens of the range that are not in brackets within it."""
        depth = self.tokens[start].depth
        index = start
        while index < end:
            if self.tokens[index].depth == depth:
                yield index
            index = self.closing.get(index, index + 1)

    def broken(self, indent: str, start: int, end: int, *, bracketed: bool) -> List[str]:
        """Return the range as lines, the first of them indented by ``indent``. ``bracketed``: it is in brackets."""
        lines: List[str] = []
        pairs: Optional[Iterator[Tuple[int, int]]] = None
        whole = False  # the bracketed part can't be cut into pieces
        while len(indent) + self.length(start, end) > WIDTH and end - start >= 3:
            if not whole:
                outermost = [(index, self.tokens[index].text) for index in self.outermost(start, end)]
                parts = self._pieces(indent, start, end, outermost) if bracketed else None
                if not bracketed:
                    parts = self._parenthesised(indent, start, end, outermost)
                if parts is not None:
                    return lines + parts
                texts = [text for _, text in outermost]
                whole = "lambda" not in texts if bracketed else not ("and" in texts or "or" in texts)
            if pairs is None:
                pairs = self._longest_pairs(start, end)
            pair = next(pairs, None)
            if pair is None or len(indent) + self.length(start, pair[0] + 1) > WIDTH:
                break
            lines.append(indent + self.text(start, pair[0] + 1))
            lines.extend(self.broken(indent + _STEP, pair[0] + 1, pair[1], bracketed=True))
            start = pair[1]
        return [*lines, indent + self.text(start, end)]

    def _pieces(self, indent: str, start: int, end: int, outermost: List[Tuple[int, str]]) -> Optional[List[str]]:
        """Return the range cut at commas or operators, as lines; ``None`` if it can't be cut."""
        places = [place for place in _cuts(outermost) if start < place < end]
        bounds = [start, *places, end]
        pieces = [(one, two) for one, two in zip(bounds, bounds[1:]) if two > one]
        if len(pieces) > _MANY and all(self.length(*piece) <= _SHORT for piece in pieces):
            return _filled(indent, [self.text(*piece) for piece in pieces])
        if len(pieces) > 1:
            return [line for piece in pieces for line in self.broken(indent, *piece, bracketed=True)]
        return None

    def _parenthesised(
        self, indent: str, start: int, end: int, outermost: List[Tuple[int, str]]
    ) -> Optional[List[str]]:
        """Return the range with parentheses around its condition or its names, as lines; ``None`` if it has none."""
        bounds = _names(outermost, end) or _condition(outermost, end)
        if bounds is None:
            return None
        first, last = bounds
        inner = self.broken(indent + _STEP, first, last, bracketed=True)
        return [f"{indent}{self.text(start, first)} (", *inner, f"{indent}){self.text(last, end)}"]

    def _longest_pairs(self, start: int, end: int) -> Iterator[Tuple[int, int]]:
        """Yield the outermost pair of brackets in the range with the longest text, the longest of those after it, and
        so on."""
        # Backwards: the best pair from each position on is the next pair, or the best one after it. Then forwards: each
        # pair must begin after the end of the last one.
        best: List[Tuple[int, int]] = []
        for index in reversed(list(self.outermost(start, end))):
            close = self.closing.get(index)
            if close is not None and close < end and self.length(index + 1, close):
                longer = not best or self.length(index + 1, close) >= self.length(best[-1][0] + 1, best[-1][1])
                best.append((index, close) if longer else best[-1])
        end_of_last = start
        while best:
            pair = best.pop()
            if pair[0] >= end_of_last:
                yield pair
                end_of_last = pair[1]


def _filled(indent: str, pieces: List[str]) -> List[str]:
    """Return many short pieces, as in a table of numbers, with as many on a line as fit."""
    lines: List[str] = []
    for text in pieces:
        if lines and len(lines[-1]) + 1 + len(text) <= WIDTH:
            lines[-1] += " " + text
        else:
            lines.append(indent + text)
    return lines


def _cuts(outermost: List[Tuple[int, str]]) -> List[int]:
    """Return the cuts of an expression: after commas, or else in front of the operators of the lowest precedence."""
    texts = [text for _, text in outermost]
    if "for" not in texts and "," in texts:
        return list(_after_commas(outermost))
    if "lambda" in texts:
        return []
    clauses = _clauses(texts)  # the commas beside them separate the targets of a loop
    if clauses:
        return [outermost[place][0] for place in clauses]
    found = set(texts)
    for operators in _OPERATORS:
        if found.isdisjoint(operators):
            continue
        places = [
            index for place, (index, text) in enumerate(outermost) if text in operators and _is_binary(texts, place)
        ]
        if places:
            return places
    return []


def _after_commas(outermost: List[Tuple[int, str]]) -> Iterator[int]:
    """Yield the positions after commas, except those between the parameters of a lambda."""
    open_lambdas = 0
    for index, text in outermost:
        if text == "lambda":
            open_lambdas += 1
        elif text == ":" and open_lambdas:
            open_lambdas -= 1
        elif text == "," and not open_lambdas:
            yield index + 1


def _clauses(texts: List[str]) -> List[int]:
    """Return where the ``for`` and ``if`` clauses of a comprehension start."""
    if "for" not in texts:
        return []
    first = texts.index("for")
    places = [first, *(index for index in range(first + 1, len(texts)) if texts[index] in ("for", "if"))]
    return [place - (place > 0 and texts[place - 1] == "async") for place in places]


def _is_binary(texts: List[str], index: int) -> bool:
    if texts[index] not in ("+", "-", "*"):
        return True
    before = texts[index - 1] if index else "("
    return before == "" or before[-1].isalnum() or before[-1] in "_'\")]}"


def _names(outermost: List[Tuple[int, str]], end: int) -> Optional[Tuple[int, int]]:
    """Return the bounds of what is deleted or imported, if it is several things, or ``None``."""
    texts = [text for _, text in outermost]
    before = {"del": "del", "from": "import"}.get(texts[0])
    if before not in texts or "," not in texts:
        return None
    return outermost[texts.index(before) + 1][0], end


def _condition(outermost: List[Tuple[int, str]], end: int) -> Optional[Tuple[int, int]]:
    """Return the bounds of an expression with ``and`` or ``or`` that may be parenthesised, or ``None``."""
    texts = [text for _, text in outermost]
    if not ("and" in texts or "or" in texts):
        return None
    if any(text in ("lambda", "for", ",", ":=", "yield", "if", "else") for text in texts[1:]):
        return None
    if texts[0] in _WITH_CONDITION:
        return outermost[0][0] + 1, end - (texts[-1] == ":")
    if "=" in texts:
        return outermost[len(texts) - 1 - texts[::-1].index("=")][0] + 1, end
    return None
