"""``compare`` and ``extract`` on a transformer, and in a Jupyter kernel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from torch_versions import needs_stances

pytestmark = [pytest.mark.torch, needs_stances]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402


def bert() -> Any:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
    )
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, 6:] = 0
    return transformers.BertModel(config), {"input_ids": torch.randint(0, 64, (2, 9)), "attention_mask": mask}


def test_a_transformer_is_compared_and_a_wrong_activation_found(tmp_path: Path) -> None:
    model, inputs = bert()
    assert depyf.compare(model, backend="aot_eager", **inputs).same

    def roughly(module: Any, _: Any) -> Any:
        for node in module.graph.nodes:
            if "gelu" in str(node.target):
                node.kwargs = {**node.kwargs, "approximate": "tanh"}
        module.recompile()
        return module

    answer = depyf.compare(model, backend=roughly, directory=str(tmp_path), **inputs)
    assert answer.stage == "roughly"
    assert answer.culprit is not None
    assert "gelu" in answer.culprit.operation
    assert answer.culprit.place is not None
    assert answer.culprit.place[0].endswith("transformers/activations.py")


@pytest.mark.slow
def test_a_graph_of_a_transformer_runs_as_a_script(tmp_path: Path) -> None:
    model, inputs = bert()
    compiled = torch.compile(model, backend="aot_eager")
    answer = depyf.extract(compiled, "Backward_graph", path=str(tmp_path / "backward.py"), **inputs)
    assert answer.runs, answer.output
    assert answer.notes == ()


CELL = """
import torch, depyf

def backend(module, inputs):
    for node in module.graph.nodes:
        if node.target == "exp":
            node.target = "exp2"
    module.recompile()
    return module

def branching(x):
    y = x * 3
    z = y.exp()
    return z + 1

depyf.compare(branching, torch.ones(3), backend=backend)
"""


@pytest.mark.slow
def test_answers_are_shown_in_a_kernel(tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    pytest.importorskip("jupyter_client")
    from notebook import notebook

    with notebook(dict(os.environ)) as kernel:
        first = kernel.run(CELL)
        assert first.status == "ok", first.printed
        assert "z = y.exp()" in first.html
        assert "<td>the backend (backend)</td>" in first.html
        second = kernel.run(
            "compiled = torch.compile(branching, backend='aot_eager'); compiled(torch.ones(3))\n"
            f"depyf.extract(compiled, None, torch.ones(3), path={str(tmp_path / 'graph.py')!r})"
        )
        assert second.status == "ok", second.printed
        assert "it runs, and gives the same compiled as eagerly" in second.html
