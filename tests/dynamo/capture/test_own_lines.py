"""What happens in a compiled module of a library is shown at the user's line that calls it, with the calls before."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.report.read.reading import load  # noqa: E402

reports_recompiles = pytest.mark.skipif(
    "recompile_reasons" not in inspect.getsource(torch._dynamo.guards),
    reason="this PyTorch does not trace reasons of recompilations",
)


def step(model, x):
    return model(x)


HERE = inspect.getsourcelines(step)[1] + 1


def train(model):
    step(model, torch.ones(2, 4))
    model.eval()
    step(model, torch.ones(2, 4))
    for _ in range(2):
        model.append(torch.nn.ReLU())
        step(model, torch.ones(2, 4))


def compiled():
    return torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)), backend="eager")


@reports_recompiles
def test_recompilations_and_limits_are_at_the_line_that_calls_the_module(
    tmp_path: Path,
) -> None:
    limit = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
    with torch._dynamo.config.patch(**{limit: 3}), depyf.prepare_debug(str(tmp_path)):
        train(compiled())
    (loaded,) = load([str(tmp_path)])
    run = loaded.run
    here = next(number for number, source in enumerate(run.sources) if source.path == __file__), HERE
    assert len(run.recompiles) == 2
    assert len(run.fallbacks) == 1
    for each in (*run.recompiles, *run.fallbacks, *run.findings):
        assert each.place == here, each
    for recompile in run.recompiles:
        for failed in recompile.failed:
            if failed.place is not None:
                assert failed.place == here
                before = failed.stack[: failed.stack.index(here)]
                assert [source for source, _ in before][-1:] == [here[0]], "the call of step"
                assert all(run.sources[source].library for source, _ in failed.stack[len(before) + 1 :])
    index = (tmp_path / "index.md").read_text()
    assert f"test_own_lines.py:{HERE}" in index
    known = any(failed.place for recompile in run.recompiles for failed in recompile.failed)
    assert ("(in dropout.py:" in index) == known, "the line of the library is named, too, if PyTorch has it"


class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.first(self.second(x))


@reports_recompiles
def test_a_function_of_the_users_is_named_before_its_callers(tmp_path: Path) -> None:
    model = torch.compile(Own(), backend="eager")
    with depyf.prepare_debug(str(tmp_path)):
        step(model, torch.ones(2, 4))
        step(model, torch.ones(2, 4, requires_grad=True))
    (loaded,) = load([str(tmp_path)])
    ((_, line),) = (each.place for each in loaded.run.recompiles if each.place)
    lines, first = inspect.getsourcelines(Own.forward)
    assert first <= line < first + len(lines)


@reports_recompiles
def test_watch_names_the_line_that_calls_the_module() -> None:
    with depyf.watch(lambda happening: None) as watched:
        train(compiled())
    assert watched.happened
    assert {each.place for each in watched.happened} == {(__file__, HERE)}, watched.happened


def test_a_log_names_the_module_as_a_dump_does(tmp_path: Path) -> None:
    program = "import sys, torch; sys.path[:0] = [sys.argv[1]]; from test_own_lines import *; train(compiled())"
    environment = {**os.environ, "TORCH_TRACE": str(tmp_path)}
    command = [sys.executable, "-c", program, os.path.dirname(__file__)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    guards = [log.read_text() for log in tmp_path.iterdir()]  # PyTorch 2.2 writes none
    if not any(re.search(r"TYPE_MATCH: .*L\['fn'\].*type=<class", log) for log in guards):
        pytest.skip("the log of this PyTorch does not have the class")
    (loaded,) = load([str(tmp_path)])
    names = {each.name: each.qualified_name for each in loaded.run.functions}
    assert names["inner"] == "Sequential.forward"
