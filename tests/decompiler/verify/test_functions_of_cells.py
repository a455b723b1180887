"""Functions of cells that were computed, which Dynamo makes: text needs the class of functions for them."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any, List

import pytest
from hand_made import Line, hand_made
from operations import Step, finding, listing, local, proved

from depyf.decompiler import decompile_code
from depyf.decompiler.bytecode.opcode_table import running_version
from depyf.decompiler.normal.ops import NormalCode, Op
from depyf.decompiler.verify import Finding

pytestmark = pytest.mark.skipif(running_version() < (3, 11), reason="code has no qualified name")


def _inner() -> CodeType:
    x = 1

    def inner() -> int:
        nonlocal x
        x += 1
        return x

    return inner.__code__


INNER = _inner()
ANY: Step = (Op.CONST, (lambda: None).__code__)
NEW_FUNCTION: List[Step] = [ANY, (Op.MAKE_FUNCTION, 0)]
GLOBALS: List[Step] = [*NEW_FUNCTION, (Op.ATTR, "__globals__")]
CLOSURE: List[Step] = [local("a"), (Op.BUILD, ("tuple", 1))]
NONE: Step = (Op.CONST, None)
RETURN: Step = (Op.RETURN,)

MADE = listing(*CLOSURE, (Op.CONST, INNER), (Op.MAKE_FUNCTION, 8), RETURN)


def called(
    *,
    namespace: List[Step] = GLOBALS,
    code: object = INNER,
    name: Step = NONE,
    defaults: Step = NONE,
    closure: List[Step] = CLOSURE,
) -> NormalCode:
    """The call of a function's class, which returns what it makes."""
    callee: List[Step] = [*NEW_FUNCTION, (Op.ATTR, "__class__"), (Op.NULL,), (Op.SWAP, 2)]
    arguments = [(Op.CONST, code), *namespace, name, defaults, *closure]
    return listing(*callee, *arguments, (Op.CALL, (5, (), "below")), RETURN)


def test_both_ways_of_making_a_function_are_the_same() -> None:
    assert proved(MADE, called())
    assert proved(called(), MADE)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(called(closure=[local("b"), (Op.BUILD, ("tuple", 1))]), id="another cell"),
        pytest.param(called(closure=[local("a"), (Op.BUILD, ("list", 1))]), id="cells in a list"),
        pytest.param(called(closure=[local("a"), local("a"), (Op.BUILD, ("tuple", 2))]), id="two cells"),
        pytest.param(called(closure=[local("a")]), id="no tuple"),
        pytest.param(called(closure=[NONE]), id="no cells"),
        pytest.param(called(code=_inner().replace(co_name="other")), id="other code"),
        pytest.param(called(code=None), id="no code"),
        pytest.param(called(name=(Op.CONST, "other")), id="another name"),
        pytest.param(called(defaults=(Op.CONST, (1,))), id="defaults"),
        pytest.param(called(namespace=[local("b")]), id="other globals"),
        pytest.param(called(namespace=[*NEW_FUNCTION, (Op.ATTR, "__dict__")]), id="another dict"),
    ],
)
def test_what_makes_another_function_is_refused(other: NormalCode) -> None:
    assert not proved(MADE, other)


def test_the_class_refuses_what_is_no_cell() -> None:
    unused: List[Step] = [(instr.op, instr.arg) for instr in called().ops[:-1]]
    assert finding(listing(*unused, (Op.POP,), NONE, RETURN), "def f(a, b): return None")[0] is not Finding.EQUIVALENT
    assert not proved(listing(NONE, RETURN), listing(*unused, (Op.POP,), NONE, RETURN))


def test_the_attributes_of_a_new_function() -> None:
    same = "def f(a, b): return (lambda: None).__class__ is (lambda: 1).__class__"
    assert finding(listing((Op.CONST, True), RETURN), same) == (Finding.EQUIVALENT, "")
    other = "def f(a, b): return a.__class__ is (lambda: 1).__class__"
    assert finding(listing((Op.CONST, True), RETURN), other)[0] is not Finding.EQUIVALENT
    known = "def f(a, b): return (lambda: None).__globals__ is (lambda: 1).__globals__"
    assert finding(listing((Op.CONST, True), RETURN), known) == (Finding.EQUIVALENT, "")
    other = "def f(a, b): return (lambda: None).__globals__ is a.__globals__"
    assert finding(listing((Op.CONST, True), RETURN), other)[0] is not Finding.EQUIVALENT


SET: List[Line] = (
    ["MAKE_FUNCTION", ("SET_FUNCTION_ATTRIBUTE", 8)] if running_version() >= (3, 13) else [("MAKE_FUNCTION", 8)]
)


def test_the_text_makes_a_function_of_the_same_cell() -> None:
    steps: List[Line] = [("LOAD_FAST", 0), ("BUILD_TUPLE", 1), ("LOAD_CONST", 0), *SET, "RETURN_VALUE"]
    made = decompile_code(hand_made([("RESUME", 0), *steps], ("cell",), consts=(INNER,)))
    assert made.verdict.code_proved
    assert made.verdict.value == "placeholders"
    assert "(lambda: None).__class__(" in made.source
    namespace: Any = {}
    cell = (lambda: cell).__closure__[0]  # type: ignore[index]
    function = FunctionType(made.compile_like(), namespace)(cell)
    assert (function.__globals__, function.__closure__) == (namespace, (cell,))
    assert function.__qualname__ == INNER.co_qualname  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        FunctionType(made.compile_like(), namespace)(1)
