"""Sizes in the text of graphs are computed and never run as code."""

from __future__ import annotations

from pathlib import Path

import pytest

from depyf.dynamo.scripts.from_text import size_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        (" s0*8 ", 40),
        ("((s0 + 1)//2)", 3),
        ("-s0 + 7", 2),
        ("Max(1, s0 - 9)", 1),
        ("Min(s0, 3)*s1**2", 147),
        ("FloorDiv(s1, 2)", 3),
        ("Mod(s1, 4)", 3),
    ],
)
def test_sizes_are_computed(text: str, expected: int) -> None:
    assert size_of(text, {"s0": 5, "s1": 7}) == expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch run')",
        "().__class__.__mro__[1].__subclasses__()",
        "[x for x in (1,)]",
        "9**9**9**9",
        "2**s0**s0**s0",
        "Max(*s0)",
        "s0.bit_length()",
        "lambda: 1",
        "1.5",
        "True",
        "s9",
        "1//0",
        "(" * 500,
        "-" * 100_000 + "1",
        "",
    ],
)
def test_what_is_no_size_is_refused_and_not_run(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError):
        size_of(text, {"s0": 5})
    assert not list(tmp_path.iterdir())
