"""What a decompilation answers: source, tree, verdict, the map between lines and bytecode."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, FrozenSet, Iterable, List, Mapping, Optional, Tuple

if TYPE_CHECKING:
    from depyf.bytecode.code import Code
    from depyf.source.compiling.placeholders import Placeholder
    from depyf.source.source_text import SourceText


class DecompilationError(Exception):
    """The only exception that a failed decompilation raises. It names the code object, the offset and the stage."""


class Verdict(enum.Enum):
    """How far a decompilation is proved to behave like the original."""

    EXACT = "exact"
    """Recompiled, it has the same normalised bytecode."""
    EQUIVALENT = "equivalent"
    """Comparing both flow graphs proved that it behaves the same."""
    PLACEHOLDERS = "placeholders"
    """Proved for what ``compile_like`` compiles, and not for the text alone: it has names in the place of what no text
    can say, such as constants without a literal. ``Decompilation.placeholders`` and the comment at the head of the
    text list what they represent."""
    UNVERIFIED = "unverified"
    """It could not be decided; the reason says why."""

    @property
    def proved(self) -> bool:
        """Whether the text by itself, compiled where the original stands, is proved to behave as the original."""
        return self in (Verdict.EXACT, Verdict.EQUIVALENT)

    @property
    def code_proved(self) -> bool:
        """Whether what ``Decompilation.compile_like`` compiles is proved to behave as the original: that has the
        constants and names that the text has placeholders for."""
        return self is not Verdict.UNVERIFIED


@dataclass(frozen=True)
class Hints:
    """Facts about code that a tool wrote, which its bytecode does not show.

    ``droppable``: local variables that the tool made for itself; the source may lack them. ``stable_globals``: globals
    that are bound and keep their values while the code runs. ``tuple_results``: those of them that return a tuple when
    they are called, with its length. ``parameters``: the parameter names of functions that are called by a global name;
    values that are passed to them get these names where they have none.
    """

    droppable: FrozenSet[str] = frozenset()
    stable_globals: FrozenSet[str] = frozenset()
    tuple_results: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)

    def assumptions(self) -> Tuple[str, ...]:
        """Return what a proof with these hints takes for granted of the code, one sentence for each kind of hint."""
        texts: List[str] = []
        if self.stable_globals:
            texts.append(f"nothing binds or deletes {_listed(self.stable_globals)} while the code runs")
        if self.tuple_results:
            texts.append(f"tuples are what {_listed(self.tuple_results)} return")
        if self.droppable:
            texts.append(f"nobody sees the variables {_listed(self.droppable)}, or when their values are dropped")
        return tuple(texts) or ("no function takes its docstring from the code",)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


@dataclass(frozen=True)
class LineMap:
    """Which lines (1-based) of the source come from which byte offsets of the original bytecode, and back."""

    offsets: Mapping[int, Tuple[int, ...]]
    lines: Mapping[int, int]


@dataclass(frozen=True)
class Decompilation:
    """The source of one code object, with its verdict.

    ``tree`` is the module that ``source`` parses to. For a function the module has that one function definition, and
    the ``from __future__`` import that it needs to compile to the same code. It is compiled in the surroundings of the
    original: with its free variables, and in a class where ``super()`` needs one.

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
    tree: ast.Module
    verdict: Verdict
    reason: str
    line_map: LineMap
    text: SourceText
    missing: Tuple[str, ...] = ()
    placeholders: Tuple[Placeholder, ...] = ()
    assumptions: Tuple[str, ...] = ()

    def verdict_line(self) -> str:
        """Return the verdict with its reason and assumptions, for a line of output."""
        parts = [self.reason, *(f"assumed that {each}" for each in self.assumptions)]
        details = " ".join("; ".join(filter(None, parts)).split())
        return f"{self.verdict.value}{details and f': {details}'}"

    def compile_like(self, reference: Optional[Code] = None, filename: Optional[str] = None) -> CodeType:
        """A code object of this source that can stand in for ``reference`` (default: the original).

        It has ``reference``'s name, signature, free variables and cell variables in the same order, its local variables
        (PyTorch 2.2 copies frames by name and needs them all), its constants that have no literal are the original
        objects, and its lines are those of ``source`` in file ``filename``. Raises ``DecompilationError`` when that
        can't be had.
        """
        from depyf.source.compiling.to_code import compile_like

        name = filename or f"<decompiled {self.name}>"
        return compile_like(self.text, reference or self.code, name, all_locals=True)
