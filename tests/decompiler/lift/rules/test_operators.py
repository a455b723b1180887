"""Operators, comparisons, subscripts, attributes; augmented assignment."""

from __future__ import annotations

import pytest
from small_nodes import lifts, nodes


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("LOAD x; UNARY -", "-x"),
        ("LOAD x; UNARY not", "not x"),
        ("LOAD x; LOAD y; BINARY @", "x @ y"),
        ("LOAD x; LOAD y; COMPARE <=", "x <= y"),
        ("LOAD x; LOAD y; IN", "x in y"),
        ("LOAD x; LOAD y; IN True", "x not in y"),
        ("LOAD x; LOAD y; IS", "x is y"),
        ("LOAD x; LOAD y; IS True", "x is not y"),
        ("LOAD x; ATTR y", "x.y"),
        ("LOAD x; LOAD y; SUBSCR", "x[y]"),
        ("LOAD x; LOAD y; LOAD z; BUILD slice 2; SUBSCR", "x[y:z]"),
        ("LOAD x; CONST None; LOAD z; BUILD slice 2; SUBSCR", "x[:z]"),
        ("LOAD x; LOAD y; LOAD z; LOAD w; BUILD slice 3; SUBSCR", "x[y:z:w]"),
        ("LOAD global.super; LOAD C; LOAD self; SUPER_ATTR ('m',False)", "super().m"),
        ("LOAD global.super; LOAD C; LOAD self; SUPER_ATTR ('m',True)", "super(C, self).m"),
        ("CONST ''; CONST ''; BINARY +", "f'' + f''"),  # two constants would have been folded
    ],
)
def test_an_operation_is_an_expression(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; RETURN") == nodes(f"a: return {expected}")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("LOAD x; LOAD y; INPLACE +; STORE x", "x += y"),
        ("LOAD global.x; LOAD y; INPLACE +; STORE global.x", "x += y"),
        ("LOAD x; COPY 1; ATTR y; CONST 1; INPLACE -; SWAP 2; STORE_ATTR y", "x.y -= 1"),
        ("f(); COPY 1; ATTR y; g(); INPLACE -; SWAP 2; STORE_ATTR y", "f().y -= g()"),
        ("LOAD x; LOAD i; COPY 2; COPY 2; SUBSCR; CONST 1; INPLACE +; SWAP 3; SWAP 2; STORE_SUBSCR", "x[i] += 1"),
        ("f(); g(); COPY 2; COPY 2; SUBSCR; h(); INPLACE +; SWAP 3; SWAP 2; STORE_SUBSCR", "f()[g()] += h()"),
    ],
)
def test_what_is_stored_where_it_was_read_is_an_augmented_assignment(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; CONST None; RETURN") == nodes(f"a: {expected}; return None")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        pytest.param(
            "LOAD x; LOAD y; INPLACE +; STORE z", "__temp_0 = x; __temp_0 += y; z = __temp_0", id="another variable"
        ),
        pytest.param(
            "LOAD x; COPY 1; ATTR y; CONST 1; INPLACE +; SWAP 2; STORE_ATTR z",
            "__temp_0 = x.y; __temp_0 += 1; x.z = __temp_0",
            id="another attribute",
        ),
        pytest.param(
            "f(); COPY 1; ATTR y; CONST 1; INPLACE +; SWAP 2; STORE_ATTR z",
            "__temp_0 = f(); __temp_1 = __temp_0.y; __temp_1 += 1; __temp_0.z = __temp_1",
            id="another attribute of a value",
        ),
        pytest.param(
            "LOAD x; COPY 1; ATTR y; CONST 1; INPLACE +; STORE x; POP",
            "__temp_0 = x.y; __temp_0 += 1; __temp_1 = x; x = __temp_0",
            id="the variable itself",
        ),
        pytest.param(
            "f(); COPY 1; ATTR y; CONST 1; BINARY +; SWAP 2; STORE_ATTR y",
            "__temp_0 = f(); __temp_0.y = __temp_0.y + 1",
            id="not in place",
        ),
    ],
)
def test_what_is_stored_elsewhere_is_none(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; CONST None; RETURN") == nodes(f"a: {expected}; return None")
