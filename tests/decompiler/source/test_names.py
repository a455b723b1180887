"""Names that can't be written, and names that a class would mangle."""

from __future__ import annotations

import ast
from typing import Any, Dict

import pytest

from depyf.decompiler.source.names import is_writable, make_writable, mangle
from depyf.decompiler.source.printing.statements import unparse


def written(source: str, **names: str) -> Any:
    """The text and the mapping for ``source`` with its identifiers replaced by ``names``."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name"):
            old = getattr(node, field, None)
            if isinstance(old, str):
                setattr(node, field, names.get(old, old))
    result, originals = make_writable(tree)
    return unparse(result), originals


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        (".0", "iterable"),
        ("tmp-1", "tmp_1"),
        ("L['x']", "L_x"),
        ("class", "class_"),
        ("None", "None_"),
        ("1", "_1"),
        ("", "name"),
        ("___stack0 ", "stack0"),
        ("__debug__", "debug___"),
        ("ﬁ", "fi_"),
        ("a.b", "a_b"),
        ("\0", "name"),
    ],
)
def test_a_name_that_cannot_be_written_becomes_a_readable_one(name: str, readable: str) -> None:
    text, originals = written("A = 1", A=name)
    assert not is_writable(name)
    new = text.split(" = ")[0]
    assert is_writable(new)
    assert new == readable
    assert originals == {new: name}


def test_new_names_differ_from_each_other_and_from_all_others() -> None:
    text, originals = written("A = B = tmp_1 = 'tmp_1_1'", A="tmp-1", B="tmp 1")
    assert text == "tmp_1_2 = tmp_1_3 = tmp_1 = 'tmp_1_1'"
    assert originals == {"tmp_1_2": "tmp-1", "tmp_1_3": "tmp 1"}


CLASS = "class {}:\n    def f(self, A):\n        return self.B(A)"


def test_private_names_are_written_without_the_mangling_of_their_class() -> None:
    text, originals = written(CLASS.format("_C"), A="_C__a", B="_C__b")
    assert text == CLASS.format("_C").replace("A", "__a").replace("B", "__b")
    assert originals == {}


@pytest.mark.parametrize(
    ("class_name", "name"),
    [
        ("_", "__a"),
        ("C", "_D__a"),
        ("C", "__a__"),
        ("C", "_C_a"),
        ("C", "_C__a__"),
    ],
)
def test_names_that_no_mangling_touches_are_written_as_they_are(class_name: str, name: str) -> None:
    text, originals = written(CLASS.format(class_name), A=name, B="b")
    assert text == CLASS.format(class_name).replace("A", name).replace("B", "b")
    assert originals == {}


def test_a_name_that_would_be_mangled_by_accident_gets_another_one_everywhere() -> None:
    text, originals = written("def g(A):\n    class C:\n        def f(self):\n            return A", A="__a")
    assert text == "def g(a_):\n    class C:\n        def f(self):\n            return a_"
    assert originals == {"a_": "__a"}


def test_the_innermost_class_counts() -> None:
    text, _ = written("class C:\n    class D:\n        A = B", A="_D__a", B="_C__a")
    assert text == "class C:\n    class D:\n        __a = _C__a"


@pytest.mark.parametrize(
    ("name", "class_name"),
    [
        ("__a", "C"),
        ("__a", "__C"),
        ("__a", "_"),
        ("__a__", "C"),
        ("a", "C"),
        ("__a", "C_"),
        ("_a", "C"),
        ("__", "C"),
    ],
)
def test_mangling_is_that_of_the_compiler(name: str, class_name: str) -> None:
    names: Dict[str, Any] = {}
    exec(f"class {class_name}:\n    {name} = 1", names)
    assert mangle(name, class_name) in vars(names[class_name])
    assert mangle(name, None) == name
