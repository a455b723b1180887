"""The statements inside of compound statements, found in bytecode of any version."""

from __future__ import annotations

from typing import List, Set, Tuple

from depyf.decompiler.normal.inner_statements import InnerStatements
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import NormalCode
from depyf.decompiler.normal.spine import Segment, segments

SOURCE = """a = 1
if a:
    b = f(1 if a else 2,
          3)
    for c in b:
        d = c and b
        if d:
            continue
        e = d
try:
    f()
    g = 1
except E as error:
    f(error)
else:
    h = 2
i = f(3, 4, 5)
j = f(3, 4, 6)
k = f(3, 4, 7)
"""


def lines_of(normal: NormalCode, inner: InnerStatements, segment: Segment) -> Tuple[int, ...]:
    members = inner.members(segment) or ()
    return tuple(sorted({normal.ops[index].line or 0 for index in members}))


def all_within(inner: InnerStatements, segment: Segment) -> List[Segment]:
    return [deeper for each in inner.within(segment) for deeper in [each, *all_within(inner, each)]]


def test_statements_are_found_and_parts_of_expressions_are_none() -> None:
    normal = lower(compile(SOURCE, "<module>", "exec", dont_inherit=True))
    inner = InnerStatements(normal)
    found: Set[Tuple[int, ...]] = set()
    for segment in segments(normal):
        found |= {lines_of(normal, inner, each) for each in [segment, *all_within(inner, segment)]}
    assert found >= {(1,), (3, 4), (6,), (9,), (11,), (12,), (14,), (16,)}
    assert (3,) not in found
    assert (4,) not in found


def test_a_try_statement_does_not_take_the_one_before_it() -> None:
    normal = lower(compile(SOURCE, "<module>", "exec", dont_inherit=True))
    starts = [normal.ops[segment.start].line for segment in segments(normal)]
    assert 11 in starts


def test_what_lies_in_one_segment_lies_in_no_other() -> None:
    normal = lower(compile(SOURCE, "<module>", "exec", dont_inherit=True))
    inner = InnerStatements(normal)
    for segment in segments(normal):
        taken: Set[int] = set()
        for each in inner.within(segment):
            members = inner.members(each) or frozenset()
            assert members
            assert not members & taken
            taken |= members
