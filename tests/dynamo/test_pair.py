"""The requirements for every pair of a Python and a PyTorch: all frames proved, all files Python, the same results."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

INDUCTOR = pytest.param("inductor", marks=pytest.mark.inductor)
SLOW = pytest.mark.slow


def check(printed: str) -> None:
    report = json.loads(printed.split("REPORT")[-1])
    assert report["frames"]
    assert (report["unproved"], report["unparsable"], report["same"]) == ([], [], True)
    assert any(name.startswith("full_code_for_") for name in report["files"])


@pytest.mark.parametrize("backend", ["eager", "aot_eager", INDUCTOR])
def test_the_example_of_the_readme(run_program: Any, tmp_path: Path, backend: str) -> None:
    check(run_program("verified_step.py", "branch", backend, tmp_path))


@pytest.mark.parametrize(
    "backend",
    [pytest.param("eager", marks=SLOW), "aot_eager", pytest.param("inductor", marks=[pytest.mark.inductor, SLOW])],
)
def test_two_training_steps_of_a_small_bert(run_program: Any, tmp_path: Path, backend: str) -> None:
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    check(run_program("verified_step.py", "bert", backend, tmp_path))
