"""depyf.base.late_regex stands for a compiled pattern."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from depyf.base.late_regex import regex


def test_it_does_what_the_pattern_does_and_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    def counted(*of: object) -> object:
        compiled.append(of)
        return original(*of)  # type: ignore[call-overload]

    original = re.compile
    monkeypatch.setattr(re, "compile", counted)
    words = regex(r"(\w+) ", re.ASCII)
    assert not compiled
    assert [words.sub("-", each) for each in ("a b", "c d")] == ["-b", "-d"]
    assert words.sub is words.sub
    assert len(compiled) == 1
    assert (words.flags & re.ASCII, words.groups) == (re.ASCII, 1)


def test_it_is_copied_and_pickled() -> None:
    pattern = regex("a+")
    assert pattern.match("aa")
    for each in (copy.copy(pattern), copy.deepcopy(pattern), pickle.loads(pickle.dumps(pattern))):
        assert each.match("aab").group() == "aa"


def test_an_error_of_the_text_is_raised_when_it_is_used() -> None:
    broken = regex("(")
    with pytest.raises(re.error):
        broken.match("")
