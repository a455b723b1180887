"""What torch describes only because depyf asks it to does not fail the compilation where it can't be described."""

from __future__ import annotations

import inspect
import json
import logging
from pathlib import Path
from typing import Any, List

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.hooks import torch_names  # noqa: E402
from depyf.dynamo.hooks.structured_trace_listener import TRACE_LOGGER, listen  # noqa: E402
from depyf.torch_trace.events import PHASE, Event  # noqa: E402

needs_trace = pytest.mark.skipif(
    torch_names.find("torch._logging._internal", "trace_structured") is None,
    reason="this PyTorch has no structured trace",
)


def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the handlers of pytest's, which reads all loggers that do not pass on what they get, in each phase."""
    monkeypatch.setattr(logging.getLogger(TRACE_LOGGER), "handlers", [])


class _Meta(type):
    def __repr__(cls) -> str:
        raise ValueError("hostile")


class _Hostile(metaclass=_Meta):
    value = 2


class _Module(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x + getattr(self, "\udcff")


def run(kind: str) -> Any:
    torch._dynamo.reset()
    if kind == "attribute":
        module = _Module()
        setattr(module, "\udcff", 2)
        return torch.compile(module, backend="eager")(torch.ones(2)).tolist()
    hostile = _Hostile()
    return torch.compile(lambda x: x + hostile.value, backend="eager")(torch.ones(2)).tolist()


@pytest.mark.parametrize("kind", ["attribute", "class"])
def test_a_program_that_torch_can_not_describe_compiles_with_depyf_as_without(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_listens(monkeypatch)
    expected = run(kind)
    with depyf.prepare_debug(tmp_path):
        assert run(kind) == expected
    assert list(tmp_path.glob("__transformed_code_0_*"))


@needs_trace
def test_what_torch_can_not_report_is_said_and_goes_on_only_to_those_who_listen_themselves(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_listens(monkeypatch)
    internal = torch_names.module("torch._logging._internal")
    original = internal.trace_structured
    received: List[Any] = []
    parameters = inspect.signature(original).parameters
    untraced = {"expect_trace_id": False} if "expect_trace_id" in parameters else {}  # since PyTorch 2.6

    def fails() -> str:
        raise UnicodeEncodeError("utf-8", "\udcff", 0, 1, "hostile")

    first, second = listen(received.append), listen(received.append)
    try:
        with caplog.at_level(logging.WARNING, "depyf"):
            internal.trace_structured("something", payload_fn=fails, **untraced)
        first()
        internal.trace_structured("something", payload_fn=fails, **untraced)  # one of ours still listens
        other = logging.NullHandler()
        logging.getLogger(TRACE_LOGGER).addHandler(other)
        with pytest.raises(UnicodeEncodeError):
            internal.trace_structured("something", payload_fn=fails, **untraced)
        logging.getLogger(TRACE_LOGGER).removeHandler(other)
    finally:
        first()
        second()
    assert internal.trace_structured is original
    assert any("having PyTorch report something" in record.getMessage() for record in caplog.records)


@needs_trace
def test_phases_are_the_same_whether_the_program_listens_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, depyf is handed phases without torch's records of them."""

    def phases(*, programs: bool) -> List[Any]:
        torch._dynamo.reset()
        nobody_listens(monkeypatch)
        logger, theirs = logging.getLogger(TRACE_LOGGER), logging.NullHandler()
        received: List[Event] = []
        if programs:
            logger.addHandler(theirs)
        undo = listen(received.append)
        try:
            torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        finally:
            undo()
            logger.removeHandler(theirs)
        found = [(json.loads(each.payload or "{}"), each) for each in received if each.name == PHASE]
        return [
            (data["ph"], data["name"], (each.compile_id or "").rpartition("/")[2], each.attempt)
            for data, each in found
            if data["ph"] in "BE"
        ]

    alone = phases(programs=False)
    assert alone == phases(programs=True)
    assert len(alone) > 4 or not alone  # a PyTorch that has no phases
