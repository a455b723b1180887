"""Inlined comprehensions become separate code objects again, whichever Python reads the bytecode."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, List

import pytest

from depyf.decompiler.bytecode.code import Code, is_code
from depyf.decompiler.bytecode.pyc import parse_pyc
from depyf.decompiler.flow.comprehensions import outline
from depyf.decompiler.normal.inlined import InlinedCode
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import NormalCode, Op

PYCS = Path(__file__).resolve().parent.parent / "bytecode" / "pycs"


def codes(code: Code) -> Iterator[Code]:
    yield code
    for constant in code.co_consts:
        if is_code(constant):
            yield from codes(constant)


def outlined(normal: NormalCode) -> List[InlinedCode]:
    """The comprehensions of ``normal``, those in comprehensions included."""
    found = [instr.arg for instr in normal.ops if instr.op is Op.COMPREHENSION]
    for code in list(found):
        found.extend(outlined(lower(code)))
    return found


@pytest.mark.parametrize("version", ["cp312", "cp313"])
def test_comprehensions_of_other_pythons(version: str) -> None:
    module = parse_pyc((PYCS / f"{version}.pyc").read_bytes()).code
    found: List[InlinedCode] = []
    for code in codes(module):
        normal = outline(lower(code))
        assert not any(instr.op in (Op.TAKE, Op.ADD) for instr in normal.ops), normal.listing()
        found.extend(outlined(normal))
    assert sorted((code.co_name, code.co_varnames, code.co_cellvars) for code in found) == [
        ("<dictcomp>", (".0", "key", "value"), ()),
        ("<listcomp>", (".0", "x"), ()),
    ]
    for code in found:
        assert [instr.op for instr in lower(code).ops[:3]] == [Op.BUILD, Op.LOAD, Op.FOR]
        assert lower(code).ops[-1].op is Op.RETURN


def test_copies_are_equal() -> None:
    """A ``finally`` body stands in the bytecode once for every way out; the comprehensions in it are the same."""
    source = "def f(xs):\n try:\n  g()\n finally:\n  h([x for x in xs if x != 1])\n return 1"
    function = next(codes(compile(source, "<test>", "exec").co_consts[0]))
    found = outlined(outline(lower(function)))
    if found:  # before 3.12 they are code objects anyway
        first, second = found
        assert first == second
        assert hash(first) == hash(second)
        other = next(codes(compile(source.replace("!= 1", "!= 2"), "<test>", "exec").co_consts[0]))
        assert outlined(outline(lower(other)))[0] != found[0]
