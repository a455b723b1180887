"""Bytecode made by hand that differs from the syntax that it resembles: no source is proved for it.

Each listing has a twist that the interpreter minds and that lowering once did not see.
"""

from __future__ import annotations

import inspect
from types import CodeType, FunctionType
from typing import Any, List

import pytest
from hand_made import Line, hand_made

from depyf.decompiler import DecompilationError, decompile_code
from depyf.decompiler.bytecode.opcode_table import running_version

VERSION = running_version()
GENERATOR = 3 | inspect.CO_GENERATOR
CALL: List[Line] = [("LOAD_GLOBAL", 1), *([("PRECALL", 0)] if VERSION == (3, 11) else []), ("CALL", 0), "POP_TOP"]
END: List[Line] = [("LOAD_CONST", 0), "RETURN_VALUE"]
YIELD: List[Line] = [("LOAD_CONST", 0), ("YIELD_VALUE", 0), ("RESUME", 1), "POP_TOP"]
GENERATE: List[Line] = ["RETURN_GENERATOR", "POP_TOP", ("RESUME", 0)]
STOP: List[Line] = ["stop", ("CALL_INTRINSIC_1", 3), ("RERAISE", 1)] if VERSION >= (3, 12) else []
STOPS = [("start", "stop", "stop", 0, True)] if VERSION >= (3, 12) else []

since_311 = pytest.mark.skipif(VERSION < (3, 11), reason="cells and generators make themselves since 3.11")
since_312 = pytest.mark.skipif(VERSION < (3, 12), reason="the instruction is new in 3.12")
since_314 = pytest.mark.skipif(VERSION < (3, 14), reason="the instruction takes another NULL since 3.14")
since_313 = pytest.mark.skipif(VERSION < (3, 13), reason="the instruction is new in 3.13")


def proved(code: CodeType) -> bool:
    try:
        return decompile_code(code).verdict.proved
    except DecompilationError:
        return False


@since_311
@pytest.mark.parametrize(
    ("made", "cells", "same"),
    [
        pytest.param([("MAKE_CELL", 0)], (), False, id="a cell for what is no cell variable"),
        pytest.param([], ("x",), False, id="no cell for a cell variable"),
        pytest.param([("MAKE_CELL", 0), ("MAKE_CELL", 0)], ("x",), False, id="a cell in a cell"),
        pytest.param([("MAKE_CELL", 0), ("RESUME", 0), ("MAKE_CELL", 0)], ("x",), False, id="a cell in a cell, later"),
        pytest.param([("MAKE_CELL", 0)], ("x",), True, id="a cell for a cell variable"),
        pytest.param([], (), True, id="no cell"),
    ],
)
def test_cells_are_made_for_cell_variables_and_once(made: List[Line], cells: Any, same: bool) -> None:
    load = "LOAD_DEREF" if cells and made else "LOAD_FAST"
    code = hand_made([*made, ("RESUME", 0), (load, 0), "RETURN_VALUE"], ("x",), cellvars=cells)
    assert proved(code) is same


@since_311
@pytest.mark.parametrize(
    ("listing", "flags", "same"),
    [
        pytest.param([*GENERATE, "start", *END], 3, False, id="a generator without the flag"),
        pytest.param([("RESUME", 0), "start", *END], GENERATOR, False, id="the flag without a generator"),
        pytest.param(
            [("RESUME", 0), "start", *CALL, *GENERATE, *YIELD, *END, *STOP], GENERATOR, False, id="a call before it"
        ),
        pytest.param([*GENERATE, "start", *CALL, *YIELD, *END, *STOP], GENERATOR, True, id="as it should be"),
    ],
)
def test_generators_are_made_where_the_code_begins(listing: List[Line], flags: int, same: bool) -> None:
    table = STOPS if "stop" in listing else []
    assert proved(hand_made(listing, table=table, names=("g",), flags=flags)) is same


