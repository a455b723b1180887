"""Mutators of ``match`` statements (3.10). The classes are looked up by name, so that 3.8 can import this."""

from __future__ import annotations

import ast
from typing import Any, Iterator, List, Tuple

from mutators.places import Change, Mutator, Place, is_loud, load, same, simple_name, swap

PATTERNS: List[Mutator] = []


def mutator(function: Mutator) -> Mutator:
    PATTERNS.append(function)
    return function


def _kind(name: str) -> Tuple[Any, ...]:
    """For ``isinstance``: the class of nodes called ``name``, or nothing where this Python has none."""
    found = getattr(ast, name, None)
    return () if found is None else (found,)


@mutator
def change_cases(place: Place) -> Iterator[Change]:
    """A case dropped, two in the other order, the bodies of two exchanged, a guard dropped or negated."""
    node = place.node
    if not isinstance(node, _kind("Match")):
        return
    for at, case in enumerate(node.cases):
        if len(node.cases) > 1 and is_loud(case.body[0]):
            yield lambda at=at: node.cases.pop(at)  # type: ignore[misc]
        if case.guard is not None:
            negated = ast.UnaryOp(ast.Not(), case.guard)
            if is_loud(case.guard):
                yield lambda case=case: setattr(case, "guard", None)  # type: ignore[misc]
            yield lambda case=case, negated=negated: setattr(case, "guard", negated)  # type: ignore[misc]
    for at in range(len(node.cases) - 1):
        one, other = node.cases[at], node.cases[at + 1]
        if not same(ast.Module(one.body, []), ast.Module(other.body, [])):

            def change(one: Any = one, other: Any = other) -> None:
                one.body, other.body = other.body, one.body

            yield swap(node.cases, at, at + 1)
            yield change


@mutator
def change_alternatives(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, _kind("MatchOr")):
        for at in range(len(node.patterns)):
            if len(node.patterns) > 2:
                yield lambda at=at: node.patterns.pop(at)  # type: ignore[misc]
        for at in range(len(node.patterns) - 1):
            yield swap(node.patterns, at, at + 1)


@mutator
def change_sequence_pattern(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, _kind("MatchSequence")):
        if node.patterns:
            yield lambda: node.patterns.pop()
        for at in range(len(node.patterns) - 1):
            if not same(node.patterns[at], node.patterns[at + 1]):
                yield swap(node.patterns, at, at + 1)


@mutator
def change_mapping_pattern(place: Place) -> Iterator[Change]:
    node = place.node
    if not isinstance(node, _kind("MatchMapping")):
        return
    for at in range(len(node.keys)):

        def change(at: int = at) -> None:
            del node.keys[at], node.patterns[at]

        yield change
    for at in range(len(node.keys) - 1):
        yield swap(node.keys, at, at + 1)
    if node.rest is not None:
        yield lambda: setattr(node, "rest", None)
        yield lambda: setattr(node, "rest", simple_name(node.rest))


@mutator
def change_class_pattern(place: Place) -> Iterator[Change]:
    node = place.node
    if not isinstance(node, _kind("MatchClass")):
        return
    yield lambda: setattr(node, "cls", load("AnotherClass"))
    if node.patterns:
        yield lambda: node.patterns.pop()
    for at in range(len(node.kwd_attrs)):
        other = simple_name(node.kwd_attrs[at])
        yield lambda at=at, other=other: node.kwd_attrs.__setitem__(at, other)  # type: ignore[misc]


@mutator
def change_capture(place: Place) -> Iterator[Change]:
    """``case x`` becomes ``case _``; ``*x`` becomes ``*_``."""
    node = place.node
    if isinstance(node, (*_kind("MatchAs"), *_kind("MatchStar"))) and node.name is not None:
        yield lambda: setattr(node, "name", simple_name(node.name))
        if getattr(node, "pattern", None) is None:
            yield lambda: setattr(node, "name", None)


@mutator
def other_singleton_pattern(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, _kind("MatchSingleton")):
        yield lambda: setattr(node, "value", True if node.value is None else None)
