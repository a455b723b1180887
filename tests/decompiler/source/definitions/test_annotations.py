"""Annotations that leave nothing but a cell: they are made up only where the class would not have it otherwise."""

from __future__ import annotations

import ast

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.result import Verdict

METHODS = {
    "a method": "class C:\n    def m(self):\n        return 3",
    "in a function": "def f(b):\n    class C:\n        x = 1\n        def m(self):\n            return b\n    return C",
    "in a class": "class D:\n    class C:\n        def m(self):\n            return 3",
    "async": "class C:\n    async def m(self):\n        return 3",
    "postponed in a module": "from __future__ import annotations\nx: int = 1\nif x:\n    f()",
    "postponed in a block": "from __future__ import annotations\nif a:\n    x: int = 1\ndef f(b: int): return b",
    "annotated, too": "class C:\n    x: int = 1\n    def m(self) -> int:\n        return 3",
}


@pytest.mark.parametrize("name", METHODS)
def test_classes_and_modules_come_back_as_written(name: str) -> None:
    answer = decompile_code(compile(METHODS[name], "<test>", "exec", dont_inherit=True))
    assert answer.verdict in (Verdict.EXACT, Verdict.EQUIVALENT), answer.reason
    assert ast.dump(ast.parse(answer.source)) == ast.dump(ast.parse(METHODS[name]))


def test_an_annotated_attribute_costs_no_proof() -> None:
    text = "class C:\n    x.y: int\nclass D:\n    x.y: int\n    def m(self):\n        return 3"
    assert decompile_code(compile(text, "<test>", "exec", dont_inherit=True)).verdict.proved
