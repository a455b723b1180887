"""The result of a comparison of two code objects."""

from __future__ import annotations

import enum
from dataclasses import field
from functools import cached_property
from typing import Callable, FrozenSet, Iterable, Iterator, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.normal.ops import byte_offset

OffsetPair = Tuple[int, int]
Matched = Callable[[], Iterable[OffsetPair]]
Overdue = Tuple[str, int]


class Finding(enum.Enum):
    """How two code objects relate."""

    EXACT = "exact"
    """The same operations, tables and constants."""
    EQUIVALENT = "equivalent"
    """Proved to behave the same."""
    UNVERIFIED = "unverified"
    """Neither a proof nor a certain difference was found."""
    DIFFERENT = "different"
    """There is a path on which they behave differently."""

    @property
    def proved(self) -> bool:
        return self in (Finding.EXACT, Finding.EQUIVALENT)


@dataclass(frozen=True)
class Comparison:
    """The finding for a pair of code objects, their nested ones included.

    ``reason`` is empty when the finding is a proof. ``matched`` returns the offsets (original, candidate) of operations
    that correspond. ``original_name`` is the qualified name of the original code object, ``original_id`` its ``id``
    (several may have one name), ``candidate_id`` the ``id`` of the candidate. If lifetimes are in doubt, ``overdue``
    lists which local variables of the candidate still hold what the original has released, and where: (name, offset in
    the candidate), sorted. ``changes`` are those of the compiler that the comparison of two versions needed
    (``normal/compiler_changes.py``).
    """

    finding: Finding
    reason: str
    matched: Matched = field(repr=False, compare=False)
    children: Tuple[Comparison, ...]
    original_name: str
    original_id: int = 0
    candidate_id: int = 0
    overdue: Tuple[Overdue, ...] = ()
    changes: FrozenSet[str] = frozenset()

    @cached_property
    def pairs(self) -> Tuple[OffsetPair, ...]:
        """The bytecode offsets (original, candidate) of operations that correspond, sorted; for nested code objects see
        ``children``."""
        return tuple(sorted({(byte_offset(mine), byte_offset(theirs)) for mine, theirs in self.matched()}))

    @property
    def proved(self) -> bool:
        return self.finding.proved

    def walk(self) -> Iterator[Comparison]:
        """Yield this comparison and all nested ones."""
        yield self
        for child in self.children:
            yield from child.walk()

    def culprits(self) -> Iterator[Comparison]:
        """Yield the innermost comparisons that are not proved; they are why the enclosing ones fail."""
        for part in self.walk():
            if not part.proved and all(child.proved for child in part.children):
                yield part


class MismatchError(Exception):
    """Raised inside the product when the proof fails, with the finding and the reason."""

    def __init__(self, finding: Finding, reason: str, overdue: FrozenSet[Overdue] = frozenset()) -> None:
        super().__init__(reason)
        self.finding = finding
        self.reason = reason
        self.overdue = overdue
