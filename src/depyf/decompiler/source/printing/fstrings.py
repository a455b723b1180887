"""Print f-strings, and t-strings (3.14 and later), as text.

Before 3.12 the expressions in an f-string must not have a backslash or the quotes of the f-string. Where a string
constant in an expression needs a backslash, the source had ``%`` with a tuple, which has compiled to the same since
3.10, or the character itself in triple quotes. A constant that can't be written either way gets a placeholder. If an
expression contains a quote, the f-string uses another one, in all versions.

In a t-string the text of an expression is part of the value, so it is written as it was.
"""

from __future__ import annotations

import ast
from typing import Any, List, Optional, Protocol, Tuple, Union

from depyf.base.late_regex import regex
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.source.printing.literals import Literals, verbatim
from depyf.decompiler.source.rewriting import Rewriter

COMPILER_KNOWS_PERCENT = "%" not in str(compile("'%r' % (a,)", "", "eval").co_consts)
"""Whether ``%`` with a tuple compiles to the same code as an f-string."""


def _compiles(text: str) -> bool:
    try:
        compile(text, "", "eval")
    except SyntaxError:
        return False
    return True


_HOLDS_ANYTHING = _compiles("f'{'\\n'}'")
"""Whether the expressions in an f-string may hold backslashes and the quotes around it (3.12)."""

_QUOTES = ("'", '"', '"""', "'''")
_PERCENT_SPEC = regex(r"(>?)(\d*)((?:\.\d+)?)")
"""The compiled form of ``%5.2s`` (``>5.2``) and ``%-5.2s`` (``5.2``)."""
_INNER_QUOTES = ('"""', "'''")


class Writer(Protocol):
    """The printer of expressions, as far as formatted strings need it."""

    literals: Literals

    def text(self, node: ast.AST) -> str:
        """Return the text of an expression."""


class _NoBackslashes(Rewriter):
    """Replaces string constants that need a backslash by triple-quoted literals without one, or by placeholders."""

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if "\\" not in repr(node.value):
            return node
        raw = _raw_literal(node.value)
        if raw is not None:
            return verbatim(raw)
        if isinstance(node.value, (str, bytes)):
            return self._writer.literals.name(node.value, "text" if isinstance(node.value, str) else "bytes")
        form = self._writer.literals.expression(node.value)
        return form if isinstance(form, ast.Constant) else self.rewrite_children(form)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        text = self._writer.text(node)
        return verbatim((FormattedStrings(self._writer).raw(node) if "\\" in text else None) or text)


def _raw_literal(value: object) -> Optional[str]:
    """Return a literal without escape sequences for a str or bytes; ``None`` if it needs some."""
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


