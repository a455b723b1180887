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
    """The only exception that a failed decompilation raises: says which code object, offset and stage."""


class Verdict(enum.Enum):
    """How far a decompilation was proved to behave as the original."""

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
    """What is known about code that a tool wrote, and can't be seen in its bytecode.

    ``droppable``: locals that the tool made for itself; they need not come back. ``stable_globals``: globals that are
    bound and stay as they are while the code runs. ``tuple_results``: those of them that return a tuple when called,
    with its length. ``parameters``: the parameter names of functions that are called by a global name; what is
    passed gets these names where it has none.
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
    """One code object, decompiled.

    ``tree`` is the module that ``source`` parses to. For a function the module holds that one function definition, and
    the ``from __future__`` import without which it would compile to something else. It is compiled where the original
    stands: free variables are bound around it, as ``super()`` needs it in a class.
    ``placeholders`` are the names in it that represent what no text can say; see ``Verdict.PLACEHOLDERS``.
    ``text`` is what ``compile_like`` compiles, and has the mode of ``compile`` for it: ``eval`` takes an expression,
    and what is typed at a prompt is shown.
    ``missing`` are the qualified names of functions and classes in a module or class that could not be decompiled, and
    the lines of statements (``lines 3 to 5 of C``): the source has stubs in their place, and statements, that raise
    ``NotImplementedError``, and the verdict is ``UNVERIFIED``.
    ``assumptions`` are what the proof takes for granted beyond what holds for all code, one sentence each: the hints
    that it needs, of a tool's code. Empty where the source is proved without them.
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
