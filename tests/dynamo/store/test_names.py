"""Names that are the same in every run."""

from __future__ import annotations

import json
from types import CodeType

import pytest

from depyf.dynamo.entries.hints import hints_for
from depyf.dynamo.store.names import LONGEST_FUNCTION_NAME, StableNames, compiled_fn_number, file_stem, rename

UUID = "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0"


def code_reading(*names: str) -> CodeType:
    return compile("def f(): return " + ", ".join(names), "x.py", "exec").co_consts[0]


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("forward", "forward"),
        ("<lambda>", "_lambda_"),
        ("a.<locals>.b", "a__locals__b"),
        ("größe", "gr__e"),
        ("a/b", "a_b"),
    ],
)
def test_characters_that_a_file_name_should_not_hold_become_underscores(name: str, stem: str) -> None:
    assert file_stem(name) == stem


def test_long_names_are_cut_and_stay_different() -> None:
    first, second = file_stem("x" * 300 + "1"), file_stem("x" * 300 + "2")
    assert len(first) == len(second) == LONGEST_FUNCTION_NAME
    assert first != second


def test_the_number_of_a_compiled_function_is_read_with_and_without_suffix() -> None:
    assert compiled_fn_number("__compiled_fn_12") == 12
    assert compiled_fn_number(f"__compiled_fn_3_{UUID}") == 3
    assert compiled_fn_number("compiled_fn_3") is None


def test_random_suffixes_object_ids_and_addresses_leave_a_text() -> None:
    stable = StableNames()
    text = f"__compiled_fn_3_{UUID}(x), __import_a_139871234567_c2, __b_139879999999_c0, <f at 0x7f12345678>"
    assert stable.text(text) == "__compiled_fn_3(x), __import_a_0_c2, __b_1_c0, <f at 0x0>"
    assert stable.text("__again_139871234567_c9") == "__again_0_c9"


def test_places_in_torch_that_depend_on_warm_caches_leave_a_text() -> None:
    text = "L['x'] <= 4  # (_inductor/codegen/cpp.py:2273 in need_use_acc_helper)"
    assert StableNames().text(text) == "L['x'] <= 4  # (inside torch)"


def test_a_code_object_gets_stable_names_and_its_own_back() -> None:
    code = code_reading(f"__compiled_fn_3_{UUID}", "other", "lambda: __import_a_139871234567_c2")
    stable, real = StableNames().code(code)
    assert stable.co_names == ("__compiled_fn_3", "other")
    assert rename(stable, real) == code


def test_names_that_would_become_one_are_left_alone() -> None:
    code = code_reading(f"__compiled_fn_3_{UUID}", "__compiled_fn_3")
    assert StableNames().code(code) == (code, {})


def test_globals_that_the_original_loads_itself_are_the_users() -> None:
    """Anything may rebind them while Dynamo's code runs; what a resume function was given by Dynamo stays."""
    graph, loads = "__compiled_fn_7", "__import_json, __import_torch_dot__dynamo_dot_utils"
    original = compile(f"def f(x): return {loads}", "<t>", "exec").co_consts[0]
    transformed = compile(f"def f(x): return {graph}(x), {loads}", "<t>", "exec").co_consts[0]
    frame_globals = {"__import_torch_dot__dynamo_dot_utils": json, "__import_json": {}}
    assert hints_for(transformed, original, {}, frame_globals, {}).stable_globals == {graph}
    resumed = original.replace(co_name="torch_dynamo_resume_in_f_at_3")
    stable = hints_for(transformed, resumed, {}, frame_globals, {}).stable_globals
    assert stable == {graph, "__import_torch_dot__dynamo_dot_utils"}
