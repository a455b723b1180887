"""``install`` adds decompiled source to torch's bytecode log."""

from __future__ import annotations

import logging

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import depyf  # noqa: E402


def hooks() -> int:
    return len(torch._dynamo.convert_frame._bytecode_hooks)


def test_installing_twice_and_uninstalling_twice_is_once() -> None:
    before = hooks()
    depyf.install()
    depyf.install()
    assert hooks() == before + 1
    depyf.uninstall()
    depyf.uninstall()
    assert hooks() == before


def test_the_source_is_logged_when_the_bytecode_log_is_on(caplog: pytest.LogCaptureFixture) -> None:
    torch._logging.set_logs(bytecode=True)
    log = torch._dynamo.convert_frame.bytecode_log
    log.addHandler(caplog.handler)
    depyf.install()
    try:
        torch._dynamo.reset()
        result = torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    finally:
        depyf.uninstall()
        log.removeHandler(caplog.handler)
        torch._logging.set_logs()
    assert torch.equal(result, torch.ones(2) + 1)
    messages = [record.getMessage() for record in caplog.records]
    assert any("DECOMPILED <lambda>" in message and "return" in message for message in messages)


def test_nothing_is_decompiled_when_the_log_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr("depyf.dynamo.dump.bytecode_log.decompile_code", called.append)
    depyf.install()
    try:
        logging.getLogger("torch._dynamo").setLevel(logging.WARNING)
        torch._dynamo.reset()
        torch.compile(lambda x: x - 1, backend="eager")(torch.ones(2))
    finally:
        depyf.uninstall()
    assert called == []
