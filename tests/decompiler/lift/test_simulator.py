"""One block: pushes become expressions, effects become statements, in the order in which they happen."""

from __future__ import annotations

import pytest
from small_nodes import lifts, nodes

from depyf.decompiler.hints import Hints


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("f(); g(); BINARY +; RETURN", "return f() + g()"),
        ("f(); POP; g(); POP; CONST None; RETURN", "f(); g(); return None"),
        ("LOAD x; g(); POP; RETURN", "g(); return x"),
        ("CONST 1; g(); POP; RETURN", "g(); return 1"),
        ("LOAD x; CONST 1; STORE y; RETURN", "y = 1; return x"),
        ("LOAD x; POP; CONST None; RETURN", "x; return None"),
        ("CONST 1; POP; CONST None; RETURN", "return None"),
    ],
)
def test_what_nobody_can_tell_apart_waits_where_it_is_used(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}") == nodes(f"a: {expected}")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        pytest.param("f(); g(); POP; RETURN", "__temp_0 = f(); g(); return __temp_0", id="a call"),
        pytest.param("LOAD global.x; g(); POP; RETURN", "__temp_0 = x; g(); return __temp_0", id="a global"),
        pytest.param("LOAD x; ATTR y; g(); POP; RETURN", "__temp_0 = x.y; g(); return __temp_0", id="an attribute"),
        pytest.param("LOAD x; CONST 1; STORE x; RETURN", "__temp_0 = x; x = 1; return __temp_0", id="a store to it"),
        pytest.param("LOAD x; DELETE x; RETURN", "__temp_0 = x; del x; return __temp_0", id="its deletion"),
        pytest.param(
            "f(); LOAD global.x; h(); POP; BINARY +; RETURN",
            "__temp_0 = f(); __temp_1 = x; h(); return __temp_0 + __temp_1",
            id="two values, in their order",
        ),
        pytest.param(
            "f(); LOAD x; h(); POP; BINARY +; RETURN", "__temp_0 = f(); h(); return __temp_0 + x", id="only what must"
        ),
        pytest.param("LOAD global.x; LOAD y; DELETE z; BINARY +; RETURN", "__temp_0 = x; del z; return __temp_0 + y"),
    ],
)
def test_a_value_is_stored_before_a_statement_that_could_change_it(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}") == nodes(f"a: {expected}")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("f(); g(); SWAP 2; BINARY -; RETURN", "__temp_0 = f(); __temp_1 = g(); return __temp_1 - __temp_0"),
        (
            "f(); g(); SWAP 2; DELETE z; BINARY -; RETURN",
            "__temp_0 = f(); __temp_1 = g(); del z; return __temp_1 - __temp_0",
        ),
        ("f(); LOAD x; SWAP 2; BINARY -; RETURN", "return x - f()"),
        ("f(); CONST 1; SWAP 2; BUILD tuple 2; RETURN", "return (1, f())"),
        ("f(); g(); SWAP 2; POP; RETURN", "__temp_0 = f(); __temp_1 = g(); return __temp_1"),
    ],
)
def test_values_that_change_places_keep_the_order_of_their_evaluation(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}") == nodes(f"a: {expected}")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("f(); COPY 1; STORE a; STORE b; CONST None; RETURN", "a = b = f(); return None"),
        ("f(); COPY 1; STORE a; RETURN", "return (a := f())"),
        ("f(); COPY 1; STORE a; POP; CONST None; RETURN", "(a := f()); return None"),
        ("f(); COPY 1; BINARY +; RETURN", "__temp_0 = f(); return __temp_0 + __temp_0"),
        ("LOAD x; COPY 1; BINARY +; RETURN", "return x + x"),
        ("f(); COPY 1; LOAD o; STORE_ATTR p; RETURN", "__temp_0 = f(); o.p = __temp_0; return __temp_0"),
    ],
)
def test_a_copy_is_another_target_or_a_walrus_but_no_second_evaluation(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}") == nodes(f"a: {expected}")


def test_a_hint_says_which_globals_stay_as_they_are() -> None:
    ops = "a: LOAD global.x; g(); POP; RETURN"
    assert lifts(ops, Hints(stable_globals=frozenset({"x"}))) == nodes("a: g(); return x")
    assert lifts(ops, Hints(stable_globals=frozenset({"y"}))) == nodes("a: __temp_0 = x; g(); return __temp_0")


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        ("RETURN", "stack is empty"),
        ("LOAD x; POP_EXC; CONST None; RETURN", "POP_EXCEPT without"),
        ("LOAD x; LOAD y; CHECK_EXC; POP; POP; CONST None; RETURN", "not the handled one"),
        ("NULL; RETURN", "null marker is used as a value"),
        ("LOAD x; PUSH_EXC; CONST None; RETURN", "is not an exception"),
        ("LOAD x; CONST None; YIELD_FROM; RETURN", "is not an iterator"),
        ("LOAD x; MATCH_SEQUENCE; RETURN", "not part of any pattern"),
    ],
)
def test_what_has_no_syntax_is_refused(ops: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lifts(f"a: {ops}")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        pytest.param(
            "LOAD x; f(); g(); BUILD slice 2; h(); POP; SUBSCR; RETURN",
            "__temp_0 = f(); __temp_1 = g(); h(); return x[__temp_0:__temp_1]",
            id="bounds that are evaluated",
        ),
        pytest.param(
            "LOAD x; CONST None; CONST 2; BUILD slice 2; h(); POP; SUBSCR; RETURN", "h(); return x[:2]", id="constants"
        ),
    ],
)
def test_the_bounds_of_a_slice_are_stored_and_not_the_slice(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}") == nodes(f"a: {expected}")


def test_a_slice_waits_while_a_loop_runs() -> None:
    ops = """
        a:    LOAD x; CONST None; CONST None; BUILD slice 2; LOAD y; ITER; -> top
        top:  for -> body, out
        body: STORE z; f(); POP; -> top
        out:  DELETE_SUBSCR; CONST None; RETURN
    """
    expected = """
        a:    __temp_0 = x; -> top
        top:  for z in y -> body, out
        body: f(); -> top
        out:  del __temp_0[:]; return None
    """
    assert lifts(ops) == nodes(expected)
