"""What is known of a block of statements is true after each change."""

from __future__ import annotations

import ast
import random
from typing import Any, Dict, List

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.structure.restore_jumps import LeastFrom, _column_key, _Restorer


def test_the_results_are_those_of_the_current_keys() -> None:
    choose = random.Random(1)

    def some_keys(most: int) -> List[int]:
        return [choose.randrange(8) for _ in range(choose.randint(0, most))]

    for _ in range(300):
        keys = some_keys(6)
        known = LeastFrom(list(keys))
        for _ in range(6):
            start = choose.randint(0, len(keys))
            stop, new = choose.randint(start, len(keys)), some_keys(3)
            keys[start:stop] = new
            known.replace(start, stop, new)
            assert known.least == [min(keys[index:]) for index in range(len(keys))]


def test_the_keys_are_those_of_the_block_after_each_jump_that_is_inserted(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: List[bool] = []
    original = _Restorer.restore

    def checked(restorer: _Restorer, block: List[ast.stmt], *args: Any, **kwargs: Any) -> None:
        original(restorer, block, *args, **kwargs)
        for known, lines in restorer._starts.values():
            compared.append(len(known) > 1)
            assert lines.keys == list(map(restorer._first, known))
        for known, columns in restorer._columns.values():
            assert columns.keys == list(map(_column_key, known))

    monkeypatch.setattr(_Restorer, "restore", checked)
    cases = (f"        if f({n}):\n            continue\n        if g({n}):\n            pass\n" for n in range(20))
    namespace: Dict[str, Any] = {}
    exec("def h(a, f, g):\n    while a:\n" + "".join(cases), namespace)
    decompile_code(namespace["h"].__code__)
    assert any(compared)
