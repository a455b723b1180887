"""A dump in which nothing was compiled says why."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any, Callable, Tuple

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

from torch_versions import IS_OLD  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.hooks import frame_evaluation  # noqa: E402


def doubled(x: Any) -> Any:
    return x * 2


def tripled(x: Any) -> Any:
    """As ``doubled``, which a test above disables: up to PyTorch 2.7 it stays so."""
    return x * 3


def number() -> int:
    return 3


def stance(name: str) -> Any:
    return torch.compiler.set_stance(name)


REASONS = {
    "force_eager": "torch.compiler.set_stance('force_eager') was in force (doubled)",
    "config": "torch._dynamo.config.disable was set",
    "environment": "TORCHDYNAMO_DISABLE=1 is set in the environment",
    "disabled": "torch.compiler.disable keeps Dynamo out (doubled)",
    "no tensors": "Dynamo looked at number and compiled nothing of it",
    "disable=True": "no function that torch.compile has made was called, or none that Dynamo was let into",
    "nothing": "no function that torch.compile has made was called",
}


def case(kind: str, monkeypatch: pytest.MonkeyPatch) -> Tuple[Any, Callable[[], object]]:
    x = torch.ones(2)
    compiled = torch.compile(doubled, backend="eager", disable=kind == "disable=True")
    if kind == "force_eager":
        return stance(kind), lambda: compiled(x)
    if kind == "config":
        return torch._dynamo.config.patch(disable=True), lambda: compiled(x)
    if kind == "environment":
        monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
        return contextlib.nullcontext(), lambda: torch.compile(doubled, backend="eager")(x)
    if kind == "disabled":
        return contextlib.nullcontext(), lambda: torch.compiler.disable(compiled)(x)
    if kind == "no tensors":
        return contextlib.nullcontext(), torch.compile(number, backend="eager")
    return contextlib.nullcontext(), (lambda: compiled(x)) if kind == "disable=True" else (lambda: None)


@pytest.mark.parametrize("kind", REASONS)
def test_what_kept_it_empty_is_said(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if not frame_evaluation.has_stances():
        pytest.skip("PyTorch before 2.6 does not tell of calls that it runs as plain Python")
    caplog.set_level(logging.WARNING, "depyf")
    context, call = case(kind, monkeypatch)
    with depyf.prepare_debug(tmp_path) as prepared, context:
        call()
    torch._dynamo.reset()
    (message,) = [record.getMessage() for record in caplog.records if record.name == "depyf"]
    reason = REASONS["nothing" if kind == "no tensors" and IS_OLD else kind]  # it says nothing of empty graphs
    for text in (message, (tmp_path / "index.md").read_text(), (tmp_path / "manifest.json").read_text()):
        assert reason in text
    assert "nothing was compiled" in str(prepared) or "no graph was compiled" in str(prepared)


def test_calls_that_ran_as_plain_python_are_noted_beside_what_was_compiled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if not frame_evaluation.has_stances():
        pytest.skip("PyTorch before 2.6 does not tell of calls that it runs as plain Python")
    caplog.set_level(logging.WARNING, "depyf")
    compiled = torch.compile(tripled, backend="aot_eager")
    with depyf.prepare_debug(tmp_path):
        compiled(torch.ones(2))
        with stance("force_eager"):
            compiled(torch.ones(2))
    assert [record for record in caplog.records if record.name == "depyf"] == []
    index = (tmp_path / "index.md").read_text()
    assert "torch.compiler.set_stance('force_eager') was in force: tripled ran as plain Python" in index
    assert "nothing was compiled" not in index
