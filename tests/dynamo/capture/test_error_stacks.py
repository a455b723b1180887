"""Errors of compilations are shown at the user's own line, with the calls that led there."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, List, Tuple

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.report.model.run import Place, Run  # noqa: E402
from depyf.report.read.reading import load  # noqa: E402

PROGRAM = """
import contextlib
import sys

import torch
from torch._inductor.lowering import lowerings


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(6, 2)

    def forward(self, x):
        return self.last(x)  # unfit


@torch.compile(backend="aot_eager")
def unfit(model, x):
    return model(x).sum()  # calls unfit


class Prints(torch.nn.Module):
    def forward(self, x):
        print("here")  # prints
        return x


@torch.compile(backend="eager", fullgraph=True)
def broken(model, x):
    return model(x) + 1  # calls prints


def of_mine(module, inputs):
    raise ValueError("nothing yet")  # backend


@torch.compile(backend=of_mine)
def backend(x):
    return x + 1


@torch.compile
def lowered(x):
    return x.sinh()  # calls lowering


def lowering(*args):
    raise KeyError("planted")  # lowering


torch._dynamo.config.suppress_errors = sys.argv[1] == "suppress"
lowerings[torch.ops.aten.sinh.default] = lowering
x = torch.ones(3, 5)
module = torch.compile(torch.nn.Sequential(torch.nn.Linear(6, 2)), backend="eager")
for call in (
    lambda: module(x),  # calls a module
    lambda: unfit(Model(), x),
    lambda: broken(torch.nn.Sequential(Prints()), x),
    lambda: backend(x),
    lambda: lowered(x),
):
    with contextlib.suppress(Exception):
        call()
"""
_LOWERING = importlib.import_module("torch._inductor.exc").LoweringException
LINES_OF_NODES = ["calls lowering"] if "stack_trace" in inspect.signature(_LOWERING.__init__).parameters else []
"""Errors of lowerings say from PyTorch 2.10 on which line the operation comes from."""

EXPECTED = {
    "unfit": ["calls unfit", "unfit", None],
    "broken": ["calls prints", None, "prints"],
    "backend": ["backend"],
    "lowered": [*LINES_OF_NODES, "lowering"],
    "inner": ["        call()", "calls a module", None, None],
}
"""The stacks by function: the lines by what stands behind them, None for lines of libraries."""

reports_errors = pytest.mark.skipif(
    "dynamo_error" not in inspect.getsource(torch._dynamo.convert_frame),
    reason="this PyTorch does not trace errors of compilations",
)


def lines(run: Run, stack: Tuple[Place, ...]) -> List[Any]:
    found = []
    for source, line in stack:
        text = (run.sources[source].text or "").splitlines()[line - 1] if not run.sources[source].library else None
        found.append(None if text is None else text.rpartition("# ")[2])
    return found


@reports_errors
@pytest.mark.parametrize("errors", ["raise", "suppress"])
def test_errors_are_at_the_users_own_line_with_its_stack(tmp_path: Path, errors: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "TORCH_TRACE": str(tmp_path / "trace")}
    command = [sys.executable, "-m", "depyf", "run", "-q", "-o", str(tmp_path / "dump"), str(script), errors]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    for where in ("dump", "trace"):
        (loaded,) = load([str(tmp_path / where)])
        run, found = loaded.run, {}
        for each in run.fallbacks:
            assert each.function is not None
            stack = lines(run, each.stack)
            found.setdefault(run.functions[each.function].name, stack)
            assert each.place is not None
            assert [lines(run, (each.place,))[0]] == [text for text in stack if text is not None][-1:]
        assert {name: found.get(name) for name in EXPECTED} == EXPECTED, where
        places = {finding.place for finding in run.findings}
        assert {each.place for each in run.fallbacks} <= places
    text = (tmp_path / "dump" / "eager_fallbacks_0.txt").read_text()
    own, caller = (PROGRAM[: PROGRAM.index(f"# {what}\n")].count("\n") + 1 for what in ("unfit", "calls unfit"))
    assert f", at {script}:{own}." in text
    index = (tmp_path / "dump" / "index.md").read_text()
    assert f"at program.py:{own} (in linear.py:" in index
    assert f"called from program.py:{caller}" in index


def test_watch_has_the_stack_of_an_error_that_dynamo_suppresses() -> None:
    linear = torch.nn.Linear(6, 2)

    def unfit(x: Any) -> Any:
        return linear(x)

    happened: List[Any] = []
    suppress = torch._dynamo.config.patch(suppress_errors=True)
    with suppress, depyf.watch(happened.append), pytest.raises(RuntimeError):
        torch.compile(unfit, backend="eager")(torch.ones(2, 3))
    first = happened[0]
    line = unfit.__code__.co_firstlineno + 1
    assert first.place == (__file__, line)
    assert (__file__, line, "unfit") in first.stack
    if "call_module" not in first.words:  # up to 2.6 a module of PyTorch's is called, and not traced
        assert first.stack[-1][0].endswith("linear.py")
    assert "failed for tensors without data" in first.advice
