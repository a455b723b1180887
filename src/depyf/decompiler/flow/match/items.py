"""The symbolic values on the stack while a pattern is tried, beside the parts of the subject."""

from __future__ import annotations

import ast
from dataclasses import field
from typing import Callable, List, Optional, Tuple, Union

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.flow.match.parts import IsMapping, NotAPattern, Part

_LITERALS = (int, float, complex, str, bytes)


@dataclass(eq=False)
class Known:
    """A constant, a name, or a dotted name."""

    expr: ast.expr

    def is_constant(self, *kinds: type) -> bool:
        return isinstance(self.expr, ast.Constant) and type(self.expr.value) in kinds

    @property
    def constant(self) -> object:
        return self.expr.value if isinstance(self.expr, ast.Constant) else None

    @property
    def number(self) -> Optional[int]:
        """The constant, if it is an integer and not a bool; ``None`` otherwise."""
        return self.constant if type(self.constant) is int else None

    def can_be_value(self) -> bool:
        """Return whether a pattern can compare with it."""
        return isinstance(self.expr, ast.Attribute) or self.is_constant(*_LITERALS)


@dataclass(eq=False)
class Tested:
    """The result of an operation that a branch tests; ``learn`` records the fact that holds if it is true, or, of a
    ``negated`` one, if it is false."""

    learn: Callable[[], None]
    negated: bool = False


@dataclass(eq=False)
class Length:
    part: Part


@dataclass(eq=False)
class FromBack:
    """The length less ``count``."""

    part: Part
    count: int


@dataclass(eq=False)
class ExtractedParts:
    """The result of MATCH_KEYS and MATCH_CLASS, or None; unpacked into ``parts``."""

    parts: List[Part]


@dataclass(eq=False)
class Keys:
    """The tuple of the keys of a mapping pattern; also each of the keys."""

    fact: IsMapping


@dataclass(eq=False)
class Rest:
    """The copy of a mapping from which the matched keys are deleted."""

    fact: Optional[IsMapping] = None
    deleted: int = 0

    def bind(self, name: str) -> None:
        if self.fact is not None:
            self.fact.rest = name


@dataclass(eq=False)
class Shared:
    """The values that each alternative of an or-pattern captured under the same name."""

    captured: Tuple[Item, ...] = field(default_factory=tuple)

    def bind(self, name: str) -> None:
        for item in self.captured:
            if not isinstance(item, (Part, Rest, Shared)):
                raise NotAPattern("something is stored that is not captured")
            item.bind(name)


Item = Union[Part, Known, Tested, Length, FromBack, ExtractedParts, Keys, Rest, Shared]
"""The possible items of the stack."""
