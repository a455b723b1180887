"""An unpacking is one statement once every part has its target; before another effect the rest is stored."""

from __future__ import annotations

import pytest
from small_nodes import lifts, nodes


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("LOAD v; UNPACK 2; STORE a; STORE b", "a, b = v"),
        ("LOAD v; UNPACK 0", "() = v"),
        ("LOAD v; UNPACK 2; UNPACK 2; STORE a; STORE b; STORE c", "(a, b), c = v"),
        ("LOAD v; UNPACK 2; STORE a; UNPACK 2; STORE b; STORE c", "a, (b, c) = v"),
        ("LOAD v; UNPACK_EX 1 1; STORE a; STORE b; STORE c", "a, *b, c = v"),
        ("LOAD v; UNPACK_EX 0 0; STORE a", "*a, = v"),
        ("LOAD v; UNPACK 2; LOAD o; STORE_ATTR p; LOAD o; CONST 0; STORE_SUBSCR", "o.p, o[0] = v"),
        ("f(); COPY 1; UNPACK 2; STORE a; STORE b; STORE c", "a, b = c = f()"),
        (
            "LOAD v; UNPACK 2; POP; STORE b",
            "b, b = v",
        ),  # since 3.12 all but the last of equal stores only drop the value
    ],
)
def test_all_parts_are_stored_at_once(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; CONST None; RETURN") == nodes(f"a: {expected}; return None")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        pytest.param(
            "LOAD v; UNPACK 2; STORE a; f(); POP; STORE b", "a, __temp_0 = v; f(); b = __temp_0", id="a call between"
        ),
        pytest.param("LOAD v; UNPACK 2; SWAP 2; STORE b; STORE a", "__temp_0, b = v; a = __temp_0", id="out of order"),
        pytest.param(
            "f(); UNPACK 2; STORE a; f(); UNPACK 2; STORE b; STORE c; STORE d",
            "a, __temp_0 = f(); b, c = f(); d = __temp_0",
            id="another unpacking between",
        ),
        pytest.param(
            "LOAD v; UNPACK 2; UNARY -; STORE a; STORE b", "__temp_0, __temp_1 = v; a = -__temp_0; b = __temp_1"
        ),
    ],
)
def test_parts_that_wait_longer_are_stored_in_temporaries(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; CONST None; RETURN") == nodes(f"a: {expected}; return None")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("LOAD v; UNPACK 2; BINARY +; RETURN", "__temp_1, __temp_0 = v; return __temp_0 + __temp_1"),
        ("LOAD g; LOAD v; UNPACK 2; CALL 2; RETURN", "__temp_1, __temp_0 = v; return g(__temp_0, __temp_1)"),
        (
            "LOAD v; UNPACK 3; BUILD tuple 3; RETURN",
            "__temp_1, __temp_2, __temp_0 = v; return (__temp_0, __temp_2, __temp_1)",
        ),
    ],
)
def test_parts_that_are_operands_are_unpacked_once(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}") == nodes(f"a: {expected}")
