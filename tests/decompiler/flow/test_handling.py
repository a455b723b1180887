"""Which exceptions are being handled where a block starts."""

from __future__ import annotations

from small_graphs import flow

from depyf.decompiler.flow.handling import handling


def test_a_handler_handles_from_its_first_operation_to_pop_exc() -> None:
    graph = flow(
        """
        a in h:     f(); RETURN
        h:          PUSH_EXC; f(); false -> no, yes
        yes:        POP; POP_EXC; -> behind
        no:         RERAISE
        behind:     CONST None; RETURN
        """
    )
    assert handling(graph) == {0: (), 1: (), 2: (1,), 3: (1,), 4: ()}


def test_handlers_in_handlers_are_outermost_first() -> None:
    graph = flow(
        """
        a in h:     f(); RETURN
        h:          PUSH_EXC; POP; -> b
        b in i/1:   f(); POP; POP_EXC; RETURN
        i:          PUSH_EXC; -> c
        c:          RERAISE
        """
    )
    assert handling(graph) == {0: (), 1: (), 2: (1,), 3: (1,), 4: (1, 3)}


def test_what_cannot_be_reached_is_not_there() -> None:
    assert handling(flow("a: f(); RETURN\nb: f(); RETURN")) == {0: ()}
