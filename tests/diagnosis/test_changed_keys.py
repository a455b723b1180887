"""New and missing keys are reported only where they are known."""

from __future__ import annotations

from typing import Optional, Set

import pytest

from depyf.diagnosis.changed_keys import keys_of, with_changed_keys, with_keys_read
from depyf.diagnosis.guard_advice import ANY_FRAME, GuardedFrame
from depyf.diagnosis.guard_explanations import explain
from depyf.diagnosis.guard_text import read

STARRED = GuardedFrame(keywords="kw")


@pytest.mark.parametrize(
    ("guard", "frame", "before", "now", "words"),
    [
        ("not L['kw']", STARRED, set(), {"'a'"}, "it is called with a (**kw), and was compiled for a call without"),
        (
            "len(L['kw']) != 1",
            STARRED,
            {"'a'"},
            set(),
            "it is called without a (**kw), and was compiled for a call with",
        ),
        (
            "len(L['kw']) != 1",
            STARRED,
            {"'a'"},
            {"'a'", "'b'"},
            "it is called with b (**kw), and was compiled for a call without",
        ),
        (
            "set(L['kw'].keys()) == {'a'}",  # PyTorch before 2.4
            STARRED,
            {"'a'"},
            {"'a'", "'b'"},
            "it is called with b (**kw), and was compiled for a call without",
        ),
        ("set(L['d'].keys()) == {'a'}", ANY_FRAME, {"'a'"}, set(), "d lacks 'a', which it had when this was compiled"),
        # a second one was there that no guard reads: b may be it
        (
            "len(L['kw']) != 2",
            STARRED,
            {"'a'"},
            {"'a'", "'b'", "'c'"},
            "the keyword arguments (**kw) differ from those",
        ),
        ("len(L['kw']) != 1", STARRED, {"'a'"}, None, "the keyword arguments (**kw) differ from those"),
        ("len(L['d']) != 1", ANY_FRAME, {"'a'"}, {"'b'"}, "d has 'b', which it lacked and lacks 'a', which it had"),
        (
            "len(L['d']) != 3",
            ANY_FRAME,
            {"'a'"},
            {"'a'", "'b'"},
            "d has a different number of keys; it was compiled for 3",
        ),
        ("len(L['xs']) == 1", ANY_FRAME, set(), {"'a'"}, "xs has another number of items, and was compiled for 1"),
    ],
)
def test_new_and_gone_keys_are_named(
    guard: str, frame: GuardedFrame, before: Set[str], now: Optional[Set[str]], words: str
) -> None:
    assert with_changed_keys(explain(read(guard), frame), before, now, frame).words.startswith(words)


def test_what_the_guards_of_the_next_entry_do_not_read_is_not_said_to_be_gone() -> None:
    guard = explain(read("len(L['kw']) != 1"), STARRED)
    assert "without a (" not in with_keys_read(guard, {"'a'"}, set(), STARRED).words
    assert "is called with b (**kw)" in with_keys_read(guard, {"'a'"}, {"'a'", "'b'"}, STARRED).words


def test_keys_are_those_that_guards_read() -> None:
    sources = ["L['kw']['a']", "L['kw']['b'].shape", "L['kwargs']['c']", "L['kw']", "L['x']"]
    assert keys_of("kw", sources) == {"'a'", "'b'"}
