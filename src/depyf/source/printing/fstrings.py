"""F-strings, and t-strings (3.14), to text.

Before 3.12 the expressions in an f-string may hold no backslash and no quote of the kind around it. Where an expression
needs a backslash, because of a string constant in it, the user wrote ``%`` with a tuple, of which the compiler makes
the same since 3.10, or had the character itself in triple quotes. What can't be written either way gets a placeholder
for that constant. Other quotes are taken around where one stands inside, in all versions.

In a t-string the text of an expression is part of the value, so it is written as it was.
"""

from __future__ import annotations

import ast
from typing import Any, Callable, List, Optional, Tuple

from depyf.lazy_pattern import re_compile
from depyf.result import DecompilationError
from depyf.source.printing.literals import Placeholders, verbatim
from depyf.source.rewriting import Rewriter

_COMPILER_KNOWS_PERCENT = "%" not in str(compile("'%r' % (a,)", "", "eval").co_consts)
"""Whether ``%`` with a tuple compiles to what an f-string compiles to."""


def _compiles(text: str) -> bool:
    try:
        compile(text, "", "eval")
    except SyntaxError:
        return False
    return True


_HOLDS_ANYTHING = _compiles("f'{'\\n'}'")
"""Whether the expressions in an f-string may hold backslashes and the quotes around it (3.12)."""

FORMATTED = (ast.JoinedStr, ast.FormattedValue, *([ast.TemplateStr] if hasattr(ast, "TemplateStr") else []))
"""The nodes that ``print_fstrings`` writes."""

_QUOTES = ("'", '"', '"""', "'''")
_PERCENT_SPEC = re_compile(r"(>?)(\d*)((?:\.\d+)?)")
"""What the compiler makes of ``%5.2s`` (``>5.2``) and ``%-5.2s`` (``5.2``)."""
_INNER_QUOTES = ('"""', "'''")


def print_fstrings(tree: ast.Module, placeholders: Placeholders, unparse: Callable[[ast.AST], str]) -> ast.Module:
    """``tree`` with every f-string as an atom that holds its text."""
    result: ast.Module = _FStrings(placeholders, unparse).visit(tree)
    return result


class _NoBackslashes(Rewriter):
    """Writes string constants whose literal needs a backslash as they are, between triple quotes, or else gives them a
    placeholder."""

    def __init__(self, placeholders: Placeholders) -> None:
        super().__init__()
        self._placeholders = placeholders

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if "\\" not in repr(node.value):
            return node
        raw = _raw_literal(node.value)
        if raw is not None:
            return verbatim(raw)
        return self._placeholders.name(node.value, "text" if isinstance(node.value, str) else "bytes")


def _raw_literal(value: object) -> Optional[str]:
    """A literal without a backslash for a text or bytes, all characters as they are; ``None`` if there is none."""
    if not isinstance(value, (str, bytes)):
        return None
    text = value if isinstance(value, str) else value.decode("latin-1")
    if not isinstance(value, str) and not text.isascii():
        return None
    if any(character in "\\\0\r" or "\ud800" <= character <= "\udfff" for character in text):
        return None
    for quote in _INNER_QUOTES:
        if quote not in text and not text.endswith(quote[0]) and not text.startswith(quote[0]):
            return f"{'' if isinstance(value, str) else 'b'}{quote}{text}{quote}"
    return None


