"""Graphs that backends and passes print or send to PyTorch's trace are files and stages, as with depyf 0.20."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List, Optional

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

from torch._dynamo.utils import lazy_format_graph_code  # noqa: E402  - as passes do, before any session

import depyf  # noqa: E402
from depyf.report.read.reading import load  # noqa: E402

LONG = "export of {'L__self__': ('', 'M')} " + "x" * 300


def send_to_trace(kind: str, name: str, text: str) -> bool:
    """As vLLM does; False where this PyTorch has no trace."""
    send = getattr(torch._logging._internal, "trace_structured", None)
    if send is not None:
        send(kind, metadata_fn=lambda: {"name": name, "encoding": "string"}, payload_fn=lambda: text)
    return send is not None


class Backend:
    def __init__(self, *titles: str) -> None:
        self.titles = titles
        self.traced = False

    def __call__(self, graph: Any, inputs: Any) -> Any:
        for title in self.titles:
            lazy_format_graph_code(title, graph)
        self.traced = send_to_trace("graph_dump", "of_a_splitter", graph.print_readable(print_output=False))
        send_to_trace("artifact", "of a pass", str(graph.graph))
        send_to_trace("artifact", "no_graph", "import this")
        return graph


def doubled(x: Any) -> Any:
    return x * 2


def dumped(directory: Path, backend: Any) -> List[str]:
    with depyf.prepare_debug(directory):
        torch.compile(doubled, backend=backend)(torch.ones(3))
    return sorted(path.name for path in directory.iterdir())


def stages(names: List[str]) -> List[str]:
    """The names without that of the compiled function, and without the ending."""
    return [name.partition(".")[2][: -len(".py")] for name in names if name.startswith("__compiled_fn_")]


def test_every_graph_that_is_printed_is_a_file_of_that_name(tmp_path: Path) -> None:
    backend = Backend("before split", "post_grad.0.FusionPass.before", "post_grad.0.FusionPass.after", "before split")
    found = stages(dumped(tmp_path, backend))
    printed = ["before_split.0", "before_split.1", "post_grad.0.FusionPass.before.0", "post_grad.0.FusionPass.after.0"]
    assert set(printed) <= set(found)
    if backend.traced:
        assert {"of_a_splitter.0", "of_a_pass.0"} <= set(found)
        assert "no_graph.0" not in found
    assert not [name for name in found if name.startswith("__compiled_fn")], "Dynamo's own is Captured_Graph"
    for path in tmp_path.glob("*.py"):
        ast.parse(path.read_text())
    (text,) = (path.read_text() for path in tmp_path.glob("*FusionPass.before.0.py"))
    assert "mul" in text
    assert text.startswith("# post_grad.0.FusionPass.before of __compiled_fn_")


def test_they_are_stages_in_the_order_in_which_they_were_printed(tmp_path: Path) -> None:
    dumped(tmp_path, Backend("z first", "a second", "m third"))
    artifacts: List[Dict[str, Any]] = json.loads((tmp_path / "manifest.json").read_text())["artifacts"]
    graphs = sorted((each for each in artifacts if each["kind"] == "graph"), key=lambda each: each.get("order", 0))
    names = [each["stage"] for each in graphs]
    at = [names.index(name) for name in ("Captured_Graph", "z_first", "a_second", "m_third")]
    assert at == sorted(at)


def test_a_dump_without_its_manifest_has_them_too(tmp_path: Path) -> None:
    dumped(tmp_path, Backend("post_grad.0.FusionPass.before"))
    (tmp_path / "manifest.json").unlink()
    (loaded,) = load([str(tmp_path)])
    assert "post_grad.0.FusionPass.before" in {artifact.stage for artifact in loaded.run.artifacts}


def test_titles_that_no_file_can_have(tmp_path: Path) -> None:
    found = stages(dumped(tmp_path, Backend("../a/b: {c}", LONG, "", "..")))
    assert "_a_b___c_.0" in found
    assert "graph.0" in found
    assert all(len(name) < 120 for name in found)


def test_a_graph_that_no_module_owns_is_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def backend(graph: Any, inputs: Any) -> Any:
        lazy_format_graph_code("of nobody", None)
        return graph

    assert not [name for name in dumped(tmp_path, backend) if "of_nobody" in name]
    assert not [record for record in caplog.records if record.name == "depyf"]


def test_modules_that_took_the_function_at_any_time_have_torchs_own_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = lazy_format_graph_code
    late: Optional[ModuleType] = None

    def backend(graph: Any, inputs: Any) -> Any:
        nonlocal late
        late = ModuleType("imported_while_it_compiles")
        monkeypatch.setitem(sys.modules, late.__name__, late)
        exec("from torch._dynamo.utils import lazy_format_graph_code", vars(late))
        vars(late)["lazy_format_graph_code"]("late", graph)
        return graph

    assert "late.0" in stages(dumped(tmp_path, backend))
    assert late is not None
    assert vars(late)["lazy_format_graph_code"] is own
    assert lazy_format_graph_code is own
    assert torch._dynamo.utils.lazy_format_graph_code is own
