"""Edit Python source as text: indent and dedent without touching strings, write signatures, check whether it compiles,
mark the statements that Dynamo adds for PyTorch's profiler.
"""

from __future__ import annotations

import ast
import inspect
import keyword
from types import CodeType
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.base.without_warnings import without_warnings
from depyf.decompiler.syntax import lines_inside_strings, parse


def indented(source: str, prefix: str = "    ") -> str:
    """Indent ``source``, except for lines inside string literals."""
    inside = lines_inside_strings(source)
    lines = source.split("\n")
    return "\n".join(
        line if not line.strip() or number in inside else prefix + line for number, line in enumerate(lines, 1)
    )


def dedented(source: str) -> str:
    """Dedent ``source``, except for lines inside string literals."""
    first = next((line for line in source.split("\n") if line.strip()), "")
    margin = len(first) - len(first.lstrip())
    if not margin:
        return source
    # Indented source alone does not parse. The line added before it shifts the numbers by one.
    inside = lines_inside_strings("if True:\n" + source)
    out = []
    for number, line in enumerate(source.split("\n"), 2):
        movable = number not in inside and not line[:margin].strip()
        out.append(line[margin:] if movable else line)
    return "\n".join(out)


def commented(text: str) -> str:
    """Return every line of ``text`` as a comment."""
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())


def why_it_does_not_compile(source: str) -> Optional[str]:
    """Return the compiler's complaint about ``source`` as a module, ``None`` when it is fine."""
    try:
        with without_warnings():
            compile(source, "<full_code>", "exec", dont_inherit=True)
    except synchronous(SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def as_definition(source: str, name: str) -> str:
    """Return ``source`` such that it defines ``name`` in the middle of a file. A lambda, which is an expression,
    becomes an assignment. Text before the definition (a comment, an import from ``__future__``) is left out."""
    if source.startswith(("def ", "async def ")):
        return source
    try:
        body = parse(source).body
    except synchronous(SyntaxError, ValueError, RecursionError):
        return source
    while len(body) > 1 and isinstance(body[0], ast.ImportFrom):
        del body[0]
    if not body:
        return source
    source = "\n".join(source.split("\n")[body[0].lineno - 1 :])
    if len(body) == 1 and isinstance(body[0], ast.Expr):
        return f"{name} = {source.strip()}"
    return source


def is_name(text: str) -> bool:
    """Return whether it can be a variable in Python source."""
    return text.isidentifier() and not keyword.iskeyword(text)


@dataclass(frozen=True)
class Signature:
    """How a code object takes its arguments; ``names`` are its own, ``shown`` the same as Python can spell them."""

    names: Tuple[str, ...]
    shown: Tuple[str, ...]
    positional_only: int
    positional: int
    keyword_only: int
    has_varargs: bool
    has_varkeywords: bool

    @staticmethod
    def of(code: CodeType) -> Signature:
        """Return the signature of ``code`` (defaults are not in a code object)."""
        has_varargs = bool(code.co_flags & inspect.CO_VARARGS)
        has_varkeywords = bool(code.co_flags & inspect.CO_VARKEYWORDS)
        total = code.co_argcount + code.co_kwonlyargcount + has_varargs + has_varkeywords
        names = code.co_varnames[:total]
        shown: List[str] = []
        for index, name in enumerate(names):
            shown.append(name if is_name(name) else f"___argument_{index}")
        return Signature(
            names,
            tuple(shown),
            code.co_posonlyargcount,
            code.co_argcount,
            code.co_kwonlyargcount,
            has_varargs,
            has_varkeywords,
        )

    def parameters(self, defaults: Mapping[str, str]) -> str:
        """Return the text between the parentheses of a ``def``; ``defaults`` are expressions by parameter name."""
        out = [self._with_default(index, defaults) for index in range(self.positional)]
        if self.positional_only:
            out.insert(self.positional_only, "/")
        star = self.positional + self.keyword_only
        if self.has_varargs:
            out.append("*" + self.shown[star])
        elif self.keyword_only:
            out.append("*")
        out += [self._with_default(index, defaults) for index in range(self.positional, star)]
        if self.has_varkeywords:
            out.append("**" + self.shown[-1])
        return ", ".join(out)

    def _with_default(self, index: int, defaults: Mapping[str, str]) -> str:
        name = self.shown[index]
        return f"{name}={defaults[self.names[index]]}" if self.names[index] in defaults else name

    def arguments(self) -> str:
        """Return the text between the parentheses of a call that passes all parameters on."""
        out = list(self.shown[: self.positional])
        star = self.positional + self.keyword_only
        if self.has_varargs:
            out.append("*" + self.shown[star])
        out += [f"{name}={name}" for name in self.shown[self.positional : star]]
        if self.has_varkeywords:
            out.append("**" + self.shown[-1])
        return ", ".join(out)

    def frame_locals(self, free_variables: Sequence[str]) -> str:
        """Return the dict of a frame's locals by name, as source."""
        pairs = [*zip(self.names, self.shown), *((name, name) for name in free_variables)]
        return "{" + ", ".join(f"{name!r}: {shown}" for name, shown in pairs) + "}"


MARK = "  # for PyTorch's profiler"

_OF_PROFILER = regex(r"_is_profiler_enabled|\brecord_pregraph_bytecode_(?:enter|exit)\b")
_NAMED = regex(r"^\s*(\w+) = |\b(\w+)\.record_pregraph")
_MADE = regex(r"^\s*(\w+) = (?:None|__import_torch_dot_\w+)$|^\s*if (\w+)(?: is not None)?:$")
"""Statements that only make or test what the others use."""


def with_profiler_lines_marked(source: str) -> str:
    """Append a comment to the lines of ``source`` that are for the profiler; nothing else changes."""
    if not _OF_PROFILER.search(source):
        return source
    statements = _statements_of_one_line(source)
    #     tmp = None                                                (3) makes a variable of (2)
    #     if __import_torch_dot_..._profiler._is_profiler_enabled:  (1) has a name of PyTorch's profiler
    #         tmp = utils.record_pregraph_bytecode_enter()          (1)
    #     if tmp is not None:                                       (3) tests a variable of (2)
    #         utils.record_pregraph_bytecode_exit(tmp)              (1)
    # (2) are the variables that the lines of (1) assign, or whose method they call: here ``tmp``.
    found = {row for row, text in statements.items() if _OF_PROFILER.search(text)}
    names: Set[str] = set()
    for row in found:
        names.update(name for match in _NAMED.finditer(statements[row]) for name in match.groups() if name)
    for row, text in statements.items():
        made = _MADE.match(text)
        if made is not None and (made.group(1) or made.group(2)) in names:
            found.add(row)
    return "\n".join(f"{line}{MARK}" if row in found else line for row, line in enumerate(source.split("\n"), 1))


def _statements_of_one_line(source: str) -> Dict[int, str]:
    """Return the rows that hold the whole of a statement, or of the first line of a block, and no comment."""
    # A row between the brackets of a statement over several rows may have this form, too. A comment changes nothing.
    inside = lines_inside_strings(source)
    return {
        row: line
        for row, line in enumerate(source.split("\n"), 1)
        if row not in inside
        and row + 1 not in inside
        and "#" not in line
        and not line.endswith("\\")
        and all(line.count(first) == line.count(last) for first, last in ("()", "[]", "{}"))
    }
