"""What comes back is what a person wrote: the share of the corpus whose syntax tree returns unchanged."""

from __future__ import annotations

from typing import List

import pytest
from corpus import code_of_function, compile_corpus, specimens
from same_source import same_source

from depyf.decompiler import decompile_code
from depyf.result import DecompilationError

# Not 1: where CPython made one jump of two, several texts are as good, and the bytecode does not say which it was.
FLOOR = 0.85


def came_back(file: str) -> List[str]:
    """``name: ok`` or the name with both texts, for every specimen of a corpus file."""
    module = compile_corpus(file)
    lines = []
    for specimen in (each for each in specimens() if each.file == file):
        try:
            source = decompile_code(code_of_function(module, specimen.name)).source
        except DecompilationError as error:
            lines.append(f"{specimen.name}: {error}")
            continue
        verdict = "ok" if same_source(specimen.source, source) else f"differs\n{specimen.source}\n---\n{source}"
        lines.append(f"{specimen.name}: {verdict}")
    return lines


@pytest.mark.parametrize(
    "file", ["arguments", "closures", "comprehensions", "contexts", "expressions", "loops", "conditions", "statements"]
)
def test_most_functions_come_back_as_they_were_written(file: str, record_property: pytest.RecordProperty) -> None:
    lines = came_back(file)
    same = [line for line in lines if line.endswith(": ok")]
    share = len(same) / len(lines)
    record_property("share", share)
    print(f"{file}: {len(same)} of {len(lines)} have the same tree ({100 * share:.0f} %)")
    assert share >= FLOOR, "\n\n".join(line for line in lines if not line.endswith(": ok"))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("def f(a: int = 1) -> int:\n return a", "def f(a):\n return a"),
        ("def f(a):\n if a:\n  return 1\n else:\n  return 2", "def f(a):\n if a:\n  return 1\n return 2"),
        ("def f():\n import a, b", "def f():\n import a\n import b\n return None"),
        ("def f():\n x: int = 1\n 'noise'\n pass", "def f():\n x = 1"),
        ("def f(a):\n return 1 if a else 2", "def f(a):\n if a:\n  return 1\n return 2"),
        ("def f(a, b):\n if not (a and b):\n  g()", "def f(a, b):\n if not a or not b:\n  g()"),
        ("def f(a, b):\n if a:\n  if b:\n   g()", "def f(a, b):\n if a and b:\n  g()"),
        ("def f(a):\n for x in a:\n  g()\n else:\n  h()", "def f(a):\n for x in a:\n  g()\n h()"),
        ("def f(a):\n with a, b:\n  g()", "def f(a):\n with a:\n  with b:\n   g()"),
        ("def f():\n return 24 * 60, 'ab' * 2", "def f():\n return 1440, 'abab'"),
        ("def f():\n del a, (b, c)", "def f():\n del a\n del b\n del c"),
    ],
)
def test_texts_that_compile_alike_count_as_the_same(left: str, right: str) -> None:
    assert same_source(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("def f(a):\n return a", "def f(b):\n return b"),
        ("def f(a):\n if a:\n  g()\n else:\n  h()", "def f(a):\n if a:\n  g()\n h()"),
        ("def f(a):\n for x in a:\n  break\n else:\n  h()", "def f(a):\n for x in a:\n  break\n h()"),
        ("def f(a, b):\n if a:\n  if b:\n   g()\n else:\n  h()", "def f(a, b):\n if a and b:\n  g()\n else:\n  h()"),
        ("def f():\n 'doc'", "def f():\n pass"),
        ("def f(a):\n while a:\n  pass", "def f(a):\n while True:\n  pass"),
        ("def f(a):\n for x in [1, *a]:\n  g(x)", "def f(a):\n for x in (1, *a):\n  g(x)"),
    ],
)
def test_texts_that_mean_something_else_do_not(left: str, right: str) -> None:
    assert not same_source(left, right)
