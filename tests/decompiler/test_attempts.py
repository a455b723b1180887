"""The form that is tried first is the one that is proved: a second attempt takes as long as the first."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from typing import Any, List

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.pipeline.attempts import Attempts
from depyf.decompiler.pipeline.forms import Form


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the first form needs columns")
@pytest.mark.parametrize("name", ["csv", "fractions", "heapq", "pickle", "string", "textwrap"])
def test_a_module_takes_one_attempt(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = forms_tried(monkeypatch)
    source = inspect.getsource(importlib.import_module(name))
    assert decompile_code(compile(source, name, "exec", dont_inherit=True)).verdict.proved
    assert tried == [Form.WRITTEN]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the first form needs columns")
def test_what_a_handler_does_at_its_end_stays_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The finally clause is written once for each way into it, and one of them is a handler."""
    source = """
def f(a, b):
    try:
        a(1)
        return
    finally:
        a(4)
        try:
            a(5)
        except:
            a(6)
        finally:
            if a(7):
                return a(8)
            raise Alpha(11)
        a(12)
    a(13)
    return a, b
"""
    tried = forms_tried(monkeypatch)
    assert decompile_code(compile(source, "<program>", "exec", dont_inherit=True)).verdict.proved
    assert tried == [Form.WRITTEN]


def forms_tried(monkeypatch: pytest.MonkeyPatch) -> List[Form]:
    """The forms of all attempts from now on."""
    tried: List[Form] = []
    original: Any = Attempts.attempt

    def attempt(attempts: Attempts) -> Any:
        tried.append(attempts.form)
        return original(attempts)

    monkeypatch.setattr(Attempts, "attempt", attempt)
    return tried


def test_a_plain_function_imports_neither_dispatch_loops_nor_proofs() -> None:
    """Together they are a tenth of what the first decompilation of a process takes."""
    program = (
        "import sys, depyf\n"
        "def f(a, b):\n"
        "    for x in a:\n"
        "        if x > b:\n"
        "            return x\n"
        "assert 'return x' in depyf.decompile(f)\n"
        "print(*sorted(name for name in sys.modules if name.startswith('depyf.')))\n"
    )
    loaded = subprocess.check_output([sys.executable, "-"], input=program, text=True).split()
    assert "depyf.decompiler.verify.compare" in loaded
    unused = {"structure.dispatch", "verify.product", "bytecode.pyc"}
    assert not {f"depyf.decompiler.{each}" for each in unused} & set(loaded)
