"""The result of a decompilation: source, verdict, and what else is known of it."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Optional, Tuple

if TYPE_CHECKING:
    from depyf.bytecode.code import Code
    from depyf.source.compiling.placeholders import Placeholder
    from depyf.source.line_map import LineMap
    from depyf.source.source_text import SourceText


class Verdict(enum.Enum):
    """How far a decompilation is proved to behave like the original."""

    EXACT = "exact"
    """Recompiled, it has the same normalised bytecode."""
    EQUIVALENT = "equivalent"
    """A comparison of both flow graphs proved that it behaves the same."""
    PLACEHOLDERS = "placeholders"
    """Proved for what ``compile_like`` compiles, and not for the text alone, which has placeholder names for what text
    can't express, such as constants without a literal. ``Decompilation.placeholders`` and the comment at the head of
    the text list what they represent."""
    UNVERIFIED = "unverified"
    """It could not be decided; the reason says why."""

    @property
    def proved(self) -> bool:
        """Whether the text by itself, compiled in the surroundings of the original, is proved to behave as the
        original."""
        return self in (Verdict.EXACT, Verdict.EQUIVALENT)

    @property
    def code_proved(self) -> bool:
        """Whether the result of ``Decompilation.compile_like`` is proved to behave as the original: it has the
        constants and names that the text has placeholders for."""
        return self is not Verdict.UNVERIFIED


@dataclass(frozen=True)
class Decompilation:
    """The source of one code object, with its verdict.

    ``tree`` is the parsed ``source``: for a function, a module with that one function definition, and the ``from
    __future__`` import that it needs to compile to the same code. It is compiled in the surroundings of the original:
    with its free variables, and in a class where ``super()`` needs one.

    ``text`` is what ``compile_like`` compiles; its ``mode`` is that of ``compile``: ``eval`` for an expression,
    ``single`` for input at a prompt.

    ``placeholders`` are the names in the source that represent objects without a literal; see ``Verdict.PLACEHOLDERS``.

    ``missing`` names what could not be decompiled in a module or class: qualified names of functions and classes, lines
    of statements (``lines 3 to 5 of C``). The source has stubs and statements in their place that raise
    ``NotImplementedError``, and the verdict is ``UNVERIFIED``.

    ``assumptions`` is what the proof assumes beyond what holds for all code, one sentence each. It is empty where the
    source is proved without hints.
    """

    code: Code
    name: str
    source: str
    verdict: Verdict
    reason: str
    line_map: LineMap
    text: SourceText
    missing: Tuple[str, ...] = ()
    placeholders: Tuple[Placeholder, ...] = ()
    assumptions: Tuple[str, ...] = ()

    @property
    def tree(self) -> ast.Module:
        """The parsed ``source``, made when it is first asked for."""
        return self.text.tree

    def verdict_line(self) -> str:
        """Return the verdict with its reason and assumptions, for a line of output."""
        parts = [self.reason, *(f"assumed that {each}" for each in self.assumptions)]
        details = " ".join("; ".join(filter(None, parts)).split())
        return f"{self.verdict.value}{details and f': {details}'}"

    def compile_like(self, reference: Optional[Code] = None, filename: Optional[str] = None) -> CodeType:
        """Return a code object of this source that can replace ``reference`` (default: the original).

        It has ``reference``'s name, signature, free variables and cell variables in the same order, and its local
        variables (PyTorch 2.2 copies frames by name and needs them all). Its constants without a literal are the
        original objects, and its lines are those of ``source`` in file ``filename``. Raises ``DecompilationError`` when
        it can't be made.
        """
        from depyf.source.compiling.to_code import compile_like

        name = filename or f"<decompiled {self.name}>"
        return compile_like(self.text, reference or self.code, name, all_locals=True)
