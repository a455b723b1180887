"""``find_nonfinite`` on a model of transformers, and in a Jupyter kernel."""

from __future__ import annotations

import io
import os
import runpy
from pathlib import Path

import pytest
from torch_versions import needs_stances

torch = pytest.importorskip("torch")

import depyf  # noqa: E402

pytestmark = [pytest.mark.torch, needs_stances]

CELLS = (
    """
import torch, depyf
@torch.compile(backend="aot_eager")
def loss(x):
    scaled = x * 2
    return torch.log(scaled).sum()
""",
    """
with depyf.find_nonfinite({!r}) as found:
    print(loss(torch.tensor([-1.0, 1.0], requires_grad=True)))
""",
    "found",
)


def test_in_a_notebook_it_is_told_and_shown(tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    pytest.importorskip("jupyter_client")
    from notebook import notebook

    with notebook(dict(os.environ)) as kernel:
        results = [kernel.run(cell.format(str(tmp_path))) for cell in CELLS]
    assert [result.status for result in results] == ["ok"] * 3, [result.printed for result in results]
    assert "tensor(nan" in results[1].printed
    assert "depyf: NaN first made by aten.log.default" in results[1].printed
    assert "return torch.log(scaled).sum()" in results[1].printed
    assert "NaN first made by aten.log.default" in results[2].html
    assert "return torch.log(scaled).sum()" in results[2].html


@pytest.mark.usefixtures("fresh_dynamo")
def test_an_overflow_in_a_transformer_is_found(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=100
    )
    model = transformers.BertModel(config)
    compiled = torch.compile(model, backend="aot_eager")
    tokens = torch.randint(0, 100, (2, 16))
    with depyf.find_nonfinite(str(tmp_path), stream=io.StringIO()) as found:
        compiled(tokens).last_hidden_state.sum().backward()
    assert not found, str(found)
    with torch.no_grad():
        model.encoder.layer[1].intermediate.dense.weight.mul_(1e20)
        model.encoder.layer[1].intermediate.dense.bias.fill_(3e38)
    with depyf.find_nonfinite(str(tmp_path), stream=io.StringIO()) as found:
        compiled(tokens).last_hidden_state.sum().backward()
    first = found.first
    if first.operation != "aten.gelu.default":
        pytest.skip(f"on this processor the activation does not overflow first, {first.operation} does")
    assert (first.kind, first.backward) == ("Inf", False)
    assert "layer" in first.module
    assert "intermediate" in first.module
    assert first.line.file.endswith("activations.py")
    assert first.steps[0].operation == "aten.addmm.default"  # where it becomes NaN
    assert first.steps[0].line.file.endswith("modeling_bert.py")
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(first.replay)
    assert ended.value.code == 0
