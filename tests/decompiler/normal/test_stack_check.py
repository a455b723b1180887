"""The bounds of the nesting, which take a fraction of the time of the estimate."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from types import CodeType, ModuleType
from typing import Iterator

import pytest

from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.stack_check import bounds, nesting


def code_objects(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)


@pytest.mark.parametrize("module", [argparse, inspect])
def test_the_estimate_is_between_its_bounds(module: ModuleType) -> None:
    assert module.__file__ is not None
    for code in code_objects(compile(Path(module.__file__).read_text(), module.__file__, "exec", dont_inherit=True)):
        normal = lower(code)
        least, most = bounds(normal)
        assert least <= nesting(normal) <= most + 1, code.co_name


def test_one_long_expression_may_be_as_deep_as_it_is_long() -> None:
    least, most = bounds(lower(compile("+".join(["a"] * 300), "", "eval")))
    assert least == 0
    assert most >= 300


def test_statements_in_a_row_are_not_nested() -> None:
    least, most = bounds(lower(compile("a = b + c\n" * 300, "", "exec")))
    assert (least, most < 10) == (0, True)
