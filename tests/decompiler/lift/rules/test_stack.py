"""Copies and swaps: several targets, tuples that are never built, chained comparisons."""

from __future__ import annotations

import pytest
from small_nodes import lifts, nodes


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("LOAD x; LOAD y; SWAP 2; STORE a; STORE b", "a, b = x, y"),
        ("LOAD x; LOAD y; STORE b; STORE a", "a, b = x, y"),
        ("f(); g(); h(); SWAP 3; STORE a; STORE b; STORE c", "a, b, c = f(), g(), h()"),
        ("LOAD x; LOAD y; SWAP 2; LOAD o; STORE_ATTR p; LOAD o; CONST 0; STORE_SUBSCR", "o.p, o[0] = x, y"),
        ("LOAD x; LOAD y; SWAP 2; UNPACK 2; STORE a; STORE b; STORE c", "(a, b), c = x, y"),
    ],
)
def test_a_tuple_of_values_is_stored_without_being_built(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; CONST None; RETURN") == nodes(f"a: {expected}; return None")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        pytest.param("LOAD x; STORE a; LOAD y; STORE b", "a = x; b = y", id="one behind the other"),
        pytest.param("LOAD x; LOAD y; STORE a; STORE global.b", "a = y; b = x", id="no variables both"),
        pytest.param(
            "LOAD x; LOAD y; SWAP 2; STORE a; f(); POP; STORE b", "a = x; f(); b = y", id="something else between"
        ),
        pytest.param(
            "f(); g(); h(); SWAP 3; STORE a; POP; POP",
            "__temp_0 = f(); __temp_1 = g(); __temp_2 = h(); a = __temp_0",
            id="one of three",
        ),
    ],
)
def test_what_only_looks_like_it_is_stored_one_by_one(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; CONST None; RETURN") == nodes(f"a: {expected}; return None")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("f(); COPY 1; STORE a; COPY 1; STORE b; STORE c", "a = b = c = f()"),
        ("LOAD x; COPY 1; STORE a; STORE b", "a = b = x"),
        ("f(); COPY 1; LOAD o; STORE_ATTR p; STORE b", "o.p = b = f()"),
        ("f(); COPY 1; STORE a; LOAD o; STORE_ATTR p", "a = o.p = f()"),
    ],
)
def test_one_value_has_several_targets(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; CONST None; RETURN") == nodes(f"a: {expected}; return None")


CHAIN = """
    a:      LOAD x; f(); SWAP 2; COPY 2; COMPARE <; false -> out, last
    last:   LOAD z; COMPARE <; false -> no, yes
    out:    POP; -> no
    yes:    g(); RETURN
    no:     CONST None; RETURN
"""


def test_a_value_between_two_comparisons_is_evaluated_once() -> None:
    assert lifts(CHAIN) == nodes("a: if x < f() < z -> yes, no\nyes: return g()\nno: return None")


def test_two_comparisons_of_one_value_with_something_between_are_no_chain() -> None:
    apart = nodes(
        """
        a:      __temp_0 = f(); if x < __temp_0 -> last, out
        last:   g(); if __temp_0 < z -> yes, no
        yes:    return g()
        no:     return None
        out:    -> no
        """
    )
    assert lifts(CHAIN.replace("last:   LOAD z", "last:   g(); POP; LOAD z")) == apart
