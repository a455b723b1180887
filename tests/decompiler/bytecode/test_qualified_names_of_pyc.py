"""A ``.pyc`` file of an older Python has the qualified names that its compiler gave, also in comprehensions."""

from __future__ import annotations

import importlib.util
import marshal

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.bytecode.pyc import parse_pyc

TEXTS = [
    "def f(n):\n    return [[i == j for j in n] for i in n]",
    "f = lambda n: {i: {(lambda: j) for j in n} for i in n}",
    "class C:\n    x = [list(j for j in i) for i in range(3)]",
]


@pytest.mark.parametrize("text", TEXTS)
def test_comprehensions_in_comprehensions_are_proved(text: str) -> None:
    code = compile(text, "<program>", "exec", dont_inherit=True)
    read = parse_pyc(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)).code
    assert decompile_code(read).verdict.proved
