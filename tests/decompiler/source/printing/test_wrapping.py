"""Long lines are broken between tokens, at sensible positions, without a change of meaning."""

from __future__ import annotations

import ast
import re
import sys
from typing import List

import pytest
from functions import STANDARD_LIBRARY

from depyf.decompiler.source.printing import statements
from depyf.decompiler.source.printing.statements import unparse
from depyf.decompiler.source.printing.wrapping import WIDTH, wrap


def long(name: str) -> str:
    return name * 30


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("    f(A, B, C)", ["    f(", "        A,", "        B,", "        C", "    )"]),
        ("    x = f(A, B)", ["    x = f(A, B)"]),
        ("def f(A, B, C) -> int:", ["def f(", "    A, B, C", ") -> int:"]),
        ("if A and B and (not C or D):", ["if (", "    A", "    and B", "    and (not C or D)", "):"]),
        ("return A or B and C or D", ["return (", "    A", "    or B and C", "    or D", ")"]),
        ("x = A and B and C and D", ["x = (", "    A", "    and B", "    and C", "    and D", ")"]),
        ("x = [A.b for A in B if C]", ["x = [", "    A.b", "    for A in B", "    if C", "]"]),
        ("f(A + B + C - D)", ["f(", "    A", "    + B", "    + C", "    - D", ")"]),
        ("x = {A: b for b, A in C}", ["x = {", "    A: b", "    for b, A in C", "}"]),
        ("f(A, lambda B, c: 1, C, lambda: D)", ["f(", "    A,", "    lambda B, c: 1,", "    C,", "    lambda: D", ")"]),
        ("f(lambda A, B: C + D)", ["f(", "    lambda A, B: C + D", ")"]),
        ("x = f(1)(A, B, C, D)", ["x = f(1)(", "    A,", "    B,", "    C,", "    D", ")"]),
        ("    del A, B.c, D", ["    del (", "        A,", "        B.c,", "        D", "    )"]),
        ("from a.b import A, B as b, C", ["from a.b import (", "    A,", "    B as b,", "    C", ")"]),
        ("del AAAABBBB", ["del AAAABBBB"]),
        ("global A, B, C, D", ["global A, B, C, D"]),
        ("AAAABBBB = CCCCDDDD", ["AAAABBBB = CCCCDDDD"]),
    ],
)
def test_a_long_line_is_broken_where_it_reads_best(line: str, lines: List[str]) -> None:
    def lengthened(text: str) -> str:
        for name in "ABCD":
            text = text.replace(name, long(name))
        return text

    assert wrap(lengthened(line)) == [lengthened(part) for part in lines]


def test_many_short_things_fill_the_lines() -> None:
    lines = wrap("x = [" + ", ".join(map(str, range(100))) + "]")
    assert lines[0] == "x = ["
    assert lines[-1] == "]"
    assert len(lines) < 8
    assert max(map(len, lines)) <= WIDTH


def test_strings_are_not_broken() -> None:
    text = "'" + "a, b " * 40 + "'"
    assert wrap(f"    f({text}, x)") == ["    f(", f"        {text},", "        x", "    )"]


def test_f_strings_are_not_broken() -> None:
    text = "f'" + "{a(b, c)} " * 20 + "'"
    assert wrap(f"f({text}, x)") == ["f(", f"    {text},", "    x", ")"]


@pytest.mark.skipif(sys.version_info < (3, 14), reason="t-strings are new in 3.14")
def test_t_strings_are_not_broken() -> None:
    text = "t'" + "{a(b, c):safe} {d!r:{len(e)}} " * 10 + "'"
    assert wrap(f"f({text}, x)") == ["f(", f"    {text},", "    x", ")"]


LONE_STRING = re.compile(r""" *(?:'[^']*'|"[^"]*"),?""")


def as_stored(tree: ast.Module) -> str:
    """Return a dump of ``tree`` without the indentation of docstrings, which the compiler removes since 3.13."""
    for node in ast.walk(tree) if sys.version_info >= (3, 13) else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            node.body[0] = ast.Expr(ast.Constant(ast.get_docstring(node)))
    return ast.dump(tree)


@pytest.mark.parametrize("module", ["argparse", "inspect", "typing", "tarfile", "subprocess", "test/test_grammar"])
def test_a_module_with_its_long_lines_broken_has_the_same_tree(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = ast.parse((STANDARD_LIBRARY / f"{module}.py").read_bytes())
    wrapped = unparse(tree)
    monkeypatch.setattr(statements, "WIDTH", 1_000_000)
    text = unparse(tree)
    assert ast.dump(ast.parse(wrapped)) == ast.dump(ast.parse(text))
    assert as_stored(ast.parse(text)) == as_stored(tree)

    def long_lines(text: str) -> int:  # but for those that are one string: there is nowhere to break them
        return sum(len(line) > WIDTH and not LONE_STRING.fullmatch(line) for line in text.split("\n"))

    assert long_lines(wrapped) <= 0.4 * long_lines(text)
