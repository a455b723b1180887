"""Tests marked ``shared``: each Python but the main one runs a share, and all shares together are all tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, List, Set

import pytest


class Item:
    """A collected test, as far as shares depend on it."""

    def __init__(self, nodeid: str, *markers: str) -> None:
        self.nodeid, self._markers = nodeid, markers

    def get_closest_marker(self, name: str) -> object:
        return name if name in self._markers else None


def in_other_shares(items: List[Item], part: int, parts: int) -> Set[str]:
    spec = importlib.util.spec_from_file_location("shares", Path(__file__).with_name("conftest.py"))
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {item.nodeid for item in module.in_other_shares(items, part, parts)}


@pytest.mark.parametrize("parts", [1, 3, 4])
def test_the_shares_are_apart_and_together_all(parts: int) -> None:
    shared = [Item(f"{file}.py::test[{number}]", "shared") for file in "ab" for number in range(7)]
    everywhere = [Item("a.py::test_other"), Item("c.py::test", "slow")]
    items = [everywhere[0], *shared, everywhere[1]]
    ran = [
        item.nodeid for part in range(parts) for item in items if item.nodeid not in in_other_shares(items, part, parts)
    ]
    assert sorted(ran) == sorted(item.nodeid for item in [*shared, *everywhere * parts])
    for part in range(parts):
        left = in_other_shares(items, part, parts)
        assert len(shared) - len(left) in range(2 * (7 // parts), 2 * (7 // parts + 1) + 1)
