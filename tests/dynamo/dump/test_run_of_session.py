"""The model of a session has the facts of each compilation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch_versions import BACKWARD_HAS_MODULES  # noqa: E402

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


def test_both_sides_of_a_branch_go_on_at_their_own_lines(tmp_path: Path) -> None:
    def branching(x: Any) -> Any:
        y = x + 1
        if y.sum() > 0:
            y = y * 2
        else:
            y = y * 3
        return y + 1

    run = run_of_calls(branching, torch.ones(2), -torch.ones(2) * 3, directory=tmp_path)
    first = branching.__code__.co_firstlineno
    calls = [call for call in run.compilations[0].calls if call.function is not None]
    assert sorted(call.resumes_at or 0 for call in calls) == [first + 3, first + 5]
    assert {run.functions[call.function or 0].resumes_at for call in calls} == {first + 2}


def test_sides_of_a_branch_far_into_a_function_go_on_at_their_own_lines(tmp_path: Path) -> None:
    """The offsets in names of resume functions do not count the prefixes of large arguments."""

    def branching(x: Any) -> Any:
        x = x.sin().cos().sin().cos().sin().cos().sin().cos().sin().cos().sin().cos().sin().cos().sin().cos()
        torch._dynamo.graph_break()
        x = x.sin().cos().sin().cos().sin().cos().sin().cos().sin().cos().sin().cos().sin().cos().sin().cos()
        if x.sum() > 9:
            x = x * 2
        else:
            x = x.sin().cos().sin().cos().sin().cos().sin().cos().sin().cos().sin().cos().sin().cos()
        if x.sum() > 99:
            x = x * 3
        return x + 1

    run = run_of_calls(branching, torch.ones(2), directory=tmp_path)
    first = branching.__code__.co_firstlineno
    by_entry = [[call for call in each.calls if call.function is not None] for each in run.compilations]
    sides = [[call.resumes_at for call in calls] for calls in by_entry if len(calls) == 2]
    assert sides == [[first + 5, first + 7], [first + 9, first + 10]]


def test_a_method_on_the_stack_of_a_break_has_its_name_in_the_program(tmp_path: Path) -> None:
    class Tracker:
        def __init__(self) -> None:
            self.seen: Any = []

    def tracked(x: Any, tracker: Any) -> Any:
        x = x.sin()
        tracker.seen.append(x.sum().item())
        return x + 1

    torch._dynamo.reset()
    with depyf.prepare_debug(tmp_path) as prepared:
        compiled = torch.compile(tracked, backend="eager")
        for _ in range(3):
            compiled(torch.randn(3), Tracker())
    assert prepared.session is not None
    run = run_of(prepared.session)
    if not run.recompiles or run.recompiles[0].cause.startswith("number"):
        pytest.skip("this PyTorch does not guard the method")
    assert all("tracker.seen.append" in each.failed[0].words for each in run.recompiles)
    assert any("tracker.seen.append" in each.text for each in run.findings)


def test_operations_are_nested_by_the_modules_that_they_were_called_in(tmp_path: Path) -> None:
    class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.up = torch.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.up(x).relu()

    model = torch.nn.Sequential(Block(), Block())
    run = run_of_calls(model, torch.ones(2, 2), directory=tmp_path)
    with_modules = [each for each in run.artifacts if each.modules]
    assert {each.backward for each in with_modules} == {True, None} or len(with_modules) == 2
    for graph in with_modules:
        named = [(part.name.split(".", 1)[-1], part.type) for part in graph.modules]
        if graph.backward and not BACKWARD_HAS_MODULES:
            continue
        assert {("0", "Block"), ("0.up", "Linear"), ("1", "Block"), ("1.up", "Linear")} <= set(named)
        for part in graph.modules:
            assert part.parent is None or graph.modules[part.parent].name == part.name.rpartition(".")[0]
        text = (tmp_path / (graph.path or "")).read_text()
        assert all(f" {node}" in text for part in graph.modules for node in part.nodes)


def test_a_side_of_a_branch_with_nothing_to_compile_is_a_function_of_its_own(tmp_path: Path) -> None:
    def branching(x: Any) -> Any:
        y = x + 1
        if y.sum() > 0:
            return y
        return y * 3

    run = run_of_calls(branching, torch.ones(2), -torch.ones(2) * 3, directory=tmp_path)
    first, *others = run.compilations
    sides = [call.function for call in first.calls if call.function is not None]
    assert len(set(sides)) == 2
    assert {each.function for each in others} == set(sides)
