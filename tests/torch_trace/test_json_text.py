"""JSON is read and written the same with ``msgspec`` as with the standard library alone."""

from __future__ import annotations

import json
from typing import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depyf.torch_trace import json_text

TEXTS = st.text(st.characters(exclude_categories=()))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)
ODD = (
    *(
        "12345678901234567890123",
        "NaN",
        "-Infinity",
        '"\\ud800"',
        "1e400",
        "-0",
        "-0.0",
        '{"a": 1, "a": 2}',
        "[" * 99_999,
    ),
    *('"\x00"', "01", "1 ", "\ufeff1", '"\t"', "9" * 5000, "5e-324", '"\\ud83d\\ude00"', "", "{", "nul", "[1,]"),
)


@pytest.fixture(autouse=True)
def fast() -> Iterator[None]:
    """``msgspec`` is used, in these tests alone."""
    pytest.importorskip("msgspec")
    before = json_text._read, json_text._write
    json_text.use_fast()
    assert json_text._read is not json.loads
    yield
    json_text._read, json_text._write = before


def outcome(read: Callable[[str], object], text: str) -> str:
    """Return what a text is read as, or the kind of the error."""
    try:
        return repr(read(text))
    except RecursionError:
        return "ValueError"
    except ValueError:
        return "ValueError"


@given(VALUES)
def test_values_are_read_as_json_reads_them(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert outcome(json_text.parsed, text) == outcome(json.loads, text)


@pytest.mark.parametrize("text", ODD, ids=lambda text: ascii(text)[:20])
def test_odd_texts_are_read_as_json_reads_them(text: str) -> None:
    assert outcome(json_text.parsed, text) == outcome(json.loads, text)


@given(TEXTS)
def test_texts_are_written_as_json_writes_them(text: str) -> None:
    assert json_text.quoted(text) == json.dumps(text, ensure_ascii=False)


def test_every_character_is_written_as_json_writes_it() -> None:
    text = "".join(map(chr, range(0xD800))) + "".join(map(chr, range(0xE000, 0x110000)))
    assert json_text.quoted(text) == json.dumps(text, ensure_ascii=False)


def test_an_object_of_a_class_derived_from_str_is_written_as_a_string() -> None:
    class Name(str):
        __slots__ = ()

    for text in ("a", '"', "\ud800"):
        assert json_text.quoted(Name(text)) == json.dumps(text, ensure_ascii=False)