@since_312
def test_a_stop_iteration_that_leaves_a_generator_as_it_is() -> None:
    listing = [*GENERATE, "start", *CALL, *YIELD, *END]
    assert not proved(hand_made(listing, names=("g",), flags=GENERATOR))


@since_312
def test_a_stop_iteration_that_does_not_leave_a_function_as_it_is() -> None:
    listing = [("RESUME", 0), "start", *CALL, *END, *STOP]
    assert not proved(hand_made(listing, table=STOPS, names=("g",)))


@pytest.mark.skipif(not (3, 11) <= VERSION <= (3, 14), reason="it asks for its iterator in another way")
@pytest.mark.parametrize("behind", ["end", "other"])
def test_what_yield_from_leads_to(behind: str) -> None:
    """In 3.12 and later it is never the same: nothing there handles what ``throw`` brings."""
    ends: List[Line] = ["END_SEND"] if VERSION >= (3, 12) else []
    listing: List[Line] = [
        *GENERATE, "start", ("LOAD_FAST", 0), "GET_YIELD_FROM_ITER", ("LOAD_CONST", 0),
        "send", ("SEND", behind), ("YIELD_VALUE", 1), ("RESUME", 2), ("JUMP_BACKWARD_NO_INTERRUPT", "send"),
        "end", *ends, "RETURN_VALUE", "other", *ends, "POP_TOP", ("LOAD_CONST", 1), "RETURN_VALUE", *STOP,
    ]  # fmt: skip
    code = hand_made(listing, ("x",), STOPS, consts=(None, 5), flags=GENERATOR)
    assert proved(code) is (VERSION == (3, 11) and behind == "end")


@since_312
def test_the_end_of_a_loop_is_reached_from_the_loop_alone() -> None:
    more: List[Line] = [("LOAD_FAST", 0)] if VERSION == (3, 12) else []
    listing = [("RESUME", 0), ("LOAD_FAST", 0), ("LOAD_FAST", 1), "END_FOR", *more, "RETURN_VALUE"]
    assert not proved(hand_made(listing, ("a", "b")))


@since_312
def test_a_test_that_was_turned_round_has_the_handler_of_the_table() -> None:
    truth: List[Line] = ["TO_BOOL"] if VERSION >= (3, 13) else []
    listing: List[Line] = [
        ("RESUME", 0), "loop", "a", ("LOAD_FAST", 0), "b", *truth, ("POP_JUMP_IF_TRUE", "out"),
        ("JUMP_BACKWARD", "loop"), "out", *END,
        "handler", "PUSH_EXC_INFO", "POP_TOP", "POP_EXCEPT", ("LOAD_CONST", 1), "RETURN_VALUE",
    ]  # fmt: skip
    code = hand_made(listing, ("x",), [("a", "b", "handler", 0, False)], consts=(None, 5))

    class Untestable:
        def __bool__(self) -> bool:
            raise LookupError

    answer = decompile_code(code)
    assert answer.verdict.proved
    scope: Any = {}
    exec(answer.source, scope)
    with pytest.raises(LookupError):  # and not 5
        scope["f"](Untestable())


@since_313
def test_a_test_of_what_is_neither_true_nor_false() -> None:
    yes: List[Line] = ["yes", ("LOAD_CONST", 1), "RETURN_VALUE"]
    listing = [("RESUME", 0), ("LOAD_FAST", 0), ("POP_JUMP_IF_TRUE", "yes"), *END, *yes]
    assert not proved(hand_made(listing, ("x",), consts=(None, 1)))


@pytest.mark.skipif(VERSION not in ((3, 11), (3, 12)), reason="3.11 and 3.12 have the instruction")
def test_names_of_keywords_that_one_path_jumps_over() -> None:
    jump, ready = ("POP_JUMP_IF_TRUE", []) if VERSION == (3, 12) else ("POP_JUMP_FORWARD_IF_TRUE", [("PRECALL", 1)])
    listing: List[Line] = [
        ("RESUME", 0), "PUSH_NULL", ("LOAD_FAST", 0), ("LOAD_FAST", 1), ("LOAD_FAST", 1), (jump, "call"),
        ("KW_NAMES", 0), "call", *ready, ("CALL", 1), "RETURN_VALUE",
    ]  # fmt: skip
    assert not proved(hand_made(listing, ("g", "x"), consts=(("k",),)))


