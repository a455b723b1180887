"""Code that Dynamo wrote is recognised by what it loads, and nothing else is."""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

import pytest

import depyf
from depyf.dynamo_code import hints_of

COMPILED = "__compiled_fn_1827_68be1223_04da_48f0_afaa_d3c0d29e81d5"


def code_of(source: str, **fields: Any) -> CodeType:
    module = compile(source, "<test>", "exec")
    code = next(constant for constant in module.co_consts if isinstance(constant, CodeType))
    return code.replace(**fields) if fields else code


def dynamo_code_of(source: str, **fields: Any) -> CodeType:
    """As Dynamo makes it: no instruction has columns."""
    code = code_of(source)
    if sys.version_info >= (3, 11):
        units = len(code.co_code) // 2
        sizes = [min(8, units - start) for start in range(0, units, 8)]
        fields["co_linetable"] = b"".join(bytes([0x80 | 13 << 3 | size - 1, 0]) for size in sizes)
    return code.replace(**fields) if fields else code


def test_the_globals_and_variables_of_dynamo() -> None:
    lines = ["def f(x, tmp_9):", "tmp_7 = x", f"graph_out_0 = {COMPILED}(x)", "tmp_1 = print"]
    source = "\n  ".join([*lines, "return __resume_at_38_5(tmp_7)"])
    hints = hints_of(dynamo_code_of(source))
    assert hints is not None
    assert hints.stable_globals == {COMPILED, "__resume_at_38_5"}
    assert hints.droppable == {"graph_out_0", "tmp_1"}


def test_each_name_may_have_a_count_of_its_own() -> None:
    source = f"def f(x):\n  tmp_4 = x\n  graph_out_0 = {COMPILED}(x)\n  tmp_0 = print\n  tmp_1 = tmp_0"
    hints = hints_of(dynamo_code_of(source))
    assert hints is not None
    assert hints.droppable == {"graph_out_0", "tmp_0", "tmp_1"}


def test_variables_that_are_not_the_last_ones_are_the_users() -> None:
    source = f"def f(x):\n  tmp_0 = x\n  y = tmp_0\n  return {COMPILED}(y)"
    hints = hints_of(dynamo_code_of(source))
    assert hints is not None
    assert not hints.droppable


def test_code_that_only_looks_a_little_like_it() -> None:
    for name in ("__compiled_fn", "__compiled_fn_mine", "__resume_at_home", "__import_torch", "tmp_0", "graph_out_0"):
        assert hints_of(dynamo_code_of(f"def f(x):\n  tmp_0 = {name}(x)\n  return tmp_0")) is None


def test_decompile_gives_the_same_with_and_without_being_told() -> None:
    source = f"def f(x):\n  graph_out_0 = {COMPILED}(x)\n  return __resume_at_38_5(graph_out_0[0], x)"
    code = dynamo_code_of(source)
    expected = depyf.decompile_code(code, hints=hints_of(code)).source
    assert expected == f"def f(x):\n    return __resume_at_38_5({COMPILED}(x)[0], x)\n" or "graph_out" not in expected
    assert depyf.decompile(code) == depyf.decompile_code(code).source == expected
    assert depyf.Decompiler(code).decompile() == expected


def test_a_lambda_with_statements_in_it_is_a_definition() -> None:
    code = dynamo_code_of(f"def f(x):\n  y = {COMPILED}(x)\n  del x\n  return __resume_at_38_5(y)", co_name="<lambda>")
    found = depyf.decompile_code(code)
    assert found.verdict.proved
    assert found.source.startswith("def lambda_(x):\n")
    assert found.compile_like().co_name == "<lambda>"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="line tables have no columns")
@pytest.mark.parametrize("use", [f"{COMPILED}(x)", "return __resume_at_38_5(x)", "__compiled_fn_0"])
def test_a_function_that_was_compiled_from_text_is_the_users(use: str) -> None:
    code = code_of(f"def f(x):\n  tmp_0 = Guard()\n  work()\n  {use}")
    assert hints_of(code) is None
    found = depyf.decompile_code(code)
    assert found.verdict is depyf.Verdict.EXACT
    assert "tmp_0 = Guard()" in found.source


@pytest.mark.parametrize("use", ["x.{name} = 1", "return x.{name}()", "global {name}; {name} = x; return {name}()"])
def test_what_dynamo_does_with_no_such_name(use: str) -> None:
    for name in (COMPILED, "__resume_at_38_5"):
        assert hints_of(dynamo_code_of(f"def f(x):\n  tmp_0 = x\n  {use.format(name=name)}")) is None
