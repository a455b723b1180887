"""Long lines broken where a person would break them: inside of brackets, at commas and operators."""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Tuple

WIDTH = 100

_MANY, _SHORT = 10, 20

_STEP = "    "

_CLOSING = {"(": ")", "[": "]", "{": "}"}

# Where to break what has no commas, weakest binding first. The break comes in front.
_OPERATORS = (("if", "else"), ("or",), ("and",), ("|",), ("+", "-"), ("*", "/", "@", "%"))

_WITH_CONDITION = ("if", "elif", "while", "return", "assert")


def wrapped_lines(text: str, tree: ast.Module) -> Dict[int, List[str]]:
    """For the lines (1-based) of ``text`` that are too long and can be broken: what to put in their place.

    ``tree`` is what ``text`` parses to. Only statements, or heads of statements, that lie on one line are looked at.
    """
    lines = text.split("\n")
    result: Dict[int, List[str]] = {}
    for number in _statement_lines(tree):
        line = lines[number - 1]
        if len(line) > WIDTH:
            broken = wrap(line)
            if len(broken) > 1:
                result[number] = broken
    return result


def wrap(line: str) -> List[str]:
    """The logical line ``line``, now one physical line, as several ones no longer than ``WIDTH`` where possible."""
    indent = line[: len(line) - len(line.lstrip())]
    tokens = _tokens(line[len(indent) :])
    return _broken(indent, tokens, bracketed=False) if tokens else [line]


@dataclass(frozen=True)
class _Token:
    """A token that is no white space; ``depth`` is that of the brackets around it, ``before`` the space in front."""

    text: str
    depth: int
    before: str


def _tokens(line: str) -> List[_Token]:
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
            if kind == "FSTRING_START":
                in_fstring += 1
            if in_fstring:
                # From 3.12 on the parts of an f-string are tokens; it must not be broken between them.
                if kind == "FSTRING_START" and in_fstring == 1:
                    result.append(_Token(text, depth, before))
                else:
                    last = result[-1]
                    result[-1] = _Token(last.text + before + text, last.depth, last.before)
                if kind == "FSTRING_END":
                    in_fstring -= 1
                continue
            if text in (")", "]", "}"):
                depth -= 1
            result.append(_Token(text, depth, before))
            if text in _CLOSING:
                depth += 1
    except (tokenize.TokenError, IndentationError):
        # The head of a statement alone is no complete statement; its tokens are.
        pass
    return result


def _text(tokens: List[_Token]) -> str:
    return "".join(token.before + token.text for token in tokens).lstrip()


def _broken(indent: str, tokens: List[_Token], bracketed: bool) -> List[str]:
    """``tokens`` as lines, the first of them indented by ``indent``. ``bracketed``: there are brackets around."""
    text = _text(tokens)
    if len(indent) + len(text) <= WIDTH or len(tokens) < 3:
        return [indent + text]
    if bracketed:
        pieces = _pieces(tokens)
        if len(pieces) > _MANY and all(len(_text(piece)) <= _SHORT for piece in pieces):
            return _filled(indent, pieces)
        if len(pieces) > 1:
            return [line for piece in pieces for line in _broken(indent, piece, bracketed=True)]
    else:
        condition = _condition(tokens)
        if condition is not None:
            start, end = condition
            head, inner, tail = tokens[:start], tokens[start:end], tokens[end:]
            return [f"{indent}{_text(head)} (", *_broken(indent + _STEP, inner, True), f"{indent}){_text(tail)}"]
    pair = _longest_pair(tokens)
    if pair is None:
        return [indent + text]
    start, end = pair
    head, inner, tail = tokens[: start + 1], tokens[start + 1 : end], tokens[end:]
    if len(indent) + len(_text(head)) > WIDTH:
        return [indent + text]
    return [indent + _text(head), *_broken(indent + _STEP, inner, True), *_broken(indent, tail, bracketed)]


def _filled(indent: str, pieces: List[List[_Token]]) -> List[str]:
    """Many short things, as in a table of numbers, with as many on a line as fit."""
    lines: List[str] = []
    for text in map(_text, pieces):
        if lines and len(lines[-1]) + 1 + len(text) <= WIDTH:
            lines[-1] += " " + text
        else:
            lines.append(indent + text)
    return lines


def _pieces(tokens: List[_Token]) -> List[List[_Token]]:
    """``tokens`` cut behind commas, or else in front of the operators that bind least."""
    outer = min(token.depth for token in tokens)
    texts = [token.text if token.depth == outer else "" for token in tokens]
    if "lambda" in texts:
        return [tokens]
    if "," in texts:
        return _cut(tokens, [index + 1 for index, text in enumerate(texts) if text == ","])
    clauses = _clauses(texts)
    if clauses:
        return _cut(tokens, clauses)
    for operators in _OPERATORS:
        places = [index for index, text in enumerate(texts) if text in operators and _is_binary(texts, index)]
        if places:
            return _cut(tokens, places)
    return [tokens]


def _clauses(texts: List[str]) -> List[int]:
    """Where the ``for`` and ``if`` clauses of a comprehension begin."""
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


def _cut(tokens: List[_Token], places: List[int]) -> List[List[_Token]]:
    bounds = [0, *(place for place in places if 0 < place < len(tokens)), len(tokens)]
    return [tokens[start:end] for start, end in zip(bounds, bounds[1:]) if end > start]


def _condition(tokens: List[_Token]) -> Optional[Tuple[int, int]]:
    """Where an expression with ``and`` or ``or`` begins and ends that may get parentheses around it."""
    texts = [token.text if token.depth == 0 else "" for token in tokens]
    if not ("and" in texts or "or" in texts):
        return None
    if any(text in ("lambda", "for", ",", ":=", "yield", "if", "else") for text in texts[1:]):
        return None
    if texts[0] in _WITH_CONDITION:
        return 1, len(tokens) - (texts[-1] == ":")
    if "=" in texts:
        return len(texts) - texts[::-1].index("="), len(texts)
    return None


def _longest_pair(tokens: List[_Token]) -> Optional[Tuple[int, int]]:
    """The outermost pair of brackets with most in between."""
    outer = min(token.depth for token in tokens)
    best: Optional[Tuple[int, int, int]] = None
    start = None
    for index, token in enumerate(tokens):
        if token.depth != outer:
            continue
        if token.text in _CLOSING:
            start = index
        elif start is not None and token.text == _CLOSING[tokens[start].text]:
            length = len(_text(tokens[start + 1 : index]))
            if length and (best is None or length > best[0]):
                best = length, start, index
            start = None
    return None if best is None else best[1:]


def _statement_lines(tree: ast.Module) -> Iterator[int]:
    """The lines of statements, and of heads of statements, that end on the line on which they begin."""
    pending: List[Any] = list(tree.body)
    while pending:
        node = pending.pop()
        end = node.lineno
        for field, value in ast.iter_fields(node):
            if field in ("body", "orelse", "finalbody"):
                pending.extend(value)
            elif field in ("handlers", "cases"):
                for part in value:
                    pending.extend(part.body)
            elif field != "decorator_list":
                parts = value if isinstance(value, list) else [value]
                end = max([end, *(_end(part) for part in parts if isinstance(part, ast.AST))])
        if end == node.lineno:
            yield end


def _end(node: ast.AST) -> int:
    own = getattr(node, "end_lineno", None)
    if own is not None:
        return int(own)
    return max([0, *(_end(child) for child in ast.iter_child_nodes(node))])
