"""Facts about a lifted graph: dominance, loops, regions, short exits."""

from __future__ import annotations

from typing import Any, Dict, Set

import pytest
from small_graphs import MODULE
from small_nodes import lifted

from depyf.decompiler.flow.graph import Jump, Region
from depyf.decompiler.structure.shape import Shape


def shape(text: str, **facts: Any) -> Shape:
    return Shape(*lifted(text, **facts))


DIAMOND = "a: if x -> y, n\ny: f(); -> e\nn: g(); -> e\ne: return z"
LOOP = "a: -> l\nl: if x -> b, o\nb: f(); if y -> l, o\no: return z"
TRY = """
    a in h:         f(); -> out
    h under h:      except E -> match, no
    match under h:  BIND h; POP h; -> out
    no under h:     reraise h
    out:            return z
"""


def test_order_dominators_and_predecessors() -> None:
    facts = shape(DIAMOND)
    assert facts.order == [0, 1, 2, 3]
    assert facts.dominator == {0: 0, 1: 0, 2: 0, 3: 0}
    assert sorted(facts.children[0]) == [1, 2, 3]
    assert sorted(facts.predecessors[3]) == [1, 2]
    assert facts.dominates(0, 3)
    assert facts.dominates(3, 3)
    assert not facts.dominates(1, 3)
    assert not facts.dominates(3, 0)


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        pytest.param(DIAMOND, {}, id="none"),
        pytest.param(LOOP, {1: {1, 2}}, id="one"),
        pytest.param(
            "a: -> l\nl: if x -> m, o\nm: if y -> b, c\nb: f(); -> m\nc: g(); -> l\no: return z",
            {1: {1, 2, 3, 4}, 2: {2, 3}},
            id="one in the other",
        ),
        pytest.param(
            "a: -> l\nl: for i in x -> b, o\nb: return i\no: return z", {1: {1}}, id="a for that is left at once"
        ),
        pytest.param(
            "l: g(); -> b\nb in h: f(); return z\n"
            "h under h: except E -> m, n\nm under h: BIND h; POP h; -> l\nn under h: reraise h",
            {0: {0, 1, 2, 3}},
            id="by way of a handler",
        ),
    ],
)
def test_natural_loops(text: str, loops: Dict[int, Set[int]]) -> None:
    assert shape(text).loops == loops


def test_a_jump_back_is_no_forward_predecessor() -> None:
    assert shape(LOOP).forward_predecessors(1) == [0]


def test_what_a_region_guards_and_a_handler_handles() -> None:
    facts = shape(TRY)
    region = facts.nodes[0].region
    assert region is not None
    assert facts.guarded == {region: [0]}
    assert facts.handled == {1: [1, 2, 3]}
    assert facts.dominator[1] == 0


def test_a_region_ends_with_its_mark() -> None:
    facts = shape(
        "a in h: f(); -> l\nl leaves h: -> e\nh under h: g(); reraise h\ne: return z",
    )
    region = facts.nodes[0].region
    assert region is not None
    assert facts.exits_region(1, region)
    assert not facts.exits_region(3, region)


def test_the_region_of_a_with_statement() -> None:
    facts = shape(
        """
        a:          ENTER m; -> b
        b in h:     f(); -> l
        l:          EXIT a; -> e
        h under h:  swallowed -> y, n
        y under h:  BIND h; POP h; -> e
        n under h:  reraise h
        e:          return z
        """
    )
    region = facts.nodes[1].region
    assert facts.with_region == {0: region}
    assert region is not None
    assert facts.exits_region(2, region)


@pytest.mark.parametrize(
    ("end", "code", "expected"),
    [
        ("e: return z", None, True),
        ("e: f(); return z", None, False),
        ("e leaves a: return z", None, True),  # its block shows that the ``finally`` never ends normally
        ("e leaves a: overridden", None, False),  # it is not silent
        ("e: raise z", None, False),
        ("e: return None", MODULE, False),  # there is no ``return``
    ],
)
def test_a_return_that_costs_nothing_may_be_copied(end: str, code: Any, expected: bool) -> None:
    facts = shape(f"a: if x -> e, b\nb: f(); -> e\n{end}", **({} if code is None else {"code": code}))
    assert facts.is_copyable(2) is expected


def test_a_return_behind_a_finally_that_ends_is_not_copied() -> None:
    facts = shape("a: if x -> e, b\nb: f(); -> e\ne leaves a: return z")
    facts.flow.blocks[2].term = Jump(1)
    assert not facts.is_copyable(2)


def test_the_last_end_that_a_finally_overrides_is_where_its_body_ends() -> None:
    facts = shape("a: if x -> c, b\nb leaves a: overridden\nc leaves a: overridden")
    region, inner = facts.nodes[1].leaves[0], Region(1, 0, False)
    assert facts.overridden_end([0, 1, 2], region) == max((1, 2), key=facts.index.__getitem__)
    assert facts.overridden_end([0], region) is None
    assert facts.overridden_end([0, 1, 2], inner) is None
