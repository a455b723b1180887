"""Modules with ``from __future__ import annotations``: since 3.14 they make a set that nothing reads."""

from __future__ import annotations

from typing import Any

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.bytecode.code import PortableCode
from depyf.decompiler.bytecode.opcode_table import running_version
from depyf.decompiler.bytecode.other_pythons import interpreter_of
from depyf.decompiler.verify import compare

TEXT = """
from __future__ import annotations
x: int = 3
if x:
    y: int = 4
class K:
    z: int = 5
    if z:
        w: str = 3
    def f(self, a: K) -> K:
        if a:
            b: int = a
        return b
"""

pytestmark = pytest.mark.skipif(running_version() < (3, 14), reason="the set is new in 3.14")


@pytest.fixture(params=["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"])
def original(request: Any) -> PortableCode:
    interpreter = interpreter_of((3, int(request.param[2:])))
    if interpreter is None:
        pytest.skip(f"no CPython {request.param} on PATH")
    return interpreter.compile(TEXT, "m.py", "exec", 0)


def test_they_are_proved_and_the_set_is_named(original: PortableCode) -> None:
    answer = decompile_code(original, python="none")
    assert answer.verdict.proved, answer.reason
    assert "postponed annotations come with an empty set" in answer.compiler_changes
    assert answer.source.startswith("from __future__ import annotations")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("x: int = 3", "x: str = 3"),
        ("    y: int = 4", "    y = 4"),
        ("    y: int = 4", "    v: int = 4"),
        ("if x:\n    y: int", "if not x:\n    y: int"),
        ("if x:\n    y: int", "if 1:\n    y: int"),
        ("w: str = 3", "w: int = 3"),
        ("    if z:\n        w: str = 3", "    w: str = 3"),
        ("class K:", "__conditional_annotations__ = set()\nclass K:"),
        ("class K:", "print(__conditional_annotations__)\nclass K:"),
        ("class K:\n", "class K:\n    __conditional_annotations__ = set()\n"),
        ("from __future__ import annotations\n", ""),
        ("from __future__ import annotations\n", "from __future__ import annotations, division\n"),
        ("a: K) -> K", "a: K) -> L"),
    ],
)
def test_a_similar_program_is_not_proved(original: PortableCode, right: str, wrong: str) -> None:
    assert TEXT.count(right) == 1
    assert compare(original, compile(TEXT, "m.py", "exec", dont_inherit=True)).proved
    assert not compare(original, compile(TEXT.replace(right, wrong), "m.py", "exec", dont_inherit=True)).proved
