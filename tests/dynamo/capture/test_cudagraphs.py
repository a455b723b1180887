"""PyTorch's log records of CUDA graphs that it skips while code runs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.dump.manifest import run_of  # noqa: E402
from depyf.dynamo.hooks import torch_names  # noqa: E402


def test_a_message_of_torchs_is_a_finding(tmp_path: Path) -> None:
    log = torch_names.find("torch._inductor.cudagraph_utils", "log_cudagraph_skip_and_bump_counter")
    if log is None:  # PyTorch 2.2 logs it as a hint
        log = logging.getLogger("torch._inductor.compile_fx.__perf_hints").warning
    with depyf.prepare_debug(tmp_path) as session:
        log("skipping cudagraphs due to mutated inputs (1 instances)")
        log("skipping cudagraphs due to mutated inputs (1 instances)")
        run = run_of(session.session)
    log("skipping cudagraphs due to something later")
    assert [(each.compile_id, each.reason) for each in run.cudagraph_skips] == [(None, "mutated inputs (1 instances)")]
    assert [each.title for each in run.findings] == ["CUDA graphs are not used: mutated inputs (1 instances)"]
    assert "mutated inputs" in (tmp_path / "index.md").read_text()
    assert "later" not in (tmp_path / "index.md").read_text()
