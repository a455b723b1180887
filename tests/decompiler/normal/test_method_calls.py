"""Compilers prepare the call of an attribute in two ways, by whether the module imports the name (3.11)."""

from __future__ import annotations

from types import CodeType

import pytest
from corpus import code_of_function

from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.verify import Finding, compare


def function_in(text: str) -> CodeType:
    return code_of_function(compile(text, "<test>", "exec", dont_inherit=True), "f")


CALLS = [
    "m.f(x)",
    "m.f(m.g(x), *x)",
    "m.f(x, key=m.g)",
    "m.f(x if m.g() else m.h())",
    "[m.f(each) for each in m.g()]",
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_the_same_whether_its_module_is_imported(call: str) -> None:
    function = f"def f(x):\n    try:\n        return {call}\n    except m.E:\n        m.h({call})\n"
    assert compare(function_in(f"import m\n{function}"), function_in(function)).finding is Finding.EXACT


@pytest.mark.parametrize("receiver", ["x", "m", "', '"])
def test_nothing_is_swapped_below_a_receiver_that_is_loaded_at_once(receiver: str) -> None:
    normal = lower(function_in(f"def f(x):\n    return {receiver}.join(x)\n"))
    assert Op.SWAP not in [instr.op for instr in normal.ops]


@pytest.mark.parametrize(
    "receiver", ["(x if y else m)", "(y and m)", "(\n    x\n    if y\n    else\n    m\n)", "m.a", "m()", "(x, m)[y]"]
)
def test_a_receiver_that_is_computed_stays_below_its_null(receiver: str) -> None:
    text = f"def f(x, y):\n    return {receiver}.join(x)\n"
    assert compare(function_in(text), function_in("\n\n" + text), always_prove=True).proved
    another = text.replace("join(x)", "join(y)")
    assert not compare(function_in(text), function_in(another)).proved
