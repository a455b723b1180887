"""All paths to the end of a class or module lead to one mark, and statements after it are rejected."""

from __future__ import annotations

import ast
from typing import Optional

import pytest
from small_graphs import MODULE, flow, shown

from depyf.decompiler.flow.body_end import join_ends, returns_inside, without_mark
from depyf.decompiler.source.printing.statements import unparse

MARK = "end of the body"


def test_every_end_leads_to_the_mark() -> None:
    graph = flow("a: LOAD c; false -> n, y\ny: f(); POP; CONST None; RETURN\nn: g(); POP; CONST None; RETURN", MODULE)
    join_ends(graph)
    lines = shown(graph)
    assert len(lines) == 4
    assert sum(MARK in line for line in lines) == 1
    assert sum("RETURN" in line for line in lines) == 1


@pytest.mark.parametrize("text", ["a: f(); RETURN", "a: CONST 1; RETURN", "a: CONST None; RAISE 1"])
def test_other_ends_stay(text: str) -> None:
    graph = flow(text, MODULE)
    join_ends(graph)
    assert shown(graph) == shown(flow(text, MODULE))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("f()\nMARK", "f()", id="at the end"),
        pytest.param("f()\nMARK\nreturn", "f()", id="and a return"),
        pytest.param("f()", "f()", id="not there"),
        pytest.param("if a:\n    MARK\ng()", None, id="inside of a statement"),
        pytest.param("MARK\ng()", None, id="before another one"),
    ],
)
def test_the_mark_stands_behind_all_statements(text: str, expected: Optional[str]) -> None:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "MARK":
            node.id = MARK
    left = without_mark(tree.body)
    assert (None if left is None else unparse(ast.Module(left, []))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()\nreturn", False),
        ("if a:\n    return\nf()", True),
        ("return\nreturn", True),
        ("def g():\n    return 1\nf()", False),
        ("if a:\n    return", True),
    ],
)
def test_a_return_inside_of_the_statements(text: str, expected: bool) -> None:
    assert returns_inside(ast.parse(text).body) is expected
