"""The work that decompiling takes grows as the code does, whatever its shape.

Times say nothing on a busy machine. What is counted is how many lines of the decompiler run, which is the same in every
run. What each shape costs in seconds is printed by ``benchmarks/shapes.py``.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Callable, Optional

import pytest

import depyf
import depyf.bytecode.lines
from depyf.decompiler import decompile_code
from depyf.sweep.targets import size

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = str(Path(depyf.__file__).parent)
# Larger columns are longer numbers: the line table of one long line has more bytes for each instruction.
LINE_TABLES = depyf.bytecode.lines.__file__

# The shape, and how many copies are few: four times as many must not cost much more than four times as much.
SHAPES = [
    ("chained assignment, one statement", 60),
    ("unpacking to many names", 120),
    ("elif chain, falls through to a return", 12),
    ("while, breaks and continues", 90),
    ("conditional expression, chain", 25),
    ("while, long and", 12),
    ("finally with returns", 50),
    ("finally nested", 10),
    ("match, constants", 12),
    ("match, sequences", 8),
    ("match, classes", 12),
    ("subscript chain", 60),
    ("method chain", 40),
    ("generator, yield from", 12),
    ("elif chain, returns", 80),
    ("while in a row", 80),
    ("finally in a row", 160),
    ("try in a row, except pass", 160),
    ("many variables", 250),
]
MOST = 1.15


@pytest.fixture(scope="module")
def code_of() -> Callable[[str, int], CodeType]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import shape_sources
        import shapes
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    by_name = {shape.name: shape for shape in shape_sources.SHAPES}

    def code(name: str, copies: int) -> CodeType:
        if name not in by_name:
            pytest.skip("not in this Python")
        made: CodeType = shapes.code_of(by_name[name], copies)
        return made

    return code


def lines_run(code: CodeType) -> int:
    """How many lines of this package run while ``code`` is decompiled and verified."""
    count = 0

    def inside(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return inside

    def called(frame: FrameType, event: str, argument: Any) -> Optional[Any]:
        name = frame.f_code.co_filename
        return inside if name.startswith(PACKAGE) and name != LINE_TABLES else None

    before = sys.gettrace()
    threading.settrace(called)  # what is nested deeply is worked on in another thread
    sys.settrace(called)
    try:
        decompile_code(code)
    finally:
        sys.settrace(before)
        threading.settrace(before)  # type: ignore[arg-type]
    return count


@pytest.mark.parametrize(("shape", "copies"), SHAPES, ids=[name for name, _ in SHAPES])
def test_an_instruction_costs_the_same_in_a_large_function(
    code_of: Callable[[str, int], CodeType], shape: str, copies: int
) -> None:
    small, large = code_of(shape, copies), code_of(shape, 4 * copies)
    decompile_code(small)  # what is loaded and cached once does not count
    assert lines_run(large) / size(large) < MOST * lines_run(small) / size(small)
