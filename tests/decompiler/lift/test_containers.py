"""Lists that only move values are tracked element by element; those that escape are built."""

from __future__ import annotations

import ast
from typing import Any, List

import pytest
from small_nodes import lifts, nodes

from depyf.decompiler.lift.containers import (
    BoundMethod,
    Container,
    as_display,
    constant_key,
    copied,
    holds_containers,
    parts,
    references,
    replaced,
)
from depyf.decompiler.lift.items import Value
from depyf.decompiler.source.printing.statements import unparse


def value(text: str) -> Value:
    return Value(ast.parse(text, mode="eval").body)


A, B, C = value("a"), value("b"), value("c")


def test_parts_are_in_the_order_of_the_stack_and_each_once() -> None:
    shared = Container("list", [A, B])
    stack: List[Any] = [shared, C, Container("tuple", [shared, A])]
    assert list(parts(stack)) == [A, B, C, A]


def test_a_container_that_holds_itself_is_walked_once() -> None:
    container = Container("list", [A])
    container.elements.append(container)
    assert list(parts([container])) == [A]
    assert references([container], container) == 2


def test_copies_share_what_was_shared_and_nothing_else() -> None:
    shared = Container("list", [A])
    stack: List[Any] = [shared, BoundMethod(shared, "pop"), Container("tuple", [shared]), B]
    first, method, around, last = copied(stack)
    assert first is not shared
    assert first is method.container is around.elements[0]
    assert last is B
    first.elements.append(C)
    assert shared.elements == [A]


def test_all_places_of_a_container_are_replaced_those_inside_of_others_too() -> None:
    old = Container("list", [A])
    stack: List[Any] = [old, Container("tuple", [B, old]), C]
    assert references(stack, old) == 2
    replaced(stack, old, A)
    assert references(stack, old) == 0
    assert stack[0] is A
    assert stack[1].elements == [B, A]


def test_holds_containers() -> None:
    assert holds_containers([A, Container("list", [])])
    assert holds_containers([BoundMethod(Container("list", []), "pop")])
    assert not holds_containers([A, B])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", 3), ("True", None), ("'x'", None), ("n", None), ("-1", None)],
)
def test_constant_keys(text: str, expected: Any) -> None:
    assert constant_key(value(text)) == expected


def test_slices_of_constants_are_keys() -> None:
    key = Value(ast.Slice(ast.Constant(1), None, ast.Constant(None)))
    assert constant_key(key) == slice(1, None, None)
    assert constant_key(Value(ast.Slice(ast.Constant(1), ast.Name("n", ast.Load()), None))) is None
    assert constant_key(Value(ast.Constant(slice(0, 2)))) == slice(0, 2)
    assert constant_key(Value(ast.Constant(slice("a", 2)))) is None


def test_a_display_says_what_it_evaluates_in_order() -> None:
    container = Container("dict", [A, Container("tuple", [B, C])], ["x", "y"])
    display, values = as_display(container, lambda item: item)
    assert unparse(display) == "{'x': a, 'y': (b, c)}"
    assert values == [A, B, C]


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        pytest.param(
            "LOAD a; LOAD b; BUILD list 2; COPY 1; CONST 0; SUBSCR; SWAP 2; CONST 1; SUBSCR; BINARY -; RETURN",
            "return a - b",
            id="elements",
        ),
        pytest.param(
            "f(); g(); BUILD list 2; COPY 1; CONST 1; SUBSCR; SWAP 2; CONST 0; SUBSCR; BINARY -; RETURN",
            "__temp_0 = f(); __temp_1 = g(); return __temp_1 - __temp_0",
            id="elements, the other way round",
        ),
        pytest.param(
            "LOAD a; LOAD b; BUILD list 2; COPY 1; LOAD c; SWAP 2; CONST 0; STORE_SUBSCR; RETURN",
            "return [c, b]",
            id="an element is replaced",
        ),
        pytest.param(
            "LOAD a; LOAD b; BUILD list 2; COPY 1; LOAD c; SWAP 2; CONST 0; STORE_SUBSCR; "
            "COPY 1; CONST 0; DELETE_SUBSCR; RETURN",
            "return [b]",
            id="one is deleted",
        ),
        pytest.param("f(); BUILD list 1; POP; CONST None; RETURN", "[f()]; return None", id="the list is dropped"),
        pytest.param(
            "LOAD a; BUILD list 1; COPY 1; LOAD g; SWAP 2; CALL 1; POP; CONST 0; SUBSCR; RETURN",
            "__temp_0 = [a]; g(__temp_0); return __temp_0[0]",
            id="somebody else may change it",
        ),
    ],
)
def test_a_list_that_is_seen_by_nobody_else_is_followed(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}") == nodes(f"a: {expected}")
