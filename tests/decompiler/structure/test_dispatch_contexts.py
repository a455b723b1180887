"""The statements that enclose each node."""

from __future__ import annotations

from typing import List

import pytest
from small_nodes import lifted

from depyf.decompiler.lift.items import Mark, Marker
from depyf.decompiler.structure.dispatch.contexts import Context, Contexts, Kind, common, with_bodies
from depyf.decompiler.structure.unstructured import Unstructured

NESTED = """
    a in i:             f(); -> out
    i in h under i:     except E -> m, no
    m in h under i:     BIND i; g(); POP i; -> out
    no in h under i:    reraise i
    h under h:          BIND h; k(); POP h; -> out
    out:                u(); return z
"""


def paths(text: str) -> List[str]:
    return ["/".join(map(repr, path)) for path in Contexts(*lifted(text)).paths.values()]


def test_paths_are_outermost_first() -> None:
    assert paths(NESTED) == [
        "try@4/try@1",
        "try@4/handler@1",
        "try@4/handler@1",
        "try@4/handler@1",
        "handler@4",
        "",
    ]


def test_what_stands_directly_in_a_context() -> None:
    contexts = Contexts(*lifted(NESTED))
    assert contexts.path_of(Context(Kind.TRY, 1)) == (Context(Kind.TRY, 4), Context(Kind.TRY, 1))
    assert contexts.path_of(Context(Kind.HANDLER, 1)) == (Context(Kind.TRY, 4), Context(Kind.HANDLER, 1))
    assert contexts.path_of(Context(Kind.HANDLER, 4)) == (Context(Kind.HANDLER, 4),)


def test_an_iterator_on_the_stack_says_that_a_node_lies_in_a_loop() -> None:
    graph, flow = lifted("a: -> l\nl: for i in x -> b, o\nb: f(); -> l\no: return z")
    for id in (1, 2):
        graph.nodes[id].base.append(Marker(Mark.ITER, 1))
    assert Contexts(graph, flow).paths == {0: (), 1: (), 2: (Context(Kind.FOR, 1),), 3: ()}


def test_contexts_that_overlap_are_refused() -> None:
    """The handler of one region lies in the other, and yet some code is guarded by the first one alone."""
    graph, flow = lifted(NESTED)
    graph.nodes[2].region = None
    with pytest.raises(Unstructured, match="not in all contexts around"):
        Contexts(graph, flow)


def test_with_and_finally_are_told_by_their_handlers() -> None:
    text = "a: ENTER m; -> b\nb in h: f(); -> l\nl: EXIT a; -> e\nh under h: swallowed -> y, n\n"
    text += "y under h: BIND h; POP h; -> e\nn under h: reraise h\ne: return z"
    contexts = Contexts(*lifted(text))
    assert contexts.with_context(0) == Context(Kind.TRY, 3)
    assert contexts.is_with(Context(Kind.TRY, 3))
    text = "a in h: f(); -> l\nl leaves h: -> e\nh under h: g(); reraise h\ne: return z"
    assert Contexts(*lifted(text, ["h"])).is_finally(Context(Kind.HANDLER, 2))
    assert not Contexts(*lifted(text)).is_finally(Context(Kind.HANDLER, 2))


def test_common_contexts() -> None:
    a, b, c = Context(Kind.TRY, 1), Context(Kind.HANDLER, 2), Context(Kind.FOR, 3)
    assert common((a, b), (a, c)) == (a,)
    assert common((a, b), (a, b, c)) == (a, b)
    assert common((b,), (a, b)) == ()


def test_a_region_that_is_left_without_having_been_entered_gets_a_body() -> None:
    text = "a: f(); -> l\nl leaves h: -> e\nh under h: g(); reraise h\nb in h: u(); -> l\ne: return z"
    graph, flow = lifted(text, ["h"])
    bodies = with_bodies(graph, flow)
    (fresh,) = set(bodies.nodes) - set(graph.nodes)
    assert bodies.nodes[0].successors() == (fresh,)
    assert bodies.nodes[fresh].successors() == (1,)
    assert bodies.nodes[fresh].region == graph.nodes[3].region
    assert bodies.nodes[3].successors() == (1,)  # it was in the region
    assert graph.nodes[0].successors() == (1,)  # the graph that was given stays
