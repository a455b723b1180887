"""Lines inside of strings keep their indentation, whatever the text around them gets."""

from __future__ import annotations

from typing import Set

import pytest

from depyf.decompiler.source.printing import layout
from depyf.decompiler.source.printing.layout import lines_inside_strings, reindented


@pytest.mark.parametrize("prefix", ["", "f", "rb", "rf"])
def test_lines_inside_of_strings_keep_their_indentation(prefix: str) -> None:
    inside = f'{prefix}"""\n    a {{x}}\n        b\n"""'
    assert reindented(f"if x:\n    y = {inside}\n    z\n", 2) == f"if x:\n  y = {inside}\n  z\n"


WITH_STRINGS = [
    ('x = """a\nb\n\'\'\'"""\ny = 1\n', {2, 3}),
    ("x = 'isn\\'t'  # it's \"\"\"\ny = '''\n\"\n'''\n", {3, 4}),
    ('x = "a\\\nb", r"\\\\"\ny = 2\n', {2}),
    ('# don\'t """\nx = \'#\'\ny = """#\n"""\n', {4}),
    ('x = """\\"""\n"""\n', {2}),
    ('def f():\n    """Print f"no field".\n\n    isn\'t\n    """\n', {3, 4, 5}),
]


@pytest.mark.parametrize(("text", "inside"), WITH_STRINGS)
@pytest.mark.parametrize("fields", ["", 'z = f"{x}"\n'])
def test_lines_inside_of_strings_are_found(text: str, inside: Set[int], fields: str) -> None:
    assert lines_inside_strings(text + fields) == inside


def test_a_text_without_replacement_fields_is_not_tokenised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout.tokenize, "generate_tokens", None)
    for text, inside in (WITH_STRINGS[0], *WITH_STRINGS[2:5]):
        assert lines_inside_strings(text) == inside


def test_what_comes_before_a_string_without_an_end_is_right() -> None:
    assert lines_inside_strings('x = """\n"""\ny = \'\nz = """\n') >= {2}
