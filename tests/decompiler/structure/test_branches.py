"""Which statements are in which branch, and which follow the ``if``."""

from __future__ import annotations

import ast

import pytest
from small_graphs import MODULE
from small_nodes import dedented, lifted, source

from depyf.decompiler.lift import build
from depyf.decompiler.lift.nodes import Raise, Return
from depyf.decompiler.structure.sequences import structure


def structured(text: str) -> str:
    return source(structure(*lifted(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "a: if x -> y, e\ny: f(); -> e\ne: h(); return z",
            """
            if x:
                f()
            h()
            return z
            """,
            id="if",
        ),
        pytest.param(
            "a: if x -> e, n\nn: f(); -> e\ne: h(); return z",
            """
            if x:
                pass
            else:
                f()
            h()
            return z
            """,
            id="pass: with nothing but an else it would be the opposite test",
        ),
        pytest.param(
            "a: if x -> y, n\ny: f(); -> e\nn: g(); -> e\ne: h(); return z",
            """
            if x:
                f()
            else:
                g()
            h()
            return z
            """,
            id="else",
        ),
        pytest.param(
            "a: if x -> y, n\ny: f(); -> e\nn: if w -> u, v\nu: g(); -> e\nv: i(); -> e\ne: h(); return z",
            """
            if x:
                f()
            elif w:
                g()
            else:
                i()
            h()
            return z
            """,
            id="elif",
        ),
        pytest.param(
            "a: if x -> y, n\ny: f(); return 1\nn: g(); return 2",
            """
            if x:
                f()
                return 1
            g()
            return 2
            """,
            id="a branch that leaves needs no else",
        ),
        pytest.param(
            "a: if x -> y, n\ny: f(); -> e\nn: raise E\ne: h(); return z",
            """
            if x:
                f()
            else:
                raise E
            h()
            return z
            """,
            id="a short else that leaves",
        ),
        pytest.param(
            "a: if x -> y, n\ny: f(); -> e\nn: g(); if w -> e, r\nr: i(); return 1\ne: h(); return z",
            """
            if x:
                f()
            else:
                g()
                if not w:
                    i()
                    return 1
            h()
            return z
            """,
            id="one of the ways leaves further in",
        ),
        pytest.param(
            "a: if x -> y, e\ny: if w -> u, e\nu: f(); -> e\ne: h(); return z",
            """
            if x:
                if w:
                    f()
            h()
            return z
            """,
            id="if in if",
        ),
        pytest.param(
            "a: if x -> y, e\ny: f(); -> e\ne: return z",
            """
            if x:
                f()
                return z
            return z
            """,
            id="a short return is copied",
        ),
    ],
)
def test_branches(text: str, expected: str) -> None:
    assert structured(text) == dedented(expected)


def test_a_module_has_no_return_to_copy() -> None:
    graph, flow = lifted("a: if x -> y, e\ny: f(); -> e\ne: return None", code=MODULE)
    assert source(structure(graph, flow)) == "if x:\n    f()\nreturn None"


def test_what_raises_without_a_lookup_is_an_assertion() -> None:
    text = "a: if not x -> n, e\nn: raise AssertionError\ne: h(); return z"
    graph, flow = lifted(text)
    assert source(structure(graph, flow)) == "if not x:\n    raise AssertionError\nh()\nreturn z"
    graph, flow = lifted(text)
    term = graph.nodes[1].terminator
    assert isinstance(term, Raise)
    term.statement.exc = build.special("AssertionError")
    assert source(structure(graph, flow)) == "assert x\nh()\nreturn z"


def test_where_a_function_ends_without_saying_so_nothing_is_written() -> None:
    graph, flow = lifted("a: if x -> y, e\ny: f(); -> e\ne: return None")
    flow.blocks[2].implicit = True
    assert isinstance(graph.nodes[2].terminator, Return)
    assert isinstance(graph.nodes[2].terminator.value, ast.Constant)
    assert source(structure(graph, flow)) == "if x:\n    f()"
