"""Generators, exceptions, ``with``."""

from __future__ import annotations

import pytest
from small_nodes import lifts, nodes


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("f(); YIELD; POP; CONST None; RETURN", "(yield f()); return None"),
        ("CONST None; YIELD; RETURN", "return (yield)"),
        ("f(); YIELD_FROM_ITER; CONST None; YIELD_FROM; RETURN", "return (yield from f())"),
        ("f(); AWAITABLE 0; CONST None; YIELD_FROM; RETURN", "return await f()"),
        ("f(); RAISE 1", "raise f()"),
    ],
)
def test_generators_and_raise(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}") == nodes(f"a: {expected}")


def test_a_handler_tests_binds_and_leaves_the_exception() -> None:
    handled = lifts(
        """
        body in h:  f(); POP; -> out
        h:          PUSH_EXC; LOAD global.E; CHECK_EXC; false -> no, match
        match:      STORE e; g(); POP; POP_EXC; -> out
        no:         RERAISE
        out:        CONST None; RETURN
        """
    )
    expected = nodes(
        """
        body in h:      f(); -> out
        h under h:      except E -> match, no
        match under h:  BIND h e; g(); POP h; -> out
        no under h:     reraise h
        out:            return None
        """
    )
    assert handled == expected


def test_what_follows_the_handler_in_one_block_is_no_longer_under_it() -> None:
    handled = lifts(
        """
        body in h:  f(); POP; -> out
        h:          PUSH_EXC; POP; POP_EXC; g(); POP; -> out
        out:        CONST None; RETURN
        """
    )
    expected = nodes(
        """
        body in h:      f(); -> out
        h under h:      BIND h; POP h; -> rest
        rest:           g(); -> out
        out:            return None
        """
    )
    assert handled == expected


def test_a_with_statement_is_entered_and_left() -> None:
    entered = lifts(
        """
        a:          f(); WITH; -> body
        body in h/1+: STORE x; g(); POP; -> leave
        leave:      CONST None; CONST None; CONST None; CALL 3; POP; -> out
        h:          PUSH_EXC; WITH_EXCEPT; true -> yes, no
        yes:        POP; POP_EXC; POP; POP; -> out
        no:         RERAISE
        out:        CONST None; RETURN
        """
    )
    expected = nodes(
        """
        a:              ENTER f() as x; -> body
        body in h/1+:    g(); -> leave
        leave:          EXIT a; -> out
        h under h:      swallowed -> yes, no
        yes under h:    BIND h; POP h; -> out
        no under h:     reraise h
        out:            return None
        """
    )
    assert entered == expected
