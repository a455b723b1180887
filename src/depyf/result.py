"""What a decompilation answers: source, tree, verdict, the map between lines and bytecode."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, FrozenSet, Mapping, Optional, Tuple

if TYPE_CHECKING:
    from depyf.bytecode.code import Code
    from depyf.source.source_text import SourceText


class DecompilationError(Exception):
    """The only exception that a failed decompilation raises: says which code object, offset and stage."""


class Verdict(enum.Enum):
    """How far a decompilation was proved to behave as the original."""

    EXACT = "exact"
    """Recompiled, it has the same normalised bytecode."""
    EQUIVALENT = "equivalent"
    """Comparing both flow graphs proved that it behaves the same."""
    UNVERIFIED = "unverified"
    """It could not be decided; the reason says why."""

    @property
    def proved(self) -> bool:
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


@dataclass(frozen=True)
class LineMap:
    """Which lines (1-based) of the source come from which byte offsets of the original bytecode, and back."""

    offsets: Mapping[int, Tuple[int, ...]]
    lines: Mapping[int, int]


@dataclass(frozen=True)
class Decompilation:
    """One code object, decompiled.

    ``tree`` is the module that ``source`` parses to. For a function the module holds that one function definition.
    ``text`` adds what the source alone does not hold: constants without literal, names that can't be written.
    ``missing`` are the qualified names of functions in a module or class that could not be decompiled: the source has
    functions in their place that raise ``NotImplementedError``, and the verdict is ``UNVERIFIED``.
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

    def compile_like(self, reference: Optional[Code] = None, filename: Optional[str] = None) -> CodeType:
        """A code object of this source that can stand in for ``reference`` (default: the original).

        It has ``reference``'s name, signature, free variables and cell variables in the same order, its local variables
        (PyTorch 2.2 copies frames by name and needs them all), its constants that have no literal are the original
        objects, and its lines are those of ``source`` in file ``filename``. Raises ``DecompilationError`` when that
        can't be had.
        """
        from depyf.source.compiling import compile_like

        name = filename or f"<decompiled {self.name}>"
        return compile_like(self.text, reference or self.code, name, all_locals=True)
