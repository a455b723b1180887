"""The list of break codes with and without advice, in the documentation, is that of the installed PyTorch."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        torch.__version__.split(".")[:2] != ["2", "13"], reason="the page has the codes of PyTorch 2.13"
    ),
]


def tool() -> ModuleType:
    path = Path(__file__).parents[2] / "tools" / "show" / "list_break_codes.py"
    spec = importlib.util.spec_from_file_location("list_break_codes", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_codes_of_today() -> None:
    found = tool()
    assert found.page() == found.PAGE.read_text(), "run tools/show/list_break_codes.py --write"


def test_each_code_is_in_one_of_the_lists() -> None:
    found = tool()
    assert len(found.causes()) > 500
    for code in found.causes():
        assert found.lists().count(f"{code}") == 1, code
