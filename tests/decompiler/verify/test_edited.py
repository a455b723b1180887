"""A function and an edited one: renamed variables are matched, and no other difference is hidden by that."""

from __future__ import annotations

import textwrap
from types import CodeType

import pytest

from depyf.decompiler import EditedComparison, Finding, compare_edited


def function(text: str) -> CodeType:
    module = compile(textwrap.dedent(text), "<test>", "exec", dont_inherit=True)
    (code,) = [each for each in module.co_consts if isinstance(each, CodeType)]
    return code


def compared(original: str, edited: str) -> EditedComparison:
    return compare_edited(function(original), function(edited))


TWO = "def f(a, b):\n    x = a\n    y = b\n    return x - y"
CLASS = "def f(a):\n    q = a\n    class C:\n        b = q\n    return C\n"
CLOSURE = "def f(a):\n    q = a\n    def g(): return q * 3\n    return g\n"


@pytest.mark.parametrize(
    ("original", "edited"),
    [
        ("def f(a):\n    x = a + 1\n    return x", "def f(a):\n    z = a + 1\n    return z"),
        ("def f(a): return [i for i in a]", "def f(a): return [j for j in a]"),
        (CLOSURE, CLOSURE.replace("q", "r")),
        (CLOSURE, CLOSURE.replace("q", "r").replace("    def", "    t = 1\n    def")),
    ],
)
def test_new_names_of_variables_are_matched(original: str, edited: str) -> None:
    found = compared(original, edited)
    assert found.proved, found.reason
    assert found.renamed
    assert not found.has_same_bytecode


@pytest.mark.parametrize(
    ("original", "edited"),
    [
        # A global of that name, a parameter, a swap, and a name that the original has: none is a consistent renaming.
        ("def f():\n    x = 1\n    return z + x", "def f():\n    z = 1\n    return z + z"),
        ("def f(a, x):\n    return x", "def f(a, z):\n    return z"),
        (
            "def f(a, b):\n    x = a\n    y = b\n    return x - y",
            "def f(a, b):\n    s = b\n    t = a\n    return s - t",
        ),
        (
            "def f(a, b):\n    x = a\n    y = b\n    return x - y",
            "def f(a, b):\n    x = b\n    y = a\n    return x - y",
        ),
        ("def f(a):\n    x = a\n    return x", "def f(a):\n    z = a\n    return x"),
        ("def f(a):\n    x = a\n    return lambda x: x", "def f(a):\n    z = a\n    return lambda z: z"),
        (CLOSURE, CLOSURE.replace("q", "r").replace("3", "4")),
    ],
)
def test_a_difference_under_new_names_is_found(original: str, edited: str) -> None:
    assert compared(original, edited).finding is Finding.DIFFERENT


@pytest.mark.parametrize(
    ("original", "edited"),
    [
        ("def f(a):\n    x = a\n    return locals()", "def f(a):\n    z = a\n    return locals()"),
        ("def f(a):\n    x = g\n    return a.f_locals", "def f(a):\n    z = g\n    return a.f_locals"),
        (CLASS, CLASS.replace("q", "r")),
        # A step on a variable of a closure may be harmless: it is no certain difference.
        (CLOSURE, CLOSURE.replace("    def", "    t = q\n    u = q\n    def")),
        (CLOSURE, CLOSURE.replace("q * 3", "r * 3").replace("q = a", "r = a; s = 1").replace("3", "s")),
    ],
)
def test_what_is_not_certain_is_not_called_different(original: str, edited: str) -> None:
    found = compared(original, edited)
    assert found.finding is Finding.UNVERIFIED
    assert found.reason


def test_the_first_difference_has_the_lines_of_both_files() -> None:
    found = compared("def f(a):\n    return [i * 2 for i in a]", "\n\ndef f(a):\n\n    return [i * 3 for i in a]")
    assert found.lines == (2, 5)
    assert "at line 2 (edited: line 5) the original does: binary '*'" in found.reason
    assert "offset" not in found.reason
