"""The benchmark of what a session costs prints what it has measured so far."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


def test_each_run_is_printed_when_it_ends(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))  # for what it imports
    spec = importlib.util.spec_from_file_location("benchmark_of_cost", BENCHMARKS / "cost.py")
    assert spec is not None
    assert spec.loader is not None
    cost = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, cost)  # its dataclasses look for their module
    spec.loader.exec_module(cost)
    seconds = iter([10.0, 12.0])

    def run(*_: object) -> Any:
        return cost.Run(next(seconds), {"enter": 0.1, "run": 9.0}, 400.0)

    monkeypatch.setattr(cost, "run", run)
    with pytest.raises(StopIteration):  # the benchmark is stopped in its third run
        cost.measure("storm", "eager", ["plain", "attached"], False, 2)
    assert capsys.readouterr().err.splitlines() == [
        "storm, eager, plain: 10.00 s of CPU (enter 0.10, run 9.00), 400 MiB",
        "storm, eager, attached: 12.00 s of CPU (enter 0.10, run 9.00), 400 MiB",
    ]
