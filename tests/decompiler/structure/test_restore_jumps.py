"""Statements that are only jumps are inserted where they were written, if that changes nothing."""

from __future__ import annotations

import ast
from typing import List, Optional, Tuple

import pytest
from small_nodes import dedented, source

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.flow.written_jumps import Written
from depyf.decompiler.lift.spans import put, span_of
from depyf.decompiler.structure.restore_jumps import restore_jumps


def restored(text: str, *jumps: Tuple[int, int, Written]) -> str:
    """``text`` as it is structured: a line of it that is ``...`` is not there, and a ``pass`` was written by nobody."""
    tree = ast.parse(dedented(text))
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.Expr, ast.Assign, ast.Return)):
            put(node, Span(node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset))
    block = _Without().visit(tree).body
    spans: List[Tuple[Span, Written]] = [
        (Span(line, column, line, column + (4 if kind is Written.PASS else 8)), kind) for line, column, kind in jumps
    ]
    restore_jumps(block, spans)
    return source(block)


class _Without(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> Optional[ast.Expr]:
        return None if isinstance(node.value, ast.Constant) and node.value.value is ... else node


CONTINUE, ALONE, PASS = Written.CONTINUE, Written.CONTINUE_ALONE, Written.PASS

RESTORED = [
    (
        "continue at the end of a loop",
        "for i in x:\n    f()\n    ...",
        (3, 4, CONTINUE),
        "for i in x:\n    f()\n    continue",
    ),
    (
        "continue at the end of a branch at the end of a loop",
        "for i in x:\n    if i:\n        f()\n        ...\n    else:\n        g()",
        (4, 8, CONTINUE),
        "for i in x:\n    if i:\n        f()\n        continue\n    else:\n        g()",
    ),
    (
        "continue before what becomes the rest of the body",
        "while a:\n    if not b:\n        ...\n        f()",
        (3, 8, CONTINUE),
        "while a:\n    if b:\n        continue\n    f()",
    ),
    (
        "continue in a handler",
        "while a:\n    try:\n        f()\n    except E:\n        g()\n        ...",
        (6, 8, CONTINUE),
        "while a:\n    try:\n        f()\n    except E:\n        g()\n        continue",
    ),
    ("pass in an empty branch", "if a:\n    pass", (2, 4, PASS), "if a:\n    pass"),
    (
        "pass in front of an else",
        "if not a:\n    ...\n    f()",
        (2, 4, PASS),
        "if a:\n    pass\nelse:\n    f()",
    ),
    ("pass in an empty loop", "for i in x:\n    pass", (2, 4, PASS), "for i in x:\n    pass"),
    ("continue in an empty loop", "for i in x:\n    pass", (2, 4, CONTINUE), "for i in x:\n    continue"),
]


@pytest.mark.parametrize(
    ("text", "jump", "expected"), [case[1:] for case in RESTORED], ids=[case[0] for case in RESTORED]
)
def test_a_jump_stands_where_it_was_written(text: str, jump: Tuple[int, int, Written], expected: str) -> None:
    assert restored(text, jump) == expected


LEFT = [
    ("outside of a loop", "f()\n...", (2, 0, CONTINUE)),
    ("more follows in the loop", "for i in x:\n    if i:\n        f()\n        ...\n    g()", (4, 8, CONTINUE)),
    ("behind a return", "for i in x:\n    return i\n    ...", (3, 4, CONTINUE)),
    ("an empty body outside of a loop", "with m:\n    pass", (2, 4, CONTINUE)),
    ("before all statements", "...\nfor i in x:\n    f()", (1, 0, CONTINUE)),
    ("pass behind a statement", "f()\n...", (2, 0, PASS)),
    ("continue in a branch that is not the end", "if not a:\n    ...\n    f()", (2, 4, CONTINUE)),
]


@pytest.mark.parametrize(("text", "jump"), [case[1:] for case in LEFT], ids=[case[0] for case in LEFT])
def test_a_jump_that_would_change_something_is_left_out(text: str, jump: Tuple[int, int, Written]) -> None:
    assert restored(text, jump) == restored(text)


def test_several_jumps_one_behind_the_other() -> None:
    text = "for i in x:\n    if i:\n        pass\n    else:\n        f()\n        ..."
    expected = "for i in x:\n    if i:\n        pass\n    else:\n        f()\n        continue"
    assert restored(text, (3, 8, PASS), (6, 8, CONTINUE)) == expected


def test_the_statements_that_are_jumps_know_their_places() -> None:
    tree = ast.parse("if a:\n    pass")
    put(tree.body[0].test, Span(1, 3, 1, 4))  # type: ignore[attr-defined]
    restore_jumps(tree.body, [(Span(2, 4, 2, 8), PASS)])
    assert span_of(tree.body[0].body[0]) == Span(2, 4, 2, 8)  # type: ignore[attr-defined]
