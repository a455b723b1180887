"""``depyf memory``: what the graphs of a log keep alive; PyTorch is not needed."""

from __future__ import annotations

from pathlib import Path
from typing import List

import pytest

from depyf.cli import main

LOGS = Path(__file__).resolve().parents[1] / "report" / "logs"


def test_a_log_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", str(LOGS / "torch_2_7.log.gz")]) == 0
    every = capsys.readouterr().out
    assert main(["memory", str(LOGS / "torch_2_7.log.gz"), "0/0"]) == 0
    one = capsys.readouterr().out
    assert one in every
    assert one.startswith("0/0 forward: ")
    assert " at most at traced.py:" in one


@pytest.mark.parametrize(("graph", "words"), [(["nonsense"], "graphs is nonsense"), ([], "no graph of AOTAutograd")])
def test_nothing_to_show_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], graph: List[str], words: str
) -> None:
    path = tmp_path / "manifest.json"
    path.write_text('{"schema": 1}')
    assert main(["memory", str(LOGS / "torch_2_7.log.gz") if graph else str(path), *graph]) == 2
    assert words in capsys.readouterr().err
