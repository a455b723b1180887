"""Constants to text and back to the same constant."""

from __future__ import annotations

import ast
import math
import struct
from typing import Any, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depyf.decompiler.source.compiling.to_code import compile_like
from depyf.decompiler.source.printing.text import to_source


class Colour:
    """Something without a literal."""

    def __bool__(self) -> bool:
        raise AssertionError("nobody may ask")


def function_returning(value: Any) -> ast.Module:
    tree = ast.parse("def f():\n    return None")
    tree.body[0].body = [ast.Return(value=ast.Constant(value=value))]  # type: ignore[attr-defined]
    return tree


def reference() -> Any:
    def f() -> None:
        return None

    return f.__code__


def constant_after_round_trip(value: Any) -> Any:
    code = compile_like(to_source(function_returning(value)), reference(), "<test>")
    assert len(code.co_code) == len(reference().co_code), "more is done than returning a constant"
    return eval(code)


def bits(value: Any) -> Any:
    """Equal only for the same type and, in numbers, the same bits."""
    if isinstance(value, float):
        return float, struct.pack("d", value)
    if isinstance(value, complex):
        return complex, struct.pack("dd", value.real, value.imag)
    if isinstance(value, tuple):
        return tuple, [bits(item) for item in value]
    return type(value), value


INFINITY = math.inf

VALUES: List[Any] = [
    None,
    True,
    False,
    ...,
    0,
    1,
    -1,
    10**30,
    -(10**30),
    1 << 20_000,
    -(1 << 20_000),
    0.0,
    -0.0,
    1.5,
    -1e-300,
    INFINITY,
    -INFINITY,
    1j,
    -1j,
    0j,
    -0j,
    complex(-0.0, 0.0),
    complex(0.0, -0.0),
    complex(-0.0, -0.0),
    complex(1, -2),
    complex(-1, 2),
    complex(-1.5, -0.0),
    complex(-0.0, 2),
    complex(INFINITY, 1),
    complex(1, -INFINITY),
    complex(-INFINITY, INFINITY),
    math.nan,
    -math.nan,
    complex(math.nan, 1),
    complex(-0.0, math.nan),
    complex(math.nan, -math.nan),
    complex(-math.nan, -INFINITY),
    (1, (math.nan, -math.nan), 2j),
    "",
    "a",
    "'",
    '"',
    "\n",
    "\\",
    "\0",
    "\ud800",
    "é",
    b"",
    b"\x00'\"",
    (),
    (1,),
    (1, (2, -3), ()),
    (-0.0, 1e309, None, ...),
    ("a", b"a", 1, 1.0, True),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_constant_compiles_back_to_itself(value: Any) -> None:
    assert bits(constant_after_round_trip(value)) == bits(value)


@pytest.mark.slow
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.complex_numbers(allow_nan=False)
        | st.text()
        | st.binary(),
        lambda inner: st.lists(inner).map(tuple),
        max_leaves=8,
    )
)
def test_any_constant_compiles_back_to_itself(value: Any) -> None:
    assert bits(constant_after_round_trip(value)) == bits(value)


@pytest.mark.parametrize(
    "value",
    [
        struct.unpack("<d", b"\1\0\0\0\0\0\xf8\x7f")[0],
        Colour(),
        Colour,
        frozenset({1}),
        frozenset(),
        len,
        math,
        [1],
        {"a": 1},
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_object_without_literal_comes_back_as_the_same_object(value: Any) -> None:
    assert constant_after_round_trip(value) is value


def test_objects_inside_of_a_tuple_come_back_as_the_same_objects() -> None:
    one, other = Colour(), Colour()
    result = constant_after_round_trip((1, (one, other), one))
    assert result[0] == 1
    assert result[1][0] is one
    assert result[1][1] is other
    assert result[2] is one


def test_placeholders_say_what_they_stand_for() -> None:
    text = to_source(function_returning((Colour(), Colour, math))).text
    assert text == "def f():\n    return __const_Colour_0, __const_Colour_1, __const_math_0\n"


def test_one_nan_in_several_places_stays_one_object() -> None:
    one, other = math.nan, float("nan")
    source = to_source(function_returning(((one, one), other)))
    assert list(source.constants.values()) == [one]
    result = eval(compile_like(source, reference(), "<test>"))
    assert result[0][0] is result[0][1] is one
    assert result[1] is not one


def test_a_placeholder_does_not_take_a_name_that_is_used() -> None:
    tree = ast.parse("def f(__const_Colour_0):\n    return None")
    tree.body[0].body = [ast.Return(value=ast.Constant(value=Colour()))]  # type: ignore[attr-defined]
    assert list(to_source(tree).constants) == ["__const_Colour_1"]


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return x in SET",
        "def f(x):\n    return x not in SET",
        "def f():\n    for x in SET:\n        x",
        "def f():\n    return [x for x in SET]",
    ],
)
def test_a_frozenset_is_a_set_display_where_the_compiler_makes_one_of_it(source: str) -> None:
    value = frozenset({"b", "a", -1, (1, 2)})
    tree = _ReplaceName("SET", value).visit(ast.parse(source))
    original = compile(source.replace("SET", "{'b', 'a', -1, (1, 2)}"), "<test>", "exec").co_consts[0]
    text = to_source(tree)
    assert "{-1, 'a', 'b', (1, 2)}" in text.text
    code = compile_like(text, original, "<test>")
    assert code.co_code == original.co_code
    assert value in code.co_consts or "listcomp" in str(code.co_consts)


def test_operations_on_objects_without_literal_are_left_to_run_time() -> None:
    tree = ast.parse("def f():\n    return (NAN + 1, NAN is NAN, NAN.real, -NAN)")
    nan = math.nan
    _ReplaceName("NAN", nan).visit(tree)
    result = eval(compile_like(to_source(tree), reference(), "<test>"))
    assert [math.isnan(value) for value in (result[0], result[2], result[3])] == [True, True, True]
    assert result[1] is True


class _ReplaceName(ast.NodeTransformer):
    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(value=self.value) if node.id == self.name else node
