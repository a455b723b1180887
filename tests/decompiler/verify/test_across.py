"""Code of older Pythons, read from .pyc files, is decompiled and proved with the compiler of the running one."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Iterator

import pytest

from depyf.decompiler.bytecode.code import is_code
from depyf.decompiler.bytecode.opcode_table import running_version
from depyf.decompiler.bytecode.pyc import read_pyc
from depyf.decompiler.normal.lowering import dialect_of
from depyf.decompiler.pipeline import decompile_code
from depyf.decompiler.verify import Finding, compare

PYCS = Path(__file__).resolve().parent.parent / "bytecode" / "pycs"


def readable() -> Iterator[Any]:
    for path in sorted(PYCS.glob("*.pyc")):
        version = read_pyc(path).version
        if version > running_version():
            continue
        try:
            dialect_of(version)
        except NotImplementedError:
            continue  # not yet
        yield pytest.param(path, id=path.stem)


@pytest.mark.parametrize("path", list(readable()))
def test_the_specimen_of_every_older_python_is_proved(path: Path) -> None:
    pyc = read_pyc(path)
    answer = decompile_code(pyc.code, python="none")
    assert answer.verdict.proved, answer.reason
    written = ast.parse((PYCS.parent / "specimen.py").read_text())
    names = {node.name for node in ast.walk(written) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert names <= {node.name for node in ast.walk(answer.tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


@pytest.mark.parametrize("path", list(readable()))
@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("x + counter", "x - counter"),
        ("for x in args if", "for x in a if"),
        ('"some"', '"other"'),
        ("super().__init__()", "super().__iter__()"),
        ("field: int = 3", "field: int = 4"),
        ('"a", "b")', '"b", "a")'),
        ("A function with everything", "A function"),
        ("A class in a function", "Another class"),
        ("key: value for", "value: key for"),
        ("self[1:2]", "self[1:3]"),
    ],
)
def test_other_source_is_no_match(path: Path, wrong: str, right: str) -> None:
    text = (PYCS.parent / "specimen.py").read_text()
    assert text.count(wrong) == 1
    original = read_pyc(path).code
    assert compare(original, compile(text, "specimen.py", "exec", dont_inherit=True)).proved
    changed = compile(text.replace(wrong, right), "specimen.py", "exec", dont_inherit=True)
    assert compare(original, changed).finding in (Finding.DIFFERENT, Finding.UNVERIFIED)


def test_there_is_at_least_the_specimen_of_the_running_python() -> None:
    assert any(read_pyc(parameter.values[0]).version == running_version() for parameter in readable())
    assert is_code(read_pyc(PYCS / "cp38.pyc").code)
