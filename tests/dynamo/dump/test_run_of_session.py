"""What the model of a session says about each compilation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.dump.manifest import run_of  # noqa: E402
from depyf.report.model.run import Run  # noqa: E402
from depyf.torch_trace.stages import Stage  # noqa: E402


def run_of_calls(function: Callable[..., object], *calls: object, directory: Path) -> Run:
    torch._dynamo.reset()
    with depyf.prepare_debug(directory) as prepared:
        compiled = torch.compile(function, backend="aot_eager")
        for argument in calls:
            compiled(argument)
    assert prepared.session is not None
    return run_of(prepared.session)


def test_a_graph_break_has_its_line_and_its_reason(tmp_path: Path) -> None:
    def broken(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    run = run_of_calls(broken, torch.ones(2), directory=tmp_path)
    (found,) = run.breaks
    assert found.place is not None
    source, line = found.place
    assert (run.sources[source].path, line) == (__file__, broken.__code__.co_firstlineno + 2)
    assert "graph_break" in found.reason
    assert "User code traceback" not in found.reason
    first, resumed = run.compilations
    assert found.compile_id == first.compile_id
    assert first.function is not None
    assert resumed.function is not None
    assert run.functions[first.function].name == "broken"
    assert run.functions[resumed.function].resumes == first.function


def test_a_recompilation_has_its_reason_its_files_and_its_time(tmp_path: Path) -> None:
    def again(x: Any) -> Any:
        return x.sin() + 1

    run = run_of_calls(again, torch.ones(2), torch.ones(2, dtype=torch.float64), directory=tmp_path)
    first, second = run.compilations
    (recompile,) = run.recompiles
    assert recompile.compile_id == second.compile_id
    assert any("dtype mismatch" in failed.text for failed in recompile.failed)
    for each in (first, second):
        assert each.transformed is not None
        assert each.graph in [call.graph for call in each.calls]
        own = [artifact for artifact in run.artifacts if artifact.compile_id == each.compile_id]
        assert {Stage.CAPTURED.value, Stage.FORWARD.value} <= {artifact.stage for artifact in own}
        assert each.seconds is not None
        assert 0 < each.seconds < 600
        assert each.backward_seconds is None