class FormattedStrings:
    """Writes formatted strings; ``writer`` writes the expressions in them."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def rendered(self, node: ast.JoinedStr) -> Union[str, ast.expr]:
        """Return the text of an f-string, which is an atom; or another expression in its place."""
        if not _HOLDS_ANYTHING and self._needs_backslash(node):
            other = (self._percent(node) if COMPILER_KNOWS_PERCENT else None) or _with_test_outside(node)
            if other is not None:
                return other
        # The first quotes that no expression contains; where each is in some expression (before 3.12), one f-string for
        # each piece, which the compiler concatenates.
        pieces = [self._piece(value) for value in node.values]
        expressions = "".join(text for _, text in pieces if text is not None)
        quote = next((quote for quote in _QUOTES if _fits(quote, expressions)), None)
        if quote is not None or _HOLDS_ANYTHING:
            return _quoted(quote or _QUOTES[0], pieces)
        return "(" + " ".join(_quoted(_quote_for(piece), [piece]) for piece in pieces) + ")"

    def raw(self, node: ast.JoinedStr) -> Optional[str]:
        """Return the text of an f-string without escape sequences; ``None`` if it needs some."""
        pieces = [self._piece(value) for value in node.values]
        inner = "".join(
            text.replace("{", "{{").replace("}", "}}") if field is None else field for text, field in pieces
        )
        literal = _raw_literal(inner)
        return literal and f"f{literal}"

    def template(self, node: Any) -> str:
        """Return the text of a t-string."""
        return _quoted("'", [self._piece(value) for value in node.values], prefix="t")

    def _needs_backslash(self, node: ast.JoinedStr) -> bool:
        """Return whether a string constant in one of its expressions needs a backslash."""
        return any(
            isinstance(inner, ast.Constant)
            and isinstance(inner.value, (str, bytes, tuple))
            and "\\" in repr(inner.value)
            for field in node.values
            if isinstance(field, ast.FormattedValue)
            for inner in ast.walk(field.value)
        )

    def _percent(self, node: ast.JoinedStr) -> Optional[ast.expr]:
        """Return the f-string as ``%`` with a tuple; ``None`` when it has no such form."""
        text, values = "", []
        for piece in node.values:
            if isinstance(piece, ast.Constant):
                text += str(piece.value).replace("%", "%%")
            elif isinstance(piece, ast.FormattedValue):
                field = percent_field(piece)
                if field is None:
                    return None
                text += field
                values.append(piece.value)
            else:
                return None
        pattern = ast.Constant(value=text, kind=None)
        return ast.BinOp(left=pattern, op=ast.Mod(), right=ast.Tuple(elts=values, ctx=ast.Load()))

    def _piece(self, value: object) -> Tuple[str, Optional[str]]:
        """Return a piece of text and ``None``, or "" and the replacement field with its braces."""
        if isinstance(value, ast.Constant):
            return str(value.value), None
        if isinstance(value, ast.FormattedValue):
            return "", self._replacement_field(value)
        if not hasattr(value, "str"):
            raise DecompilationError("a part of a formatted string is not text")
        return "", self._interpolation(value)

    def _interpolation(self, field: Any) -> str:
        text: str = field.str
        return "{" + text + self._after_expression(field) + "}"

    def _after_expression(self, field: Any) -> str:
        conversion = "" if field.conversion in (-1, None) else "!" + chr(field.conversion)
        return conversion + self._format_spec(field.format_spec)

    def _replacement_field(self, field: ast.FormattedValue) -> str:
        text = self._expression_text(field.value)
        if not _HOLDS_ANYTHING and ("\\" in text or "\n" in text):
            text = self._expression_text(_NoBackslashes(self._writer).visit(field.value))
            if "\\" in text:
                raise DecompilationError("an f-string inside an f-string needs a backslash, which can't be written")
        return "{" + text + self._after_expression(field) + "}"

    def _expression_text(self, expression: ast.expr) -> str:
        text = self._writer.text(expression)
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


class _WithoutTest(Rewriter):
    """Replaces ``(False if test else False) or value``, as ``lift.build.after_test`` makes it, by ``value``."""

    def __init__(self, test: ast.BoolOp) -> None:
        super().__init__()
        self._test = test

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return node.values[1] if node is self._test else self.rewrite_children(node)


def _with_test_outside(node: ast.JoinedStr) -> Optional[ast.expr]:
    """Return ``(False if test else False) or f"{value}"`` for an f-string whose first value is evaluated after such a
    test; ``None`` for others."""
    first: Optional[ast.expr] = next((each for each in node.values if isinstance(each, ast.FormattedValue)), None)
    while first is not None:
        if isinstance(first, ast.BoolOp) and _is_never_true(first.values[0]):
            return ast.BoolOp(first.op, [first.values[0], _WithoutTest(first).visit(node)])
        first = next((each for each in ast.iter_child_nodes(first) if isinstance(each, ast.expr)), None)
    return None


def _is_never_true(expr: ast.expr) -> bool:
    arms = [expr.body, expr.orelse] if isinstance(expr, ast.IfExp) else []
    return len(arms) == 2 and all(isinstance(arm, ast.Constant) and arm.value is False for arm in arms)


def _quoted(quote: str, pieces: List[Tuple[str, Optional[str]]], prefix: str = "f") -> str:
    inner = "".join(
        _escaped(text, quote).replace("{", "{{").replace("}", "}}") if field is None else field
        for text, field in pieces
    )
    return f"{prefix}{quote}{inner}{quote}"


def _fits(quote: str, expressions: str) -> bool:
    """Return whether an f-string with these expressions can be in such quotes."""
    return quote not in expressions and (len(quote) == 3 or "\n" not in expressions)


def _quote_for(piece: Tuple[str, Optional[str]]) -> str:
    for quote in _QUOTES:
        if piece[1] is None or _fits(quote, piece[1]):
            return quote
    raise DecompilationError("f-strings are nested more deeply than there are quotes")


def _escaped(text: str, quote: str) -> str:
    """Return ``text`` with escape sequences, for a literal in these quotes on one line."""
    body = repr(text + '"')[1:-2]  # with a double quote in it, repr uses single ones
    body = body.replace("\\'", "'")
    return body.replace(quote[0], "\\" + quote[0]) if quote else body


def percent_field(part: ast.FormattedValue) -> Optional[str]:
    """Return the ``%`` form of a replacement field; ``None`` if it has none."""
    if part.conversion not in (ord("s"), ord("r"), ord("a")):
        return None
    specification = _constant_text(part.format_spec)
    found = None if specification is None else _PERCENT_SPEC.fullmatch(specification)
    if found is None or (found.group(1) and not found.group(2)) or found.group(2).startswith("0"):
        return None
    # %5.2s     is    !s:>5.2       ``%`` aligns to the right unless it has a minus, format specifications to the left
    # %-5.2s    is    !s:5.2
    right, width, precision = found.groups()
    left = "-" if width and not right else ""
    return f"%{left}{width}{precision}{chr(part.conversion)}"


def _constant_text(specification: Optional[ast.expr]) -> Optional[str]:
    """Return a format specification without replacement fields; ``None`` if it has some."""
    if specification is None:
        return ""
    if not isinstance(specification, ast.JoinedStr) or len(specification.values) != 1:
        return None
    only = specification.values[0]
    return only.value if isinstance(only, ast.Constant) and isinstance(only.value, str) else None
