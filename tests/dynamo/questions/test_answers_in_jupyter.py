"""The questions with one call each, in the cells of a notebook: their results are shown as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Dict

import pytest
from torch_versions import needs_stances

pytestmark = [pytest.mark.torch, needs_stances]
pytest.importorskip("torch")
pytest.importorskip("ipykernel")
pytest.importorskip("jupyter_client")

from notebook import Notebook, notebook  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.hooks import torch_names  # noqa: E402

MODEL = """
import io, torch, depyf

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x, scale=1.0):
        hidden = self.layer(x).relu() * scale
        print(end="")
        return torch.log(hidden.sum() - 1000.0 * (scale == 3.0))

torch.manual_seed(0)
model = Model()
compiled = torch.compile(model, backend="aot_eager")
x = torch.rand(2, 4, requires_grad=True)
compiled(x).backward()
"""

WHY = """
answer = depyf.why(compiled, x, 2.0)
assert answer.would_compile
answer
"""

WATCH = """

told = io.StringIO()
with depyf.watch(stream=told) as watched:
    compiled(x, 2.0)
print(told.getvalue())
assert {each.kind for each in watched.happened} >= {"recompile"}
"""

TRACE = """
with depyf.trace() as record:
    for _ in range(5):
        compiled(x).backward()
assert 5 in record.counts.values(), record.counts
record
"""

PROBE = """
with depyf.probe("forward.hidden") as values:
    compiled(x)
assert torch.allclose(values["forward.hidden"][0].value, model.layer(x).relu())
values
"""

FIND = """
with depyf.find_nonfinite({directory!r}, stream=io.StringIO()) as found:
    compiled(x, 3.0)
assert "log" in found.first.operation, found.first
found
"""

COMPARE = """
answer = depyf.compare(torch.nn.Linear(4, 2), torch.rand(3, 4), backend="aot_eager")
answer
"""

EXTRACT = """
graph = next(total.thing.name for total in record.totals if total.thing.kind == "graph")
answer = depyf.extract(compiled, graph, path={path!r})
assert answer.runs, answer
answer
"""


def shown(kernel: Notebook, cell: str) -> str:
    """The HTML of a cell's value."""
    result = kernel.run(cell)
    assert result.status == "ok", result.printed
    return result.html


def asked(kernel: Notebook, directory: Path) -> Dict[str, str]:
    """What the cells show, by the calls."""
    assert kernel.run(MODEL).status == "ok"
    cells = {"why": WHY, "trace": TRACE}
    if torch_names.find("torch._dynamo.eval_frame", "_callback_from_stance") is not None:
        cells.update(probe=PROBE, find_nonfinite=FIND.format(directory=str(directory / "nonfinite")), compare=COMPARE)
        if hasattr(depyf, "extract"):
            cells["extract"] = EXTRACT.format(path=str(directory / "graph.py"))
    return {name: shown(kernel, cell) for name, cell in cells.items()}


def test_every_question_is_answered_in_a_notebook(program_environment: Dict[str, str], tmp_path: Path) -> None:
    with notebook(program_environment) as kernel:
        answers = asked(kernel, tmp_path)
        watched = kernel.run(WATCH.replace("2.0", "4.0"))
    assert watched.status == "ok", watched.printed
    assert "depyf: recompile forward" in watched.printed
    assert "scale is" in answers["why"]
    # The first turn may have a frame of ipykernel's own in it, which prints: Dynamo looks at that once.
    assert "5 times" in answers["trace"] or "4 times" in answers["trace"], answers["trace"]
    assert "__compiled_fn" in answers["trace"]
    if "probe" in answers:
        assert "Tensor" in answers["probe"] or "mul" in answers["probe"]
        assert "aten.log.default" in answers["find_nonfinite"]
        assert answers["compare"]
    if "extract" in answers:
        assert (tmp_path / "graph.py").exists()
    for name, html in answers.items():
        assert html.startswith("<"), name
