"""The callbacks for training frameworks, each with the real one: the same training, and what it compiles is dumped."""

from __future__ import annotations

import ast
import copy
import json
import os
import pickle
from pathlib import Path
from typing import Any, List, Optional

import pytest

torch = pytest.importorskip("torch")

from depyf.dynamo.capture.hub import capture  # noqa: E402
from depyf.integrations import recording  # noqa: E402
from depyf.integrations.recording import TrainingRecord  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]


class Net(torch.nn.Module):  # type: ignore[misc]
    """A linear layer, with a graph break, in the form that the Trainer of transformers asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, x: Any, labels: Optional[Any] = None) -> Any:
        y = self.layer(x)
        torch._dynamo.graph_break()
        loss = (y.squeeze(-1) - labels).pow(2).mean()
        return {"loss": loss, "logits": y}


def data() -> List[Any]:
    generator = torch.Generator().manual_seed(0)
    return [
        {"x": torch.randn(3, generator=generator), "labels": torch.randn((), generator=generator)} for _ in range(8)
    ]


def totals(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())["totals"]


def train_by_transformers(folder: Path, callbacks: List[Any]) -> List[float]:
    import transformers

    torch.manual_seed(0)
    model = Net()
    arguments = transformers.TrainingArguments(
        str(folder / "out"),
        max_steps=4,
        per_device_train_batch_size=2,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        torch_compile=True,
        torch_compile_backend="eager",
    )
    transformers.Trainer(model, arguments, train_dataset=data(), callbacks=callbacks).train()
    return [float(value) for value in model.layer.weight.detach().flatten()]


def test_a_training_of_transformers_is_dumped_and_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from depyf.integrations.transformers import DepyfCallback

    expected = train_by_transformers(tmp_path, [])
    torch._dynamo.reset()
    capsys.readouterr()
    assert train_by_transformers(tmp_path, [DepyfCallback(tmp_path / "dump", steps=2, shadow=1)]) == expected
    assert totals(tmp_path / "dump")["graph_breaks"] == 1
    assert (tmp_path / "dump" / "index.html").exists()
    assert "full_code_for_forward_0.py" in os.listdir(tmp_path / "dump")
    said = capsys.readouterr().err
    assert "depyf: graph break forward [0/0] " in said
    assert "depyf watched: 0 recompiles, 1 graph break, 0 fallbacks" in said
    assert "of 4 calls of compiled functions checked: no finding" in said
    assert capture.current() is None


def train_by_lightning(folder: Path, callbacks: List[Any], fails_at: int = -1) -> List[float]:
    from lightning import pytorch as lightning

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()
            self.compiled = torch.compile(self.net, backend="eager")

        def training_step(self, batch: Any, index: int) -> Any:
            if index == fails_at:
                raise ZeroDivisionError
            return self.compiled(**batch)["loss"]

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.net.parameters(), lr=0.1)

    torch.manual_seed(0)
    module = Module()
    trainer = lightning.Trainer(
        max_steps=4,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=callbacks,
        default_root_dir=str(folder),
    )
    trainer.fit(module, torch.utils.data.DataLoader(data(), batch_size=2))
    return [float(value) for value in module.net.layer.weight.detach().flatten()]


@pytest.mark.filterwarnings("ignore")
def test_a_training_of_lightning_is_dumped_and_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lightning")
    from depyf.integrations.lightning import DepyfCallback

    expected = train_by_lightning(tmp_path, [])
    torch._dynamo.reset()
    capsys.readouterr()
    assert train_by_lightning(tmp_path, [DepyfCallback(tmp_path / "dump", steps=None)]) == expected
    assert totals(tmp_path / "dump")["graph_breaks"] == 1
    assert "depyf watched: 0 recompiles, 1 graph break, 0 fallbacks" in capsys.readouterr().err
    assert capture.current() is None


@pytest.mark.filterwarnings("ignore")
def test_a_training_of_lightning_that_fails_is_dumped_up_to_there(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    from depyf.integrations.lightning import DepyfCallback

    with pytest.raises(ZeroDivisionError):
        train_by_lightning(tmp_path, [DepyfCallback(tmp_path / "dump", steps=100, watch=False)], fails_at=2)
    assert totals(tmp_path / "dump")["graph_breaks"] == 1
    assert capture.current() is None


def test_only_the_first_steps_are_dumped(tmp_path: Path) -> None:
    record = TrainingRecord(tmp_path, steps=2, watches=False)
    for _ in range(2):  # of two trainings each
        record.start()
        record.start()
        assert capture.current() is not None
        record.step()
        assert capture.current() is not None
        record.step()
        assert capture.current() is None
        record.step()
        record.stop()
        record.stop()


@pytest.mark.parametrize(("steps", "error"), [(0, ValueError), (-1, ValueError), (True, TypeError), ("3", TypeError)])
def test_what_is_no_number_of_steps_is_refused(steps: Any, error: Any, tmp_path: Path) -> None:
    with pytest.raises(error, match="steps"):
        TrainingRecord(tmp_path, steps=steps, watches=False)


def test_a_copy_for_another_process_has_not_begun(tmp_path: Path) -> None:
    record = TrainingRecord(tmp_path / "dump", steps=1, watches=False)
    record.start()
    try:
        for copied in (copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
            copied.step()
            copied.stop()
        assert capture.current() is not None
    finally:
        record.stop()


def test_the_module_can_be_imported_where_classes_of_os_have_no_subscripts() -> None:
    tree = ast.parse(Path(recording.__file__).read_text())
    assigned = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    subscripted = [each.value for value in assigned for each in ast.walk(value) if isinstance(each, ast.Subscript)]
    assert not any(isinstance(each, ast.Attribute) for each in subscripted)  # Python 3.8
