"""Calls that only permute values are recognised, and no others."""

from __future__ import annotations

import random
import sys
from types import CodeType, FunctionType
from typing import Any, Callable, List

import pytest

from depyf.decompiler.normal.draft import Draft
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.normal.rotations import undo_rotations
from depyf.decompiler.verify import Finding, compare

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 10), reason="newer Pythons have an instruction for it")


def call_of(function: Any, count: int) -> List[Draft]:
    ops = [
        (Op.BUILD, ("tuple", count)),
        (Op.CONST, function),
        (Op.SWAP, 2),
        (Op.CALL_EX, (False, "")),
        (Op.UNPACK, count),
    ]
    return [Draft(op, arg, offset=2 * index) for index, (op, arg) in enumerate(ops)]


@pytest.mark.parametrize("seed", range(50))
def test_the_swaps_do_what_the_call_does(seed: int) -> None:
    order = list(range(random.Random(seed).randint(2, 9)))
    random.Random(seed).shuffle(order)
    names = [f"a{index}" for index in range(len(order))]
    function = eval(f"lambda {', '.join(names)}: ({', '.join(names[index] for index in order)})")
    stack = [object() for _ in order]
    expected = list(function(*stack))[::-1]
    for draft in undo_rotations(call_of(function, len(order))):
        assert draft.op is Op.SWAP
        stack[-1], stack[-draft.arg] = stack[-draft.arg], stack[-1]
    assert stack == expected


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b, c, d, e: (b, c, d, e, e),
        lambda a, b, c, d, e: (b, c, d, e, a, a),
        lambda a, b, c, d, e: (b, c, d, e, print(a)),
        lambda a, b, c, d, e: [b, c, d, e, a],
        lambda a, b, c, d, e=1: (b, c, d, e, a),
        lambda a, b, c, d, *e: (b, c, d, e, a),
        lambda a, b, c, d, *, e=1: (b, c, d, e, a),
        max,
    ],
)
def test_what_does_more_is_a_call(function: Callable[..., Any]) -> None:
    assert undo_rotations(call_of(function, 5)) == call_of(function, 5)


def rotating(rotated: str) -> CodeType:
    """``def f(g, a, b, c): return g(a, b, c, a)`` with the function on the top, until a call rotates the values."""
    code: CodeType = compile("def f(g, a, b, c): return g(*ROTATED)", "<test>", "exec").co_consts[0]
    names = "LOAD_FAST LOAD_CONST BUILD_TUPLE ROT_TWO CALL_FUNCTION_EX UNPACK_SEQUENCE CALL_FUNCTION RETURN_VALUE"
    import dis

    number = {name: dis.opmap[name] for name in names.split()}
    steps = [("LOAD_FAST", index) for index in (1, 2, 3, 1, 0)]
    steps += [("BUILD_TUPLE", 5), ("LOAD_CONST", 1), ("ROT_TWO", 0), ("CALL_FUNCTION_EX", 0), ("UNPACK_SEQUENCE", 5)]
    steps += [("CALL_FUNCTION", 4), ("RETURN_VALUE", 0)]
    function = eval(f"lambda a, b, c, d, e: ({rotated})")
    assert isinstance(function, FunctionType)
    text = bytes(byte for name, arg in steps for byte in (number[name], arg))
    return code.replace(co_code=text, co_consts=(None, function), co_names=(), co_stacksize=8)


def test_what_is_proved_is_the_order_of_the_values() -> None:
    """The function lies on the top, and goes below its arguments. Unpacked values lie with the first on the top."""
    written = compile("def f(g, a, b, c): return g(a, b, c, a)", "<test>", "exec").co_consts[0]
    assert compare(rotating("d, c, b, a, e"), written).proved
    for wrong in ("c, d, b, a, e", "d, c, a, b, e"):
        assert compare(rotating(wrong), written).finding is Finding.DIFFERENT
