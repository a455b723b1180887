"""What a session tells about each compilation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.capture.compilations import compilations, graph_break  # noqa: E402
from depyf.dynamo.capture.session import Session  # noqa: E402
from depyf.torch_trace.events import Event  # noqa: E402
from depyf.torch_trace.stages import Stage  # noqa: E402


def captured(function: Any, *calls: Any, directory: Path) -> Session:
    torch._dynamo.reset()
    with depyf.prepare_debug(directory) as prepared:
        compiled = torch.compile(function, backend="aot_eager")
        for arguments in calls:
            compiled(*arguments)
    assert prepared.session is not None
    return prepared.session


def test_a_graph_break_is_told_with_the_line_and_the_reason(tmp_path: Path) -> None:
    def broken(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    first, resumed = compilations(captured(broken, (torch.ones(2),), directory=tmp_path))
    (found,) = first.graph_breaks
    assert (found.filename, found.line) == (__file__, broken.__code__.co_firstlineno + 2)
    assert "graph_break" in found.reason
    assert "User code traceback" not in found.reason
    assert (first.function, first.filename) == ("broken", __file__)
    assert resumed.function is not None
    assert resumed.function.startswith(("torch_dynamo_resume_in_broken_at_", "resume_in_broken"))
    assert resumed.graph_breaks == ()


def test_a_recompilation_is_told_with_its_reason_files_and_time(tmp_path: Path) -> None:
    def again(x: Any) -> Any:
        return x.sin() + 1

    first, second = compilations(
        captured(again, (torch.ones(2),), (torch.ones(2, dtype=torch.float64),), directory=tmp_path)
    )
    assert first.recompile_reasons == ()
    assert any("dtype mismatch" in reason for reason in second.recompile_reasons)
    for each in (first, second):
        assert each.transformed is not None
        assert each.compiled_function in each.transformed.graphs
        stages = {graph.stage for graph in each.graphs if isinstance(graph.stage, Stage)}  # the others are printed
        assert stages == {Stage.CAPTURED, Stage.FORWARD}
        assert each.seconds is not None
        assert 0 < each.seconds < 600
        assert each.backward_seconds is None


def test_a_message_of_another_form_is_told_as_it_is() -> None:
    found = graph_break(Event("dynamo_graph_break_reason", "0/0", 0, {}, "something else", 0.0))
    assert (found.filename, found.line, found.reason) == (None, None, "something else")
