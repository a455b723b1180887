"""Code that Dynamo wrote is recognised by what it loads, and nothing else is."""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

import pytest

import depyf
from depyf.decompiler.dynamo_code import hints_of
from depyf.decompiler.verify import compare

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
    if sys.version_info < (3, 11):  # its names are no evidence: what is proved without hints
        expected = source + "\n"
        assert depyf.decompile_code(code).verdict is depyf.Verdict.EXACT
    assert _squeezed(depyf.decompile(code)) == _squeezed(depyf.decompile_code(code).source) == _squeezed(expected)
    assert _squeezed(depyf.Decompiler(code).decompile()) == _squeezed(expected)


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


def _squeezed(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


LOOKALIKES = {
    "a variable that keeps a lock": f"def f(x):\n  tmp_0 = lock()\n  work()\n  return {COMPILED}(x)",
    "a name that may be unbound": f"def f(x):\n  {COMPILED}\n  return x",
    "a global that a call rebinds": "def f(x):\n  return __compiled_fn_0(x), work(), __compiled_fn_0(x)",
    "a global kept in a variable": "def f(x):\n  tmp_0 = __resume_at_12_3\n  work()\n  return tmp_0(x)",
    "a docstring": f"def f(x):\n  'text'\n  return {COMPILED}(x)",
}


@pytest.mark.parametrize("name", LOOKALIKES)
def test_names_alone_are_no_evidence(name: str) -> None:
    """Before 3.11, and without debug ranges, a user's function looks just so: nothing is assumed of it."""
    code = code_of(LOOKALIKES[name])
    if sys.version_info >= (3, 11):
        code = code.replace(co_linetable=_without_columns(code))
        assert hints_of(code) is not None
    found = depyf.decompile_code(code)
    assert found.verdict is depyf.Verdict.EXACT
    assert not found.assumptions
    assert _squeezed(found.source) == _squeezed(LOOKALIKES[name]).replace("'text'", '"""text"""')


def _without_columns(code: CodeType) -> bytes:
    """A line table of 3.11 as ``-X no_debug_ranges`` has it: lines, and no columns."""
    table, line = bytearray(), code.co_firstlineno
    for start, end, number in code.co_lines():  # type: ignore[attr-defined]
        for unit in range(start, end, 16):
            size = (min(unit + 16, end) - unit) // 2
            delta = number - line
            assert 0 <= delta < 32
            table += bytes([0x80 | 13 << 3 | size - 1, delta << 1])
            line = number
    return bytes(table)


def test_what_a_proof_assumes_is_stated(capsys: pytest.CaptureFixture[str]) -> None:
    code = dynamo_code_of(f"def f(x):\n  tmp_0 = lock()\n  work()\n  return {COMPILED}(x)")
    hints = depyf.Hints(droppable=frozenset({"tmp_0"}), stable_globals=frozenset({COMPILED}))
    found = depyf.decompile_code(code, hints=hints)
    assert found.source == f"def f(x):\n    lock()\n    work()\n    return {COMPILED}(x)\n"
    assert found.verdict is depyf.Verdict.EQUIVALENT
    bound, seen = found.assumptions
    assert bound == f"nothing binds or deletes {COMPILED} while the code runs"
    assert seen == "no code reads the variables tmp_0, or observes when their values are dropped"
    assert found.verdict_line() == f"equivalent: assumed that {bound}; assumed that {seen}"


def test_a_proof_that_needs_no_hints_assumes_nothing() -> None:
    code = dynamo_code_of(f"def f(x):\n  return {COMPILED}(x)")
    found = depyf.decompile_code(code, hints=depyf.Hints(stable_globals=frozenset({COMPILED})))
    assert found.verdict.proved
    assert not found.assumptions


@pytest.mark.parametrize("name", ["__import_cache", "__import_torches_dot_nn", "__compiled_fn_mine", "__resume_at_me"])
def test_a_global_of_the_users_in_code_of_dynamos(name: str) -> None:
    """It may be rebound by any call: reading it stays where it was."""
    hints = hints_of(dynamo_code_of(f"def f(x):\n  graph_out_0 = {COMPILED}(x)\n  return {name}"))
    assert hints is not None
    assert hints.stable_globals == {COMPILED}


def test_a_global_that_a_nested_function_binds_is_the_users() -> None:
    inner = "  def g():\n    global __resume_at_12_3\n    __resume_at_12_3 = x"
    hints = hints_of(dynamo_code_of(f"def f(x):\n{inner}\n  return g, {COMPILED}, __resume_at_12_3"))
    assert hints is not None
    assert hints.stable_globals == {COMPILED}


def test_nothing_is_assumed_of_functions_nested_in_code_of_dynamos() -> None:
    """The verifier would let them drop ``tmp_0``, and with it the lock."""
    text = "def f(x):\n  def g():\n    {}lock()\n    work()\n  return g, " + COMPILED
    original, candidate = code_of(text.format("tmp_0 = ")), code_of(text.format(""))
    comparison = compare(original, candidate, hints=depyf.Hints(droppable=frozenset({"tmp_0"})))
    assert not comparison.proved


def test_what_dynamo_makes_of_a_comprehension_is_a_function() -> None:
    """Its code keeps the name, and has no loop over its argument any more: values that move through lists stay such."""
    source = f"def f(it):\n  graph_out_0 = {COMPILED}(it)\n  return [*graph_out_0, print(1)]"
    code = dynamo_code_of(source).replace(co_name="<listcomp>", co_varnames=(".0", "graph_out_0"))
    found = depyf.decompile_code(code)
    assert found.verdict.code_proved
    assert {str(each.value) for each in found.placeholders} == {"<listcomp>", ".0"}
    assert "for" not in found.source.splitlines()[-1]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code objects have no qualified names")
def test_functions_in_functions_of_a_resume_function_keep_their_names() -> None:
    source = "def f(x):\n  def g():\n    return lambda: [(lambda: y) for y in x]\n  return g"
    original = code_of(source)
    resumed = original.replace(**{"co_name": "resumed", "co_qualname": "resumed"})
    found = depyf.decompile_code(resumed)
    assert found.verdict.code_proved, found.reason
    inner = next(each for each in found.compile_like().co_consts if isinstance(each, CodeType))
    lambda_ = next(each for each in inner.co_consts if isinstance(each, CodeType))
    assert getattr(lambda_, "co_qualname") == "f.<locals>.g.<locals>.<lambda>"  # noqa: B009
