"""The result of a decompilation: source, verdict, assumptions and line map."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Optional, Protocol, Tuple

if TYPE_CHECKING:
    from depyf.decompiler.bytecode.code import Code
    from depyf.decompiler.source.compiling.placeholders import Placeholder
    from depyf.decompiler.source.line_map import LineMap
    from depyf.decompiler.source.source_text import SourceText


class Renamed(Protocol):
    """A code object with names that fit a text; ``undone`` gives code the original ones."""

    @property
    def code(self) -> Code: ...

    def undone(self, code: CodeType) -> CodeType: ...


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
    """It is not proved; the reason says why. Of code of another Python, and where the caller asked for ``unsafe`` text,
    it may also be known to differ, with the difference beside it in a comment."""

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
    of statements (``lines 3 to 5 of C``). The source has stubs and statements instead that raise
    ``NotImplementedError``, and the verdict is ``UNVERIFIED``.

    ``assumptions`` is what the proof assumes beyond what holds for all code, one sentence each. It is empty where the
    source is proved without hints.

    ``compiler_changes`` is what the compilers of two Pythons do differently with this source, where the code is of
    another Python than the running one: the proof holds up to these changes.
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
    compiler_changes: Tuple[str, ...] = ()
    renamed: Optional[Renamed] = field(default=None, repr=False, compare=False)
    """The code with the names of the text, where those of ``code`` fit no text."""

    @property
    def tree(self) -> ast.Module:
        """The parsed ``source``, made when it is first asked for."""
        return self.text.tree

    def verdict_line(self) -> str:
        """Return the verdict with its reason and assumptions, for a line of output."""
        parts = [self.reason, *(f"assumed that {each}" for each in self.assumptions)]
        if self.compiler_changes:
            parts.append(f"up to what the compilers do differently: {', '.join(self.compiler_changes)}")
        details = " ".join("; ".join(filter(None, parts)).split())
        return f"{self.verdict.value}{details and f': {details}'}"

    def compile_like(self, reference: Optional[Code] = None, filename: Optional[str] = None) -> CodeType:
        """Return a code object of this source that can replace ``reference`` (default: the original).

        It has ``reference``'s name, signature, free variables and cell variables in the same order, and its local
        variables (PyTorch 2.2 copies frames by name and needs them all). Its constants without a literal are the
        original objects, and its lines are those of ``source`` in file ``filename``. Raises ``DecompilationError`` when
        it can't be made.
        """
        from depyf.decompiler.source.compiling.to_code import compile_like

        name = filename or f"<decompiled {self.name}>"
        own = self.code if self.renamed is None else self.renamed.code
        code = compile_like(self.text, reference or own, name, all_locals=True)
        assert isinstance(code, CodeType)  # the running Python compiles it
        return code if self.renamed is None else self.renamed.undone(code)
