"""Displays, f-strings."""

from __future__ import annotations

import pytest
from small_nodes import lifts, nodes


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("BUILD list 0", "[]"),
        ("LOAD x; BUILD tuple 1", "(x,)"),
        ("f(); g(); BUILD set 2", "{f(), g()}"),
        ("LOAD a; LOAD b; LOAD c; LOAD d; BUILD map 2", "{a: b, c: d}"),
        ("LOAD a; LOAD b; CONST ('x','y'); BUILD const_key_map 2", "{'x': a, 'y': b}"),
        ("BUILD list 0; LOAD a; ADD list 1", "[a]"),
        ("BUILD list 0; LOAD a; UPDATE list 1", "[*a]"),
        ("BUILD set 0; LOAD a; UPDATE set 1", "{*a}"),
        ("BUILD map 0; LOAD a; UPDATE map 1", "{**a}"),
        ("BUILD map 0; LOAD k; LOAD v; ADD map 1", "{k: v}"),
        ("BUILD list 0; LOAD a; UPDATE list 1; LIST_TO_TUPLE", "(*a,)"),
        ("BUILD list 0; CONST (1,2,3); UPDATE list 1", "[1, 2, 3]"),
        ("LOAD y; BUILD list 1; CONST (1,2,3); UPDATE list 1", "[y, *(1, 2, 3)]"),  # nobody folds a part of a display
        ("LOAD x; FORMAT '' False", "f'{x}'"),
        ("LOAD x; LOAD w; FORMAT r True", "f'{x!r:{w}}'"),
        ("LOAD x; CONVERT r; FORMAT '' False", "f'{x!r}'"),
        ("CONST 'a'; LOAD x; FORMAT '' False; BUILD string 2", "f'a{x}'"),
    ],
)
def test_displays(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; RETURN") == nodes(f"a: return {expected}")


@pytest.mark.parametrize(
    "ops",
    ["LOAD x; LOAD y; ADD list 1; RETURN", "LOAD x; LOAD y; UPDATE set 1; RETURN", "LOAD x; LIST_TO_TUPLE; RETURN"],
)
def test_what_is_no_display_does_not_grow(ops: str) -> None:
    with pytest.raises(ValueError, match="display"):
        lifts(f"a: {ops}")
