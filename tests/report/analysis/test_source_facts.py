"""What is read from the syntax of a source file."""

from __future__ import annotations

import argparse
import ast
import dis
import functools
import inspect
import os

import pytest

from depyf.decompiler.syntax import nested_codes
from depyf.report.analysis.source_facts import source_facts, spans_with
from depyf.report.analysis.sources import Sources

TEXT = """
@decorated
def f(a, *rest, **more):
    class C:
        async def g(self):
            return (1,
                    2)
    if a:
        try:
            pass
        except E:
            x = (
                1)
    return C


match a:
    case 1:
        b(
            2)
"""


@pytest.mark.parametrize("more", ["", "f(lambda *xs: (lambda: 1))\n"])
def test_facts_are_of_all_functions_and_statements(more: str) -> None:
    text = TEXT if hasattr(ast, "Match") else TEXT[: TEXT.index("match")]
    facts = source_facts(text + more)
    assert facts.definitions["f", 2] == ("f", 14)
    assert facts.definitions["g", 5] == ("f.<locals>.C.g", 7)
    assert facts.stars["f", 2] == (14, "rest", "more")
    assert facts.stars["g", 5] == (7, "", "")
    assert list(facts.spans) == [(6, 7), (12, 13)] + ([(19, 20)] if hasattr(ast, "Match") else [])
    assert sum(name == "<lambda>" for name, _ in facts.definitions) == bool(more)


IN_PARTS = """\"\"\"A module.

Words that begin no statement.
\"\"\"

class C:
    a = (1,
         2)

    def f(self):
        \"\"\"Paragraphs

    that are not indented.
        \"\"\"
        b(
            1)

    def g(self):
        if self:
            return [
                1]

if C:
    c = {
    }

else:
    d = (
        2)"""


BLANK_LINES = [
    "r = run(\n\n    compile(f)(x),\n\n    other,\n\n)\n",
    "x = 1\n\nm = Sequential(\n    # in\n    A(),\n\n    B(),\n\n    C(),\n)\n",
    "f(\n\na(1),\n\nb,\n)\n",
    'class C:\n    """Words.\n\n    Deprecated\n    """\n    a = f(\n        1)\n\n    T = """\n\n    text\n    """\n',
    'def f():\n    """Words.\n\n    def g():\n        a(\n            1)\n\n    """\n    return (1,\n\n    2)\n',
]


@pytest.mark.parametrize("text", BLANK_LINES)
def test_a_statement_with_blank_lines_is_found_by_each_line_of_it(text: str) -> None:
    for first, last in source_facts(text).spans:
        for line in range(first, last + 1):
            assert (first, last) in spans_with(text, [line])


@pytest.mark.parametrize(
    "text",
    [TEXT, IN_PARTS, "", "x = (\n1)", *(inspect.getsource(module) for module in (argparse, functools, inspect))],
    ids=["text", "in parts", "empty", "no end", "argparse", "functools", "inspect"],
)
def test_spans_around_a_line_are_those_of_the_whole_file(text: str) -> None:
    if not hasattr(ast, "Match"):
        text = text.partition("match a")[0]
    spans = source_facts(text).spans
    code = compile(text, "text", "exec")
    # A line of a docstring, where an example may be, has no code, and nothing is known about it.
    lines = {line for each in nested_codes(code) for _, line in dis.findlinestarts(each) if line}
    for line in [*sorted(lines)[::29], *sorted(lines)[-9:], text.count("\n") + 3]:
        assert spans_with(text, [line]) == [(first, last) for first, last in spans if first <= line <= last]
    every = [span for span in spans if any(span[0] <= line <= span[1] for line in lines)]
    assert spans_with(text, lines) == every


def test_the_rest_of_a_long_file_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    from depyf.report.analysis import source_facts as module

    read = []
    monkeypatch.setattr(module, "parse", lambda text: read.append(text) or ast.parse(text))
    text = "".join(f"class C{number}:\n    def f(self):\n        a(\n            1)\n\n" for number in range(99))
    assert spans_with(text, [8, 9]) == [(8, 9)]
    assert [len(each.split("\n")) for each in read] == [6]


def test_what_does_not_parse_has_no_facts() -> None:
    facts = source_facts("def f(:\n")
    assert (dict(facts.definitions), dict(facts.stars), list(facts.spans)) == ({}, {}, [])


def test_one_tree_is_made_of_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    from depyf.report.analysis import source_facts as module

    trees = []
    monkeypatch.setattr(module, "parse", lambda text: trees.append(text) or ast.parse(text))
    for _ in range(3):
        source_facts("x = 'one tree'\n")
    assert len(trees) == 1


def test_a_path_that_nobody_knows_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sources, asked = Sources(directory="/nowhere"), []
    original = sources._found
    monkeypatch.setattr(sources, "_found", lambda path: asked.append(path) or original(path))
    assert [sources.full("net.py") for _ in range(3)] == ["net.py"] * 3
    assert asked == ["net.py"]
    sources.full("/home/me/net.py")
    assert sources.full("net.py") == "/home/me/net.py"


def test_a_frame_further_in_gives_the_whole_name_of_one_before() -> None:
    sources, stack = Sources(lambda path: None), (("net.py", 3, "f"), ("/home/me/net.py", 5, "g"))
    sources.places(stack)  # in this order of frames the name is known too late
    whole = sources.index("/home/me/net.py")
    assert sources.places(stack) == ((whole, 3), (whole, 5))


@pytest.mark.parametrize("shown", ["a.py", "me/a.py", "home/me/a.py", "ome/me/a.py"])
def test_a_file_is_known_by_whatever_pytorch_leaves_of_its_name(shown: str) -> None:
    """Of a file that has only the root in common with PyTorch it takes away the root and one character more."""
    sources = Sources(lambda path: None, ["/home/me/a.py"])
    assert sources.full(shown) == os.path.normpath("/home/me/a.py")


@pytest.mark.parametrize("shown", ["e/a.py", "me/me/a.py", "/home/you/a.py"])
def test_a_part_of_a_name_is_no_other_file(shown: str) -> None:
    assert Sources(lambda path: None, ["/home/me/a.py"]).full(shown) == os.path.normpath(shown)