@pytest.mark.skipif(VERSION >= (3, 11), reason="code objects know their qualified names since 3.11")
@pytest.mark.parametrize("between", ["NOP", "nothing"])
def test_a_name_that_the_function_does_not_have_in_any_source(between: str) -> None:
    inner = (lambda: None).__code__.replace(co_name="g")
    gap = [line for line in [between] if line == "NOP"]
    listing = [("LOAD_CONST", 0), *gap, ("LOAD_CONST", 1), "MAKE_FUNCTION", ("STORE_GLOBAL", 0), ("LOAD_CONST", 2)]
    assert not proved(hand_made([*listing, "RETURN_VALUE"], consts=(inner, "x.g", None), names=("g",)))


@pytest.mark.skipif(VERSION >= (3, 14), reason="a flag says so since 3.14")
def test_a_lambda_with_a_docstring_is_written_as_a_definition() -> None:
    resume: List[Line] = [("RESUME", 0)] if VERSION >= (3, 11) else []
    code = hand_made([*resume, ("LOAD_CONST", 1), "RETURN_VALUE"], consts=("what it does", 1), name="<lambda>")
    assert proved(code)
    assert decompile_code(code).source == 'def lambda_():\n    """what it does"""\n    return 1\n'


@since_314
def test_the_nulls_of_a_call_with_unpacked_arguments_are_swapped_to_their_places() -> None:
    rotated: List[Line] = [("SWAP", 3), ("SWAP", 2), "CALL_FUNCTION_EX", "RETURN_VALUE"]
    without = hand_made([("LOAD_FAST", 0), ("LOAD_FAST", 1), "PUSH_NULL", "PUSH_NULL", *rotated], ("g", "a"))
    assert "return g(*a)" in decompile_code(without).source
    assert FunctionType(without, {})(max, (1, 2)) == 2
    loads: List[Line] = [("LOAD_FAST", 0), ("LOAD_FAST", 1), ("BUILD_MAP", 0), ("LOAD_FAST", 2), ("DICT_MERGE", 1)]
    keywords = hand_made([*loads, "PUSH_NULL", *rotated], ("g", "a", "k"))
    assert "return g(*a, **k)" in decompile_code(keywords).source
    assert FunctionType(keywords, {})(dict, (), {"b": 1}) == {"b": 1}


def test_a_constant_that_has_no_hash() -> None:
    held = {"a": 1}
    answer = decompile_code(hand_made([("LOAD_CONST", 0), "RETURN_VALUE"], consts=(held,)))
    assert [*answer.text.constants.values()] == [held]


@pytest.mark.skipif((3, 11) <= VERSION < (3, 13), reason="3.11 and 3.12 name the keywords in an instruction of its own")
@pytest.mark.parametrize("jumps", [False, True])
def test_the_names_of_keywords_may_be_pushed_before_other_values(jumps: bool) -> None:
    new = VERSION >= (3, 13)
    swap: Line = ("SWAP", 2) if new else "ROT_TWO"
    call: Line = ("CALL_KW" if new else "CALL_FUNCTION_KW", 1)
    code = hand_made(
        [("LOAD_FAST", 0), *(["PUSH_NULL"] if new else []), ("LOAD_CONST", 1), ("LOAD_FAST", 1), swap]
        + [*([("JUMP_FORWARD", "here"), "here"] if jumps else []), call, "RETURN_VALUE"],
        ("g", "x"),
        consts=(None, ("key",)),
    )
    assert jumps or "g(key=x)" in decompile_code(code).source
    assert proved(code) is not jumps
