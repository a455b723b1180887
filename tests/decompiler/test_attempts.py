"""The form that is tried first is the one that is proved: a second one takes as long as the first."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any, List

import pytest

from depyf.decompiler import decompile_code
from depyf.pipeline.attempts import Attempts, Form


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the first form needs columns")
@pytest.mark.parametrize("name", ["csv", "fractions", "heapq", "pickle", "string", "textwrap"])
def test_a_module_takes_one_attempt(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: List[Form] = []
    original: Any = Attempts.attempt

    def attempt(attempts: Attempts) -> Any:
        tried.append(attempts.form)
        return original(attempts)

    monkeypatch.setattr(Attempts, "attempt", attempt)
    source = inspect.getsource(importlib.import_module(name))
    assert decompile_code(compile(source, name, "exec", dont_inherit=True)).verdict.proved
    assert tried == [Form.WRITTEN]
