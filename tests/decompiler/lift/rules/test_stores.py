"""Storing, deleting, annotating."""

from __future__ import annotations

import pytest
from small_nodes import lifts, nodes


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("f(); STORE x", "x = f()"),
        ("f(); LOAD x; STORE_ATTR y", "x.y = f()"),
        ("f(); LOAD x; LOAD y; STORE_SUBSCR", "x[y] = f()"),
        ("f(); g(); h(); STORE_SUBSCR", "g()[h()] = f()"),
        ("DELETE x", "del x"),
        ("f(); DELETE_ATTR y", "del f().y"),
        ("f(); g(); DELETE_SUBSCR", "del f()[g()]"),
    ],
)
def test_the_value_is_evaluated_before_the_place(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; CONST None; RETURN") == nodes(f"a: {expected}; return None")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("f(); g(); SWAP 2; STORE_ATTR y", "__temp_0 = f(); __temp_1 = g(); __temp_0.y = __temp_1"),
        ("f(); g(); SWAP 2; DELETE_SUBSCR", "__temp_0 = f(); __temp_1 = g(); del __temp_1[__temp_0]"),
    ],
)
def test_a_place_that_is_evaluated_first_waits_in_a_temporary(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; CONST None; RETURN") == nodes(f"a: {expected}; return None")


ANNOTATION = "LOAD name.int; LOAD name.__annotations__; CONST 'x'; STORE_SUBSCR"


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        pytest.param(ANNOTATION, "x: int", id="alone"),
        pytest.param(f"CONST 1; STORE name.x; {ANNOTATION}", "x: int = 1", id="with a value"),
        pytest.param(f"CONST 1; STORE name.y; {ANNOTATION}", "y = 1; x: int", id="another variable"),
        pytest.param(
            f"CONST 1; STORE name.x; f(); POP; {ANNOTATION}", "x = 1; f(); x: int", id="something else between"
        ),
        pytest.param(ANNOTATION.replace("__annotations__", "notes"), "notes['x'] = int", id="another dict"),
        pytest.param(ANNOTATION.replace("'x'", "'1'"), "__annotations__['1'] = int", id="no name"),
    ],
)
def test_annotations(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; CONST None; RETURN") == nodes(f"a: {expected}; return None")
