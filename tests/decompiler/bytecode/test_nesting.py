"""Qualified names of code objects of Pythons that do not store them."""

from __future__ import annotations

from pathlib import Path
from typing import Set

import pytest

from depyf.decompiler.bytecode.code import Code, is_code
from depyf.decompiler.bytecode.nesting import names_of, qualified_name
from depyf.decompiler.bytecode.pyc import read_pyc

PYCS = Path(__file__).parent / "pycs"


def all_names(code: Code) -> Set[str]:
    known = names_of(code)
    found: Set[str] = set()
    for constant in code.co_consts:
        if is_code(constant):
            found |= {known.within(constant), *all_names(constant)}
    return found


@pytest.mark.parametrize("version", ["38", "39", "310", "311"])
def test_the_names_are_those_that_newer_versions_keep(version: str) -> None:
    names = all_names(read_pyc(PYCS / f"cp{version}.pyc").code)
    assert names == all_names(read_pyc(PYCS / "cp311.pyc").code)
    assert {"outer.<locals>.Local.method", "outer.<locals>.inner", "Top.method"} <= names


@pytest.mark.parametrize("version", ["38", "39", "310"])
def test_a_function_that_makes_functions_knows_its_own(version: str) -> None:
    module = read_pyc(PYCS / f"cp{version}.pyc").code
    outer = next(constant for constant in module.co_consts if is_code(constant) and constant.co_name == "outer")
    local = next(constant for constant in outer.co_consts if is_code(constant) and constant.co_name == "Local")
    assert (qualified_name(outer), qualified_name(local)) == ("outer", "outer.<locals>.Local")
