"""The facts about one value that a pattern tests, and the ``ast`` pattern for them.

The node classes of patterns exist since Python 3.10, so they are looked up when a pattern is made.
"""

from __future__ import annotations

import ast
from dataclasses import field
from typing import Dict, List, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import dataclass


class NotAPattern(Exception):
    """Raised when bytecode is not what the compiler emits for a pattern."""


def _node(kind: str, **fields: object) -> ast.pattern:
    node: ast.pattern = getattr(ast, kind)(**fields)
    return node


def wildcard() -> ast.pattern:
    """Return the pattern ``_``."""
    return _node("MatchAs", pattern=None, name=None)


@dataclass(eq=False)
class Part:
    """The subject, or a value extracted from it. ``names``: the names it is captured as, in order."""

    fact: Optional[Fact] = None
    names: List[str] = field(default_factory=list)

    def learn(self, fact: Fact) -> None:
        if self.fact is not None:
            raise NotAPattern("two patterns are tried on the same value")
        self.fact = fact

    def bind(self, name: str) -> None:
        self.names.append(name)

    def pattern(self) -> ast.pattern:
        """Return the ``ast`` pattern for this value."""
        names = list(self.names)
        if self.fact is not None:
            pattern = self.fact.pattern()
        else:
            pattern = _node("MatchAs", pattern=None, name=names.pop(0)) if names else wildcard()
        for name in names:
            pattern = _node("MatchAs", pattern=pattern, name=name)
        return pattern

    def star(self) -> ast.pattern:
        """Return the pattern ``*name``. Raises ``NotAPattern`` if there are other facts."""
        if self.fact is not None or len(self.names) > 1:
            raise NotAPattern("a starred part is tested")
        return _node("MatchStar", name=self.names[0] if self.names else None)


class Fact:
    """A condition on a value."""

    def pattern(self) -> ast.pattern:
        raise NotImplementedError


@dataclass(eq=False)
class Equals(Fact):
    """``== value``: a literal or a dotted name."""

    value: ast.expr

    def pattern(self) -> ast.pattern:
        return _node("MatchValue", value=literal(self.value))


@dataclass(eq=False)
class IsSingleton(Fact):
    value: object

    def pattern(self) -> ast.pattern:
        return _node("MatchSingleton", value=self.value)


@dataclass(eq=False)
class Either(Fact):
    alternatives: List[Part]

    def pattern(self) -> ast.pattern:
        return _node("MatchOr", patterns=[part.pattern() for part in self.alternatives])


@dataclass(eq=False)
class IsSequence(Fact):
    """``length``: the tested length. The elements come from an unpacking (``elements``, the starred one at ``star``),
    or, if they are not wildcards, from single reads at the ``front`` and at the ``back``."""

    length: Optional[Tuple[str, int]] = None
    elements: Optional[List[Part]] = None
    star: Optional[int] = None
    front: Dict[int, Part] = field(default_factory=dict)
    back: Dict[int, Part] = field(default_factory=dict)

    def pattern(self) -> ast.pattern:
        if self.elements is None:
            return _node("MatchSequence", patterns=self._picked())
        self._check_length(len(self.elements))
        patterns = [part.star() if at == self.star else part.pattern() for at, part in enumerate(self.elements)]
        return _node("MatchSequence", patterns=patterns)

    def _check_length(self, count: int) -> None:
        if self.star is None:
            expected: Optional[Tuple[str, int]] = ("==", count)
        else:
            expected = (">=", count - 1) if count > 1 else None
        if self.length != expected:
            raise NotAPattern("the length that is tested is not the number of values that are unpacked")

    def _picked(self) -> List[ast.pattern]:
        """Return the patterns of elements that were read one by one; all others are wildcards, or a star."""
        operator, count = self.length if self.length is not None else (">=", 0)
        result = [wildcard() for _ in range(count)]
        star = max(self.front) + 1 if self.front else 0 if self.back else count
        if star + max(self.back, default=0) > count or (self.length is None and (self.front or self.back)):
            raise NotAPattern("more elements are looked at than were counted")
        for index, part in self.front.items():
            result[index] = part.pattern()
        for index, part in self.back.items():
            result[count - index] = part.pattern()
        if operator == ">=":
            result.insert(star, _node("MatchStar", name=None))
        elif self.front or self.back:
            raise NotAPattern("elements are looked at one by one without a star")
        return result


@dataclass(eq=False)
class IsMapping(Fact):
    count: Optional[int] = None
    keys: List[ast.expr] = field(default_factory=list)
    values: List[Part] = field(default_factory=list)
    rest: Optional[str] = None

    def pattern(self) -> ast.pattern:
        if (self.count or 0) != len(self.keys):
            raise NotAPattern("the length that is tested is not the number of keys")
        return _node(
            "MatchMapping",
            keys=[literal(key) for key in self.keys],
            patterns=[value.pattern() for value in self.values],
            rest=self.rest,
        )


@dataclass(eq=False)
class IsInstance(Fact):
    cls: ast.expr
    positional: int
    names: Sequence[str]
    attributes: List[Part] = field(default_factory=list)

    def pattern(self) -> ast.pattern:
        patterns = [part.pattern() for part in self.attributes]
        return _node(
            "MatchClass",
            cls=self.cls,
            patterns=patterns[: self.positional],
            kwd_attrs=list(self.names),
            kwd_patterns=patterns[self.positional :],
        )


def literal(expr: ast.expr) -> ast.expr:
    """Return ``expr`` in the form that patterns allow: a complex number is a sum."""
    value = expr.value if isinstance(expr, ast.Constant) else None
    if not isinstance(value, complex) or (value.real == 0 and str(value.real) == "0.0"):
        return expr
    imaginary = ast.Constant(complex(0, abs(value.imag)))
    negative = str(value.imag).startswith("-")
    return ast.BinOp(ast.Constant(value.real), ast.Sub() if negative else ast.Add(), imaginary)
