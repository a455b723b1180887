"""Copies of ``finally`` bodies are replaced by blocks that record the region they leave; other blocks are not."""

from __future__ import annotations

from typing import List, Tuple

import pytest
from small_graphs import flow, shown

from depyf.decompiler.flow.finally_copies import join_finally_copies


def joined(text: str) -> List[str]:
    graph = flow(text)
    join_finally_copies(graph)
    return shown(graph)


PLAIN = """
    body in h:      a(); POP; -> copy
    copy:           b(); POP; -> after
    h:              PUSH_EXC; b(); POP; RERAISE
    after:          c(); RETURN
"""

JOINED: List[Tuple[str, str, str]] = [
    (
        "one way out",
        PLAIN,
        """
        body in h:      a(); POP; -> left
        left leaves h:  -> after
        h:              PUSH_EXC; b(); POP; RERAISE
        after:          c(); RETURN
        """,
    ),
    (
        "what follows stands in the same block",
        """
        body in h:      a(); POP; -> copy
        copy:           b(); POP; c(); RETURN
        h:              PUSH_EXC; b(); POP; RERAISE
        """,
        """
        body in h:      a(); POP; -> left
        left leaves h:  -> after
        h:              PUSH_EXC; b(); POP; RERAISE
        after:          c(); RETURN
        """,
    ),
    (
        "a value waits to be returned",
        """
        body in h:      a(); -> copy
        copy:           b(); POP; RETURN
        h:              PUSH_EXC; b(); POP; RERAISE
        """,
        """
        body in h:      a(); -> left
        left leaves h:  -> after
        h:              PUSH_EXC; b(); POP; RERAISE
        after:          RETURN
        """,
    ),
    (
        "two ways out",
        """
        body in h:      a(); false -> second, first
        first:          b(); POP; c(); RETURN
        second:         b(); POP; d(); RETURN
        h:              PUSH_EXC; b(); POP; RERAISE
        """,
        """
        body in h:      a(); false -> two, one
        one leaves h:   -> c
        c:              c(); RETURN
        two leaves h:   -> d
        d:              d(); RETURN
        h:              PUSH_EXC; b(); POP; RERAISE
        """,
    ),
    (
        "the body branches, in one copy the other way round",
        """
        body in h:      a(); POP; -> copy
        copy:           b(); true -> yes, after
        yes:            c(); POP; -> after
        h:              PUSH_EXC; b(); false -> out, in
        in:             c(); POP; -> out
        out:            RERAISE
        after:          d(); RETURN
        """,
        """
        body in h:      a(); POP; -> left
        left leaves h:  -> after
        h:              PUSH_EXC; b(); false -> out, in
        in:             c(); POP; -> out
        out:            RERAISE
        after:          d(); RETURN
        """,
    ),
    (
        "the body returns, and nothing goes on behind it",
        """
        body in h:      a(); POP; -> copy
        copy:           b(); RETURN
        h:              PUSH_EXC; b(); SWAP 2; POP; SWAP 2; POP_EXC; RETURN
        """,
        """
        body in h:      a(); POP; -> left
        left leaves h:
        h:              PUSH_EXC; b(); SWAP 2; POP; SWAP 2; POP_EXC; RETURN
        """,
    ),
    (
        "the body returns in place of a value that waits",
        """
        body in h:      a(); -> copy
        copy:           b(); SWAP 2; POP; RETURN
        h:              PUSH_EXC; b(); SWAP 2; POP; SWAP 2; POP_EXC; RETURN
        """,
        """
        body in h:      a(); -> left
        left leaves h:
        h:              PUSH_EXC; b(); SWAP 2; POP; SWAP 2; POP_EXC; RETURN
        """,
    ),
    (
        "the body has handlers of its own",
        """
        body in h:          a(); POP; -> copy
        copy in caught:     b(); POP; -> after
        caught:             PUSH_EXC; POP; POP_EXC; -> after
        h:                  PUSH_EXC; -> in
        in in inner/2:      b(); POP; -> out
        inner:              PUSH_EXC; POP; POP_EXC; -> out
        out:                RERAISE
        after:              c(); RETURN
        """,
        """
        body in h:          a(); POP; -> left
        left leaves h:      -> after
        h:                  PUSH_EXC; -> in
        in in inner/2:      b(); POP; -> out
        inner:              PUSH_EXC; POP; POP_EXC; -> out
        out:                RERAISE
        after:              c(); RETURN
        """,
    ),
    (
        "the region around it guards the copy, too",
        """
        body in h:      a(); POP; -> copy
        copy in g:      b(); POP; -> after
        h in g:         PUSH_EXC; b(); POP; RERAISE
        g:              PUSH_EXC; POP; POP_EXC; -> after
        after:          c(); RETURN
        """,
        """
        body in h:          a(); POP; -> left
        left in g leaves h: -> after
        h in g:             PUSH_EXC; b(); POP; RERAISE
        g:                  PUSH_EXC; POP; POP_EXC; -> after
        after:              c(); RETURN
        """,
    ),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in JOINED], ids=[case[0] for case in JOINED])