class _FStrings(Rewriter):
    def __init__(self, placeholders: Placeholders, unparse: Callable[[ast.AST], str]) -> None:
        super().__init__()
        self._placeholders = placeholders
        self._unparse = unparse

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        if _COMPILER_KNOWS_PERCENT and not _HOLDS_ANYTHING and self._needs_backslash(node):
            as_percent = self._percent(node)
            if as_percent is not None:
                return as_percent
        pieces = [self._piece(value) for value in node.values]
        expressions = "".join(text for _, text in pieces if text is not None)
        quote = next((quote for quote in _QUOTES if _fits(quote, expressions)), None)
        if quote is not None or _HOLDS_ANYTHING:
            return verbatim(_quoted(quote or _QUOTES[0], pieces))
        return verbatim("(" + " ".join(_quoted(_quote_for(piece), [piece]) for piece in pieces) + ")")

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        return self.visit_JoinedStr(ast.JoinedStr(values=[node]))

    def _needs_backslash(self, node: ast.JoinedStr) -> bool:
        """Whether a string constant in one of its expressions does; ``visit`` has not been there yet."""
        return any(
            isinstance(inner, ast.Constant) and isinstance(inner.value, (str, bytes)) and "\\" in repr(inner.value)
            for field in node.values
            if isinstance(field, ast.FormattedValue)
            for inner in ast.walk(field.value)
        )

    def _percent(self, node: ast.JoinedStr) -> Optional[ast.expr]:
        """The f-string as ``%`` with a tuple; ``None`` when there is no such form."""
        text, values = "", []
        for piece in node.values:
            if isinstance(piece, ast.Constant):
                text += str(piece.value).replace("%", "%%")
            elif isinstance(piece, ast.FormattedValue):
                field = percent_field(piece)
                if field is None:
                    return None
                text += field
                values.append(self.visit(piece.value))
            else:
                return None
        pattern = ast.Constant(value=text, kind=None)
        return ast.BinOp(left=pattern, op=ast.Mod(), right=ast.Tuple(elts=values, ctx=ast.Load()))

    def visit_TemplateStr(self, node: Any) -> ast.Name:
        pieces = [self._piece(value) for value in node.values]
        return verbatim(_quoted("'", pieces, prefix="t"))

    def visit_Interpolation(self, node: ast.AST) -> ast.Name:
        raise DecompilationError("a field of a t-string is used without one")

    def _piece(self, value: object) -> Tuple[str, Optional[str]]:
        """A piece of text and ``None``, or "" and the replacement field with its braces."""
        if isinstance(value, ast.Constant):
            return str(value.value), None
        if isinstance(value, ast.FormattedValue):
            return "", self._replacement_field(value)
        if not hasattr(value, "str"):
            raise DecompilationError("a string is put together of something else than text")
        return "", self._interpolation(value)

    def _interpolation(self, field: Any) -> str:
        text: str = field.str
        return "{" + text + self._behind_expression(field) + "}"

    def _behind_expression(self, field: Any) -> str:
        conversion = "" if field.conversion in (-1, None) else "!" + chr(field.conversion)
        return conversion + self._format_spec(field.format_spec)

    def _replacement_field(self, field: ast.FormattedValue) -> str:
        expression = self.visit(field.value)
        text = self._expression_text(expression)
        if not _HOLDS_ANYTHING and ("\\" in text or "\n" in text):
            text = self._expression_text(_NoBackslashes(self._placeholders).visit(expression))
            if "\\" in text:
                raise DecompilationError("an f-string inside an f-string needs a backslash, which can't be written")
        return "{" + text + self._behind_expression(field) + "}"

    def _expression_text(self, expression: ast.expr) -> str:
        text = self._unparse(expression).strip("\n")
        if "lambda" in text:
            text = f"({text})"
        return " " + text if text.startswith("{") else text

    def _format_spec(self, spec: Optional[ast.expr]) -> str:
        if spec is None:
            return ""
        assert isinstance(spec, ast.JoinedStr)
        parts = [":"]
        for value in spec.values:
            if isinstance(value, ast.Constant):
                text = _escaped(str(value.value), "")
                if "{" in text or "}" in text:
                    raise DecompilationError(f"the format specification {text!r} of an f-string can't be written")
                parts.append(text)
            else:
                assert isinstance(value, ast.FormattedValue)
                parts.append(self._replacement_field(value))
        return "".join(parts)


def _quoted(quote: str, pieces: List[Tuple[str, Optional[str]]], prefix: str = "f") -> str:
    inner = "".join(
        _escaped(text, quote).replace("{", "{{").replace("}", "}}") if field is None else field
        for text, field in pieces
    )
    return f"{prefix}{quote}{inner}{quote}"


def _fits(quote: str, expressions: str) -> bool:
    """Whether an f-string of these expressions can stand between such quotes."""
    return quote not in expressions and (len(quote) == 3 or "\n" not in expressions)


def _quote_for(piece: Tuple[str, Optional[str]]) -> str:
    for quote in _QUOTES:
        if piece[1] is None or _fits(quote, piece[1]):
            return quote
    raise DecompilationError("f-strings are nested too deeply for the quotes there are")


def _escaped(text: str, quote: str) -> str:
    """``text`` as it stands between quotes, in one line."""
    body = repr(text + '"')[1:-2]  # with a double quote in it, repr puts single ones around
    body = body.replace("\\'", "'")
    return body.replace(quote[0], "\\" + quote[0]) if quote else body


def percent_field(part: ast.FormattedValue) -> Optional[str]:
    """The ``%`` form of a replacement field, if it has one."""
    if part.conversion not in (ord("s"), ord("r"), ord("a")):
        return None
    specification = _constant_text(part.format_spec)
    found = None if specification is None else _PERCENT_SPEC.fullmatch(specification)
    if found is None or (found.group(1) and not found.group(2)) or found.group(2).startswith("0"):
        return None
    right, width, precision = found.groups()
    left = "-" if width and not right else ""
    return f"%{left}{width}{precision}{chr(part.conversion)}"


def _constant_text(specification: Optional[ast.expr]) -> Optional[str]:
    """A format specification without replacement fields in it."""
    if specification is None:
        return ""
    if not isinstance(specification, ast.JoinedStr) or len(specification.values) != 1:
        return None
    only = specification.values[0]
    return only.value if isinstance(only, ast.Constant) and isinstance(only.value, str) else None
