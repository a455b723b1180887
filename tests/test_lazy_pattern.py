"""Patterns that are compiled lazily are compiled once, and all of them are valid."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import re
from typing import Any

import depyf
from depyf import lazy_pattern


def test_a_pattern_is_compiled_when_it_is_used(monkeypatch: Any) -> None:
    compiled = []
    original = re.compile
    monkeypatch.setattr(re, "compile", lambda *args: compiled.append(args) or original(*args))
    pattern = lazy_pattern.re_compile(r"(?P<a>\d)x", re.I)
    assert compiled == []
    match = pattern.search("1 2X")
    assert match is not None
    assert match["a"] == "2"
    assert pattern.search("1") is None
    assert compiled == [(r"(?P<a>\d)x", re.I)]
    assert pattern.pattern == r"(?P<a>\d)x"


def test_each_pattern_of_depyf_can_be_compiled() -> None:
    for module in pkgutil.walk_packages(depyf.__path__, "depyf."):
        if not any(part in module.name for part in ("dynamo", "integrations", "__main__")):  # these import PyTorch
            importlib.import_module(module.name)
    cls: Any = lazy_pattern.re_compile
    patterns = [each for each in gc.get_objects() if type(each) is cls]  # others may have a hostile __class__
    assert len(patterns) > 50
    for each in patterns:
        assert isinstance(each.pattern, (str, bytes))