def test_a_copy_says_that_the_region_is_left(text: str, expected: str) -> None:
    assert joined(text) == shown(flow(expected))


def test_the_region_is_known_as_one_of_finally() -> None:
    graph = flow(PLAIN)
    join_finally_copies(graph)
    assert graph.finally_regions == {graph.blocks[0].region}


def test_a_body_in_a_body_is_joined_first() -> None:
    nested = """
        body in h:          a(); POP; -> try
        try in c1:          b(); POP; -> fin1
        fin1:               c(); POP; -> after
        c1:                 PUSH_EXC; c(); POP; RERAISE
        h:                  PUSH_EXC; -> in
        in in c2/2:         b(); POP; -> fin2
        fin2:               c(); POP; -> out
        c2:                 PUSH_EXC; c(); POP; RERAISE
        out:                RERAISE
        after:              d(); RETURN
    """
    expected = """
        body in h:          a(); POP; -> left
        left leaves h:      -> after
        h:                  PUSH_EXC; -> in
        in in c2/2:         b(); POP; -> fin
        fin leaves c2/2:    -> out
        c2:                 PUSH_EXC; c(); POP; RERAISE
        out:                RERAISE
        after:              d(); RETURN
    """
    assert joined(nested) == shown(flow(expected))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(PLAIN.replace("b(); POP; -> after", "d(); POP; -> after"), id="does something else"),
        pytest.param(PLAIN.replace("b(); POP; -> after", "-> after"), id="does nothing"),
        pytest.param(PLAIN.replace("b(); POP; -> after", "b(); -> after"), id="drops no value"),
        pytest.param(PLAIN.replace("PUSH_EXC; b();", "b();"), id="the handler keeps no exception"),
        pytest.param(PLAIN.replace("PUSH_EXC; b();", "PUSH_EXC; POP; b();"), id="except without a type"),
        pytest.param(PLAIN.replace("PUSH_EXC; b();", "PUSH_EXC; WITH_EXCEPT; POP; b();"), id="the handler of a with"),
        pytest.param(
            PLAIN.replace("PUSH_EXC; b(); POP; RERAISE", "PUSH_EXC; b(); CHECK_EXC; POP; RERAISE"), id="except b()"
        ),
        pytest.param(
            PLAIN.replace("a(); POP; -> copy", "a(); false -> copy, after"), id="one of two ways out is no copy"
        ),
        pytest.param(
            PLAIN.replace("copy: ", "copy in g:") + "g: PUSH_EXC; POP; POP_EXC; -> after", id="guarded otherwise"
        ),
        pytest.param(
            """
            body in h:      a(); POP; -> copy
            copy:           b(); true -> yes, after
            yes:            c(); POP; -> other
            h:              PUSH_EXC; b(); false -> out, in
            in:             c(); POP; -> out
            out:            RERAISE
            after:          d(); RETURN
            other:          e(); RETURN
            """,
            id="goes on at two places",
        ),
        pytest.param(
            """
            body in h:      a(); POP; -> copy
            copy:           b(); false -> yes, after
            yes:            c(); POP; -> after
            h:              PUSH_EXC; b(); false -> out, in
            in:             c(); POP; -> out
            out:            RERAISE
            after:          d(); RETURN
            """,
            id="does it in the other case",
        ),
        pytest.param(
            """
            body in h:      a(); POP; -> copy
            copy:           b(); none -> after, yes
            yes:            c(); POP; -> after
            h:              PUSH_EXC; b(); true -> out, in
            in:             c(); POP; -> out
            out:            RERAISE
            after:          d(); RETURN
            """,
            id="tests for None",
        ),
    ],
)
def test_what_only_looks_like_a_finally_body_stays(other: str) -> None:
    assert joined(other) == shown(flow(other))


def test_copies_of_one_short_way_out_are_one_place_to_go_on() -> None:
    text = """
        body in h:      a(); POP; -> copy
        copy:           b(); true -> yes, no
        yes:            c(); POP; LOAD x; RETURN
        no:             LOAD x; RETURN
        h:              PUSH_EXC; b(); false -> out, in
        in:             c(); POP; -> out
        out:            RERAISE
    """
    expected = """
        body in h:      a(); POP; -> left
        left leaves h:  -> no
        no:             LOAD x; RETURN
        h:              PUSH_EXC; b(); false -> out, in
        in:             c(); POP; -> out
        out:            RERAISE
    """
    assert joined(text) == shown(flow(expected))
    other = text.replace("no:             LOAD x", "no:             LOAD y")
    assert joined(other) == shown(flow(other))
